// Training steps as the benchmarks time them, captured.
#pragma once

#include <cstdint>
#include <functional>

#include "../apps/demo_net.h"
#include "resnet.h"
#include <pangrad/pangrad.h>

namespace pg::bench {

/// The demo's: a batch of 512 drawn from Fashion-MNIST, Adam.
struct DemoTrainer {
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

/// ResNet-50 on one batch, SGD with momentum.
struct ResNetTrainer {
  ResNet50 net;
  optim::SGD opt{parameters(net), {.lr = 0.01, .momentum = 0.9}};
  Tensor x, y;
  Jit<std::function<Tensor(const Tensor&, const Tensor&)>> step =
      jit(std::function<Tensor(const Tensor&, const Tensor&)>([this](const Tensor& in, const Tensor& target) {
        Training on;
        Tensor loss = net(in).sparse_categorical_crossentropy(target);
        opt.zero_grad();
        loss.backward();
        opt.step();
        return loss;
      }));

  explicit ResNetTrainer(std::int64_t batch)
      : x(Tensor::randn({batch, 3, 224, 224})), y(Tensor::randint({batch}, {.high = 1000})) {
    realize({x, y});
  }
  Tensor run() { return step(x, y); }
};

}  // namespace pg::bench
