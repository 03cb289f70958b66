// Panels: values that are computed once, put into memory close by, and read from there many times. STAGE
// becomes scratch memory of a thread with the loops that fill it; a reduction shared by the items of a group
// becomes shared memory, a barrier, and the sum of what the items found.
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// The kernel without Stage nodes and without reductions over GroupReduce ranges; those ranges stay open.
Ref lower_stages(Ref kernel, const Target& target);

}  // namespace pg::codegen
