// Recorded steps: layers and optimisers give what they give without recording.
#include <vector>

#include <gtest/gtest.h>

#include <pangrad/jit.h>
#include <pangrad/nn.h>
#include <pangrad/optim.h>
#include <pangrad/scope.h>
#include <pangrad/state.h>

namespace pg {
namespace {

struct Net : nn::Module {
  nn::Linear in{4, 8}, out{8, 1};
  nn::BatchNorm norm{8};
  void fields(auto&& field) { field("in", in), field("norm", norm), field("out", out); }
  Tensor operator()(const Tensor& x) const { return out(norm(in(x)).relu()); }
};

struct Trainer {
  explicit Trainer(const Net& start) : net(clone(start)), opt(parameters(net), {.lr = 0.01}) {}
  Net net;
  optim::Adam opt;

  Tensor step(const Tensor& x) {
    Training on;
    Tensor loss = (net(x) - 1).square().mean();
    opt.zero_grad();
    loss.backward();
    opt.step();
    return loss;
  }
};

TEST(RecordedSteps, AreTheStepsThatWouldHaveRun) {
  Tensor::manual_seed(1);
  Net start;
  Trainer plain(start), recorded(start);
  auto step = jit([&](const Tensor& x) { return recorded.step(x); });
  for (int i = 0; i < 6; i++) {
    Tensor x = Tensor::randn({16, 4}).realize();
    float want = plain.step(x).item<float>(), got = step(x).item<float>();
    EXPECT_EQ(got, want) << "step " << i;
  }
  for (const auto& [name, tensor] : state_dict(plain.net)) {
    EXPECT_EQ(state_dict(recorded.net).at(name).cast(f32).to_vector<float>(),
              tensor.cast(f32).to_vector<float>())
        << name;
  }
  EXPECT_EQ(recorded.net.norm.num_batches_tracked.item<std::int64_t>(), 6);
}

TEST(RecordedSteps, SeeANewRateAndNewWeights) {
  Net start;
  Trainer trainer(start);
  auto step = jit([&](const Tensor& x) { return trainer.step(x); });
  Tensor x = Tensor::randn({16, 4}).realize();
  for (int i = 0; i < 3; i++) step(x);
  trainer.opt.lr().assign(0);
  std::vector<float> before = trainer.net.in.weight.to_vector<float>();
  step(x);
  EXPECT_EQ(trainer.net.in.weight.to_vector<float>(), before);
  load_state_dict(trainer.net, state_dict(start));
  step(x);
  EXPECT_EQ(trainer.net.in.weight.to_vector<float>(), start.in.weight.to_vector<float>());
}

// Contents that are pending or constant when a body begins are still its input.
TEST(RecordedSteps, CountInWhateverACellHolds) {
  for (bool constant : {true, false}) {
    for (int order = 0; order < 8; order++) {
      Tensor count = Tensor::zeros({4});
      if (!constant) (count = Tensor::empty({4})).assign(0);
      Tensor x = Tensor::of({1.f, 2.f}).realize(), y = Tensor::of({1.f, 1.f}).realize();
      auto step = jit([&](const Tensor& t) {
        if (order & 1) count.realize();
        count += 1;
        if (order & 2) y.realize();
        y.assign(y * t);
        if (order & 4) y.realize();
        return t * 2;
      });
      for (int i = 0; i < 6; i++) step(x);
      EXPECT_EQ(count.to_vector<float>(), (std::vector<float>{6, 6, 6, 6})) << constant << " " << order;
      EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 64})) << constant << " " << order;
    }
  }
}

TEST(RecordedSteps, SeeAConstantAssignedInBetween) {
  Tensor rate = Tensor::full({}, 2.0), x = Tensor::of({1.f}).realize();
  auto scaled = jit([&](const Tensor& t) { return t * rate; });
  for (int i = 0; i < 4; i++) EXPECT_EQ(scaled(x).item<float>(), 2);
  rate.assign(3);
  for (int i = 0; i < 4; i++) EXPECT_EQ(scaled(x).item<float>(), 3);
}

}  // namespace
}  // namespace pg
