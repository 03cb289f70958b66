// Gradients of windows that overlap in steps: which of their products count depends on the place modulo the
// step, and a kernel for each remainder computes just those. Values against the evaluator, which pads the
// products and adds up all of them; and how many are computed.
#include <limits>

#include <gtest/gtest.h>

#include "engine/counters.h"
#include "engine/engine.h"
#include "eval/compare.h"
#include "ops/nodes.h"

namespace pg::ops {
namespace {

struct Strided {
  std::int64_t size, kernel, stride, padding, dilation = 1;
  std::size_t kernels;  // for the gradient of the input
};

// Small whole numbers, so that sums are exact in any order.
Tensor numbers(const Shape& shape, std::int64_t of) {
  return (Tensor::randint(shape, {.low = -of, .high = of + 1})).cast(f32).realize();
}

std::vector<Tensor> gradients(const Tensor& x, const Tensor& w, const Strided& s, const Tensor& g) {
  return x.conv2d(w, {.stride = s.stride, .padding = s.padding, .dilation = s.dilation}).gradient({x, w}, g);
}

std::int64_t steps(const Strided& s) {
  return (s.size + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
}

TEST(StridedWindows, GradientsAreThoseOfTheEvaluator) {
  constexpr std::int64_t kIn = 2, kOut = 20;
  for (const Strided& s : {Strided{20, 3, 2, 1, 1, 4}, Strided{21, 3, 2, 1, 1, 4}, Strided{24, 7, 2, 3, 1, 4},
                           Strided{23, 5, 3, 2, 1, 9}, Strided{25, 2, 3, 0, 1, 9}, Strided{28, 4, 2, 1, 1, 4},
                           Strided{27, 3, 2, 1, 2, 4}, Strided{25, 3, 2, 2, 3, 4}, Strided{22, 3, 1, 1, 1, 1},
                           Strided{30, 5, 4, 2, 1, 16}, Strided{3, 3, 2, 1, 1, 1}}) {
    SCOPED_TRACE(testing::Message() << s.size << ", window " << s.kernel << " in steps of " << s.stride
                                    << ", padding " << s.padding << ", dilation " << s.dilation);
    Tensor x = numbers({1, kIn, s.size, s.size}, 4).requires_grad(),
           w = numbers({kOut, kIn, s.kernel, s.kernel}, 4).requires_grad(),
           g = numbers({1, kOut, steps(s), steps(s)}, 4);
    std::vector<Tensor> found = gradients(x, w, s, g);
    std::vector<eval::Array> want = evaluate(found, {});
    auto before = engine::counters().kernels;
    found[0].realize();
    EXPECT_EQ(engine::counters().kernels - before, s.kernels);
    EXPECT_EQ(eval::difference(computed(found[0]), want[0]), "");
    EXPECT_EQ(eval::difference(computed(found[1]), want[1]), "");
  }
}

// The products of a row: 8 places that one weight reaches and 8 that two do, but for the last.
TEST(StridedWindows, NothingIsMultipliedByTheZerosBetween) {
  Strided s{16, 3, 2, 1, 1, 4};
  Tensor x = numbers({1, 16, 16, 16}, 4).requires_grad(), w = numbers({24, 16, 3, 3}, 4).requires_grad(),
         g = numbers({1, 24, 8, 8}, 4);
  Tensor dx = gradients(x, w, s, g)[0];
  auto before = engine::counters();
  dx.realize();
  auto after = engine::counters();
  EXPECT_EQ(after.kernels - before.kernels, 4u);
  double products = 16 * 24 * (8 + 16) * (8 + 16);
  EXPECT_LE(after.flops - before.flops, 2.1 * products);
}

// What is not summed up is not computed: an infinity stays where it was multiplied.
TEST(StridedWindows, InfinitiesStayWhereTheyAre) {
  Strided s{20, 3, 2, 1, 1, 4};
  Tensor x = numbers({1, 4, 20, 20}, 2).requires_grad(), w = numbers({16, 4, 3, 3}, 2),
         g = numbers({1, 16, 10, 10}, 2);
  w[{3, 1, 0, 2}] = std::numeric_limits<double>::infinity();
  g[{0, 5, 4, 4}] = std::numeric_limits<double>::quiet_NaN();
  w = w.realize().requires_grad();
  Tensor dx = gradients(x, w, s, g.realize())[0];
  EXPECT_EQ(eval::difference(computed(dx), evaluate(dx)), "");
}

}  // namespace
}  // namespace pg::ops
