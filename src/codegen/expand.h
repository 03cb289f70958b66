// Unrolls UPCAST and UNROLL loops into copies and turns the LANE loop into vectors.
#pragma once

#include "ir/build.h"

namespace pg::codegen {

/// The kernel without Upcast, Unroll and Lane ranges. A Reduce comes out with as many values as it unrolled
/// (their number is in its axes), then its remaining ranges; a vector Reduce of a lane loop folds its lanes
/// at the end.
Ref expand(Ref kernel);

}  // namespace pg::codegen
