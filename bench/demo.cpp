// The demo's training step: first (a row of the graph benchmark) and steady, and what it allocates.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/flags.h"
#include "engine/engine.h"
#include "figure.h"
#include "graph.h"
#include "kernels.h"
#include "measure.h"
#include "runtime/device.h"
#include "trainer.h"
#include <pangrad/cache.h>

namespace pg::bench {
namespace {

double timed(DemoTrainer& t) {
  double start = now();
  t.run().item<float>();
  return now() - start;
}

// Seconds of the first step of a new network beyond a steady one.
double first_step() {
  cache::trim();
  DemoTrainer t;
  for (Tensor p : parameters(t.net)) p.realize();
  double first = timed(t);
  timed(t);
  std::vector<double> steady;
  for (int i = 0; i < 3; ++i) steady.push_back(timed(t));
  return first - *std::min_element(steady.begin(), steady.end());
}

}  // namespace

void first_steps() {
  Tensor::manual_seed(0);
  // Touch the memory and open the compiler, with kernels that are forgotten again.
  std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("pangrad-bench-{}.db", ::getpid());
  {
    ScopedFlag memory_only("CACHE", 1);
    DemoTrainer warm;
    for (int i = 0; i < 3; ++i) timed(warm);
  }
  {
    ScopedFlag where("CACHEDB", file.string());
    print({"demo: first step beyond a steady one, cold", first_step(), "s", 0.8, true});
    print({"demo: first step beyond a steady one, warm disk cache", first_step(), "s", 0.1, true});
  }
  std::filesystem::remove(file);
}

namespace {

void memory_per_step() {
  DemoTrainer t;
  for (int i = 0; i < 4; ++i) timed(t);
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

}  // namespace

void searching() {
  constexpr const char *kTime = "BEAM=2 for the demo's kernels, cold",
                       *kGain = "demo's steady step with BEAM=2 against the cost model's choice";
  if (!wanted(kTime) && !wanted(kGain)) return;
  ScopedFlag memory_only("CACHE", 1);
  Tensor::manual_seed(0);
  cache::trim();
  DemoTrainer chosen;
  for (int i = 0; i < 3; ++i) timed(chosen);
  cache::trim();
  std::unique_ptr<DemoTrainer> found;
  double start = now();
  {
    ScopedFlag width("BEAM", 2);
    found = std::make_unique<DemoTrainer>();
    for (int i = 0; i < 3; ++i) timed(*found);
  }
  print({kTime, now() - start, "s", 60, true});
  std::vector<double> with, without;
  for (int i = 0; i < 9; ++i) {
    without.push_back(timed(chosen));
    with.push_back(timed(*found));
  }
  auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  double ours = median(without);
  print(
      {.name = kGain,
       .value = ours / median(with),
       .unit = "times",
       .target = 1.1,
       .lower_is_better = false,
       .bound = fmt::format("{:.1f} ms with the model's choice; no list of options that the search tried is "
                            "that much better",
                            ours * 1e3)});
  cache::trim();
}

void demo() {
  Rival::introduce();
  Tensor::manual_seed(0);
  auto trainer = std::make_shared<DemoTrainer>();
  for (int i = 0; i < 3; ++i) timed(*trainer);
  measure({.name = "demo: steady step",
           .flops = 40e9,
           .rival_work = "demo",
           .run = [trainer] { timed(*trainer); }},
          {Goal::within(0.8), Goal::beat(Rival::torch(), 2)});
  if (wanted("demo: memory")) memory_per_step();
}

}  // namespace pg::bench
