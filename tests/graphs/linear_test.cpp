// Shapes of programs that make compilers quadratic: twice the program may make at most 2.5 times the nodes
// and try at most 2.5 times the rules, from trace to code.
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/flags.h"
#include "ir/node.h"
#include "rewrite/rewrite.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

struct Cost {
  double nodes, attempts, seconds;
};

Cost cost_of(const std::function<void(std::int64_t)>& program, std::int64_t n) {
  cache::trim();
  GraphStats graph = graph_stats();
  RewriteStats rules = rewrite_stats();
  auto start = std::chrono::steady_clock::now();
  program(n);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {static_cast<double>(graph_stats().made - graph.made),
          static_cast<double>(rewrite_stats().attempts - rules.attempts), seconds};
}

// The costs at n, 2n and 4n are printed; what does not depend on n is small beside what does.
void expect_linear(std::int64_t n, const std::function<void(std::int64_t)>& program) {
  ScopedFlag memory_only("CACHE", 1);
  program(n);  // what is made once
  std::array<Cost, 3> costs{};
  for (int i = 0; i < 3; ++i) {
    costs[static_cast<std::size_t>(i)] = cost_of(program, n << i);
    const Cost& c = costs[static_cast<std::size_t>(i)];
    fmt::print("{:>6}: {:>9} nodes {:>9} rules tried {:>8.1f} ms\n", n << i, c.nodes, c.attempts,
               c.seconds * 1e3);
  }
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_LT(costs[i].nodes, 2.5 * costs[i - 1].nodes + 100);
    EXPECT_LT(costs[i].attempts, 2.5 * costs[i - 1].attempts + 100);
  }
}

// Everything up to launches, which do nothing.
void expect_linear_compile(std::int64_t n, const std::function<void(std::int64_t)>& program) {
  ScopedFlag nowhere("DEV", "NULL");
  expect_linear(n, program);
}

TEST(Linear, SharedDoublings) {
  for (bool known : {true, false}) {
    auto doubled = [known](std::int64_t n) {
      Tensor a =
          known ? Tensor::full({1}, 1, {.dtype = f64}) : Tensor::of(std::vector<double>{1, 1}).realize();
      for (std::int64_t i = 0; i < n; ++i) a = a + a;
      return a.to_vector<double>()[0];
    };
    EXPECT_EQ(doubled(100), std::ldexp(1, 100));
    expect_linear(25, doubled);
  }
}

TEST(Linear, UnrolledRecurrenceWithItsGradient) {
  expect_linear_compile(40, [](std::int64_t n) {
    Tensor w = Tensor::empty({8, 8}).requires_grad(), x = Tensor::empty({4, 8}), h = x;
    for (std::int64_t i = 0; i < n; ++i) h = (h.matmul(w) + x).tanh();
    h.sum().backward();
    w.grad().realize();
  });
}

TEST(Linear, StackOfTensors) {
  std::vector<Tensor> rows;
  for (int i = 0; i < 6131; ++i) rows.push_back(Tensor::of({i, -i}).realize());
  auto stacked = [&](std::int64_t n) { return stack(std::vector<Tensor>(rows.begin(), rows.begin() + n)); };
  auto values = stacked(6131).to_vector<int>();
  for (int i = 0; i < 6131; ++i) {
    ASSERT_EQ(values[static_cast<std::size_t>(2 * i)], i);
    ASSERT_EQ(values[static_cast<std::size_t>(2 * i) + 1], -i);
  }
  expect_linear(1532, [&](std::int64_t n) { stacked(n).realize(); });
}

TEST(Linear, OneVeryLargeConstant) {
  auto run = [](std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n), 2.f);
    return (Tensor::of(values) * 3).sum().item<float>();
  };
  EXPECT_EQ(run(1 << 20), 6.f * (1 << 20));
  Cost small = cost_of(run, 1 << 10), large = cost_of(run, 1 << 20);
  EXPECT_LT(large.nodes, 2.5 * small.nodes);
  EXPECT_LT(large.attempts, 2.5 * small.attempts);
}

TEST(Linear, ConcatenationOfSlices) {
  Tensor x = Tensor::arange(6000).reshape({2000, 3}).realize();
  auto joined = [&](std::int64_t n) {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < n; ++i)
      parts.push_back(x.shrink({{i * 7 % 2000, i * 7 % 2000 + 1}, {0, 2}}));
    return cat(parts);
  };
  auto values = joined(2000).to_vector<int>();
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(2 * i) + 1], i * 7 % 2000 * 3 + 1);
  expect_linear(500, [&](std::int64_t n) { joined(n).realize(); });
}

TEST(Linear, EinsumChains) {
  expect_linear_compile(10, [](std::int64_t n) {
    Tensor x = Tensor::empty({8, 8}), m = Tensor::empty({8, 8});
    for (std::int64_t i = 0; i < n; ++i) x = einsum("ij,jk->ik", {x, m});
    x.realize();
  });
}

TEST(Linear, ManySmallWrites) {
  auto written = [](std::int64_t n) {
    Tensor x = Tensor::zeros({4 * n}).clone().realize();
    for (std::int64_t i = 0; i < n; ++i)
      x.shrink({{4 * i, 4 * i + 2}}).assign(Tensor::full({2}, static_cast<double>(i)));
    return x.to_vector<float>();
  };
  auto values = written(1000);
  for (std::size_t i = 0; i < 4000; ++i) ASSERT_EQ(values[i], i % 4 < 2 ? static_cast<float>(i / 4) : 0);
  expect_linear(250, [&](std::int64_t n) { written(n); });
}

TEST(Linear, DeepPerceptronForwardAndBackward) {
  std::vector<Tensor> weights;
  {
    ScopedFlag nowhere("DEV", "NULL");
    for (int i = 0; i < 2000; ++i) weights.push_back(Tensor::empty({4, 4}).requires_grad());
  }
  expect_linear_compile(500, [&](std::int64_t n) {
    Tensor h = Tensor::empty({2, 4});
    for (std::int64_t i = 0; i < n; ++i) h = h.matmul(weights[static_cast<std::size_t>(i)]).relu();
    h.sum().backward();
    std::vector<Tensor> gradients;
    for (std::int64_t i = 0; i < n; ++i) gradients.push_back(weights[static_cast<std::size_t>(i)].grad());
    realize(gradients);
    for (const Tensor& w : weights) w.zero_grad();
  });
}

}  // namespace
}  // namespace pg
