// The laws of the specs that concern more than a node and its sources: loops, and the order of a program.
// first_range is also how the code generator tells values from loops.
#pragma once

#include <optional>
#include <string>

#include "ir/node.h"

namespace pg::rules {

struct Offence {
  Ref node;
  std::string why;
};

/// Kernel graphs: every range is closed, by one End or by Reduces that do not nest, and nothing uses it from
/// there on.
std::optional<Offence> broken_loop(std::span<const Ref> order);

/// Programs: values stand before their users and are used inside the loop that makes them; loops and Ifs
/// nest.
std::optional<Offence> broken_order(Ref linear);

/// Where the ranges begin among the sources of an End, a Reduce of a kernel, or a Stage.
int first_range(Ref closer);

}  // namespace pg::rules
