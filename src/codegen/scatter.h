// Scatters: a reduction whose values each name the one element of the output that they join,
//   out[i, c] = sum over r of (rows[r] == i ? x[r, c] : 0),
// is no product with a one-hot matrix but one step for each value, in order: out[rows[r], c] += x[r, c].
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// The loop of the output that the values of the kernel's reduction name: null if they name none. Loops of
/// threads may already be split off it; otherwise before any option.
Ref named_loop(Ref kernel);

/// The kernel with that loop gone: it stores what every element begins with, then each value where it
/// belongs, equal places in the order of the reduction. Null if it is not of that kind. After every other
/// option.
Ref scatter(Ref kernel, Ref loop, const Target& target);

}  // namespace pg::codegen
