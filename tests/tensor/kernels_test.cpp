// What a realize launches and moves: how many kernels, how many bytes, how much memory. Such numbers say
// whether loops were shared as they should be; they are the same on every machine.
#include "tensor/helpers.h"
#include <pangrad/jit.h>

namespace pg {
namespace {

struct Cost {
  std::uint64_t kernels, allocated;
  double flops, bytes;
};
// Of computing this.
template <class F>
Cost cost(F make) {
  auto before = engine::counters();
  std::vector<Tensor> out = make();
  realize(out);
  auto after = engine::counters();
  return {after.kernels - before.kernels, after.allocated - before.allocated, after.flops - before.flops,
          after.bytes - before.bytes};
}
template <class F>
std::uint64_t kernels_of(F make) {
  return cost([&] { return std::vector<Tensor>{make()}; }).kernels;
}

// Constants would fold.
Tensor data(const Shape& shape) { return Tensor::rand(shape).realize(); }

TEST(Kernels, AProductOfMatricesIsOne) {
  Tensor a = data({64, 64}), b = data({64, 64}), batch = data({3, 64, 64});
  Cost c = cost([&] { return std::vector{a.matmul(b)}; });
  EXPECT_EQ(c.kernels, 1u);
  EXPECT_EQ(c.flops, 2.0 * 64 * 64 * 64);
  EXPECT_EQ(c.bytes, 4.0 * 3 * 64 * 64);
  EXPECT_EQ(c.allocated, 4u * 64 * 64);
  EXPECT_EQ(kernels_of([&] { return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1); }), 1u);
  EXPECT_EQ(kernels_of([&] { return batch.matmul(b); }), 1u);
  EXPECT_EQ(kernels_of([&] { return a.matmul(b).relu() + 1; }), 1u);
  EXPECT_EQ(kernels_of([&] { return a.T().matmul(a).exp(); }), 1u);
}

TEST(Kernels, AProductWithAllThatFollowsItIsOne) {
  Tensor a = data({64, 64}), b = data({64, 64}), bias = data({64}), rest = data({64, 64});
  Cost c = cost([&] { return std::vector{((a.matmul(b) + bias).relu() + rest) * 0.5}; });
  EXPECT_EQ(c.kernels, 1u);
  EXPECT_EQ(c.bytes, 4.0 * (4 * 64 * 64 + 64));
  EXPECT_EQ(c.allocated, 4u * 64 * 64);
  EXPECT_EQ(kernels_of([&] { return (a.matmul(b.T()) + bias).gelu() + rest; }), 1u);
}

// Weights of few bits become floats inside the product: nothing but they are read, nothing else is written.
TEST(Kernels, WeightsOfFewBitsAreReadAsSuch) {
  constexpr std::int64_t n = 64, k = 96, block = 32;
  Tensor bytes = Tensor::randint({n, k}, {.low = -127, .high = 128, .dtype = i8}).realize();
  Tensor nibbles = Tensor::randint({n, k / block, block / 2}, {.low = 0, .high = 256, .dtype = u8}).realize();
  Tensor of_row = data({n, 1}), of_block = data({n, k / block, 1});
  for (std::int64_t m : {1, 48}) {
    Tensor x = data({m, k});
    double others = 4.0 * static_cast<double>(m * k + m * n);
    Cost rows = cost([&] { return std::vector{x.matmul((bytes.cast(f32) * of_row).T())}; });
    EXPECT_EQ(rows.kernels, 1u);
    EXPECT_EQ(rows.bytes, others + n * k + 4 * n);
    EXPECT_EQ(rows.allocated, 4u * static_cast<std::uint64_t>(m * n));
    Cost blocks = cost([&] {
      Tensor w = (bytes.cast(f32).reshape({n, k / block, block}) * of_block).reshape({n, k});
      return std::vector{x.matmul(w.T())};
    });
    EXPECT_EQ(blocks.kernels, 1u);
    EXPECT_EQ(blocks.bytes, others + n * k + 4.0 * n * k / block);
    Cost halves = cost([&] {
      Tensor w = stack({nibbles & 15, nibbles >> 4}, 2).cast(f32) - 8;
      return std::vector{x.matmul((w * of_block.unsqueeze(3)).reshape({n, k}).T())};
    });
    EXPECT_EQ(halves.kernels, 1u);
    EXPECT_EQ(halves.bytes, others + n * k / 2.0 + 4.0 * n * k / block);
  }
}

TEST(Kernels, AChainWithItsReductionIsOne) {
  Tensor x = data({64, 32}), y = data({64, 1});
  Cost c = cost([&] { return std::vector{(((x + 1) * y).exp().square() - y).sum()}; });
  EXPECT_EQ(c.kernels, 1u);
  EXPECT_EQ(c.bytes, 4.0 * (64 * 32 + 64 + 1));
  EXPECT_EQ(c.allocated, 4u);
  EXPECT_EQ(kernels_of([&] { return (x * y).sum(1).sqrt() + 1; }), 1u);
  EXPECT_EQ(kernels_of([&] { return x.T().flip(0).pad({{1, 1}, {0, 2}}).sum(0); }), 1u);
  EXPECT_EQ(kernels_of([&] { return ((x * 2).sum(1, {.keepdim = true}) + 3).reshape({8, 8}) * 4; }), 1u);
  EXPECT_EQ(kernels_of([&] { return x.mean(); }), 1u);
  EXPECT_LE(kernels_of([&] { return x.var(1); }), 2u);
}

// What is made of rows and of sums of rows goes row by row: each input is read once, each output written.
TEST(Kernels, ARowAndItsSumsAreOne) {
  Tensor x = data({16, 128}), w = data({128});
  auto bytes_and_kernels = [&](auto make, double tables, std::uint64_t kernels, int line) {
    Cost c = cost([&] { return make(); });
    EXPECT_EQ(c.kernels, kernels) << "line " << line;
    EXPECT_LE(c.bytes, 4.0 * (tables * 16 * 128 + 4 * 128)) << "line " << line;
  };
  auto one = [&](Tensor t) { return std::vector{t}; };
  bytes_and_kernels([&] { return one(x.softmax()); }, 2, 1, __LINE__);
  bytes_and_kernels([&] { return one(x.log_softmax()); }, 2, 1, __LINE__);
  bytes_and_kernels([&] { return one(x.logsumexp(1)); }, 1, 1, __LINE__);
  bytes_and_kernels([&] { return one(x.var(1)); }, 1, 1, __LINE__);
  bytes_and_kernels([&] { return one(x.layernorm(1) * w + 1); }, 2, 1, __LINE__);
  bytes_and_kernels([&] { return one(x * (x.square().mean(1, {.keepdim = true}) + 1e-5).rsqrt() * w); }, 2, 1,
                    __LINE__);
  Tensor y = data({16, 128}).requires_grad();
  bytes_and_kernels(
      [&] {
        Tensor out = y.softmax();
        (out * w).sum().backward();
        return std::vector{out, y.grad()};
      },
      3, 1, __LINE__);
  // Every sum of equal rows, in one loop.
  bytes_and_kernels([&] { return std::vector{x.sum(1), x.square().sum(1), x.max(1)}; }, 1, 1, __LINE__);
}

// Rows whose sizes lanes do not divide; what is costly is computed once and kept for the sums that follow.
TEST(Kernels, RowsOfAnySizeAreRight) {
  Tensor::manual_seed(5);
  for (std::int64_t n : {1, 2, 5, 16, 31, 100, 257, 1000, 4096}) {
    Tensor x = Tensor::randn({7, n}).realize(), w = Tensor::randn({n}).realize();
    Tensor y = x.detach().clone().realize().requires_grad();
    Tensor p = y.softmax();
    (p * w).sum().backward();
    Tensor dx = y.grad();
    realize({p, dx});
    auto xs = x.to_vector<float>(), ws = w.to_vector<float>(), ps = p.to_vector<float>(),
         ds = dx.to_vector<float>();
    for (std::int64_t r = 0; r < 7; ++r) {
      auto at = [&](std::int64_t c) { return static_cast<std::size_t>(r * n + c); };
      double most = -1e30, sum = 0, dot = 0;
      for (std::int64_t c = 0; c < n; ++c) most = std::max(most, static_cast<double>(xs[at(c)]));
      for (std::int64_t c = 0; c < n; ++c) sum += std::exp(xs[at(c)] - most);
      auto q = [&](std::int64_t c) { return std::exp(xs[at(c)] - most) / sum; };
      for (std::int64_t c = 0; c < n; ++c) dot += q(c) * ws[static_cast<std::size_t>(c)];
      for (std::int64_t c = 0; c < n; ++c) {
        ASSERT_NEAR(ps[at(c)], q(c), 1e-6) << n << " " << r << " " << c;
        ASSERT_NEAR(ds[at(c)], q(c) * (ws[static_cast<std::size_t>(c)] - dot), 2e-6)
            << n << " " << r << " " << c;
      }
    }
  }
}

// Counting up, ones where an index is, and borders are computed where they are read.
TEST(Kernels, WhatIsComputedFromPositionsIsNoMemory) {
  Tensor x = data({8, 8}), rows = Tensor::of({1, 5, 3});
  auto only_result = [&](const char* name, auto make) {
    Tensor probe = make();
    auto expected = probe.nbytes();
    Cost c = cost([&] { return std::vector{make()}; });
    EXPECT_EQ(c.kernels, 1u) << name;
    EXPECT_EQ(c.allocated, expected) << name;
    auto plan = [&] {
      GraphScope scope;
      UOp node = detail::read(probe, "test").node;
      return engine::plan({&node, 1});
    }();
    EXPECT_TRUE(plan.arena_bytes.empty()) << name;
  };
  only_result("arange", [&] { return Tensor::arange(8).cast(f32) + x; });
  only_result("one_hot", [&] { return rows.one_hot(8).cast(f32).matmul(x); });
  only_result("eye", [&] { return Tensor::eye(8) * x; });
  only_result("pad", [&] { return x.pad({{2, 2}, {1, 1}}) * 2; });
  only_result("tril", [&] { return x.tril() + 1; });
  only_result("gather", [&] { return x[rows] * 2; });
  only_result("cat", [&] { return cat({x, x * 2, Tensor::zeros({2, 8})}) + 1; });
  only_result("expand", [&] { return x.unsqueeze(0).expand({4, 8, 8}) * 2; });
  only_result("window", [&] { return x.unfold(0, 3, 1).sum(2); });
}

TEST(Kernels, AConvolutionWithBiasAndReluIsOne) {
  Tensor x = data({2, 3, 12, 12}), w = data({4, 3, 3, 3}), bias = data({4});
  Cost c = cost([&] { return std::vector{x.conv2d(w, bias, {.padding = 1}).relu()}; });
  EXPECT_EQ(c.kernels, 1u);
  EXPECT_EQ(c.allocated, 4u * 2 * 4 * 12 * 12);
  EXPECT_EQ(kernels_of([&] { return x.max_pool2d().relu(); }), 1u);
  EXPECT_EQ(kernels_of([&] { return x.avg_pool2d() + 1; }), 1u);
}

// The border that pooling puts around a convolution is the pooling's: none of it is convolved.
TEST(Kernels, NoConvolutionOfABorder) {
  Tensor x = data({1, 8, 12, 12}), w = data({16, 8, 3, 3});
  auto layer = [&] { return x.conv2d(w, {.padding = 1}).relu(); };
  Cost alone = cost([&] { return std::vector{layer()}; });
  Tensor y = layer().realize();
  auto pool = [](const Tensor& t) { return t.max_pool2d({3, 3}, {.stride = {2, 2}, .padding = {1, 1}}); };
  Cost pooling = cost([&] { return std::vector{pool(y)}; });
  Cost both = cost([&] { return std::vector{pool(layer())}; });
  EXPECT_EQ(both.kernels, 2u);
  EXPECT_EQ(both.flops, alone.flops + pooling.flops);
  EXPECT_EQ(both.bytes, alone.bytes + pooling.bytes);
}

TEST(Kernels, AttentionBlock) {
  Tensor q = data({2, 4, 16, 8}), k = data({2, 4, 16, 8}), v = data({2, 4, 16, 8});
  // Scores, their maxima, the exponentials' sums, and the product with the values.
  EXPECT_LE(kernels_of([&] { return q.scaled_dot_product_attention(k, v); }), 5u);
  EXPECT_LE(kernels_of([&] { return q.scaled_dot_product_attention(k, v, {}, {.is_causal = true}); }), 5u);
}

TEST(Kernels, Normalisations) {
  Tensor x = data({4, 8, 6, 6}), w = data({8}), b = data({8});
  EXPECT_LE(kernels_of([&] { return x.layernorm(); }), 3u);
  Tensor mean = x.mean({0, 2, 3}), invstd = (x.var({0, 2, 3}) + 1e-5).rsqrt();
  EXPECT_LE(kernels_of([&] { return x.batchnorm(w, b, mean, invstd).relu(); }), 3u);
}

TEST(Kernels, WorkThatIsSharedIsDoneOnce) {
  Tensor x = data({32, 32});
  Cost c = cost([&] {
    Tensor s = x.matmul(x);
    return std::vector{s + 1, s * 2, s.sum()};
  });
  EXPECT_LE(c.flops, 2.0 * 32 * 32 * 32 + 4 * 32 * 32);
  EXPECT_LE(c.kernels, 4u);
}

TEST(Kernels, WritesTakeOneAndAllocateNothing) {
  Tensor x = data({64}), y = data({64});
  for (int i = 0; i < 3; ++i) {
    Cost c = cost([&] { return std::vector{x += y * 2}; });
    EXPECT_EQ(c.kernels, 1u);
    EXPECT_EQ(c.allocated, 0u);
    c = cost([&] {
      x[Slice{8, 16}] = 3;
      return std::vector{x};
    });
    EXPECT_EQ(c.kernels, 1u);
    EXPECT_EQ(c.allocated, 0u);
    EXPECT_LE(c.bytes, 8 * 4.0);
  }
}

// The gradient of a product is two products, each once.
TEST(Kernels, GradientOfAProduct) {
  Tensor a = data({16, 16}).requires_grad(), b = data({16, 16}).requires_grad(), c = data({16, 16});
  Cost cost_of = cost([&] {
    (a.matmul(b) * c).sum().backward();
    return std::vector{a.grad(), b.grad()};
  });
  EXPECT_EQ(cost_of.kernels, 2u);
  EXPECT_EQ(cost_of.flops, 2.0 * 2 * 16 * 16 * 16);
}

// Nodes are made once: the same program again makes none that stay.
TEST(Kernels, NodesMade) {
  Tensor x = data({16, 16}), w = data({16, 16});
  auto layer = [&](Tensor h) {
    for (int i = 0; i < 8; ++i) h = h.matmul(w).relu() + 1;
    return h;
  };
  Tensor keep = layer(x);
  auto before = graph_stats();
  Tensor again = layer(x);
  EXPECT_EQ(graph_stats().made, before.made);
  auto live = graph_stats().live;
  keep = again = Tensor();
  EXPECT_LT(graph_stats().live, live);
  before = graph_stats();
  keep = layer(x);
  EXPECT_LE(graph_stats().made - before.made, 8u * 20);
}

// What goes to places takes a step for each value, not one for each value and place: sums into rows, their
// gradients, the last value of each place; and gives what one gets by hand.
TEST(Kernels, ValuesGoToTheirPlacesOneByOne) {
  constexpr std::int64_t kPlaces = 3000, kNames = 2000, kWidth = 24;
  Tensor table = Tensor::randint({kPlaces, kWidth}, {.high = 9}).cast(f32).clone().realize().requires_grad();
  Tensor names = Tensor::randint({kNames}, {.high = kPlaces / 4}).realize();
  Tensor values = Tensor::randint({kNames, kWidth}, {.high = 9}).cast(f32).realize();
  auto at = names.to_vector<int>();
  auto each = values.to_vector<float>(), old = table.to_vector<float>();
  std::vector<float> sums(old.size()), last(old);
  for (std::size_t n = 0; n < at.size(); ++n)
    for (std::size_t c = 0; c < kWidth; ++c) {
      std::size_t to = static_cast<std::size_t>(at[n]) * kWidth + c, from = n * kWidth + c;
      sums[to] += each[from];
      last[to] = each[from];
    }
  std::vector<float> added(sums);
  for (std::size_t i = 0; i < old.size(); ++i) added[i] += old[i];
  auto cheap = [&](const char* what, const Tensor& made, const std::vector<float>& want) {
    double before = engine::counters().flops;
    auto got = made.to_vector<float>();
    EXPECT_LT(engine::counters().flops - before, 20.0 * kWidth * (kNames + kPlaces)) << what;
    EXPECT_EQ(got, want) << what;
  };
  cheap("index_add", table.detach().index_add(0, names, values), added);
  cheap("gradient of rows", (table[names] * values).sum().gradient({table})[0], sums);
  Tensor wide = names.unsqueeze(1).expand({kNames, kWidth}).contiguous();
  cheap("gradient of gather", (table.gather(0, wide) * values).sum().gradient({table})[0], sums);
  cheap("scatter_reduce", table.detach().scatter_reduce(0, wide, values, Scatter::Sum), added);
  Tensor written = table.detach().clone();
  written[names] = values;
  cheap("rows written", written, last);
}

}  // namespace
}  // namespace pg
