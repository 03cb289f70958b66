// Sizes and positions that are bound Variables: one kernel serves all values, and every value gives what a
// tensor of that size gives.
#include "tensor/helpers.h"
#include <pangrad/jit.h>

namespace pg {
namespace {

constexpr std::int64_t kMost = 8;

// The same work on the first n rows, n a Variable and n a number.
template <class F>
void expect_as_concrete(const char* name, F work) {
  SCOPED_TRACE(name);
  Tensor data = Tensor::of({{1.f, -2.f, 3.f, 0.5f},
                            {2.f, 1.f, -1.f, 4.f},
                            {0.f, 3.f, 2.f, -3.f},
                            {5.f, 1.f, 1.f, 2.f},
                            {-1.f, -2.f, -3.f, 1.f},
                            {2.f, 2.f, 0.f, 1.f},
                            {1.f, 0.f, 4.f, -4.f},
                            {3.f, -1.f, 1.f, 1.f}})
                    .realize();
  Variable n("rows", 1, kMost);
  std::uint64_t compiled = 0;
  for (std::int64_t rows : {3, 8, 1, 5}) {
    SCOPED_TRACE(std::string(name) + ", " + std::to_string(rows) + " rows");
    Tensor got = work(data[Slice{.stop = n.bind(rows)}]);
    Floats values = floats_of(got);
    if (rows == 3)
      compiled = engine::counters().compiled;
    else
      EXPECT_EQ(engine::counters().compiled, compiled) << "another size is another kernel";
    Tensor want = work(data[Slice{.stop = rows}].contiguous());
    expect_close(values, floats_of(want), 1e-5);
    compiled = engine::counters().compiled;
    if (got.ndim() && got.size(0).is_symbolic()) {
      EXPECT_EQ(got.size(0).value(), want.size(0).value());
    }
  }
}

TEST(Symbolic, Elementwise) {
  expect_as_concrete("exp", [](const Tensor& x) { return (x * 2 + 1).exp(); });
  expect_as_concrete("where", [](const Tensor& x) { return (x > 0).where(x, 0); });
  expect_as_concrete("broadcast", [](const Tensor& x) { return x + x.sum(1, {.keepdim = true}); });
}

TEST(Symbolic, Reductions) {
  expect_as_concrete("sum of rows", [](const Tensor& x) { return x.sum(1); });
  expect_as_concrete("sum over them", [](const Tensor& x) { return x.sum(0); });
  expect_as_concrete("sum of all", [](const Tensor& x) { return x.sum(); });
  expect_as_concrete("max over them", [](const Tensor& x) { return x.max(0); });
  expect_as_concrete("mean", [](const Tensor& x) { return x.mean(0); });
  expect_as_concrete("variance", [](const Tensor& x) { return x.var(0, {.correction = 0}); });
  expect_as_concrete("argmax", [](const Tensor& x) { return x.argmax(0); });
}

TEST(Symbolic, Products) {
  Tensor w = Tensor::of({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}, {7.f, 8.f}}).realize();
  expect_as_concrete("rows", [&](const Tensor& x) { return x.matmul(w); });
  expect_as_concrete("rows by rows", [](const Tensor& x) { return x.matmul(x.T()).sum(1); });
  expect_as_concrete("inner", [](const Tensor& x) { return x.T().matmul(x); });
}

TEST(Symbolic, Softmax) {
  expect_as_concrete("rows", [](const Tensor& x) { return x.softmax(1); });
  expect_as_concrete("columns", [](const Tensor& x) { return x.softmax(0); });
  expect_as_concrete("attention", [](const Tensor& x) { return x.scaled_dot_product_attention(x, x); });
}

TEST(Symbolic, Movement) {
  expect_as_concrete("cat", [](const Tensor& x) { return cat({x, Tensor::ones({2, 4}), x * 2}); });
  expect_as_concrete("flip", [](const Tensor& x) { return x.flip(0) + 0; });
  expect_as_concrete("permute", [](const Tensor& x) { return x.permute({1, 0}).contiguous().sum(1); });
  expect_as_concrete("pad", [](const Tensor& x) { return x.pad({{1, 2}, {0, 0}}); });
  expect_as_concrete("reshape", [](const Tensor& x) { return x.reshape({x.size(0), 2, 2}).sum(2); });
  expect_as_concrete("flatten", [](const Tensor& x) { return x.flatten() * 2; });
  expect_as_concrete("expand",
                     [](const Tensor& x) { return x.unsqueeze(0).expand({3, x.size(0), 4}).sum(0); });
  expect_as_concrete("last row", [](const Tensor& x) { return x[-1]; });
  expect_as_concrete("contiguous", [](const Tensor& x) { return x.clone().realize() + 1; });
}

TEST(Symbolic, Positions) {
  Tensor data = Tensor::arange(32).cast(f32).reshape({8, 4}).contiguous().realize();
  Variable start("start", 0, 5), row("row", 0, 7);
  auto before = engine::counters().compiled;
  for (int v : {2, 0, 5}) {
    Dim at = start.bind(v);
    Tensor part = data.shrink({{at, at + 3}, {0, 4}});
    EXPECT_EQ(part.size(0).value(), 3);
    EXPECT_EQ((part * 2).sum().item<float>(), 2.f * static_cast<float>(12 * (4 * v + 4) + 66 - 48));
    EXPECT_EQ(data[row.bind(v)].to_vector<float>()[1], static_cast<float>(4 * v + 1));
    if (v == 2) before = engine::counters().compiled;
  }
  EXPECT_EQ(engine::counters().compiled, before);
}

// Keys and values of a decoder: written at a position, read up to it.
TEST(Symbolic, ACacheThatGrows) {
  Variable position("position", 0, 15);
  Tensor cache = Tensor::zeros({16, 4}).contiguous().realize();
  cache.assign(0.f).realize();
  auto step = jit([&](const Tensor& x, const Dim& at) {
    cache[Slice{at, at + 1}] = x;
    return cache[Slice{.stop = at + 1}].sum(0);
  });
  std::uint64_t compiled = 0;
  const void* place = nullptr;
  for (int i = 0; i < 16; ++i) {
    float v = static_cast<float>(i + 1);
    Tensor out = step(Tensor::of({{v, 2 * v, 0.f, 1.f}}), position.bind(i));
    EXPECT_EQ(out.to_vector<float>(), (Floats{v * (v + 1) / 2, v * (v + 1), 0, v})) << i;
    if (i == 3) compiled = engine::counters().compiled, place = memory(cache);
    if (i > 3) {
      EXPECT_EQ(memory(cache), place) << i;
    }
  }
  EXPECT_EQ(engine::counters().compiled, compiled);
  EXPECT_EQ(step.captures(), 1u);
}

TEST(Symbolic, TwoValuesOfOneVariableInOneRealize) {
  Tensor data = Tensor::arange(8).realize();
  Variable n("n", 1, 8);
  Tensor a = data[Slice{.stop = n.bind(3)}].sum(), b = data[Slice{.stop = n.bind(5)}].sum();
  realize({a, b});
  EXPECT_EQ(a.item<int>(), 3);
  EXPECT_EQ(b.item<int>(), 10);
  EXPECT_EQ((a + b).item<int>(), 13);
}

TEST(Symbolic, Gradients) {
  Tensor w = Tensor::of({1.f, 2.f, 3.f, 4.f}).requires_grad();
  Variable n("n", 1, 4);
  for (int v : {2, 4, 1}) {
    w.zero_grad();
    (w[Slice{.stop = n.bind(v)}].square()).sum().backward();
    Floats want(4, 0.f);
    for (int i = 0; i < v; ++i) want[static_cast<std::size_t>(i)] = 2.f * static_cast<float>(i + 1);
    EXPECT_EQ(floats_of(w.grad()), want);
  }
}

TEST(Symbolic, Mistakes) {
  Variable n("n", 1, 4);
  EXPECT_EQ(message<ValueError>([&] { n.bind(5); }), "[bind] 5 is outside 1..4, the bounds of n");
  EXPECT_EQ(message<ValueError>([] { Variable("m", 3, 2); }), "[variable] the bounds of m are 3..2");
  Dim d = n.bind(2);
  EXPECT_EQ(message<ShapeError>([&] { (void)static_cast<std::int64_t>(d); }),
            "[dim] n=2 is symbolic: ask for value() or max()");
  EXPECT_THROW(Tensor::rand({d}), ShapeError);
}

}  // namespace
}  // namespace pg
