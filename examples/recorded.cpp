// Trains by a recorded step: the first call runs the function, the second records it, all later ones only run
// its kernels. The learning rate is a tensor, so that it can fall although the step is a recording.
#include <cmath>
#include <cstdio>

#include <pangrad/pangrad.h>
using namespace pg;

int main() {
  Tensor::manual_seed(2);
  nn::Linear layer(16, 1);
  Tensor x = Tensor::randn({128, 16}).realize(), y = x.matmul(Tensor::randn({16, 1})).realize();
  optim::SGD opt(parameters(layer), {.lr = 0.1, .momentum = 0.9});

  auto step = jit([&](const Tensor& inputs, const Tensor& wanted) {
    Training on;
    Tensor loss = (layer(inputs) - wanted).square().mean();
    opt.zero_grad();
    loss.backward();
    opt.step();
    return loss;
  });

  constexpr int kSteps = 120;
  float loss = 0;
  for (int i = 0; i < kSteps; i++) {
    opt.lr().assign(0.05 * (1 + std::cos(3.1416 * i / kSteps)));
    loss = step(x, y).item<float>();
    if (i % 20 == 0) std::printf("step %3d  loss %.5f\n", i, static_cast<double>(loss));
  }
  return loss < 1e-3f ? 0 : 1;
}
