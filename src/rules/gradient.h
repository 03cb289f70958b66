// Gradient rules: what the gradient of a node means for the nodes it was computed from. A list like every
// other; the walk that applies it is in src/tensor/gradient.cpp.
#pragma once

#include "rewrite/rewrite.h"

namespace pg::rules {

/// A rule sees Tuple(node, node, g), where g is the gradient of the node (in its shape and dtype), and gives
/// Tuple(source, gradient, source, gradient, ...): nodes that the first was computed from with their shares,
/// each of a shape that broadcast from the source's. A node with no rule has no gradient: ops on integers,
/// comparisons.
const RuleSet& gradient();

/// The movement that undoes n, on a value of n's shape: what came from one element is summed up, what came
/// from none is dropped. Null if n is no movement.
Ref transpose_movement(Ref n, Ref g);

/// The sum over axes that lies under movements of g taken together with this one, so that both are one
/// reduction.
Ref sum_through(Ref g, std::uint64_t axes);

/// True if the gradient of this op multiplies by something that may be infinite or NaN where the gradient is
/// 0.
bool may_spoil_zero(Ref n);

}  // namespace pg::rules
