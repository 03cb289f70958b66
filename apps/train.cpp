// pangrad train: steps drawn at random from the pictures to train with, then the accuracy on the others.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/progress.h"
#include "commands.h"
#include "demo_net.h"
#include <pangrad/pangrad.h>

namespace pg::apps {
namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainOptions& options, TensorList parameters) {
  auto make = [&]<class Optimizer>(auto settings) -> std::unique_ptr<optim::Optimizer> {
    if (options.lr) settings.lr = *options.lr;
    return std::make_unique<Optimizer>(parameters, settings);
  };
  const std::string& name = options.optimizer;
  if (name == "sgd") return make.operator()<optim::SGD>(optim::SgdOptions{.momentum = 0.9});
  if (name == "adam") return make.operator()<optim::Adam>(optim::AdamOptions{});
  if (name == "adamw") return make.operator()<optim::AdamW>(optim::AdamWOptions{});
  if (name == "lamb") return make.operator()<optim::LAMB>(optim::LambOptions{});
  if (name == "muon") return make.operator()<optim::Muon>(optim::MuonOptions{});
  throw ValueError(fmt::format("[train] unknown optimizer {}", name));
}

Tensor hits(const Tensor& scores, const Tensor& classes) { return scores.argmax(1) == classes; }

// The share of pictures that the network gets right, in percent.
double accuracy(const DemoNet& net, const datasets::Labeled& data) {
  constexpr std::int64_t kBatch = 500;
  NoGrad no_grad;
  std::int64_t count = data.x.size(0), right = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBatch) {
    Slice batch{begin, std::min(begin + kBatch, count)};
    right += hits(net(data.x[batch].cast(f32)), data.y[batch]).sum().item<std::int32_t>();
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(count);
}

// Better before the training than after it.
void check_savable(const std::filesystem::path& path) {
  std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(path) || access(folder.c_str(), W_OK | X_OK) != 0)
    throw FileError(fmt::format("[train] {}: cannot be written", path.string()));
}

}  // namespace

void train_fashion_mnist(const TrainOptions& options) {
  if (!options.save.empty()) check_savable(options.save);
  Tensor::manual_seed(options.seed);
  datasets::Split data = datasets::fashion_mnist({.folder = options.data});
  DemoNet net;
  std::vector<Tensor> weights = parameters(net);
  std::unique_ptr<optim::Optimizer> opt = make_optimizer(options, weights);

  // Gives loss and accuracy of the batch, in one tensor so that reading them waits once.
  auto step = jit([&](const Tensor& x, const Tensor& y) {
    Training on;
    Tensor pick = Tensor::randint({options.batch}, {.high = x.size(0)});
    Tensor scores = net(x[pick].cast(f32)), classes = y[pick];
    Tensor loss = scores.sparse_categorical_crossentropy(classes);
    opt->zero_grad();
    loss.backward();
    opt->step();
    return stack({loss, hits(scores.detach(), classes).cast(f32).mean()});
  });

  std::int64_t numbers = 0;
  for (const Tensor& weight : weights) numbers += weight.numel();
  fmt::print("Fashion-MNIST: {} pictures to train with, {} to test; {} parameters on {}\n",
             data.train.x.size(0).value(), data.test.x.size(0).value(), numbers, weights[0].device());
  std::fflush(stdout);
  {
    Progress progress(
        options.steps,
        {.label = "training", .unit = "samples", .units_per_step = static_cast<double>(options.batch)});
    for (std::int64_t i = 0; i < options.steps; i++) {
      std::vector<float> shown = step(data.train.x, data.train.y).to_vector<float>();
      progress.advance(fmt::format("loss {:.3f}  accuracy {:.1f} %", shown[0], 100 * shown[1]));
    }
  }
  fmt::print("test accuracy {:.2f} % after {} steps\n", accuracy(net, data.test), options.steps);
  if (options.save.empty()) return;
  safe_save(state_dict(net), options.save);
  fmt::print("saved to {}\n", options.save);
}

}  // namespace pg::apps
