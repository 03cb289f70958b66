// Trains two layers to tell the inside of a circle from its outside, and asks them about four points.
#include <cstdio>
#include <vector>

#include <pangrad/pangrad.h>
using namespace pg;

struct Net : nn::Module {
  nn::Linear hidden{2, 32}, head{32, 1};
  void fields(auto&& field) { field("hidden", hidden), field("head", head); }
  Tensor operator()(const Tensor& x) const { return head(hidden(x).tanh()).squeeze(-1); }
};

int main() {
  Tensor::manual_seed(1);
  Tensor x = Tensor::uniform({256, 2}, {.low = -1, .high = 1});
  Tensor inside = (x.square().sum(1) < 0.5).cast(f32);

  Net net;
  optim::Adam opt(parameters(net), {.lr = 0.02});
  for (int i = 0; i <= 200; i++) {
    Training on;
    Tensor loss = net(x).binary_crossentropy_logits(inside);
    opt.zero_grad();
    loss.backward();
    opt.step();
    if (i % 50 == 0) std::printf("step %3d  loss %.3f\n", i, static_cast<double>(loss.item<float>()));
  }

  Tensor points = Tensor::of({{0.f, 0.f}, {0.5f, 0.f}, {0.9f, 0.f}, {0.9f, -0.9f}});
  std::vector<float> sure = net(points).sigmoid().to_vector<float>();
  for (float p : sure) std::printf("inside: %.2f\n", static_cast<double>(p));
  return sure[0] > 0.5f && sure[3] < 0.5f ? 0 : 1;
}
