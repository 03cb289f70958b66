// Recordings: they are used only where they are faithful, and see and do what the body would.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

using Floats = std::vector<float>;

TEST(Jit, ReplaysOnTheTensorsItIsGiven) {
  int calls = 0;
  auto f = jit([&](const Tensor& x) {
    ++calls;
    return x * 2 + 1;
  });
  for (float v : {1.f, 2.f, 3.f, 4.f})
    EXPECT_EQ(f(Tensor::of({v, v + 1})).to_vector<float>(), (Floats{2 * v + 1, 2 * v + 3}));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(f.captures(), 1u);
}

TEST(Jit, AnotherShapeDtypeOrNumberIsRecordedAnew) {
  auto f = jit([](const Tensor& x, int n) { return x + n; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(Tensor::of({1.f, 2.f}), 1).to_vector<float>(), (Floats{2, 3}));
    EXPECT_EQ(f(Tensor::of({1.f}), 1).to_vector<float>(), (Floats{2}));
    EXPECT_EQ(f(Tensor::of({1.f}), 5).to_vector<float>(), (Floats{6}));
    EXPECT_EQ(f(Tensor::of({1}), 5).to_vector<int>(), (std::vector<int>{6}));
  }
  EXPECT_EQ(f.captures(), 4u);
}

TEST(Jit, AKeptResultKeepsItsValue) {
  Tensor count = Tensor::zeros({1}).clone().realize();
  auto f = jit([&](const Tensor& x) {
    count += 1;
    return x + count;
  });
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(f(Tensor::of({10.f})));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(kept[static_cast<std::size_t>(i)].item<float>(), 11.f + static_cast<float>(i));
  EXPECT_EQ(count.item<float>(), 5);
}

TEST(Jit, SeesWhatWasAssignedInBetween) {
  Tensor w = Tensor::of({2.f, 3.f}).realize();
  auto f = jit([&](const Tensor& x) { return x * w; });
  Tensor x = Tensor::of({1.f, 1.f});
  for (int i = 0; i < 3; ++i) f(x).realize();
  w.assign(Tensor::of({5.f, 7.f}));
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{5, 7}));
  w[0] = 1;
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{1, 7}));
}

TEST(Jit, AViewKeptOverAReplayKeepsWhatItShows) {
  Tensor w = Tensor::of({1.f, 2.f}).realize();
  auto f = jit([&](const Tensor& x) { w += x; });
  Tensor x = Tensor::of({1.f, 1.f});
  for (int i = 0; i < 3; ++i) f(x);
  Tensor before = w + 0;
  f(x);
  EXPECT_EQ(before.to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(w.to_vector<float>(), (Floats{5, 6}));
}

TEST(Jit, RandomNumbersGoOn) {
  auto draw = [](const Tensor& x) { return Tensor::rand({4}) + x; };
  Tensor zero = Tensor::zeros({1}).clone().realize();
  Tensor::manual_seed(7);
  std::vector<Floats> want;
  for (int i = 0; i < 5; ++i) want.push_back(draw(zero).to_vector<float>());
  Tensor::manual_seed(7);
  auto f = jit(draw);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(zero).to_vector<float>(), want[static_cast<std::size_t>(i)]) << i;
}

TEST(Jit, AValueReadInsideIsAnError) {
  auto f = jit([](const Tensor& x) { return x * x.sum().item<float>(); });
  Tensor x = Tensor::of({1.f, 2.f});
  f(x);
  EXPECT_THROW(f(x), CaptureError);
}

TEST(Jit, SlicesOfAnArgument) {
  auto f = jit([](const Tensor& x) { return (x[{1}] * 2).sum() + x[Slice{0, 1}].sum(); });
  for (float v : {1.f, 2.f, 3.f, 4.f})
    EXPECT_EQ(f(Tensor::of({{v, v}, {10 * v, v}})).item<float>(), 2 * 11 * v + 2 * v);
}

TEST(Jit, GradientsAreThoseOfTheLastCall) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  auto f = jit([&](const Tensor& x) {
    w.zero_grad();
    Tensor loss = (w * w * x).sum();
    loss.backward();
    return loss;
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    EXPECT_EQ(f(Tensor::of({v, v})).item<float>(), 5 * v);
    EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2 * v, 4 * v}));
  }
}

TEST(Jit, LaunchesTheSameKernelsWithoutScheduling) {
  auto f = jit([](const Tensor& x) { return (x.exp() / x.exp().sum()).contiguous(); });
  Tensor x = Tensor::of({1.f, 2.f, 3.f}).realize();
  for (int i = 0; i < 2; ++i) f(x).realize();
  auto before = engine::counters();
  f(x);
  auto after = engine::counters();
  EXPECT_EQ(after.schedules, before.schedules);
  EXPECT_EQ(after.schedule_hits, before.schedule_hits);
  EXPECT_GT(after.kernels, before.kernels);
  EXPECT_EQ(after.compiled, before.compiled);
}

}  // namespace
}  // namespace pg
