// Comparisons of integers and the bool algebra of gates: normal forms, decisions by bounds, clauses of AND
// and OR that others imply.
#pragma once

#include <absl/container/inlined_vector.h>

#include "rewrite/rewrite.h"

namespace pg::rules {

Ref less_rule(const Match& m);     // CmpLt of integers
Ref equal_rule(const Match& m);    // CmpEq and CmpNe of integers
Ref clauses_rule(const Match& m);  // And and Or of bools

/// What a comparison with a constant says of an integer: lo <= x <= hi. Null x where it is none.
struct Interval {
  Ref x;
  std::int64_t lo, hi;
};
Interval interval_of(Ref clause);

/// Negation, pushed into comparisons of integers where that costs nothing.
Ref negated(Ref p);

}  // namespace pg::rules
