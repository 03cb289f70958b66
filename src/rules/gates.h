// What may be assumed where a gate holds: gates lose clauses that others imply, gated indices lose the
// divisions, choices and bounds that the gate decides.
#pragma once

#include "rewrite/rewrite.h"

namespace pg::rules {

/// An expression that equals x wherever the bool `gate` is true, and is no more work. Inside a GraphScope. It
/// may read out of bounds where the gate is false, so what it computes must not be used there.
Ref simplify_given(Ref x, Ref gate);

/// The same bool from fewer clauses.
Ref simplify_gate(Ref gate);

/// Gated Index, Load and Store, and Where on indices: their gates and what these gate. To be joined with
/// symbolic().
const RuleSet& gates();

/// What the kernels of a schedule are simplified by: symbolic(), and sums of which one term counts are that
/// term.
const RuleSet& kernels();

}  // namespace pg::rules
