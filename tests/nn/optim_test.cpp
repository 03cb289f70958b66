// Optimisers: their check values, what they share, what they refuse. Golden data of whole runs is in
// tests/golden.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pangrad/nn.h>
#include <pangrad/optim.h>
#include <pangrad/scope.h>
#include <pangrad/state.h>

namespace pg {
namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(TensorList)>;

template <class T, class Options>
Make with(Options options) {
  return [options](TensorList parameters) { return std::make_unique<T>(parameters, options); };
}

Tensor weights() { return Tensor::of({1.f, 2.f}).requires_grad(); }

void step(optim::Optimizer& opt, const Tensor& x) {
  Training on;
  opt.zero_grad();
  x.square().sum().backward();
  opt.step();
}

// The loss of the check values is x^2 of each, so a step is by element.
std::vector<float> after_three_steps(const Make& make) {
  Tensor x = weights();
  auto opt = make({x});
  for (int i = 0; i < 3; i++) step(*opt, x);
  return x.to_vector<float>();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], tolerance);
}

TEST(Optim, CheckValuesOfTheReference) {
  expect_near(after_three_steps(with<optim::SGD>(optim::SgdOptions())), {0.994012f, 1.988024f}, 1e-6f);
  expect_near(after_three_steps(with<optim::Adam>(optim::AdamOptions())), {0.997f, 1.997f}, 1e-5f);
  expect_near(after_three_steps(with<optim::AdamW>(optim::AdamWOptions())), {0.99697f, 1.99694f}, 1e-5f);
  expect_near(after_three_steps(with<optim::LARS>(optim::LarsOptions())), {0.9999944f, 1.9999888f}, 1e-6f);
  expect_near(after_three_steps(with<optim::LAMB>(optim::LambOptions())), {0.995261f, 1.995261f}, 1e-5f);
}

TEST(Optim, MomentumByHand) {
  // Gradients are 2x; lr 0.1, momentum 0.5: b = 2, x = 0.8; b = 1 + 1.6, x = 0.54.
  Tensor x = Tensor::of({1.f}).requires_grad();
  optim::SGD opt({x}, {.lr = 0.1, .momentum = 0.5});
  step(opt, x), step(opt, x);
  EXPECT_NEAR(x.item<float>(), 0.54f, 1e-6f);
  // Nesterov steps by gradient + 0.5 b: 3, x = 0.7; b = 2.4, steps 2.6, x = 0.44.
  Tensor y = Tensor::of({1.f}).requires_grad();
  optim::SGD nesterov({y}, {.lr = 0.1, .momentum = 0.5, .nesterov = true});
  step(nesterov, y), step(nesterov, y);
  EXPECT_NEAR(y.item<float>(), 0.44f, 1e-6f);
}

TEST(Optim, MuonMakesStepsOrthogonal) {
  Tensor x = Tensor::of({{3.f, 1.f}, {1.f, 2.f}}).requires_grad();
  std::vector<float> before = x.to_vector<float>();
  optim::Muon opt({x}, {.lr = 1, .weight_decay = 0});
  step(opt, x);
  Tensor moved = Tensor::of(before, {2, 2}) - x.detach();
  std::vector<float> product = moved.matmul(moved.T()).to_vector<float>();
  // The iterations bring singular values near 1, not to it.
  expect_near(product, {1, 0, 0, 1}, 0.45f);
  EXPECT_THROW(optim::Muon({Tensor::of(1.f).requires_grad()}), ValueError);
}

TEST(Optim, ParametersKeepTheirStorage) {
  Tensor x = weights(), same = x.detach();
  optim::SGD opt({x}, {.lr = 0.25});
  step(opt, x);
  EXPECT_EQ(same.to_vector<float>(), (std::vector<float>{0.5, 1}));
  EXPECT_TRUE(x.wants_grad());
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(Optim, TheRateMayChange) {
  Tensor x = weights();
  optim::SGD opt({x}, {.lr = 0.25});
  step(opt, x);
  opt.lr().assign(0);
  step(opt, x);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0.5, 1}));

  Tensor rate = Tensor::of({0.5f});
  optim::SGD shared({x}, {.lr = rate});
  rate.assign(0.25);
  step(shared, x);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0.25, 0.5}));
}

TEST(Optim, StateIsACheckpoint) {
  auto run = [](Tensor x, bool interrupted) {
    auto opt = std::make_unique<optim::AdamW>(TensorList{x});
    for (int i = 0; i < 4; i++) {
      if (interrupted && i == 2) {
        StateDict state;
        for (const auto& [name, tensor] : state_dict(*opt)) state.emplace(name, tensor.clone().realize());
        opt = std::make_unique<optim::AdamW>(TensorList{x});
        load_state_dict(*opt, state);
      }
      step(*opt, x);
    }
    return x.to_vector<float>();
  };
  EXPECT_EQ(run(weights(), true), run(weights(), false));
}

