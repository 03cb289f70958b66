// Bounds against values: every integer op over small intervals, exhaustively.
#include <gtest/gtest.h>

#include "ir/build.h"

namespace pg {
namespace {

std::string interval(Ref n) { return "[" + std::to_string(n.lo()) + ", " + std::to_string(n.hi()) + "]"; }

TEST(Bounds, OfLeaves) {
  GraphScope scope;
  EXPECT_EQ(interval(idx(-7)), "[-7, -7]");
  EXPECT_EQ(interval(range(0, RangeKind::Loop, idx(8))), "[0, 7]");
  EXPECT_EQ(interval(range(0, RangeKind::Loop, var("n", 1, 9))), "[0, 8]");
  EXPECT_EQ(interval(range(0, RangeKind::Loop, idx(0))), "[0, 0]");
  EXPECT_EQ(interval(var("n", -3, 9)), "[-3, 9]");
  EXPECT_EQ(interval(bind(var("n", -3, 9), 4)), "[-3, 9]");
  EXPECT_EQ(interval(param(0, i8, shape_node(Dims{}))), "[-128, 127]");
  EXPECT_EQ(interval(param(0, DType::Bool, shape_node(Dims{}))), "[0, 1]");
  EXPECT_EQ(interval(make(Op::Iota, i32, {}, {}, 8)), "[0, 7]");
}

TEST(Bounds, OfEveryIntegerOpHoldAllItsValues) {
  GraphScope scope;
  struct Span {
    std::int64_t lo, hi;
  };
  const std::vector<Span> small = {{0, 0}, {0, 3},  {-2, 2},    {-5, -1},     {1, 4},
                                   {3, 9}, {-7, 6}, {120, 127}, {-128, -120}, {-128, 127}};
  const std::vector<Span> positive = {{0, 0}, {0, 3}, {1, 4}, {3, 9}, {120, 127}, {250, 255}, {0, 255}};
  for (DType t : {i8, u8, DType::WeakInt}) {
    const auto& spans = is_unsigned(t) ? positive : small;
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::CDiv, Op::CMod, Op::Max, Op::Min,
                  Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::CmpLt, Op::CmpEq, Op::CmpNe})
      for (Span a : spans)
        for (Span b : spans) {
          Ref x = var("x", a.lo, a.hi, t), y = var("y", b.lo, b.hi, t), n = alu(op, {x, y});
          if (n.is_const()) continue;
          std::int64_t least = std::numeric_limits<std::int64_t>::max(),
                       most = std::numeric_limits<std::int64_t>::min();
          for (std::int64_t i = a.lo; i <= a.hi; i += 1 + (a.hi - a.lo) / 40)
            for (std::int64_t k = b.lo; k <= b.hi; k += 1 + (b.hi - b.lo) / 40) {
              Scalar s[2] = {int_scalar(i), int_scalar(k)};
              std::int64_t v = eval_scalar(op, n.dtype(), t, s).i;
              least = std::min(least, v);
              most = std::max(most, v);
            }
          ASSERT_TRUE(n.lo() <= least && most <= n.hi())
              << name(t) << " " << info(op).name << " of " << interval(x) << " and " << interval(y) << ": "
              << interval(n) << " but " << least << ".." << most;
        }
  }
}

TEST(Bounds, AreTightWhereRulesNeedThem) {
  GraphScope scope;
  Ref r = range(0, RangeKind::Loop, idx(8)), s = range(1, RangeKind::Loop, idx(4));
  EXPECT_EQ(interval(r * 4 + s), "[0, 31]");
  EXPECT_EQ(interval(r - s), "[-3, 7]");
  EXPECT_EQ(interval(r / 3), "[0, 2]");
  EXPECT_EQ(interval((r + 8) % 16), "[8, 15]");
  EXPECT_EQ(interval(r % 16), "[0, 7]");
  EXPECT_EQ(interval(-r), "[-7, 0]");
  EXPECT_EQ(interval(max(r, s + 2)), "[2, 7]");
  EXPECT_EQ(interval(min(r, s)), "[0, 3]");
  EXPECT_EQ(interval(where(r < s, r, s * 10)), "[0, 30]");
  EXPECT_EQ(interval(r < idx(8)), "[1, 1]");
  EXPECT_EQ(interval(eq(r, idx(9))), "[0, 0]");
  EXPECT_EQ(interval(cast(r < s, i32)), "[0, 1]");
  EXPECT_EQ(interval(cast(r * 100, i8)), "[-128, 127]") << "700 does not fit";
  EXPECT_EQ(interval(cast(r, i8)), "[0, 7]");
  EXPECT_EQ(interval(r & idx(3)), "[0, 3]");
}

TEST(Bounds, ThatWouldWrapAreThoseOfTheDtype) {
  GraphScope scope;
  Ref a = var("a", 0, 100, i8);
  EXPECT_EQ(interval(a + a), "[-128, 127]");
  EXPECT_EQ(interval(a + 20), "[20, 120]");
  Ref far = var("far", 0, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((far + 1).lo(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ((far * 2).hi(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace pg
