// What picks and places elements: results whose length depends on values, the work that large ones take, and
// gradients through them.
#include <numeric>

#include "tensor/helpers.h"
#include <pangrad/jit.h>

namespace pg {
namespace {

TEST(Select, AsManyAsThereAre) {
  Tensor x = Tensor::of({{3.f, -1.f}, {0.f, 5.f}});
  EXPECT_EQ(floats_of(x.masked_select(x > 0)), (Floats{3, 5}));
  EXPECT_EQ(x.masked_select(x > 9).shape(), Shape{0});
  EXPECT_EQ(ints_of(x.nonzero()), (Ints64{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(x.nonzero().shape(), (Shape{3, 2}));
  EXPECT_EQ((x * 0).nonzero().shape(), (Shape{0, 2}));
  EXPECT_EQ(Tensor::of(4.f).nonzero().shape(), (Shape{1, 0}));
}

TEST(Select, OnlyASizeCanBeCaptured) {
  Tensor x = Tensor::arange(8).realize();
  auto sized = jit([](const Tensor& t) { return t.masked_select(t % 3 == 0, {.size = 4, .fill = -1}); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ints_of(sized(x)), (Ints64{0, 3, 6, -1}));
  auto unsized = jit([](const Tensor& t) { return t.masked_select(t % 3 == 0); });
  unsized(x);
  EXPECT_THROW(unsized(x), CaptureError);
}

// The work of the kernels that computing it launches, beyond reading each of n elements some times.
double work(const std::function<Tensor()>& f) {
  f().realize();
  engine::Counters before = engine::counters();
  f().realize();
  return engine::counters().bytes - before.bytes;
}

TEST(Select, WorkGrowsWithTheElements) {
  auto draw = [](std::int64_t n) { return Tensor::randn({n}).realize(); };
  Tensor small = draw(1 << 13), large = draw(1 << 15);
  auto grows = [&](auto f) { return work([&] { return f(large); }) / work([&] { return f(small); }); };
  EXPECT_LT(grows([](const Tensor& x) { return x.cumsum(0); }), 4.5);
  EXPECT_LT(grows([](const Tensor& x) { return x.cummax(0).second; }), 4.5);
  EXPECT_LT(grows([](const Tensor& x) { return x.logcumsumexp(0); }), 4.5);
  EXPECT_LT(grows([](const Tensor& x) { return x.sort().first; }), 5.5);
  EXPECT_LT(grows([](const Tensor& x) { return x.topk(3).first; }), 4.5);
}

TEST(Select, LargeOnesHaveGradients) {
  constexpr int kMany = 2100;
  std::vector<float> values(kMany);
  for (int i = 0; i < kMany; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i * 1237 % kMany);
  Tensor x = Tensor::of(values).requires_grad(), weight = Tensor::arange(kMany).cast(f32);
  // In order the values are 0, 1, 2, ...: each gets its own as gradient.
  expect_close(floats_of((x.sort().first * weight).sum().gradient({x})[0]), values);
  Tensor rows = Tensor::arange(kMany) % 500, table = Tensor::zeros({500}).requires_grad();
  Tensor sum = table.index_add(0, rows, x);
  std::vector<Tensor> g = (sum * Tensor::arange(500).cast(f32)).sum().gradient({table, x});
  expect_close(floats_of(g[0]), floats_of(Tensor::arange(500)));
  expect_close(floats_of(g[1]), floats_of(rows));
}

}  // namespace
}  // namespace pg
