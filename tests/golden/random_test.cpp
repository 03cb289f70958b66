// Random numbers are the reference's: the same draws after the same seed.
#include <gtest/gtest.h>

#include "eval/compare.h"
#include "ops/golden_file.h"
#include "ops/nodes.h"

namespace pg::ops {
namespace {

const std::map<std::string, Golden>& golden() {
  static const auto data = read_golden("random.txt");
  return data;
}

// Bits are exact; what is computed from them in f32 may differ by roundings of other formulas.
void expect(const std::string& name, const Tensor& drawn, double steps = 0, double scale = 0) {
  const eval::Array& want = golden().at(name).value;
  EXPECT_EQ(difference(computed(drawn), want, eval::tolerance(want.dtype, steps, scale)), "") << name;
}

class RandomNumbers : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomNumbers, AreTheReferences) {
  std::string seed = "seed" + std::to_string(GetParam()) + ".";
  Tensor::manual_seed(GetParam());
  expect(seed + "rand2", Tensor::rand({2}));
  expect(seed + "then_rand2", Tensor::rand({2}));
  expect(seed + "then_rand3x5", Tensor::rand({3, 5}));
  expect(seed + "then_randn7", Tensor::randn({7}), 64, 1);
  expect(seed + "then_randint9", Tensor::randint({9}, {.low = -5, .high = 20}));
  expect(seed + "then_rand1", Tensor::rand({1}));
  expect(seed + "then_rand_f16", Tensor::rand({5}, {.dtype = f16}));
  expect(seed + "then_rand_bf16", Tensor::rand({5}, {.dtype = bf16}));
  expect(seed + "then_rand_f64", Tensor::rand({5}, {.dtype = f64}));
  expect(seed + "then_rand0", Tensor::rand({0, 3}));
  expect(seed + "then_uniform", Tensor::uniform({6}, {.low = -3, .high = 5}), 2, 8);
  expect(seed + "then_normal", Tensor::normal({6}, {.mean = 2, .std = 0.5}), 64, 2);
  expect(seed + "then_scaled_uniform", Tensor::scaled_uniform({2, 3}), 4, 1);
  expect(seed + "then_glorot_uniform", Tensor::glorot_uniform({2, 3}), 4, 2);
  expect(seed + "then_kaiming_uniform", Tensor::kaiming_uniform({2, 3}), 4, 2);
  expect(seed + "then_kaiming_normal", Tensor::kaiming_normal({2, 3}), 64, 1);
  expect(seed + "then_randperm", Tensor::randperm(9));
  expect(seed + "then_rand100", Tensor::rand({100}));
}

INSTANTIATE_TEST_SUITE_P(Golden, RandomNumbers, testing::Values(0u, 1u, 42u, 1337u, 4294967295u));

TEST(RandomNumbers, ADeviceHasItsOwn) {
  Tensor::manual_seed(0);
  expect("devices.first", Tensor::rand({2}, {.device = "CPU"}));
  expect("devices.second", Tensor::rand({2}, {.device = "CPU:1"}));
  expect("devices.third", Tensor::rand({2}, {.device = "CPU:2"}));
  expect("devices.first_again", Tensor::rand({2}, {.device = "CPU"}));
}

// Draws are placed when the line is reached, whenever they are computed.
TEST(RandomNumbers, OrderOfReadingDoesNotMatter) {
  Tensor::manual_seed(42);
  Tensor a = Tensor::rand({2}), b = Tensor::rand({2}), c = Tensor::rand({3, 5});
  expect("seed42.then_rand3x5", c);
  expect("seed42.then_rand2", b);
  expect("seed42.rand2", a);
}

}  // namespace
}  // namespace pg::ops
