// Division and modulo by constants, as functions that return normal forms: what makes the index arithmetic of
// reshapes vanish. Rounds down (floor), as Op::FloorDiv and Op::FloorMod do.
#pragma once

#include "rules/sum.h"

namespace pg::rules {

/// s / c and s % c for an Exact sum and c > 0. Null if a number would not fit.
Ref quotient(Sum s, std::int64_t c);
Ref residue(Sum s, std::int64_t c);

/// Joins pairs of terms that are the parts of one value: (x/c)*c + x%c is x, (x/a%b)*a + x%a is x % (a*b).
/// True if any was found.
bool recombine(Sum& s);

/// True if 0 <= x < y whatever the values: by bounds, or since x is a range of extent y or a remainder by y.
bool is_within(Ref x, Ref y);

}  // namespace pg::rules
