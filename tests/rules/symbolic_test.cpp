#include "rules/symbolic.h"

#include <gtest/gtest.h>

#include "rewrite/fuzz.h"

namespace pg {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(SymbolicFuzz, EachRuleKeepsItsValue) {
  FuzzReport report = fuzz_rules(rules::symbolic());
  EXPECT_EQ(joined(report.faults), "");
  for (const Rule* rule : report.unfired)
    ADD_FAILURE() << rule->file << ":" << rule->line << " never applied";
}

TEST(SymbolicFuzz, IndicesKeepTheirValue) {
  FuzzReport report = fuzz_graphs(rules::symbolic(), FuzzKind::Indices, {.rounds = 3000});
  EXPECT_EQ(joined(report.faults), "");
}

TEST(SymbolicFuzz, ReshapedIndicesKeepTheirValue) {
  FuzzReport report = fuzz_graphs(rules::symbolic(), FuzzKind::Reshapes, {.rounds = 3000});
  EXPECT_EQ(joined(report.faults), "");
}

TEST(SymbolicFuzz, DataKeepsItsValue) {
  FuzzReport report = fuzz_graphs(rules::symbolic(), FuzzKind::Data, {.rounds = 3000});
  EXPECT_EQ(joined(report.faults), "");
}

}  // namespace
}  // namespace pg
