// Scalar arithmetic by values: whether two expressions of the same leaves agree, bit for bit, on many inputs.
#pragma once

#include <string>

#include "ir/node.h"

namespace pg::text_test {

/// What differs, with the inputs; empty if nothing does, or if the graphs are more than scalar arithmetic.
std::string difference(Ref a, Ref b);

/// Whether difference can tell anything about the graph.
bool is_scalar_arithmetic(Ref root);

}  // namespace pg::text_test
