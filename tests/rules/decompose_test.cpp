// The rules that come after the simplifier keep values, each alone and together.
#include "rules/decompose.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "rewrite/fuzz.h"
#include "rules/named.h"

namespace pg {
namespace {

void expect_sound(const FuzzReport& report) {
  for (const std::string& fault : report.faults) ADD_FAILURE() << fault;
  EXPECT_GT(report.points, 1000u);
}

// Functions and the like are no exact ops: tests of their own know how exact they are.
bool is_function(Op op) {
  return op == Op::Threefry || op == Op::Reduce || ((info(op).flags & kElementwise) && !is_exact(op));
}

Target without_narrow_floats() {
  Target t = Target::null();
  for (DType narrow : {f16, bf16}) t.computes.remove(narrow);
  return t;
}

TEST(DecomposeFuzz, EachLateRuleKeepsItsValue) {
  FuzzReport report = fuzz_rules(rules::late());
  expect_sound(report);
  for (const Rule* rule : report.unfired)
    ADD_FAILURE() << rule->file << ":" << rule->line << " never applied";
}

TEST(DecomposeFuzz, LateRulesSettle) {
  for (FuzzKind kind : {FuzzKind::Indices, FuzzKind::Reshapes, FuzzKind::Data})
    expect_sound(fuzz_graphs(rules::named("late"), kind, {.rounds = 1000}));
}

TEST(DecomposeFuzz, EachRuleOfWhatATargetLacksKeepsItsValue) {
  Target target = without_narrow_floats();
  FuzzReport report = fuzz_rules(rules::decompose(), {.ctx = &target});
  expect_sound(report);
  for (const Rule* rule : report.unfired)
    if (!is_function(rule->left.nodes[0].op))
      ADD_FAILURE() << rule->file << ":" << rule->line << " never applied";
}

TEST(DecomposeFuzz, WhatATargetLacksIsGone) {
  Target target = without_narrow_floats();
  expect_sound(fuzz_graphs(rules::decompose(), FuzzKind::Data, {.rounds = 2000, .ctx = &target}));
}

}  // namespace
}  // namespace pg
