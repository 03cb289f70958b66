// Generated kernels against what the machine does at best and against rivals, measured in the same run.
#include "kernels.h"

#include "figure.h"
#include "rival.h"
#include <pangrad/tensor.h>

namespace pg::bench {

void kernels() {
  Rival::introduce();
  Tensor::manual_seed(0);
  products();
  convolutions();
  memory_bound();
  selections();
  models();
  searching();
}

}  // namespace pg::bench
