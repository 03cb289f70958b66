// Rule sets by name, for text tests and tools that take a pass from outside.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "rewrite/rewrite.h"

namespace pg::rules {

/// The set of that name; "a + b" joins sets. Throws ValueError on unknown names, listing the known.
RuleSet named(std::string_view name);
/// All names, sorted.
std::vector<std::string> names();
/// Gives a set a name, also one of a room above this. A later one takes the place of an earlier.
void add_named(std::string_view name, std::function<RuleSet()> set);

}  // namespace pg::rules
