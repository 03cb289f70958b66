// What each stage of the graph may hold: docs/graph.md as lists of rules. A node that no rule allows is a bug
// in the pass before, and is named with its surroundings. Passes call check between them; it is off unless
// SPEC is set.
#pragma once

#include <span>
#include <string_view>

#include "rewrite/rewrite.h"

namespace pg::rules {

enum class Stage : std::uint8_t { Tensor, Call, Schedule, Kernel, Program };
/// "tensor", "call", "schedule", "kernel", "program".
std::string_view name(Stage stage);
/// The stage of that name. Throws ValueError on others.
Stage parse_stage(std::string_view text);

/// The rules of a stage: a node is allowed if one of them gives something. Laws about more than a node and
/// its sources (loops, order) are not among them. Their context is private to verify.
const RuleSet& spec(Stage stage);

/// Throws InternalError if the graph under the roots breaks the laws of the stage: "[spec] <where>: ...".
/// Only tensors have more than one root. Inside a GraphScope.
void verify(std::span<const Ref> roots, Stage stage, std::string_view where);
inline void verify(Ref root, Stage stage, std::string_view where) {
  verify(std::span<const Ref>(&root, 1), stage, where);
}

/// Whether check does anything: SPEC is set, or always_check.
bool checking();
void set_always_check(bool on);

/// verify, if that is wanted.
inline void check(Ref root, Stage stage, std::string_view where) {
  if (checking()) verify(root, stage, where);
}

}  // namespace pg::rules
