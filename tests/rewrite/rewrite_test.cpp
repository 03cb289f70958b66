#include "rewrite/rewrite.h"

#include <gtest/gtest.h>

#include "base/flags.h"
#include "rewrite/fuzz.h"

namespace pg {
namespace {

using namespace pat;

class Rewrite : public testing::Test {
 protected:
  static Ref leaf(int number, DType t = i32) { return param(number, t, shape_node(Dims{})); }
  static Ref once(const Rule& rule, Ref node, void* ctx = nullptr) {
    return RuleSet(std::span<const Rule>(&rule, 1)).apply(node, ctx);
  }
  static std::string text(Ref n) { return n ? expression_text(n) : "no"; }
  GraphScope scope;
  Ref a = leaf(0), b = leaf(1), c = leaf(2);
};

// --- matching

TEST_F(Rewrite, CapturesBindAndRepeatedNamesMustAgree) {
  static constexpr Rule kSame = rule(x - x, Pat(0)), kSwap = rule(x - y, y - x);
  EXPECT_EQ(text(once(kSame, a - a)), "0");
  EXPECT_EQ(text(once(kSame, a - b)), "no");
  EXPECT_EQ(text(once(kSwap, a - b)), "(p1-p0)");
}

TEST_F(Rewrite, OperandsOfCommutativeOpsMatchInAnyOrder) {
  static constexpr Rule kDeep = rule((x * y) + z, z - x * y), kTwice = rule((x & y) | (x & z), x & (y | z));
  EXPECT_NE(text(once(kDeep, (a * b) + c)), "no");
  EXPECT_NE(text(once(kDeep, c + (a * b))), "no");
  for (Ref n : {(a & b) | (a & c), (b & a) | (c & a), (a & b) | (c & a), (c & a) | (a & b)})
    EXPECT_EQ(text(once(kTwice, n)), text(a & (b | c)));
  EXPECT_EQ(text(once(kTwice, (a & b) | c)), "no");
  // Floats keep the order of the program, and match both ways as well.
  Ref f = leaf(3, f32), g = leaf(4, f32);
  static constexpr Rule kNegated = rule(x + neg(y), x - y);
  EXPECT_EQ(text(once(kNegated, f + -g)), "(p3-p4)");
  EXPECT_EQ(text(once(kNegated, -g + f)), "(p3-p4)");
}

TEST_F(Rewrite, ConstantsAndLiteralsMatchByValue) {
  static constexpr Rule kAny = rule(x + c0, x - c0), kSeven = rule(x + 7, x);
  EXPECT_EQ(text(once(kAny, a + 3)), "(p0-3)");
  EXPECT_EQ(text(once(kAny, a + b)), "no");
  EXPECT_EQ(text(once(kSeven, a + 7)), "p0");
  EXPECT_EQ(text(once(kSeven, a + 8)), "no");
  static constexpr Rule kMinus = rule(x + -0.0, x), kPlus = rule(x + 0.0, x);
  Ref f = leaf(3, f32);
  EXPECT_EQ(text(once(kMinus, f + float_const(f32, -0.0))), "p3");
  EXPECT_EQ(text(once(kMinus, f + float_const(f32, 0.0))), "no");
  EXPECT_EQ(text(once(kPlus, f + float_const(f32, -0.0))), "no");
}

TEST_F(Rewrite, ConstantsOfVectorsAreConstants) {
  static constexpr Rule kAny = rule((x * c0) * c1, x * (c0 * c1));
  Ref v = make(Op::Iota, i32, {}, {}, 8), scaled = once(kAny, (v * 3) * 5);
  ASSERT_TRUE(scaled);
  EXPECT_TRUE(same(scaled, v * 15));
  EXPECT_EQ(scaled.lanes(), 8);
}

TEST_F(Rewrite, BoolNamesMatchBoolsOnly) {
  static constexpr Rule kNot = rule(logical_not(p), p);
  EXPECT_EQ(text(once(kNot, logical_not(a < b))), "(p0<p1)");
  EXPECT_EQ(text(once(kNot, ne(a, int_const(i32, 1)))), "no");
}

TEST_F(Rewrite, LiteralsOnTheRightTakeTheDtypeBesideThem) {
  static constexpr Rule kTwice = rule(x + x, x * 2), kNever = rule(x < x, Pat(0));
  for (DType t : {i8, u64, f16, f64}) {
    Ref v = leaf(5, t), r = once(kTwice, v + v);
    EXPECT_EQ(r.dtype(), t);
    EXPECT_EQ(r.src(1).dtype(), t);
    EXPECT_EQ(once(kNever, v < v).dtype(), DType::Bool);
  }
}

TEST_F(Rewrite, DomainsAreDtypesOfTheRootOrOfWhatItCompares) {
  auto fires = [&](Domain domain, DType t) {
    Rule r = rule(x + y, x);
    r.domain = domain;
    Rule less = rule(x < y, Pat(0));
    less.domain = domain;
    Ref p = leaf(6, t), q = leaf(7, t);
    bool fired = static_cast<bool>(once(r, p + q));
    EXPECT_EQ(fired, static_cast<bool>(once(less, p < q)));
    return fired;
  };
  EXPECT_TRUE(fires(Domain::Any, f32) && fires(Domain::Any, DType::Bool));
  EXPECT_TRUE(fires(ints, i8) && fires(ints, u64) && fires(ints, DType::WeakInt));
  EXPECT_FALSE(fires(ints, f32) || fires(ints, DType::Bool));
  EXPECT_TRUE(fires(floats, f16) && !fires(floats, i32) && !fires(floats, DType::Bool));
  EXPECT_TRUE(fires(bools, DType::Bool) && !fires(bools, i32));
  EXPECT_TRUE(fires(exact, DType::Bool) && fires(exact, u8) && !fires(exact, f64));
  EXPECT_TRUE(fires(indices, DType::WeakInt) && !fires(indices, i64));
}

TEST_F(Rewrite, ConditionsComputeWithBoundsAndConstants) {
  static constexpr Rule kMod = rule(x % c0, x, ints, when(lo(x) >= 0 && hi(x) < c0));
  Ref r = range(0, RangeKind::Loop, idx(8));
  EXPECT_EQ(text(once(kMod, r % 8)), "r0");
  EXPECT_EQ(text(once(kMod, r % 7)), "no");
  // Numbers wider than 64 bits do not wrap, and u64 is not signed.
  static constexpr Rule kNested = rule((x / c0) / c1, x / (c0 * c1), ints, when(c0 * c1 <= hi(x)));
  Ref big = int_const(i64, std::int64_t{1} << 40);
  EXPECT_EQ(text(once(kNested, (leaf(3, i64) / big) / big)), "no");
  static constexpr Rule kLess = rule(min(x, c0) < c1, x < c1, ints, when(c0 >= c1));
  Ref all_ones = int_const(u64, -1), five = int_const(u64, 5);
  EXPECT_NE(text(once(kLess, min(leaf(3, u64), all_ones) < five)), "no");
}

TEST_F(Rewrite, TheFirstRuleThatAppliesWins) {
  static constexpr Rule kRules[] = {
      rule(x + y, [](const Match&) -> Ref { return nullptr; }),
      rule(x + 0, x),
      rule(x + y, y + y),
      rule(x + y, x * y),
  };
  RuleSet rules(kRules);
  EXPECT_EQ(text(rules.apply(a + 0)), "p0");
  EXPECT_EQ(text(rules.apply(a + b)), text(RuleSet(std::span(kRules + 2, 1)).apply(a + b)));
  EXPECT_EQ(text(rules.apply(a * b)), "no");
  // What changes nothing does not count.
  static constexpr Rule kIdle[] = {rule(x * y, y * x), rule(x * y, x)};
  EXPECT_TRUE(RuleSet(kIdle).apply(a * b));
}

TEST_F(Rewrite, FunctionsSeeTheMatchAndTheContext) {
  static constexpr Rule kScale = rule(x * y, [](const Match& m) { return m[x] + m[y] + m.ctx<int>(); });
  int seven = 7;
  EXPECT_EQ(text(once(kScale, a * b, &seven)), text(a + b + 7));
  static constexpr Rule kAny = rule(any(Op::Where), [](const Match& m) { return m.root.src(1); });
  EXPECT_EQ(text(once(kAny, where(a < b, a, b))), "p0");
}

TEST_F(Rewrite, SetsJoinInOrder) {
  static constexpr Rule kFirst[] = {rule(x + y, x)}, kSecond[] = {rule(x + y, y), rule(x * y, x)};
  RuleSet both = RuleSet(kFirst) + RuleSet(kSecond);
  EXPECT_EQ(both.rules().size(), 3u);
  EXPECT_TRUE(same(both.apply(a + b), RuleSet(kFirst).apply(a + b)));
  EXPECT_TRUE(both.apply(a * b));
  EXPECT_FALSE(RuleSet().apply(a + b));
}

// --- the driver

constexpr Rule kSimple[] = {rule(x + 0, x), rule(x * 1, x), rule((x + c0) + c1, x + (c0 + c1)),
                            rule(x - x, Pat(0))};

TEST_F(Rewrite, RunsUntilNoRuleApplies) {
  RuleSet rules(kSimple);
  EXPECT_EQ(text(rewrite((((a + 1) * 1) + 2) + 3, rules, {.name = "test"})), "(p0+6)");
  EXPECT_EQ(text(rewrite((a - a) + b, rules, {.name = "test"})), "p1");
  EXPECT_TRUE(same(rewrite(a * b, rules, {.name = "test"}), a * b));
  EXPECT_TRUE(same(rewrite(a, RuleSet(), {.name = "test"}), a));
}

TEST_F(Rewrite, ALongChainNeedsNoStack) {
  RuleSet rules(kSimple);
  Ref chain = a;
  for (int i = 0; i < 1'000'000; ++i) chain = (chain ^ b) + 0;
  GraphStats before = graph_stats();
  Ref result = rewrite(chain, rules, {.name = "test"});
  EXPECT_LE(graph_stats().made - before.made,
            2'000'000u);  // each link again, on what became of the one below
  EXPECT_TRUE(same(rewrite(result, rules, {.name = "test"}), result));
  int length = 0;
  for (Ref n = result; n.is(Op::Xor); n = n.src(0)) ++length;
  EXPECT_EQ(length, 1'000'000);
}

TEST_F(Rewrite, ASharedNodeIsRewrittenOnce) {
  static constexpr Rule kCounted[] = {rule(any(Op::Mul), [](const Match& m) -> Ref {
    ++m.ctx<int>();
    return nullptr;
  })};
  Ref n = a;
  for (int i = 0; i < 100; ++i) n = n * n;  // 2^100 paths
  int calls = 0;
  rewrite(n, RuleSet(kCounted), {.name = "test", .ctx = &calls});
  EXPECT_EQ(calls, 100);
  static constexpr Rule kReplace[] = {rule(x + y, x * y)};
  Ref m = a;
  for (int i = 0; i < 100; ++i) m = m + m;
  EXPECT_TRUE(same(rewrite(m, RuleSet(kReplace), {.name = "test"}), n));
}

TEST_F(Rewrite, EndlessRulesAreNamed) {
  static constexpr Rule kEndless[] = {rule(x - y, y - x), rule(x * y, x)};
  try {
    rewrite(a - b, RuleSet(kEndless), {.name = "circles", .budget = 5000});
    FAIL() << "came to an end";
  } catch (const InternalError& e) {
    std::string what = e.what();
    EXPECT_NE(what.find("circles"), std::string::npos) << what;
    EXPECT_NE(what.find("rewrite_test.cpp:" + std::to_string(kEndless[0].line)), std::string::npos) << what;
  }
  static constexpr Rule kGrows[] = {rule(x + y, (x * 3) + y)};
  EXPECT_THROW(rewrite(a + b, RuleSet(kGrows), {.name = "grows", .budget = 5000}), InternalError);
}

TEST_F(Rewrite, TopDownRulesSeeANodeBeforeItsSources) {
  // The outer product is taken apart before the inner one, whole, is seen.
  static constexpr Rule kRules[] = {rule((x * y) - z, x), rule(x * y, y)};
  Ref n = (a * b) - c;
  EXPECT_EQ(text(rewrite(n, RuleSet(kRules), {.name = "test", .top_down = true})), text((a * b).src(0)));
  EXPECT_NE(text(rewrite(n, RuleSet(kRules), {.name = "test"})), text((a * b).src(0)));
  Ref chain = a;
  for (int i = 0; i < 1'000'000; ++i) chain = -chain;
  static constexpr Rule kNegs[] = {rule(neg(neg(x)), x)};
  EXPECT_TRUE(same(rewrite(chain, RuleSet(kNegs), {.name = "test", .top_down = true}), a));
}

TEST_F(Rewrite, ARuleMayRewriteToo) {
  // Inner passes must not disturb what the outer one knows.
  static constexpr Rule kRules[] = {rule(x - y, [](const Match& m) -> Ref {
    static constexpr Rule kInner[] = {rule(x + 0, x), rule(x * 1, x)};
    toposort(m.root);
    Ref l = rewrite(m[x], RuleSet(kInner), {.name = "inner"});
    return l ^ m[y];
  })};
  Ref shared = (a * b) + 0, n = shared;
  for (int i = 0; i < 50; ++i) n = (n - shared) + shared;
  Ref result = rewrite(n, RuleSet(kRules), {.name = "outer"});
  for (Ref k : toposort(result)) EXPECT_FALSE(k.is(Op::Sub));
  EXPECT_TRUE(same(rewrite(result, RuleSet(kRules), {.name = "outer"}), result));
}

TEST_F(Rewrite, OptionalPassesCanBeSkipped) {
  RuleSet rules(kSimple);
  ScopedFlag skip("DEBUG_SKIP", "other,tidy");
  EXPECT_EQ(text(rewrite(a + 0, rules, {.name = "tidy", .optional = true})), text(a + 0));
  EXPECT_EQ(text(rewrite(a + 0, rules, {.name = "tidy"})), "p0");
  EXPECT_EQ(text(rewrite(a + 0, rules, {.name = "neat", .optional = true})), "p0");
}

TEST_F(Rewrite, ObserversSeePassesAndWhatFired) {
  std::vector<PassRecord> seen;
  PassObserver former = observe_passes([&](const PassRecord& r) { seen.push_back(r); });
  RewriteStats before = rewrite_stats();
  Ref n = ((a + 1) + 2) * 1, result = rewrite(n, RuleSet(kSimple), {.name = "seen"});
  observe_passes(std::move(former));
  RewriteStats after = rewrite_stats();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_STREQ(seen[0].name, "seen");
  EXPECT_TRUE(same(seen[0].before, n) && same(seen[0].after, result));
  std::uint64_t fired = 0;
  for (auto& [rule, count] : seen[0].fired) fired += count;
  EXPECT_EQ(fired, 2u);
  EXPECT_EQ(after.fired - before.fired, 2u);
  EXPECT_EQ(after.passes - before.passes, 1u);
  EXPECT_GT(seen[0].nodes, 4u);
}

}  // namespace
}  // namespace pg
