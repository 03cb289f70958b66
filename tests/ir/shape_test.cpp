#include <gtest/gtest.h>

#include "ir/build.h"

namespace pg {
namespace {

class Shapes : public testing::Test {
 protected:
  static Ref shape(std::initializer_list<std::int64_t> d) { return shape_node(Dims(d.begin(), d.size())); }
  static Ref mixed(std::initializer_list<Ref> d) {
    return shape_node(std::span<const Ref>(d.begin(), d.size()));
  }
  static Ref leaf(std::initializer_list<std::int64_t> d) { return param(0, f32, shape(d)); }
  GraphScope scope;
};

TEST_F(Shapes, BroadcastAlignsAtTheRight) {
  EXPECT_TRUE(same(broadcast(shape({4, 3}), shape({3})), shape({4, 3})));
  EXPECT_TRUE(same(broadcast(shape({3}), shape({4, 3})), shape({4, 3})));
  EXPECT_TRUE(same(broadcast(shape({4, 1}), shape({1, 3})), shape({4, 3})));
  EXPECT_TRUE(same(broadcast(shape({}), shape({2})), shape({2})));
  EXPECT_TRUE(same(broadcast(shape({}), shape({})), shape({})));
  EXPECT_TRUE(same(broadcast(shape({0}), shape({1})), shape({0})));
  EXPECT_TRUE(same(broadcast(shape({5, 1, 2}), shape({1, 7, 1})), shape({5, 7, 2})));
  EXPECT_FALSE(broadcast(shape({2}), shape({3})));
  EXPECT_FALSE(broadcast(shape({0}), shape({3})));
  Ref n = var("n", 1, 9), m = var("m", 1, 9);
  EXPECT_TRUE(same(broadcast(mixed({n, idx(1)}), shape({4})), mixed({n, idx(4)})));
  EXPECT_TRUE(same(broadcast(mixed({n}), mixed({n})), mixed({n})));
  EXPECT_FALSE(broadcast(mixed({n}), mixed({m})));
  EXPECT_FALSE(broadcast(mixed({n}), shape({4})));
}

TEST_F(Shapes, OfEachOp) {
  Ref x = leaf({2, 3, 4});
  EXPECT_TRUE(same(shape_of(x), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(-x), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(x + leaf({3, 1})), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(leaf({4}) < x), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(where(leaf({2, 1, 1}) < x, float_const(f32, 0), leaf({4}))), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(reshape(x, shape({6, 4}))), shape({6, 4})));
  std::int64_t order[] = {2, 0, 1};
  EXPECT_TRUE(same(shape_of(permute(x, order)), shape({4, 2, 3})));
  EXPECT_TRUE(same(shape_of(expand(leaf({1, 4}), shape({7, 5, 4}))), shape({7, 5, 4})));
  EXPECT_TRUE(same(shape_of(pad(x, shape({2, 5, 4}), shape({0, 1, 0}))), shape({2, 5, 4})));
  EXPECT_TRUE(same(shape_of(shrink(x, shape({1, 1, 4}), shape({1, 2, 0}))), shape({1, 1, 4})));
  EXPECT_TRUE(same(shape_of(flip(x, 5)), shape({2, 3, 4})));
  EXPECT_TRUE(same(shape_of(reduce(x, Op::Add, 5)), shape({1, 3, 1})));
  EXPECT_TRUE(same(shape_of(int_const(i32, 1)), shape({})));
  Ref parts[] = {x, leaf({2, 5, 4}), leaf({2, 0, 4})};
  EXPECT_TRUE(same(shape_of(cat(parts, 1)), shape({2, 8, 4})));
  Ref rows = param(1, i32, shape({6, 2}));
  EXPECT_TRUE(same(shape_of(index_rows(x, rows)), shape({6, 2, 3, 4})));
  EXPECT_THROW(shape_of(leaf({2}) + leaf({3})), InternalError);
}

TEST_F(Shapes, SymbolicDimensionsAreSources) {
  Ref n = var("n", 1, 9), s = mixed({n, idx(3)});
  EXPECT_FALSE(is_concrete(s));
  EXPECT_EQ(rank(s), 2);
  EXPECT_TRUE(same(dim(s, 0), n) && dim(s, 1).is_const(3));
  EXPECT_EQ(max_numel(s), 27);
  Ref x = param(0, f32, s);
  std::int64_t order[] = {1, 0};
  EXPECT_TRUE(same(shape_of(permute(x, order)), mixed({idx(3), n})));
  EXPECT_TRUE(same(shape_of(reduce(x, Op::Max, 1)), shape({1, 3})));
  Ref both[] = {x, param(1, f32, shape({4, 3}))};
  EXPECT_TRUE(same(dim(shape_of(cat(both, 0)), 0), n + 4));
  EXPECT_TRUE(is_concrete(mixed({idx(2), idx(2)})));
}

TEST_F(Shapes, MovementsThatChangeNothingAreTheirSource) {
  Ref x = leaf({2, 3});
  std::int64_t same_order[] = {0, 1}, turned[] = {1, 0};
  EXPECT_TRUE(same(reshape(x, shape({2, 3})), x));
  EXPECT_TRUE(same(reshape(reshape(x, shape({6})), shape({2, 3})), x));
  EXPECT_TRUE(same(permute(x, same_order), x));
  EXPECT_TRUE(same(permute(permute(x, turned), turned), x));
  EXPECT_TRUE(same(expand(x, shape({2, 3})), x));
  EXPECT_TRUE(same(pad(x, shape({2, 3}), shape({0, 0})), x));
  EXPECT_TRUE(same(shrink(x, shape({2, 3}), shape({0, 0})), x));
  EXPECT_TRUE(same(flip(flip(x, 2), 2), x));
  EXPECT_TRUE(same(reduce(x, Op::Add, 0), x));
}

TEST_F(Shapes, CountsOfElements) {
  EXPECT_EQ(numel(shape({})), 1);
  EXPECT_EQ(numel(shape({2, 0, 5})), 0);
  EXPECT_EQ(numel(shape({1 << 20, 1 << 20, 1 << 20, 1 << 20})), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace pg
