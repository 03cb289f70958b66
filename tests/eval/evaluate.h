// The eager evaluator: what a tensor graph means, node by node on host arrays (docs/graph.md, "Tensor
// graph"). It is the third opinion beside compiled code and the interpreter, so it uses nothing of the
// library but the nodes themselves.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "eval/array.h"

namespace pg::eval {

/// Gives the contents of Buffer and Param leaves, and the values (0-d arrays) of ScalarParam and of a Var
/// that is not under a Bind.
using Leaves = std::function<Array(Ref leaf)>;

/// The value of a tensor-graph node. Throws InternalError on a graph that means nothing: shapes that do not
/// fit, a view written in which an element occurs twice, an op that has no place in a tensor graph, a leaf of
/// another shape.
Array evaluate(Ref node, const Leaves& leaves);
/// Several nodes over one memory of what was computed.
std::vector<Array> evaluate(std::span<const Ref> nodes, const Leaves& leaves);
/// Nodes without leaves.
Array evaluate(Ref node);

}  // namespace pg::eval
