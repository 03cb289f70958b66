// Kernels that run several nests of loops one after the other in the turns of shared outer loops: the sums of
// a row, then what is made of the row with them. Each nest has lanes and copies of its own.
#pragma once

#include <vector>

#include "codegen/kernel.h"

namespace pg::codegen {

/// The nests of a kernel, each as a kernel of its own whose loops have the numbers they have in the whole;
/// the output loops that all of them share, and those in whose turns one stands, as masks over Kernel::loops.
/// One nest alone: none.
struct Nests {
  std::vector<Ref> kernels;
  std::uint64_t shared = 0, outer = 0;
};
Nests nests_of(const Kernel& kernel);

}  // namespace pg::codegen
