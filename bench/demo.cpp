// The demo's training step: first and steady, and what it allocates.
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "../apps/demo_net.h"
#include "base/flags.h"
#include "engine/engine.h"
#include "figure.h"
#include "graph.h"
#include "runtime/device.h"
#include <pangrad/pangrad.h>

namespace pg::bench {
namespace {

struct Trainer {
  datasets::Split data = datasets::fashion_mnist();
  apps::DemoNet net;
  optim::Adam opt{parameters(net), {}};
  Jit<std::function<Tensor(const Tensor&, const Tensor&)>> step =
      jit(std::function<Tensor(const Tensor&, const Tensor&)>([this](const Tensor& x, const Tensor& y) {
        Training on;
        Tensor pick = Tensor::randint({512}, {.high = x.size(0)});
        Tensor loss = net(x[pick].cast(f32)).sparse_categorical_crossentropy(y[pick]);
        opt.zero_grad();
        loss.backward();
        opt.step();
        return loss;
      }));
  Tensor run() { return step(data.train.x, data.train.y); }
};

double timed(Trainer& t) {
  double start = now();
  t.run().item<float>();
  return now() - start;
}

// Seconds of the first step of a new network beyond a steady one.
double first_step() {
  cache::trim();
  Trainer t;
  for (Tensor p : parameters(t.net)) p.realize();
  double first = timed(t);
  timed(t);
  std::vector<double> steady;
  for (int i = 0; i < 3; ++i) steady.push_back(timed(t));
  return first - std::min({steady[0], steady[1], steady[2]});
}

}  // namespace

void first_steps() {
  Tensor::manual_seed(0);
  // Touch the memory and open the compiler, with kernels that are forgotten again.
  std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("pangrad-bench-{}.db", ::getpid());
  {
    ScopedFlag memory_only("CACHE", 1);
    Trainer warm;
    for (int i = 0; i < 3; ++i) timed(warm);
  }
  {
    ScopedFlag where("CACHEDB", file.string());
    print({"demo: first step beyond a steady one, cold", first_step(), "s", 0.8, true});
    print({"demo: first step beyond a steady one, warm disk cache", first_step(), "s", 0.1, true});
  }
  std::filesystem::remove(file);
}

void demo() {
  Tensor::manual_seed(0);
  double peak = peak_gflops();
  Trainer t;
  for (int i = 0; i < 4; ++i) timed(t);
  double seconds = median_seconds(9, [&] { timed(t); });
  constexpr double kFlops = 40e9;
  print({"demo: steady step", seconds, "s", 0.8, true, "limit", kFlops / (peak * 1e9)});

  auto& device = runtime::device(engine::default_device());
  auto held = [&] { return static_cast<double>(device.memory().in_use + device.memory().cached); };
  auto growth = [&](bool keep) {
    std::vector<Tensor> losses;
    for (int i = 0; i < 2; ++i) losses.push_back(t.run());
    t.run();  // the block of a loss that is let go
    double before = held();
    for (int i = 0; i < 5; ++i) {
      Tensor loss = t.run();
      if (keep) losses.push_back(loss);
    }
    return (held() - before) / 5;
  };
  print({"demo: memory taken per step", growth(false), "bytes", 0, true, "limit", 0});
  // A kept loss is itself a block of the pool.
  constexpr double kBlock = 64;
  print({"demo: memory taken per step beyond the loss, every loss kept", growth(true) - kBlock, "bytes", 0,
         true, "limit", 0});
}

}  // namespace pg::bench
