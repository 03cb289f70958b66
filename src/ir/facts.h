// What is known of a node from its parts: bounds of integers, and the shape rule of each op.
#pragma once

#include "ir/node.h"

namespace pg {

/// Fills lo and hi of a new node from its sources.
void set_bounds(Node* node);

}  // namespace pg
