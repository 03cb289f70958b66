// From the graph of a kernel to instructions in order: every value in the outermost loop it can live in,
// reductions that share their loops in one loop with an accumulator each.
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// Weak integers become the target's index dtype, or i64 where their bounds need it; vectors of them stay
/// narrow.
Ref lower_indices(Ref kernel, const Target& target);

/// The accumulator of a reduction with one value more. In a sum a product joins with one rounding: allowed in
/// reductions only.
Ref joined(Ref reduce, Ref acc, Ref value, const Target& target);

/// The Linear of a kernel without Upcast, Unroll and Lane ranges and without weak dtypes.
Ref linearize(Ref kernel, const Target& target);

}  // namespace pg::codegen
