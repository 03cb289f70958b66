// The simplifier: rule lists that hold bit for bit for every integer, bool and float. What every stage runs
// between its own rewrites. Integers take one canonical form: subtraction is x + y * -1, sums and products
// are sorted chains with collected terms and their constant last, comparisons have positive terms only and
// their constant at the right where there is a choice. On weak integers (indices) constants are distributed
// over sums; data keeps its operation count.
#pragma once

#include "rewrite/rewrite.h"

namespace pg::rules {

/// The algebra and the divisions below: the simplifier as the compiler uses it on kernels and sizes. Not for
/// tensor graphs, where an operand may give a result its shape.
const RuleSet& symbolic();

/// Identities of floats, integers and bools, where, casts, sums, products, comparisons, bool algebra.
const RuleSet& algebra();
/// Floor division and modulo, and sums that recombine them.
const RuleSet& divmod();

/// Chains of movements in tensor graphs: what merges, cancels or moves nothing; operands that broadcast
/// anyway; a Cat of very many. A node that is no movement never becomes one, so that the views of writes
/// still end at what is written.
const RuleSet& movement();

}  // namespace pg::rules
