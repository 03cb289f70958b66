// Ten steps of the demo network on made-up pictures, against losses that PyTorch computed from the same
// numbers.
#include <cmath>

#include <gtest/gtest.h>

#include "eval/compare.h"
#include "ops/golden_file.h"
#include "ops/nodes.h"
#include "ops/op_table.h"
#include <pangrad/nn.h>
#include <pangrad/optim.h>

namespace pg::ops {
namespace {

constexpr int kBatch = 16, kSteps = 10;

struct Net : nn::Module {
  nn::Conv2d conv1{1, 32, 5}, conv2{32, 32, 5}, conv3{32, 64, 3}, conv4{64, 64, 3};
  nn::BatchNorm norm1{32}, norm2{64};
  nn::Linear head{576, 10};
  void fields(auto&& field) {
    field("conv1", conv1), field("conv2", conv2), field("norm1", norm1);
    field("conv3", conv3), field("conv4", conv4), field("norm2", norm2), field("head", head);
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = norm1(conv2(conv1(x).relu()).relu()).max_pool2d();
    return head(norm2(conv4(conv3(h).relu()).relu()).max_pool2d().flatten(1));
  }
};

// Weights uniform within 1 / sqrt(fan in), from the table's generator; norms begin as ones and zeros.
void set_weights(Net& net) {
  auto fill = [](const std::string& name, Tensor& t, const Tensor& weight) {
    auto dims = weight.shape().concrete();
    std::int64_t fan_in = 1;
    for (std::size_t k = 1; k < dims.size(); ++k) fan_in *= dims[k];
    double bound = std::sqrt(1.0 / static_cast<double>(fan_in));
    t.assign(stored(make_input("train/" + name, 0, f(t.shape().concrete(), -bound, bound))));
  };
  auto layer = [&](const std::string& name, Tensor& weight, Tensor& bias) {
    fill(name + ".weight", weight, weight);
    fill(name + ".bias", bias, weight);
  };
  layer("conv1", net.conv1.weight, net.conv1.bias);
  layer("conv2", net.conv2.weight, net.conv2.bias);
  layer("conv3", net.conv3.weight, net.conv3.bias);
  layer("conv4", net.conv4.weight, net.conv4.bias);
  layer("head", net.head.weight, net.head.bias);
}

struct Batch {
  Tensor pictures, labels;
};
// Noise, and a bright block whose place is the class.
Batch batch(int step) {
  eval::Array pictures =
      make_input("train/picture/" + std::to_string(step), 0, of(u8, {kBatch, 1, 28, 28}, 0, 128));
  eval::Array labels(i32, {kBatch});
  for (int i = 0; i < kBatch; ++i) {
    std::int64_t c = class_of("train/label/" + std::to_string(step), static_cast<std::size_t>(i), 10);
    labels.data[static_cast<std::size_t>(i)] = int_scalar(c);
    std::int64_t row = 4 + 10 * (c / 5), column = 1 + 5 * (c % 5);
    for (std::int64_t y = row; y < row + 8; ++y)
      for (std::int64_t x = column; x < column + 5; ++x)
        pictures.data[static_cast<std::size_t>((i * 28 + y) * 28 + x)].i += 100;
  }
  return {stored(pictures), stored(labels)};
}

TEST(Training, LossesAreThoseOfAnotherFramework) {
  auto golden = read_golden("train.txt");
  Net net;
  set_weights(net);
  optim::Adam opt(parameters(net), {.lr = 1e-3});
  Training on;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    Batch b = batch(step);
    Tensor loss = net(b.pictures.cast(f32)).sparse_categorical_crossentropy(b.labels);
    opt.zero_grad();
    loss.backward();
    opt.step();
    losses.push_back(static_cast<double>(loss.item<float>()));
  }
  // Adam turns rounding of tiny gradients into whole steps: two frameworks in f32 drift apart as f32 does
  // from f64.
  const eval::Array& want = golden.at("losses.f64").value;
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(losses[static_cast<std::size_t>(step)], want.at(step), step < 4 ? 1e-4 : 2e-2)
        << "step " << step;
}

}  // namespace
}  // namespace pg::ops
