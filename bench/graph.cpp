// What building, scheduling and replaying graphs costs, arithmetic aside; on one thread.
#include "graph.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/flags.h"
#include "engine/engine.h"
#include "figure.h"
#include "gpt2.h"
#include "rewrite/rewrite.h"
#include "rules/symbolic.h"
#include <pangrad/pangrad.h>

namespace pg::bench {
namespace {

// Seconds of f in a scope of its own each time, so that every node it makes is new; `make` is not timed.
template <class Make, class F>
double fresh_seconds(int times, Make make, F f) {
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    GraphScope scope;
    auto made = make();
    double start = now();
    f(made);
    seconds.push_back(now() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + times / 2, seconds.end());
  return seconds[static_cast<std::size_t>(times) / 2];
}

void nodes(const Rival& rival) {
  constexpr int kNodes = 500;
  double made = fresh_seconds(
      501, [] { return param(0, f32, shape_node(Dims{})); },
      [](Ref a) {
        for (int i = 0; i < kNodes; ++i) a = a + a;
      });
  rival.print({"a + a, a new node", made / kNodes * 1e6, "us", 0.1}, "a + a", 1e6);
  {
    GraphScope scope;
    UOp keep = int_const(i32, 5);
    double hit = median_seconds(501, [&] {
      for (int i = 0; i < kNodes; ++i) asm volatile("" : : "r"(int_const(i32, 5).node()));
    });
    rival.print({"a constant that is there", hit / kNodes * 1e6, "us", 0.02}, "constant", 1e6);
  }
  {
    GraphScope scope;
    Ref x = param(0, i32, shape_node(Dims{}));
    // Floats: integers would collect the constants.
    Ref sum = cast(x, f32);
    for (int i = 0; i < 9999; ++i) sum = sum + float_const(f32, i + 0.5);
    auto count = static_cast<double>(toposort(sum).size());
    double walk = median_seconds(51, [&] { toposort(sum); });
    rival.print({"toposort of 20,001 nodes, a node", walk / count * 1e6, "us", 0.02}, "toposort", 1e6);
  }
  auto simplify = [](Ref x) { rewrite(x, rules::symbolic(), {.name = "bench"}); };
  auto variables = [] { return std::array<Ref, 3>{var("x", 1, 100), var("y", 1, 100), var("z", 1, 100)}; };
  double terms = fresh_seconds(
      20'001,
      [&] {
        auto [x, y, z] = variables();
        return (x * 2) + 5 + (x * 4) + (y * 2) + y;
      },
      simplify);
  rival.print({"(x*2)+5+(x*4)+(y*2)+y, simplified", terms * 1e6, "us", 2}, "terms", 1e6);
  double quotient = fresh_seconds(
      20'001,
      [&] {
        auto [x, y, z] = variables();
        return (x * 4 + y * 8) / (z * 2);
      },
      simplify);
  rival.print({"(x*4+y*8)//(z*2), simplified", quotient * 1e6, "us", 1}, "quotient", 1e6);
  {
    constexpr int kMany = 10'000'000;
    UOp root;
    {
      GraphScope scope;
      GraphStats before = graph_stats();
      Ref x = param(0, f32, shape_node(Dims{})), y = param(1, f32, shape_node(Dims{}));
      for (int i = 0; i < kMany; ++i) x = x + y;
      root = x;
      GraphStats after = graph_stats();
      print({"memory of a node of two sources",
             static_cast<double>(after.bytes - before.bytes) / static_cast<double>(after.live - before.live),
             "bytes", 96});
    }
    double start = now();
    root = UOp();
    {
      GraphScope scope;
    }
    print({"freeing a chain of 10 million nodes", now() - start, "s", 1});
  }
}

void tensors(const Rival& rival) {
  Tensor a = Tensor::empty({4, 4}), b = Tensor::empty({4, 4});
  constexpr int kTensors = 100;
  std::vector<Tensor> kept(kTensors);
  auto forget = [&] { kept.assign(kTensors, Tensor()); };
  double sum = median_seconds(
      1001,
      [&] {
        GraphScope scope;
        // Each on the one before, so that every node is new.
        kept[0] = a + b;
        for (std::size_t i = 1; i < kTensors; ++i) kept[i] = kept[i - 1] + b;
      },
      forget);
  rival.print({"Tensor a + b", sum / kTensors * 1e6, "us", 0.3}, "Tensor a + b", 1e6);
  for (bool normal : {false, true}) {
    double s = median_seconds(
        1001, [&] { kept[0] = normal ? Tensor::randn({10, 10}) : Tensor::rand({10, 10}); }, forget);
    rival.print({normal ? "Tensor::randn(10, 10)" : "Tensor::rand(10, 10)", s * 1e6, "us", 10},
                normal ? "randn" : "rand", 1e6);
  }
}

// The least a realize can cost here: one call of a kernel that adds 1 to 16 numbers in memory that is there.
double bare_loop_seconds() {
  std::vector<float> from(16, 1), to(16);
  return median_seconds(1001, [&] {
    for (std::size_t i = 0; i < 16; ++i) to[i] = from[i] + 1;
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

void small_runs() {
  {
    std::vector<float> ones(16, 1);
    Tensor x = Tensor::of(std::span<const float>(ones)).realize(), y;
    double s = median_seconds(2001, [&] { y = (x + 1).realize(); }, [&] { y = Tensor(); });
    print({"x + 1 of 16 floats, realized, same shape again", s * 1e3, "ms", 0.05, true, "limit",
           bare_loop_seconds() * 1e3});
  }
  {
    Tensor x = Tensor::zeros({16}).clone().realize();
    auto step = jit([&](const Tensor& in) {
      Tensor h = in;
      for (int i = 0; i < 100; ++i) h = (h + 1).contiguous().realize();
      return h;
    });
    for (int i = 0; i < 3; ++i) step(x).realize();
    Tensor out;
    double s = median_seconds(501, [&] { out = step(x); });
    print({"replay of 100 captured tiny kernels", s * 1e3, "ms", 0.1, true, "limit",
           100 * bare_loop_seconds() * 1e3});
  }
}

// Forward, backward and Adam, traced and scheduled; steps in between are run where nothing is computed, so
// that each begins as a step of training does.
void gpt2(const Rival& rival) {
  ScopedFlag nowhere("DEV", "NULL");
  Gpt2 net;
  optim::Adam opt(parameters(net), {});
  Tensor ids = Tensor::empty({1, 128}, {.dtype = i32}), targets = Tensor::empty({1, 128}, {.dtype = i32});
  std::vector<double> seconds;
  std::uint64_t kernels = 0;
  for (int i = 0; i < 4; ++i) {
    double start = now();
    Training on;
    opt.zero_grad();
    Tensor loss = net(ids).flatten(0, 1).sparse_categorical_crossentropy(targets.flatten());
    loss.backward();
    std::vector<Tensor> all = opt.schedule_step();
    all.push_back(loss);
    std::vector<UOp> roots;
    for (const Tensor& t : all) roots.push_back(node_of(t));
    kernels = engine::plan(roots).linear->nsrc;
    seconds.push_back(now() - start);
    roots.clear();
    realize(all);
  }
  std::sort(seconds.begin(), seconds.end());
  rival.print(
      {fmt::format("GPT-2 small, forward, backward and Adam: trace and schedule, {} kernels", kernels),
       seconds[1] * 1e3, "ms", 188},
      "gpt2", 1e3);
}

}  // namespace

void graph() {
  Rival rival("graph_rival.py");
  nodes(rival);
  tensors(rival);
  small_runs();
  compile(rival);
  gpt2(rival);
}

}  // namespace pg::bench
