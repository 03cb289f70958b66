// Whole networks: inference, a training step's memory, one model served by several threads.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "figure.h"
#include "gpt2.h"
#include "kernels.h"
#include "measure.h"
#include "memory.h"
#include "resnet.h"

namespace pg::bench {
namespace {

template <class Net>
std::shared_ptr<Net> drawn() {
  auto net = std::make_shared<Net>();
  realize(parameters(*net));
  return net;
}

void inference() {
  Rival &torch = Rival::torch(), &ort = Rival::onnxruntime();
  for (std::int64_t batch : {1, 16}) {
    std::string name = fmt::format("ResNet-50 inference, batch {}", batch);
    if (!wanted(name)) continue;
    auto net = drawn<ResNet50>();
    NoGrad off;
    measure({.name = name,
             .flops = 8.2e9 * static_cast<double>(batch),
             .inputs = {Tensor::randn({batch, 3, 224, 224})},
             .ours = [net](const std::vector<Tensor>& in) { return std::vector{(*net)(in[0])}; },
             .rival_work = fmt::format("resnet50 {}", batch)},
            {Goal::beat(torch, 1.2), Goal::beat(ort, 1.2)});
  }
  constexpr std::int64_t kTokens = 128;
  constexpr double kWeights = 85e6, kHead = 38.6e6;  // of the layers, and of the table of tokens
  std::string forward = "GPT-2 small forward, 128 tokens", decode = "GPT-2 small decode, 1 token after 128";
  if (!wanted(forward) && !wanted(decode)) return;
  auto net = drawn<Gpt2>();
  NoGrad off;
  measure({.name = forward,
           .flops = 2 * (kTokens * kWeights + kHead),
           .bytes = 4 * (kWeights + kHead),
           .inputs = {Tensor::randint({1, kTokens}, {.high = Gpt2::kVocabulary})},
           .ours = [net](const std::vector<Tensor>& in) { return std::vector{net->next(in[0])}; },
           .rival_work = fmt::format("gpt2_forward {}", kTokens)},
          {Goal::beat(torch, 1.2), Goal::beat(ort, 1.2)});
  std::vector<Tensor> inputs{Tensor::randint({1, 1}, {.high = Gpt2::kVocabulary})};
  for (std::int64_t i = 0; i < 2 * Gpt2::kLayers; ++i)
    inputs.push_back(Tensor::randn({1, Gpt2::kHeads, kTokens, Gpt2::kWidth / Gpt2::kHeads}));
  measure({.name = decode,
           .flops = 2 * (kWeights + kHead),
           .bytes = 4 * (kWeights + kHead),
           .inputs = inputs,
           .ours =
               [net](const std::vector<Tensor>& in) {
                 std::vector<Gpt2::Past> past;
                 for (std::size_t i = 1; i < in.size(); i += 2) past.push_back({in[i], in[i + 1]});
                 return std::vector{net->next(in[0], kTokens, past)};
               },
           .rival_work = fmt::format("gpt2_decode {}", kTokens)},
          {Goal::beat(torch, 1.2), Goal::beat(ort, 1.2)});
}

// A model whose kernels are too small to split.
struct Small : nn::Module {
  nn::Linear a{64, 64}, b{64, 64}, c{64, 10};
  void fields(auto&& field) { field("a", a), field("b", b), field("c", c); }
  Tensor operator()(const Tensor& x) const { return c(b(a(x).relu()).relu()); }
};

double requests_per_second(const Small& net, int count) {
  constexpr int kRequests = 2000;
  std::atomic<bool> go{false};
  auto serve = [&] {
    Tensor x = Tensor::randn({1, 64}).realize();
    NoGrad off;
    for (int i = 0; i < 20; ++i) net(x).realize();
    while (!go.load()) std::this_thread::yield();
    for (int i = 0; i < kRequests / count; ++i) net(x).realize();
  };
  std::vector<std::thread> servers;
  for (int i = 0; i < count; ++i) servers.emplace_back(serve);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  double start = now();
  go.store(true);
  for (std::thread& s : servers) s.join();
  return kRequests / (now() - start);
}

void serving() {
  if (!wanted("requests per second of one small model")) return;
  auto net = drawn<Small>();
  double alone = requests_per_second(*net, 1);
  for (int count : {2, 4}) {
    double best = 0, base = alone;
    for (int round = 0; round < 3; ++round) {
      best = std::max(best, requests_per_second(*net, count));
      base = std::max(base, requests_per_second(*net, 1));
    }
    print({.name = fmt::format("requests per second of one small model, {} threads", count),
           .value = best,
           .unit = "requests/s",
           .target = (count == 2 ? 1.8 : 1.0) * base,
           .lower_is_better = false,
           .reference_kind = "limit",
           .reference = base,
           .by = "one thread alone"});
  }
}

}  // namespace

void models() {
  inference();
  compare_peak_memory("peak memory of the demo's training step", "demo", "demo", 0.8);
  compare_peak_memory("peak memory of a ResNet-50 training step, batch 16", "resnet50",
                      "resnet50_training 16", 0.8);
  serving();
}

}  // namespace pg::bench