TEST(Optim, HalvesKeepTheirStateInFull) {
  Tensor x = Tensor::of({1.f, 2.f}, {.dtype = f16}).requires_grad();
  optim::Adam opt({x}, {.lr = 0.5});
  EXPECT_EQ(state_dict(opt).at("m.0").dtype(), f32);
  step(opt, x);
  EXPECT_EQ(x.dtype(), f16);
  EXPECT_EQ(x.cast(f32).to_vector<float>(), (std::vector<float>{0.5, 1.5}));
}

template <class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const ValueError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Optim, GroupsStepTogether) {
  auto one = [](float v) { return Tensor::of({v}).realize().requires_grad(); };
  Tensor a = one(1), b = one(1), c = one(1);
  optim::Group group(optim::SGD({a, b}, {.lr = 0.1, .weight_decay = 1}), optim::SGD({c}, {.lr = 1.0}));
  Training on;
  group.zero_grad();
  (a * 2 + b * 3).sum().backward();
  // One gradient is missing: no group has stepped.
  EXPECT_THROW(group.step(), ValueError);
  EXPECT_EQ(a.item<float>(), 1);
  (c * 4).sum().backward();
  group.step();
  EXPECT_FLOAT_EQ(a.item<float>(), 1 - 0.1f * (2 + 1));
  EXPECT_FLOAT_EQ(b.item<float>(), 1 - 0.1f * (3 + 1));
  EXPECT_FLOAT_EQ(c.item<float>(), 1 - 4);
  group[1].lr().assign(0);
  group.zero_grad();
  (a + b + c).sum().backward();
  group.step();
  EXPECT_FLOAT_EQ(c.item<float>(), -3);
  EXPECT_TRUE(state_dict(group).contains("1.lr"));
  EXPECT_THROW(optim::Group(optim::SGD({a}), optim::SGD({b, a})), ValueError);
}

TEST(Optim, SaysWhatIsWrong) {
  Tensor x = weights(), unmarked = Tensor::of({1.f});
  EXPECT_EQ(message_of([] { optim::Adam(std::vector<Tensor>()); }), "[Adam] there are no parameters");
  EXPECT_NE(message_of([&] { optim::Adam({x, unmarked}); }).find("[Adam] tensor 1,"), std::string::npos);
  EXPECT_EQ(message_of([&] { optim::SGD({x, x}); }), "[SGD] parameter 1 is in the list twice");
  EXPECT_EQ(message_of([&] { optim::SGD({x}, {.lr = -1}); }), "[SGD] lr must not be negative: -1");
  EXPECT_EQ(message_of([&] { optim::Adam({x}, {.b1 = 1}); }), "[Adam] b1 is out of range: 1");
  EXPECT_THROW(optim::SGD({x}, {.lr = Tensor::of({1})}), DTypeError);
  EXPECT_THROW(optim::SGD({x}, {.lr = Tensor::of({1.f, 2.f})}), ShapeError);

  optim::SGD opt({x});
  EXPECT_EQ(message_of([&] { opt.step(); }), "[step] an optimiser steps only in a scope of Training");
  Training on;
  EXPECT_NE(message_of([&] { opt.step(); }).find("[step] parameter 0 of 1,"), std::string::npos);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Optim, TrainsALayer) {
  Tensor::manual_seed(0);
  nn::Linear layer(4, 1);
  Tensor x = Tensor::randn({32, 4}).realize(), y = x.matmul(Tensor::of({{1.f}, {-2.f}, {3.f}, {0.f}})) + 0.5;
  y.realize();
  int index = -1;
  for (const Make& make :
       {with<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9}),
        with<optim::Adam>(optim::AdamOptions{.lr = 0.1}), with<optim::LAMB>(optim::LambOptions{.lr = 0.05}),
        with<optim::Muon>(optim::MuonOptions{.lr = 0.1})}) {
    index++;
    nn::Linear fresh = clone(layer);
    auto opt = make(parameters(fresh));
    Training on;
    float first = 0, last = 0;
    for (int i = 0; i < 60; i++) {
      Tensor loss = (fresh(x) - y).square().mean();
      opt->zero_grad();
      loss.backward();
      opt->step();
      (i == 0 ? first : last) = loss.item<float>();
    }
    EXPECT_LT(last, 0.1f * first) << "optimizer " << index;
  }
}

}  // namespace
}  // namespace pg
