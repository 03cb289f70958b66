#include "rules/symbolic.h"

#include <array>

#include <gtest/gtest.h>

#include "rewrite/fuzz.h"

namespace pg {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

class Symbolic : public testing::Test {
 protected:
  static std::string simplified(Ref x) {
    return expression_text(rewrite(x, rules::symbolic(), {.name = "test"}));
  }
  static Ref leaf(int number, DType t = i32) { return param(number, t, shape_node(Dims{})); }
  GraphScope scope;
  Ref i = range(0, RangeKind::Loop, idx(10)), j = range(1, RangeKind::Loop, idx(10));
  Ref a = leaf(0), b = leaf(1), f = leaf(2, f32), p = leaf(3, DType::Bool), q = leaf(4, DType::Bool);
};

TEST_F(Symbolic, SumsCollectTheirTerms) {
  EXPECT_EQ(simplified((i * 2) + 5 + (i * 4) + (j * 2) + j), "(((r0*6)+(r1*3))+5)");
  EXPECT_EQ(simplified(i + j - i), "r1");
  EXPECT_EQ(simplified((i + 3) * 4 - 12), "(r0*4)");
  EXPECT_EQ(simplified((a + b) - (b + a)), "0");
  EXPECT_EQ(simplified(a - (a - b)), "p1");
  EXPECT_EQ(simplified(j + 1 + i + 2), "((r0+r1)+3)");
  EXPECT_EQ(simplified(-(-a)), "p0");
  EXPECT_EQ(simplified((a * 3) * 5), "(p0*15)");
  EXPECT_EQ(simplified((a + b) * 3), expression_text((a + b) * 3)) << "data keeps its operation count";
  Ref doubled = i;
  for (int k = 0; k < 100; ++k) doubled = doubled + doubled;
  EXPECT_EQ(simplified(doubled), "0") << "2^100 is 0 modulo 2^64";
  Ref data = leaf(0, u8);
  for (int k = 0; k < 8; ++k) data = data + data;
  EXPECT_EQ(simplified(data), "0");
}

TEST_F(Symbolic, ALongSumCostsTimeLinearInItsLength) {
  Ref sum = idx(0);
  for (int k = 0; k < 20'000; ++k) sum = sum + range(100 + k, RangeKind::Loop, idx(7)) * (k % 5 + 1);
  RewriteStats before = rewrite_stats();
  rewrite(sum, rules::symbolic(), {.name = "test"});
  EXPECT_LT(rewrite_stats().nodes - before.nodes, 400'000u);
}

TEST_F(Symbolic, ComparisonsHaveOneForm) {
  EXPECT_EQ(simplified(i + 3 < idx(5)), "(r0<2)");
  EXPECT_EQ(simplified(i - 3 < idx(0)), "(r0<3)");
  EXPECT_EQ(simplified(-i < idx(-3)), "(3<r0)");
  EXPECT_EQ(simplified(logical_not(i < idx(3))), "(2<r0)");
  EXPECT_EQ(simplified(i * 2 + j * 2 < idx(7)), "((r0+r1)<4)");
  EXPECT_EQ(simplified(i * 4 + j % 4 < idx(8)), "(r0<2)");
  EXPECT_EQ(simplified(i / 4 < idx(2)), "(r0<8)");
  EXPECT_EQ(simplified(i - j < idx(0)), "(r0<r1)");
  EXPECT_EQ(simplified(i < i + 1), "true");
  EXPECT_EQ(simplified(i < idx(10)), "true");
  EXPECT_EQ(simplified(eq(i * 2, idx(5))), "false");
  EXPECT_EQ(simplified(eq(i + 2, idx(5))), "(r0==3)");
  EXPECT_EQ(simplified(eq(a + 2, int_const(i32, 5))), "(p0==3)");
  EXPECT_EQ(simplified(a + 2 < int_const(i32, 5)), "((p0+2)<5)") << "it may wrap";
  EXPECT_EQ(simplified(logical_not(f < leaf(5, f32))), "!(p2<p5)") << "NaN";
}

TEST_F(Symbolic, GatesAreSetsOfClauses) {
  EXPECT_EQ(simplified((i < idx(3)) & (i < idx(5))), "(r0<3)");
  EXPECT_EQ(simplified((i < idx(3)) | (i < idx(5))), "(r0<5)");
  EXPECT_EQ(simplified((i < idx(3)) & logical_not(i < idx(3))), "false");
  EXPECT_EQ(simplified((i < idx(5)) | logical_not(i < idx(3))), "true");
  EXPECT_EQ(simplified(logical_not(i < idx(3)) & (i < idx(4))), "(r0==3)");
  EXPECT_EQ(simplified((i < idx(4)) & ne(i, idx(3))), "(r0<3)");
  EXPECT_EQ(simplified(logical_not(logical_not(p) | logical_not(q))), expression_text(p & q));
  EXPECT_EQ(simplified((p | q) & q), "p4");
  EXPECT_EQ(simplified(p ^ p), "false");
  EXPECT_EQ(simplified(p < q), expression_text(logical_not(p) & q));
}

TEST_F(Symbolic, ChoicesFold) {
  EXPECT_EQ(simplified(where(p, where(p, a, b), a * b)), expression_text(where(p, a, a * b)));
  EXPECT_EQ(simplified(where(p, where(q, a, b), b)), expression_text(where(p & q, a, b)));
  EXPECT_EQ(simplified(where(logical_not(p), a, b)), "Where(p3, p1, p0)");
  EXPECT_EQ(simplified(where(p, q, bool_const(false))), expression_text(p & q));
  EXPECT_EQ(simplified(where(a < b, a, b)), expression_text(min(a, b)));
  EXPECT_EQ(simplified(where(i < idx(5), idx(1), idx(0)) * 4 < idx(3)), "(4<r0)");
  EXPECT_EQ(simplified(where(f < leaf(5, f32), f, f)), "p2");
}

TEST_F(Symbolic, FloatsChangeOnlyWhereEveryBitStays) {
  Ref zero = float_const(f32, 0), minus_zero = float_const(f32, -0.0), one = float_const(f32, 1);
  EXPECT_EQ(simplified(f * one), "p2");
  EXPECT_EQ(simplified(f + minus_zero), "p2");
  EXPECT_EQ(simplified(f - zero), "p2");
  EXPECT_EQ(simplified(f / one), "p2");
  EXPECT_EQ(simplified(-(-f)), "p2");
  EXPECT_EQ(simplified(max(f, f)), "p2");
  EXPECT_EQ(simplified(f / float_const(f32, 8)), "(p2*0.125000)");
  for (Ref kept : {f + zero, f - minus_zero, f * zero, f - f, f / f, f / float_const(f32, 3), (f + one) + one,
                   ne(f, f), eq(f, f), f * float_const(f32, 2)})
    EXPECT_EQ(simplified(kept), expression_text(kept));
}

TEST_F(Symbolic, CastsThatLoseNothingGo) {
  Ref small = leaf(5, i8), half = leaf(6, f16);
  EXPECT_EQ(simplified(cast(cast(small, i32), i8)), "p5");
  EXPECT_EQ(simplified(cast(cast(small, i32), i64)), "i64(p5)");
  EXPECT_EQ(simplified(cast(cast(half, f32), f16)), "p6");
  EXPECT_EQ(simplified(cast(cast(f, f16), f32)), "f32(f16(p2))");
  EXPECT_EQ(simplified(cast(cast(a, i16), i8)), "i8(p0)");
  EXPECT_EQ(simplified(cast(cast(a, i8), i32)), "i32(i8(p0))");
  EXPECT_EQ(simplified(cast(cast(small, f32), u8)), "u8(f32(p5))") << "saturates, where a cast from i8 wraps";
  EXPECT_EQ(simplified(ne(cast(p, i32), int_const(i32, 0))), "p3");
  EXPECT_EQ(simplified(cast(p, f32) < float_const(f32, 1)), "!p3");
  EXPECT_EQ(simplified(bitcast(bitcast(f, i32), f32)), "p2");
}

TEST_F(Symbolic, WhatIsTheSameInEveryLaneIsComputedOnce) {
  Ref v = make(Op::Add, i32, 1, std::array<Ref, 2>{a, b});
  Ref lanes[2] = {splat(v, 8), splat(a, 8)};
  Ref product = intern(Op::Mul, i32, 8, lanes);
  EXPECT_TRUE(rewrite(product, rules::symbolic(), {.name = "test"}).is(Op::Splat));
}

TEST_F(Symbolic, ResultsAreRememberedUntilNodesAreFreed) {
  Ref x = (i * 4 + j) / 2 + (j * 6 + 3) % 4;
  Ref once = rewrite(x, rules::symbolic(), {.name = "test"});
  RewriteStats before = rewrite_stats();
  EXPECT_TRUE(same(rewrite(x, rules::symbolic(), {.name = "test"}), once));
  EXPECT_TRUE(same(rewrite(once, rules::symbolic(), {.name = "test"}), once));
  EXPECT_EQ(rewrite_stats().attempts, before.attempts);
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
