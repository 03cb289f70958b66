#include "rules/gates.h"

#include <gtest/gtest.h>

#include "rewrite/fuzz.h"
#include "rules/symbolic.h"

namespace pg {
namespace {

class Gates : public testing::Test {
 protected:
  static Ref simplified(Ref x) { return rewrite(x, rules::symbolic(), {.name = "test"}); }
  static std::string given(Ref x, Ref gate) {
    return expression_text(rules::simplify_given(simplified(x), simplified(gate)));
  }
  static std::string gate(Ref g) { return expression_text(rules::simplify_gate(g)); }
  static Ref r(int id, std::int64_t extent) { return range(id, RangeKind::Loop, idx(extent)); }
  static Ref within(Ref x, std::int64_t lo, std::int64_t end) { return ge(x, idx(lo)) & (x < end); }
  GraphScope scope;
};

TEST_F(Gates, BoundsOfARangeAreThoseOfTheGate) {
  Ref i = r(0, 10);
  EXPECT_EQ(given(i % 4, i < 4), "r0");
  EXPECT_EQ(given(i / 4, within(i, 4, 8)), "1");
  EXPECT_EQ(given(i % 4, within(i, 4, 8)), "(r0+-4)");
  EXPECT_EQ(given(where(i < 5, i, idx(0)), i < 5), "r0");
  EXPECT_EQ(given(max(i - 3, idx(0)), ge(i, idx(3))), "(r0+-3)");
  EXPECT_EQ(given(i * 2, eq(i, idx(3))), "6");
  EXPECT_EQ(given(i % 4, i < 5), "(r0%4)");
}

TEST_F(Gates, APaddedImageIsReadWithoutDivisions) {
  Ref y = r(0, 28), x = r(1, 28), ky = r(2, 3), kx = r(3, 3);
  Ref row = y + ky - 1, column = x + kx - 1, inside = within(row, 0, 28) & within(column, 0, 28);
  Ref flat = row * 28 + column;
  EXPECT_EQ(given(flat / 28, inside), expression_text(simplified(row)));
  EXPECT_EQ(given(flat % 28, inside), expression_text(simplified(column)));
  EXPECT_EQ(given(flat % 784, inside), expression_text(simplified(flat)));
  EXPECT_EQ(given(flat / 784, inside), "0");
}

TEST_F(Gates, OneBoundImpliesAnother) {
  Ref i = r(0, 10), j = r(1, 10);
  EXPECT_EQ(gate((i < 3) & (i < 5)), "(r0<3)");
  EXPECT_EQ(gate((i + j < 15) & (i < 3) & (j < 4)), "((r1<4)&(r0<3))");
  EXPECT_EQ(gate((i < 3) & (j < 4) & ge(i + j, idx(6))), "false");
  EXPECT_EQ(gate((i < 3) & ge(i, idx(5))), "false");
  EXPECT_EQ(gate((i * 4 + j < 20) & (i < 2) & (j < 8)), "((r1<8)&(r0<2))");
}

TEST_F(Gates, GatedLoadsAreSimplified) {
  std::int64_t size[] = {100};
  Ref buffer = param(0, f32, shape_node(Dims(size))), i = r(0, 16), ok = i < 4;
  Ref at[3] = {buffer, i % 4, ok};
  Ref index = make(Op::Index, f32, 1, at);
  Ref load = make(Op::Load, f32, {index}), zero = float_const(f32, 0);
  RuleSet rules = rules::symbolic() + rules::gates();
  EXPECT_EQ(expression_text(rewrite(where(ok, load, zero), rules, {.name = "test"})),
            "Load(Index(p0, r0, (r0<4)))");
  at[2] = r(1, 3) < 5;
  EXPECT_EQ(
      expression_text(rewrite(make(Op::Load, f32, {make(Op::Index, f32, 1, at)}), rules, {.name = "test"})),
      "Load(Index(p0, (r0%4)))");
  at[2] = i < idx(-1);
  EXPECT_EQ(
      expression_text(rewrite(make(Op::Load, f32, {make(Op::Index, f32, 1, at)}), rules, {.name = "test"})),
      "0.000000");
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(GatesFuzz, GatesAndWhatTheyGateKeepTheirValue) {
  static constexpr Rule kAnd[] = {
      rule(pat::any(Op::And), [](const Match& m) { return rules::simplify_gate(m.root); }, bools)};
  RuleSet rules = rules::symbolic() + rules::gates() + RuleSet(kAnd);
  EXPECT_EQ(joined(fuzz_graphs(rules, FuzzKind::Reshapes, {.rounds = 1500}).faults), "");
  EXPECT_EQ(joined(fuzz_graphs(rules, FuzzKind::Indices, {.rounds = 1500}).faults), "");
}

}  // namespace
}  // namespace pg
