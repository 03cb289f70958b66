// What runs side by side: ranges of threads, groups and work-items become hardware indices.
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// The kernel with Special nodes in place of Thread, Global, Warp, Local and GroupReduce ranges. On a target
/// with groups the output loops of constant size are Global; where there are more than three, or one is
/// longer than the device takes, they are packed into fewer, and what fits nowhere stays a loop.
Ref assign_launch(Ref kernel, const Target& target);

}  // namespace pg::codegen
