// Random numbers: those of the reference, by position, and the distributions made of them.
#include "tensor/helpers.h"

namespace pg {
namespace {

TEST(Random, TheNumbersOfTheReference) {
  Tensor::manual_seed(0);
  expect_close(Tensor::rand({2}), {0.67184556f, 0.84757328f}, 1e-7);
  expect_close(Tensor::rand({2}), {0.2706641f, 0.3425273f}, 1e-7);
  expect_close(Tensor::rand({2}, {.device = "CPU:1"}), {0.92797f, 0.91899f}, 1e-5);
  Tensor::manual_seed(1337);
  expect_close(Tensor::rand({3}), {0.8928634f, 0.4005793f, 0.7638741f}, 1e-7);
  Tensor::manual_seed(42);
  expect_close(Tensor::randn({3}), {-0.36704f, 1.18429f, 0.73243f}, 1e-5);
}

TEST(Random, ByPositionNotByTime) {
  Tensor::manual_seed(3);
  Tensor a = Tensor::rand({4}), b = Tensor::rand({4});
  Floats late_b = b.to_vector<float>(), late_a = a.to_vector<float>();
  Tensor::manual_seed(3);
  EXPECT_EQ(Tensor::rand({4}).to_vector<float>(), late_a);
  EXPECT_EQ(Tensor::rand({4}).to_vector<float>(), late_b);
}

TEST(Random, EveryFloatIsInRange) {
  Tensor::manual_seed(1);
  for (DType t : {f16, bf16, f32, f64}) {
    Tensor x = Tensor::rand({101}, {.dtype = t}).cast(f32);
    Floats v = x.to_vector<float>();
    for (float e : v) EXPECT_TRUE(e >= 0 && e < 1) << name(t) << " " << e;
    double mean = 0;
    for (float e : v) mean += e / 101;
    EXPECT_NEAR(mean, 0.5, 0.12) << name(t);
  }
}

TEST(Random, Distributions) {
  Tensor::manual_seed(5);
  Ints64 dice = Tensor::randint({200}, {.low = 1, .high = 7}).to_vector<int>();
  for (int d : dice) EXPECT_TRUE(d >= 1 && d <= 6);
  EXPECT_NE(std::find(dice.begin(), dice.end(), 1), dice.end());
  EXPECT_NE(std::find(dice.begin(), dice.end(), 6), dice.end());

  Tensor n = Tensor::normal({500}, {.mean = 3, .std = 2});
  EXPECT_NEAR(n.mean().item<float>(), 3, 0.3);
  EXPECT_NEAR(n.std().item<float>(), 2, 0.3);

  double bound = std::sqrt(6.0 / (1 + 0.01 * 0.01) / 12);
  for (float e : Tensor::kaiming_uniform({4, 3, 2, 2}).to_vector<float>()) EXPECT_LE(std::abs(e), bound);
  for (float e : Tensor::glorot_uniform({4, 2}).to_vector<float>()) EXPECT_LE(std::abs(e), 1);
  for (float e : Tensor::scaled_uniform({4, 4}).to_vector<float>()) EXPECT_LE(std::abs(e), 0.25);
  for (float e : Tensor::uniform({50}, {.low = -2, .high = -1}).to_vector<float>())
    EXPECT_TRUE(e >= -2 && e <= -1);

  Ints64 order = Tensor::randperm(20).to_vector<int>();
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Random, Multinomial) {
  Tensor::manual_seed(9);
  Tensor weights = Tensor::of({0.f, 1.f, 0.f, 3.f});
  int threes = 0;
  for (int pick : weights.multinomial(60, true).to_vector<int>()) {
    EXPECT_TRUE(pick == 1 || pick == 3);
    threes += pick == 3;
  }
  EXPECT_GT(threes, 30);
  Ints64 both = weights.multinomial(2).to_vector<int>();
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, (Ints64{1, 3}));
}

TEST(Random, DropoutOnlyInTraining) {
  Tensor x = Tensor::ones({400});
  EXPECT_EQ(x.dropout(0.5).impl(), x.impl());
  Tensor::manual_seed(2);
  Training on;
  Floats v = x.dropout(0.25).to_vector<float>();
  auto zeros = std::count(v.begin(), v.end(), 0.f);
  EXPECT_NEAR(static_cast<double>(zeros), 100, 35);
  for (float e : v) EXPECT_TRUE(e == 0 || std::abs(e - 4.0 / 3) < 1e-6);
  EXPECT_EQ(floats_of(Tensor::ones({2}).dropout(1)), (Floats{0, 0}));
  Training off{false};
  EXPECT_EQ(x.dropout(0.5).impl(), x.impl());
}

}  // namespace
}  // namespace pg
