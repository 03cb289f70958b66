// The simplifier: rule lists that hold bit for bit for every integer, bool and float. What every stage runs
// between its own rewrites. Integers take one canonical form: subtraction is x + y * -1, sums and products
// are sorted chains with collected terms and their constant last, comparisons have positive terms only and
// their constant at the right where there is a choice. On weak integers (indices) constants are distributed
// over sums; data keeps its operation count.
#pragma once

#include "rewrite/rewrite.h"

namespace pg::rules {

/// Everything below: the simplifier as the compiler uses it. On a tensor graph run it with `shaped`.
const RuleSet& symbolic();

/// Identities of floats, integers and bools, where, casts, sums, products, comparisons, bool algebra.
const RuleSet& algebra();
/// Floor division and modulo, and sums that recombine them.
const RuleSet& divmod();

}  // namespace pg::rules
