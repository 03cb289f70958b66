// A fixed piece of work up to a stage, for counting instructions: `program model|trace|schedule|lower`.
// Nothing runs a kernel, so that an emulator without the newest instructions can count.
#include <cstdio>
#include <string_view>

#include <absl/container/flat_hash_set.h>

#include "../bench/resnet.h"
#include "base/flags.h"
#include "codegen/compile.h"
#include "engine/engine.h"
#include "ir/target.h"
#include "tensor/cell.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

// The target is not this machine's: the same work everywhere.
void run(std::string_view stage) {
  ScopedFlag nowhere("DEV", "NULL"), memory_only("CACHE", 1);
  bench::ResNet50 net;
  for (const Tensor& t : parameters(net)) t.realize();
  Tensor x = Tensor::empty({64, 3, 224, 224});
  NoGrad no_grad;
  if (stage == "model") return;
  // Short stages several times: what comes before varies by a thousandth.
  Tensor y;
  for (int i = 0; i < 10; ++i) y = net(x);
  if (stage == "trace") return;
  UOp root;
  {
    GraphScope scope;
    root = detail::read(y, "instructions").node;
  }
  schedule::Schedule s;
  for (int i = 0; i < 5; ++i) s = engine::plan({&root, 1});
  if (stage == "schedule") return;
  GraphScope scope;
  absl::flat_hash_set<Node*> seen;
  Target target = Target::null();
  for (Node* call : s.linear.ref().srcs())
    if (seen.insert(call->src[0]).second) codegen::lower(call->src[0], target);
  if (stage != "lower") throw Error("[instructions] there is no such stage");
}

}  // namespace
}  // namespace pg

int main(int argc, char** argv) try {
  pg::run(argc > 1 ? argv[1] : "");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
