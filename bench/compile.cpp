// What it takes to get from a model to code: ResNet-50 traced, scheduled, lowered and compiled, with caches
// and without; the first result of a process.
#include "codegen/compile.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/flags.h"
#include "engine/engine.h"
#include "graph.h"
#include "resnet.h"
#include "runtime/device.h"
#include <pangrad/cache.h>
#include <pangrad/pangrad.h>

namespace pg::bench {
namespace {

// A file of the disk cache that is gone at the end.
struct TemporaryCache {
  std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("pangrad-bench-{}.db", ::getpid())).string();
  ScopedFlag place{"CACHEDB", file};
  ~TemporaryCache() {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file + end);
  }
};

Tensor pictures(const Dim& batch) { return Tensor::empty({batch, 3, 224, 224}); }

// Seconds to trace, schedule, lower and compile with what the caches have.
double compile_seconds(const ResNet50& net, const Tensor& x) {
  double start = now();
  UOp root = node_of(net(x));
  engine::compile({&root, 1});
  return now() - start;
}

std::vector<UOp> distinct_kernels(const schedule::Schedule& s) {
  absl::flat_hash_set<Node*> seen;
  std::vector<UOp> out;
  for (Node* call : s.linear.ref().srcs())
    if (call->src[0]->op != Op::Copy && seen.insert(call->src[0]).second) out.emplace_back(Ref(call->src[0]));
  return out;
}

void trace_and_schedule(const ScriptTimes& rival, const ResNet50& net) {
  Tensor x = pictures(64);
  double trace = median_seconds(21, [&] { net(x); });
  rival.print({"ResNet-50 forward, batch 64: trace", trace * 1e3, "ms", 1}, "resnet trace", 1e3);
  schedule::Schedule s;
  double both = median_seconds(11, [&] {
    UOp root = node_of(net(x));
    s = engine::plan({&root, 1});
  });
  rival.print({"ResNet-50 forward, batch 64: trace and schedule, no caches", both * 1e3, "ms", 6},
              "resnet schedule", 1e3);
  print({"ResNet-50 forward: kernels", static_cast<double>(s.linear->nsrc), "kernels", 60});
  std::vector<UOp> kernels = distinct_kernels(s);
  const Target& target = runtime::device(engine::default_device()).target();
  double lower = median_seconds(5, [&] {
    GraphScope scope;
    for (const UOp& k : kernels) codegen::lower(k, target);
  });
  rival.print({fmt::format("ResNet-50 forward: its {} distinct kernels lowered", kernels.size()), lower * 1e3,
               "ms", 80},
              "resnet lower", 1e3);
}

void compile_models(const ResNet50& net) {
  Tensor x = pictures(64);
  TemporaryCache disk;
  auto compiled = [](auto f) {
    std::uint64_t before = engine::counters().compiled;
    double seconds = f();
    return std::pair(seconds, engine::counters().compiled - before);
  };
  auto fresh = [&](const Tensor& in) {
    return compiled([&] {
      cache::trim();
      return compile_seconds(net, in);
    });
  };
  // LLVM is opened, and its pages are there.
  {
    ScopedFlag memory_only("CACHE", 1);
    fresh(pictures(2));
  }
  auto [cold, made] = fresh(x);
  print({fmt::format("ResNet-50 forward, batch 64: from nothing to code, {} kernels compiled", made),
         cold * 1e3, "ms", 6 + 80 + 400});
  auto [warm, remade] = fresh(x);
  print({"ResNet-50 forward, batch 64: from nothing to code, warm disk cache", warm * 1e3, "ms", 60});
  print({"ResNet-50 forward, batch 64: kernels compiled with a warm disk cache", static_cast<double>(remade),
         "kernels", 0});
  Tensor other = pictures(32);
  auto [again, others] = compiled([&] { return compile_seconds(net, other); });
  print({fmt::format("ResNet-50 forward with another batch size: {} kernels compiled", others), again * 1e3,
         "ms", 6 + 80 + 400});
  auto [known, none] = fresh(other);
  print({fmt::format("ResNet-50 forward with another batch size, warm disk cache: {} kernels compiled", none),
         known * 1e3, "ms", 60});
}

void cache_hits(const ScriptTimes& rival) {
  ScopedFlag nowhere("DEV", "NULL");
  ResNet50 net;
  for (const Tensor& t : parameters(net)) t.realize();
  Tensor x = pictures(64);
  NoGrad no_grad;
  double hit = median_seconds(51, [&] { net(x).realize(); });
  rival.print({"ResNet-50 forward, batch 64: trace and schedule, cached", hit * 1e3, "ms", 1.5},
              "resnet schedule hit", 1e3);
  Variable batch("batch", 1, 128);
  Tensor most = Tensor::empty({128, 3, 224, 224});
  std::int64_t size = 64;
  auto run = [&] {
    size = size == 64 ? 32 : 64;
    return net(most.shrink({{0, batch.bind(size)}, {0, 3}, {0, 224}, {0, 224}})).realize();
  };
  engine::Counters before = engine::counters();
  double symbolic = median_seconds(51, run);
  engine::Counters after = engine::counters();
  print({fmt::format("ResNet-50 forward with another batch size, symbolic: {} schedules for 52 sizes",
                     after.schedules - before.schedules),
         symbolic * 1e3, "ms", 3});
}

// Seconds from fork to exit of a process that computes one small thing.
double process_seconds(const char* file, bool expect_llvm) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string(),
              place = fmt::format("CACHEDB={}", file);
  std::string group = "first-result";
  char* argv[] = {self.data(), group.data(), nullptr};
  char* env[] = {place.data(), nullptr};
  double start = now();
  pid_t child;
  if (::posix_spawn(&child, self.c_str(), nullptr, nullptr, argv, env))
    throw Error("[bench] cannot start a process");
  int status = 0;
  ::waitpid(child, &status, 0);
  double seconds = now() - start;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != (expect_llvm ? 2 : 0))
    throw Error(fmt::format("[bench] the first result of a process: status {}", status));
  return seconds;
}

void process_start(const ScriptTimes& rival) {
  TemporaryCache disk;
  process_seconds(disk.file.c_str(), true);
  double s = median_seconds(15, [&] { process_seconds(disk.file.c_str(), false); });
  rival.print({"process start to the first result of x + 1, and its end, warm disk cache, without LLVM",
               s * 1e3, "ms", 15},
              "first result", 1e3);
}

}  // namespace

int first_result() {
  Tensor x = Tensor::of({1.f, 2.f, 3.f});
  if ((x + 1).to_vector<float>() != std::vector<float>{2, 3, 4}) return 3;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libpangrad_llvm") != std::string::npos) return 2;
  return 0;
}

void compile(const ScriptTimes& rival) {
  {
    ResNet50 net;
    for (const Tensor& t : parameters(net)) t.realize();
    NoGrad no_grad;
    trace_and_schedule(rival, net);
    compile_models(net);
  }
  cache_hits(rival);
  process_start(rival);
  first_steps();
}

}  // namespace pg::bench
