#include "rewrite/fuzz.h"

#include <gtest/gtest.h>

namespace pg {
namespace {

using namespace pat;

// The faults found, one of each rule, as "line: ...".
std::vector<std::uint32_t> wrong_lines(const RuleSet& rules) {
  std::vector<std::uint32_t> lines;
  for (const std::string& fault : fuzz_rules(rules).faults) {
    EXPECT_NE(fault.find("fuzz_test.cpp:"), std::string::npos) << fault;
    lines.push_back(static_cast<std::uint32_t>(std::stoul(fault.substr(fault.find(".cpp:") + 5))));
  }
  return lines;
}

TEST(Fuzz, FindsEachWrongRuleAndNoOther) {
  static constexpr Rule kRules[] = {
      rule(x + 0.0, x, floats),                                  // -0.0
      rule(x + -0.0, x, floats),                                 //
      rule(x * 0, Pat(0), floats),                               // infinity, NaN
      rule(x * 0, Pat(0), ints),                                 //
      rule(x < y, logical_not(y < x), ints),                     // equal
      rule((x * c0) / c0, x, ints, when(c0 > 0)),                // wraps
      rule((x * c0) / c0, x, indices, when(c0 > 0)),             //
      rule(x % c0, x, ints, when(hi(x) < c0)),                   // negative
      rule(x % c0, x, ints, when(lo(x) >= 0 && hi(x) < c0)),     //
      rule(where(p, x, y), where(p, y, x)),                      //
      rule(max(x, y) < c0, x < c0, ints),                        //
      rule((x + y) + z, x + (y + z), floats),                    // rounds twice
      rule(div(x, y), x * div(Pat(1.0), y), floats),             // rounds twice
      rule(x / x, Pat(1), ints),                                 // 0
      rule(node(Op::CDiv, x, y), x / y, ints, when(hi(y) > 0)),  // negative
      rule((x << c0) << c1, x << (c0 + c1), ints),               // c0 + c1 wraps
      rule(neg(x) < neg(y), y < x, ints),                        // the least number
      rule(neg(x) < neg(y), y < x, floats),                      //
  };
  std::vector<std::uint32_t> expected;
  for (int i : {0, 2, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16}) expected.push_back(kRules[i].line);
  EXPECT_EQ(wrong_lines(RuleSet(kRules)), expected);
}

TEST(Fuzz, FindsRulesOfAnotherDtypeOrWidth) {
  static constexpr Rule kRules[] = {
      rule(x < y, x & y),
      rule(
          x + y, [](const Match& m) { return m.root.lanes() > 1 ? int_const(m.root.dtype(), 1) : m.root; },
          ints)};
  EXPECT_EQ(wrong_lines(RuleSet(kRules)).size(), 2u);
}

TEST(Fuzz, NamesRulesThatNeverApply) {
  static constexpr Rule kRules[] = {rule(x + y, y, ints, when(lo(x) > hi(x))), rule(x & x, x, ints)};
  FuzzReport report = fuzz_rules(RuleSet(kRules));
  ASSERT_EQ(report.unfired.size(), 1u);
  EXPECT_EQ(report.unfired[0]->line, kRules[0].line);
}

TEST(Fuzz, GraphsFindWrongFunctionsAndRulesThatDoNotSettle) {
  static constexpr Rule kWrong[] = {rule(any(Op::FloorDiv), [](const Match& m) {
    return alu(Op::CDiv, {m.root.src(0), m.root.src(1)});  // differs below zero
  })};
  EXPECT_FALSE(fuzz_graphs(RuleSet(kWrong), FuzzKind::Indices).faults.empty());
  static constexpr Rule kRestless[] = {rule(x + y, (x - y) + (y + y), ints)};
  EXPECT_FALSE(fuzz_graphs(RuleSet(kRestless), FuzzKind::Data).faults.empty());
  static constexpr Rule kRight[] = {rule((x + c0) + c1, x + (c0 + c1), ints)};
  EXPECT_TRUE(fuzz_graphs(RuleSet(kRight), FuzzKind::Data).faults.empty());
  EXPECT_TRUE(fuzz_graphs(RuleSet(kRight), FuzzKind::Reshapes).faults.empty());
}

TEST(Fuzz, EqualSeedsMakeEqualExpressions) {
  GraphScope scope;
  for (FuzzKind kind : {FuzzKind::Indices, FuzzKind::Reshapes, FuzzKind::Data}) {
    std::vector<Ref> a = random_expressions(kind, {.seed = 3, .rounds = 20}),
                     b = random_expressions(kind, {.seed = 3, .rounds = 20}),
                     c = random_expressions(kind, {.seed = 4, .rounds = 20});
    int different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(same(a[i], b[i]));
      different += !same(a[i], c[i]);
    }
    EXPECT_GT(different, 10);
  }
}

TEST(Fuzz, EvaluateNeedsAValueForEachLeaf) {
  GraphScope scope;
  Ref a = var("a", 0, 9), b = var("b", 0, 9);
  EXPECT_EQ(evaluate(a * 3 + b, {{a.node(), int_scalar(4)}, {b.node(), int_scalar(5)}})->i, 17);
  EXPECT_FALSE(evaluate(a * 3 + b, {{a.node(), int_scalar(4)}}));
  EXPECT_FALSE(evaluate(alu(Op::Sin, {float_const(f32, 1)}), {}));
}

}  // namespace
}  // namespace pg
