// Optimisers against the reference: a layer of four neurons after one step and after five.
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "eval/compare.h"
#include "ops/golden_file.h"
#include "ops/nodes.h"
#include "ops/op_table.h"
#include <pangrad/optim.h>

namespace pg::ops {
namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(const Tensor& w, const Tensor& b)>;
template <class T, class Options>
Make by(Options options) {
  return
      [options](const Tensor& w, const Tensor& b) { return std::make_unique<T>(TensorList{w, b}, options); };
}

struct Row {
  const char* name;
  Make make;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Optimizers : public testing::TestWithParam<Row> {};

TEST_P(Optimizers, StepAsTheReference) {
  static const auto golden = read_golden("optim.txt");
  const Row& row = GetParam();
  const Input inputs[] = {f({5, 3}), f({3, 4}), f({4}), f({5, 4}, -1, 1)};
  std::vector<Tensor> v;
  for (std::size_t i = 0; i < 4; ++i) v.push_back(stored(make_input("optim", i, inputs[i])));
  Tensor w = v[1].requires_grad(), b = v[2].requires_grad();
  auto opt = row.make(w, b);
  Training on;
  for (int step = 1; step <= 5; ++step) {
    opt->zero_grad();
    ((v[0].matmul(w) + b).tanh() - v[3]).square().mean().backward();
    opt->step();
    for (auto& [name, tensor] : {std::pair{".w", w}, std::pair{".b", b}}) {
      auto want = golden.find(std::string(row.name) + ".step" + std::to_string(step) + name);
      if (want == golden.end()) continue;
      // What is divided by the root of a small average magnifies the last bits of gradients.
      EXPECT_EQ(difference(computed(tensor), want->second.value, {.rel = 2e-5, .abs = 1e-5}), "")
          << want->first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, Optimizers,
    testing::Values(
        Row{"sgd", by<optim::SGD>(optim::SgdOptions{.lr = 0.1})},
        Row{"sgd.momentum", by<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9})},
        Row{"sgd.nesterov", by<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
        Row{"sgd.weight_decay",
            by<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05})},
        Row{"adam", by<optim::Adam>(optim::AdamOptions{.lr = 0.02})},
        Row{"adam.betas",
            by<optim::Adam>(optim::AdamOptions{.lr = 0.02, .b1 = 0.8, .b2 = 0.95, .eps = 1e-4})},
        Row{"adamw", by<optim::AdamW>(optim::AdamWOptions{.lr = 0.02, .weight_decay = 0.1})},
        Row{"lamb", by<optim::LAMB>(optim::LambOptions{.lr = 0.02})},
        Row{"lamb.weight_decay", by<optim::LAMB>(optim::LambOptions{.lr = 0.02, .weight_decay = 0.1})},
        Row{"lars", by<optim::LARS>(optim::LarsOptions{.lr = 0.1})},
        Row{"muon", [](const Tensor& w, const Tensor&) {
              return std::make_unique<optim::Muon>(TensorList{w}, optim::MuonOptions{.lr = 0.02});
            }}));

// The numbers given by the reference's own notes: x = {1, 2}, loss x^2, three steps with default arguments.
TEST(Optimizers, CheckValues) {
  struct Check {
    Make make;
    std::vector<double> want;
  };
  const Check checks[] = {
      {by<optim::SGD>(optim::SgdOptions{}), {0.994012, 1.988024}},
      {by<optim::Adam>(optim::AdamOptions{}), {0.997, 1.997}},
      {by<optim::AdamW>(optim::AdamWOptions{}), {0.99697, 1.99694}},
      {by<optim::LARS>(optim::LarsOptions{}), {0.9999944, 1.9999888}},
      {by<optim::LAMB>(optim::LambOptions{}), {0.995261, 1.995261}},
  };
  Training on;
  for (const Check& c : checks) {
    Tensor x = Tensor::of({1.f, 2.f}).requires_grad(), y = Tensor::of({1.f, 2.f}).requires_grad();
    auto opt = c.make(x, y);
    for (int step = 0; step < 3; ++step) {
      opt->zero_grad();
      (x.square().sum() + y.square().sum()).backward();
      opt->step();
    }
    EXPECT_EQ(difference(computed(x), eval::Array(f32, {2}, c.want), {.abs = 2e-6}), "");
  }
}

}  // namespace
}  // namespace pg::ops
