// The cost model: good options for a kernel on a target without running anything. Bytes and instructions of
// the inner loop are counted for every way to lay vectors and register tiles over the loops; the cheapest
// wins.
#pragma once

#include <vector>

#include "codegen/options.h"
#include "ir/target.h"

namespace pg::codegen {

/// Options for the kernel, in the order to apply them.
std::vector<Opt> choose_options(Ref kernel, const Target& target);

}  // namespace pg::codegen
