// What the files of the graph benchmark share.
#pragma once

#include "ir/node.h"
#include "script_times.h"
#include "tensor/cell.h"
#include <pangrad/tensor.h>

namespace pg::bench {

/// What a tensor's value is in the graph.
inline UOp node_of(const Tensor& x) {
  GraphScope scope;
  return detail::read(x, "bench").node;
}

/// ResNet-50 from trace to code; process start; first steps.
void compile(const ScriptTimes& rival);
/// The demo's first training step beyond a steady one, compiled anew and from disk.
void first_steps();
/// What the child process of the figure of process starts does: x + 1, and its result read. Returns the exit
/// status: 2 if LLVM was opened.
int first_result();

}  // namespace pg::bench
