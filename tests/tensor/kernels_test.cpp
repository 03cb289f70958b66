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

TEST(Kernels, SoftmaxIsThree) {
  Tensor x = data({16, 128});
  Cost c = cost([&] { return std::vector{x.softmax()}; });
  EXPECT_LE(c.kernels, 3u);
  EXPECT_EQ(c.allocated, 4u * 16 * 128);
  EXPECT_LE(kernels_of([&] { return x.log_softmax(); }), 3u);
  EXPECT_LE(kernels_of([&] { return x.logsumexp(1); }), 2u);
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

}  // namespace
}  // namespace pg
