// Kernels and memory of models and of training steps: numbers that hold on every machine.
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "runtime/device.h"
#include <pangrad/jit.h>
#include <pangrad/nn.h>
#include <pangrad/optim.h>
#include <pangrad/scope.h>
#include <pangrad/state.h>

namespace pg {
namespace {

struct Cost {
  std::uint64_t kernels, allocated, schedules;
};
template <class F>
Cost cost(F run) {
  auto before = engine::counters();
  run();
  auto after = engine::counters();
  return {after.kernels - before.kernels, after.allocated - before.allocated,
          after.schedules - before.schedules};
}

struct ConvNet : nn::Module {
  nn::Conv2d conv1{1, 8, 5}, conv2{8, 8, 3};
  nn::BatchNorm norm{8};
  nn::Linear head{8 * 5 * 5, 10};
  void fields(auto&& field) {
    field("conv1", conv1), field("conv2", conv2), field("norm", norm), field("head", head);
  }
  Tensor operator()(const Tensor& x) const {
    return head(norm(conv2(conv1(x).relu()).relu()).max_pool2d().flatten(1));
  }
};

struct Block : nn::Module {
  nn::LayerNorm norm1{16}, norm2{16};
  nn::Linear query{16, 16}, key{16, 16}, value{16, 16}, out{16, 16}, up{16, 32}, down{32, 16};
  void fields(auto&& field) {
    field("norm1", norm1), field("norm2", norm2), field("query", query), field("key", key),
        field("value", value), field("out", out), field("up", up), field("down", down);
  }
  Tensor operator()(const Tensor& x) const {
    auto heads = [](const Tensor& t) { return t.reshape({2, 8, 4, 4}).permute({0, 2, 1, 3}); };
    Tensor h = norm1(x);
    Tensor a = heads(query(h)).scaled_dot_product_attention(heads(key(h)), heads(value(h)));
    Tensor y = x + out(a.permute({0, 2, 1, 3}).reshape({2, 8, 16}));
    return y + down(up(norm2(y)).gelu());
  }
};

template <class T>
void store(const T& module) {
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : named_tensors(module)) all.push_back(tensor);
  realize(all);
}

TEST(Kernels, OfAConvolutionalNet) {
  ConvNet net;
  store(net);
  Tensor x = Tensor::rand({4, 1, 16, 16}).realize();
  NoGrad off;
  // Two convolutions with what follows them, the pooled normalisation, the head.
  EXPECT_LE(cost([&] { net(x).realize(); }).kernels, 4u);
}

TEST(Kernels, OfATransformerBlock) {
  Block block;
  store(block);
  Tensor x = Tensor::rand({2, 8, 16}).realize();
  NoGrad off;
  EXPECT_LE(cost([&] { block(x).realize(); }).kernels, 18u);
}

TEST(Kernels, OfAnOptimiserStep) {
  Tensor w = Tensor::rand({64, 8}).realize().requires_grad(), b = Tensor::rand({8}).realize().requires_grad();
  optim::Adam adam({w, b}, {.lr = 0.01});
  auto step = [&] {
    Training on;
    w.set_grad(Tensor::full({64, 8}, 0.5));
    b.set_grad(Tensor::full({8}, 0.25));
    adam.step();
  };
  for (int i = 0; i < 3; ++i) step();
  Cost c = cost(step);
  // Both moments and the parameter of each, and what counts the steps.
  EXPECT_LE(c.kernels, 3u * 2 + 3);
  EXPECT_EQ(c.allocated, 0u);
}

// After the second step nothing is allocated but what the user keeps, recorded or not.
TEST(Kernels, ATrainingStepAllocatesNothing) {
  for (bool recorded : {false, true}) {
    Tensor::manual_seed(1);
    ConvNet net;
    optim::Adam adam(parameters(net), {.lr = 0.01});
    Tensor x = Tensor::rand({4, 1, 16, 16}).realize();
    auto plain = [&](const Tensor& in) {
      Training on;
      Tensor loss = net(in).square().mean();
      adam.zero_grad();
      loss.backward();
      adam.step();
      return loss;
    };
    auto captured = jit(plain);
    std::vector<Tensor> losses;
    Cost first{};
    runtime::Device& device = runtime::device(engine::default_device());
    for (int i = 0; i < 8; ++i) {
      runtime::MemoryStats before = device.memory();
      Cost c = cost([&] {
        losses.push_back(recorded ? captured(x) : plain(x));
        losses.back().realize();
      });
      runtime::MemoryStats after = device.memory();
      if (i == 3) first = c;
      if (i < 4) continue;
      EXPECT_EQ(c.kernels, first.kernels) << i;
      EXPECT_EQ(c.schedules, 0u) << i;
      EXPECT_LE(after.in_use - before.in_use, 64u) << "more than the loss, step " << i;
      EXPECT_LE(after.in_use + after.cached, before.in_use + before.cached + 64) << i;
    }
    EXPECT_LT(losses.back().item<float>(), losses.front().item<float>());
    EXPECT_LE(first.kernels, 90u);
  }
}

}  // namespace
}  // namespace pg
