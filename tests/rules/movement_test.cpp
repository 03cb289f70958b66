#include <random>

#include <gtest/gtest.h>

#include "eval/evaluate.h"
#include "ir/print.h"
#include "rules/symbolic.h"

namespace pg {
namespace {

class Movement : public testing::Test {
 protected:
  Ref simplified(Ref x) { return rewrite(x, rules::movement(), {.name = "test"}); }
  static Ref shape(std::initializer_list<std::int64_t> dims) {
    return shape_node(Dims(dims.begin(), dims.size()));
  }
  static Ref leaf(std::initializer_list<std::int64_t> dims, DType t = f32) {
    return param(0, t, shape(dims));
  }
  GraphScope scope;
};

// The builders merge what they are given at once; rules meet it when something between them went.
Ref raw(Op op, std::initializer_list<Ref> srcs, Arg arg = {}) {
  return intern(op, srcs.begin()->dtype(), 1, std::span<const Ref>(srcs.begin(), srcs.size()), arg);
}

TEST_F(Movement, ChainsOfOneKindAreOne) {
  Ref x = leaf({2, 3, 4});
  EXPECT_TRUE(same(simplified(raw(Op::Reshape, {raw(Op::Reshape, {x, shape({6, 4})}), shape({24})})),
                   reshape(x, shape({24}))));
  EXPECT_TRUE(
      same(simplified(raw(Op::Reshape, {raw(Op::Reshape, {x, shape({6, 4})}), shape({2, 3, 4})})), x));
  std::int64_t there[] = {1, 2, 0}, back[] = {2, 0, 1};
  Ref moved = raw(Op::Permute, {x}, Arg{.p = ints_payload(there)});
  EXPECT_TRUE(same(simplified(raw(Op::Permute, {moved}, Arg{.p = ints_payload(back)})), x));
  EXPECT_TRUE(same(simplified(raw(Op::Flip, {raw(Op::Flip, {x}, Arg{.i = 3})}, Arg{.i = 3})), x));
  EXPECT_TRUE(same(
      simplified(shrink(shrink(x, shape({2, 2, 3}), shape({0, 1, 1})), shape({1, 2, 2}), shape({1, 0, 1}))),
      shrink(x, shape({1, 2, 2}), shape({1, 1, 2}))));
  EXPECT_TRUE(
      same(simplified(pad(pad(x, shape({2, 5, 4}), shape({0, 1, 0})), shape({3, 7, 4}), shape({1, 2, 0}))),
           pad(x, shape({3, 7, 4}), shape({1, 3, 0}))));
}

TEST_F(Movement, ShrinksCutPadsAway) {
  Ref x = leaf({4, 4}), padded = pad(x, shape({6, 8}), shape({1, 2}));
  EXPECT_TRUE(same(simplified(shrink(padded, shape({4, 4}), shape({1, 2}))), x));
  EXPECT_TRUE(same(simplified(shrink(padded, shape({2, 3}), shape({2, 3}))),
                   shrink(x, shape({2, 3}), shape({1, 1}))));
  EXPECT_TRUE(
      same(simplified(shrink(padded, shape({6, 6}), shape({0, 1}))), pad(x, shape({6, 6}), shape({1, 1}))));
  EXPECT_TRUE(same(simplified(shrink(padded, shape({1, 8}), shape({0, 0}))),
                   expand(const_like(x, 0), shape({1, 8}))));
}

TEST_F(Movement, OperandsThatBroadcastAnywayAreNotExpanded) {
  Ref x = leaf({4, 3}), one = float_const(f32, 1);
  EXPECT_TRUE(same(simplified(x + expand(one, shape({4, 3}))), x + one));
  EXPECT_TRUE(same(simplified(x + reshape(expand(one, shape({12})), shape({4, 3}))), x + one));
  Ref row = param(1, f32, shape({3}));
  EXPECT_TRUE(same(simplified(x * expand(reshape(row, shape({1, 3})), shape({4, 3}))), x * row));
  // Here it gives the sum its shape.
  Ref wide = leaf({1, 3}) + expand(one, shape({4, 3}));
  EXPECT_TRUE(same(simplified(wide), wide));
  Ref both = expand(one, shape({2})) + expand(one, shape({2}));
  EXPECT_TRUE(same(shape_of(simplified(both)), shape({2})));
}

TEST_F(Movement, TheViewOfAWriteStillEndsAtWhatIsWritten) {
  Ref ones = expand(float_const(f32, 1), shape({4}));
  Ref old = make(Op::Contiguous, f32, {ones + ones}), view = shrink(old, shape({2}), shape({1}));
  Ref written = after(old, store(view, leaf({2})));
  Ref result = simplified(reshape(written, shape({2, 2})));
  Ref kept = result.src(0);
  ASSERT_TRUE(kept.is(Op::After));
  EXPECT_TRUE(same(kept.src(1).src(0).src(0), kept.src(0)));
}

TEST_F(Movement, RandomChainsKeepTheirValue) {
  std::mt19937 random(7);
  auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::int64_t> first;
    for (std::int64_t k = 0, n = below(4); k < n; ++k) first.push_back(below(5) ? 1 + below(4) : below(2));
    Ref x = round % 5 ? param(0, i32, shape_node(Dims(first))) : int_const(i32, below(2));
    for (std::int64_t step = 0, n = 1 + below(6); step < n; ++step) {
      Dims at = dims(shape_of(x));
      std::vector<std::int64_t> d(at.begin(), at.end()), offset(d.size(), 0);
      switch (below(8)) {
        case 0: {
          std::vector<std::int64_t> to;
          std::int64_t left = numel(shape_of(x));
          while (left > 1) {
            std::int64_t f = 1 + below(left);
            while (left % f) f = 1 + below(left);
            to.push_back(f);
            left /= f;
          }
          if (left == 0) to = {0};
          if (!below(2)) to.insert(to.begin() + below(static_cast<std::int64_t>(to.size()) + 1), 1);
          x = raw(Op::Reshape, {x, shape_node(Dims(to))});
          break;
        }
        case 1: {
          std::vector<std::int64_t> order(d.size());
          for (std::size_t i = 0; i < d.size(); ++i) order[i] = static_cast<std::int64_t>(i);
          std::shuffle(order.begin(), order.end(), random);
          if (!d.empty()) x = raw(Op::Permute, {x}, Arg{.p = ints_payload(order)});
          break;
        }
        case 2:
          for (auto& e : d)
            if (e == 1 && below(2)) e = below(4);
          if (!below(3)) d.insert(d.begin(), 1 + below(2));
          if (numel(shape_node(Dims(d))) < 500) x = raw(Op::Expand, {x, shape_node(Dims(d))});
          break;
        case 3:
          for (std::size_t i = 0; i < d.size(); ++i) {
            offset[i] = below(3);
            d[i] += offset[i] + below(3);
          }
          if (numel(shape_node(Dims(d))) < 500)
            x = raw(Op::Pad, {x, shape_node(Dims(d)), shape_node(Dims(offset))});
          break;
        case 4:
          for (std::size_t i = 0; i < d.size(); ++i) {
            offset[i] = below(d[i] + 1);
            d[i] = below(d[i] - offset[i] + 1);
          }
          x = raw(Op::Shrink, {x, shape_node(Dims(d)), shape_node(Dims(offset))});
          break;
        case 5:
          x = raw(Op::Flip, {x}, Arg{.i = d.empty() ? 0 : 1 + below((1 << d.size()) - 1)});
          break;
        case 6:
          if (!d.empty())
            x = reduce(x, below(2) ? Op::Add : Op::Max, static_cast<std::uint64_t>(below(1 << d.size())));
          break;
        default: {
          for (auto& e : d)
            if (!below(3)) e = 1;
          if (!d.empty() && below(2)) d.erase(d.begin());
          Ref other = param(1, i32, shape_node(Dims(d)));
          x = below(2) ? x + expand(other, shape_of(x))
                       : where(x < other, x, expand(int_const(i32, 3), shape_of(x)));
        }
      }
    }
    auto leaves = [](Ref n) {
      Dims d = dims(n.src(0));
      eval::Array a(n.dtype(), {d.begin(), d.end()});
      for (std::size_t i = 0; i < a.data.size(); ++i)
        a.data[i].i = static_cast<std::int64_t>(i * 7 % 23) + n.i();
      return a;
    };
    Ref y = simplified(x);
    ASSERT_TRUE(same(shape_of(x), shape_of(y))) << print(x) << print(y);
    eval::Array a = eval::evaluate(x, leaves), b = eval::evaluate(y, leaves);
    ASSERT_EQ(eval::text(a, 1000), eval::text(b, 1000)) << print(x) << "became\n" << print(y);
    ASSERT_TRUE(same(simplified(y), y)) << print(y) << "became\n" << print(simplified(y));
  }
}

}  // namespace
}  // namespace pg
