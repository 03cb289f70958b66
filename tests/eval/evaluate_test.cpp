// The evaluator against answers worked out by hand.
#include "eval/evaluate.h"

#include <gtest/gtest.h>

#include "eval/compare.h"
#include "ir/build.h"

namespace pg::eval {
namespace {

// Leaves of a test: Params by slot, a Var by name.
struct Given {
  std::vector<Array> params;
  std::int64_t var = 0;
  Array operator()(Ref leaf) const {
    if (leaf.is(Op::Param)) return params.at(static_cast<std::size_t>(leaf.i()));
    return Array(leaf.dtype(), {}, {var});
  }
};

Ref shape(std::initializer_list<std::int64_t> dims) {
  return shape_node(pg::Dims(dims.begin(), dims.size()));
}
Ref p(std::int64_t slot, DType t, std::initializer_list<std::int64_t> dims) {
  return param(slot, t, shape(dims));
}

#define EXPECT_SAME(got, ...) EXPECT_EQ(difference(got, __VA_ARGS__), "")

TEST(Evaluate, ElementwiseBroadcasts) {
  GraphScope scope;
  Given given{{Array(f32, {2, 1}, {1, 2}), Array(f32, {3}, {10, 20, 30})}};
  EXPECT_SAME(evaluate(p(0, f32, {2, 1}) + p(1, f32, {3}), given),
              Array(f32, {2, 3}, {11, 21, 31, 12, 22, 32}));
  EXPECT_SAME(evaluate(p(1, f32, {3}) * float_const(f32, 2), given), Array(f32, {3}, {20, 40, 60}));
}

TEST(Evaluate, Movements) {
  GraphScope scope;
  Given given{{Array(i32, {2, 3}, {1, 2, 3, 4, 5, 6})}};
  Ref x = p(0, i32, {2, 3});
  const std::int64_t swap[] = {1, 0};
  EXPECT_SAME(evaluate(permute(x, swap), given), Array(i32, {3, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_SAME(evaluate(reshape(permute(x, swap), shape({6})), given), Array(i32, {6}, {1, 4, 2, 5, 3, 6}));
  EXPECT_SAME(evaluate(flip(x, 2), given), Array(i32, {2, 3}, {3, 2, 1, 6, 5, 4}));
  EXPECT_SAME(evaluate(flip(x, 1), given), Array(i32, {2, 3}, {4, 5, 6, 1, 2, 3}));
  EXPECT_SAME(evaluate(shrink(x, shape({1, 2}), shape({1, 1})), given), Array(i32, {1, 2}, {5, 6}));
  EXPECT_SAME(evaluate(pad(x, shape({3, 4}), shape({1, 0})), given),
              Array(i32, {3, 4}, {0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}));
  EXPECT_SAME(evaluate(expand(reshape(x, shape({2, 3, 1})), shape({2, 3, 2})), given),
              Array(i32, {2, 3, 2}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
}

TEST(Evaluate, ReductionsKeepTheirRank) {
  GraphScope scope;
  Given given{{Array(i32, {2, 3}, {1, 2, 3, 4, 5, 6}), Array(i32, {0, 2}), Array(boolean, {2}, {1, 1})}};
  Ref x = p(0, i32, {2, 3});
  EXPECT_SAME(evaluate(reduce(x, Op::Add, 2), given), Array(i32, {2, 1}, {6, 15}));
  EXPECT_SAME(evaluate(reduce(x, Op::Mul, 1), given), Array(i32, {1, 3}, {4, 10, 18}));
  EXPECT_SAME(evaluate(reduce(x, Op::Max, 3), given), Array(i32, {1, 1}, {6}));
  EXPECT_SAME(evaluate(reduce(p(1, i32, {0, 2}), Op::Max, 1), given),
              Array(i32, {1, 2}, {INT32_MIN, INT32_MIN}));
  EXPECT_SAME(evaluate(reduce(p(2, boolean, {2}), Op::Add, 1), given), Array(boolean, {1}, {1}));
}

TEST(Evaluate, SumsAreExact) {
  GraphScope scope;
  Given given{{Array(f32, {4}, {1e8, 1.0, -1e8, 1.0})}};
  EXPECT_SAME(evaluate(reduce(p(0, f32, {4}), Op::Add, 1), given), Array(f32, {1}, {2.0}));
}

TEST(Evaluate, IndexReadsZeroOutsideAndCatJoins) {
  GraphScope scope;
  Given given{{Array(f32, {2, 2}, {1, 2, 3, 4}), Array(i32, {3}, {1, -1, 2})}};
  Ref x = p(0, f32, {2, 2});
  EXPECT_SAME(evaluate(index_rows(x, p(1, i32, {3})), given), Array(f32, {3, 2}, {3, 4, 0, 0, 0, 0}));
  const Ref parts[] = {x, x};
  EXPECT_SAME(evaluate(cat(parts, 1), given), Array(f32, {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(Evaluate, AWriteGoesThroughItsView) {
  GraphScope scope;
  Given given{{Array(f32, {2, 3}, {1, 2, 3, 4, 5, 6}), Array(f32, {2}, {8, 9})}};
  Ref x = p(0, f32, {2, 3});
  const std::int64_t swap[] = {1, 0};
  // The last row of the transpose, reversed: column 2 from the bottom.
  Ref view = flip(reshape(shrink(permute(x, swap), shape({1, 2}), shape({2, 0})), shape({2})), 1);
  Ref w = after(x, store(view, p(1, f32, {2})));
  EXPECT_SAME(evaluate(w, given), Array(f32, {2, 3}, {1, 2, 9, 4, 5, 8}));
  // A second write upon the first, and the value before it.
  Ref v = after(w, store(shrink(w, shape({1, 1}), shape({0, 0})), float_const(f32, 7)));
  EXPECT_SAME(evaluate(v + x, given), Array(f32, {2, 3}, {8, 4, 12, 8, 10, 14}));
}

TEST(Evaluate, AWriteThroughABitcastChangesBits) {
  GraphScope scope;
  Given given{{Array(f32, {2}, {1, 2}), Array(i32, {1}, {0x40800000})}};
  Ref x = p(0, f32, {2});
  Ref view = shrink(bitcast(x, i32), shape({1}), shape({1}));
  EXPECT_SAME(evaluate(after(x, store(view, p(1, i32, {1}))), given), Array(f32, {2}, {1, 4}));
}

TEST(Evaluate, RefusesWritesThatHitAnElementTwiceOrAnotherValue) {
  GraphScope scope;
  Given given{{Array(f32, {1}, {1}), Array(f32, {2}, {8, 9})}};
  Ref x = p(0, f32, {1}), y = p(1, f32, {2});
  EXPECT_THROW(evaluate(after(x, store(expand(x, shape({2})), y)), given), InternalError);
  EXPECT_THROW(evaluate(after(x, store(y, y)), given), InternalError);
}

TEST(Evaluate, SymbolicShapesTakeBoundValues) {
  GraphScope scope;
  Given given{{Array(f32, {5}, {1, 2, 3, 4, 5})}, 2};
  Ref n = bind(var("n", 1, 5), 3), m = var("m", 0, 4);
  Ref x = p(0, f32, {5});
  const Ref size[] = {n}, offset[] = {m};
  Ref view = shrink(x, shape_node(size), shape_node(offset));
  EXPECT_SAME(evaluate(view, given), Array(f32, {3}, {3, 4, 5}));
  EXPECT_SAME(evaluate(reduce(view, Op::Add, 1), given), Array(f32, {1}, {12}));
  EXPECT_SAME(evaluate(cast(n, i32), given), Array(i32, {}, {3}));
}

TEST(Evaluate, DeepGraphs) {
  GraphScope scope;
  Given given{{Array(i32, {2}, {1, 2})}};
  Ref x = p(0, i32, {2}), y = x;
  for (int i = 0; i < 200000; ++i) y = y + x;
  EXPECT_SAME(evaluate(y, given), Array(i32, {2}, {200001, 400002}));
}

TEST(Evaluate, ThreefryBlocks) {
  // Known answers of threefry2x32-20 from the authors' Random123 library.
  Given given{{Array(u64, {3}, {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x85a308d3243f6a88}}),
               Array(u64, {3}, {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x0370734413198a2e}})}};
  GraphScope scope;
  Ref r = make(Op::Threefry, u64, {p(0, u64, {3}), p(1, u64, {3})});
  EXPECT_SAME(evaluate(r, given), Array(u64, {3},
                                        {std::uint64_t{0x99ba4efe6b200159}, std::uint64_t{0xbb002be71cb996fc},
                                         std::uint64_t{0x483df7a0c4923a9c}}));
}

}  // namespace
}  // namespace pg::eval
