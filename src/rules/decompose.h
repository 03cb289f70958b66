// What a target cannot do, in terms of what it can: functions, narrow floats, threefry before index
// arithmetic gets its dtypes; shifts for powers of two and the like after.
#pragma once

#include "ir/target.h"
#include "rewrite/rewrite.h"

namespace pg::rules {

/// Rules that leave only ops and dtypes the target computes. The Target is the context of the rewrite.
const RuleSet& decompose();
/// Cheaper forms of integer arithmetic, once dtypes are fixed.
const RuleSet& late();

}  // namespace pg::rules
