// Layers: shapes, how weights begin, and values that can be worked out by hand.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <pangrad/nn.h>
#include <pangrad/scope.h>

namespace pg {
namespace {

void expect_near(const Tensor& tensor, const std::vector<float>& want, float tolerance = 1e-5f) {
  std::vector<float> got = tensor.cast(f32).to_vector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

// Drawn within the bound, and from all of it.
void expect_uniform(const Tensor& weight, double bound) {
  std::vector<float> values = weight.to_vector<float>();
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, -bound);
  EXPECT_LE(*most, bound);
  EXPECT_LT(*least, -0.9 * bound);
  EXPECT_GT(*most, 0.9 * bound);
}

TEST(Layers, LinearIsAProductAndABias) {
  nn::Linear layer(3, 2);
  EXPECT_EQ(layer.weight.shape(), (Shape{2, 3}));
  layer.weight.assign(Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}));
  layer.bias.assign(Tensor::of({10.f, 20.f}));
  expect_near(layer(Tensor::of({{1.f, 0.f, -1.f}, {1.f, 1.f, 1.f}})), {8, 18, 16, 35});
  EXPECT_EQ(nn::Linear(3, 2, {.bias = false})(Tensor::ones({4, 5, 3})).shape(), (Shape{4, 5, 2}));
  EXPECT_FALSE(nn::Linear(3, 2, {.bias = false}).bias.defined());
}

TEST(Layers, WeightsBeginWithinTheirBounds) {
  Tensor::manual_seed(1);
  nn::Linear linear(64, 100);
  expect_uniform(linear.weight, 1 / 8.0);
  expect_uniform(linear.bias, 1 / 8.0);
  nn::Conv2d conv(16, 64, 2);
  expect_uniform(conv.weight, 1 / 8.0);
  expect_uniform(conv.bias, 1 / 8.0);
  nn::ConvTranspose2d transposed(16, 64, 2);
  expect_uniform(transposed.weight, 1 / 8.0);
  nn::Embedding table(50, 46);
  expect_uniform(table.weight, std::sqrt(6.0 / 96));
  EXPECT_TRUE(linear.weight.wants_grad());
  EXPECT_EQ(nn::Linear(2, 2, {.dtype = f16}).weight.dtype(), f16);
}

TEST(Layers, ConvolutionShapes) {
  EXPECT_EQ(nn::Conv1d(3, 5, 3)(Tensor::ones({2, 3, 10})).shape(), (Shape{2, 5, 8}));
  EXPECT_EQ(
      nn::Conv2d(4, 6, {3, 2}, {.stride = 2, .padding = {1, 0}, .groups = 2})(Tensor::ones({2, 4, 8, 8}))
          .shape(),
      (Shape{2, 6, 4, 4}));
  EXPECT_EQ(nn::Conv2d(4, 6, 3, {.groups = 2}).weight.shape(), (Shape{6, 2, 3, 3}));
  EXPECT_EQ(nn::Conv3d(1, 2, 2)(Tensor::ones({1, 1, 4, 5, 6})).shape(), (Shape{1, 2, 3, 4, 5}));
  EXPECT_EQ(
      nn::Conv2d(1, 1, {4, 3}, {.padding = nn::same, .dilation = {1, 2}})(Tensor::ones({1, 1, 9, 7})).shape(),
      (Shape{1, 1, 9, 7}));
  EXPECT_EQ(nn::ConvTranspose1d(3, 5, 3, {.stride = 2})(Tensor::ones({2, 3, 4})).shape(), (Shape{2, 5, 9}));
  EXPECT_EQ(nn::ConvTranspose2d(4, 6, 3, {.padding = 1, .groups = 2})(Tensor::ones({2, 4, 5, 5})).shape(),
            (Shape{2, 6, 5, 5}));
  EXPECT_EQ(nn::ConvTranspose2d(4, 6, 3, {.groups = 2}).weight.shape(), (Shape{4, 3, 3, 3}));
}

TEST(Layers, ConvolutionValues) {
  nn::Conv1d conv(1, 1, 2, {.padding = nn::same});
  conv.weight.assign(Tensor::of({{{1.f, 10.f}}}));
  conv.bias.assign(Tensor::of({100.f}));
  // An odd width more goes after.
  expect_near(conv(Tensor::of({{{1.f, 2.f, 3.f}}})), {121, 132, 103});
  nn::ConvTranspose1d transposed(1, 1, 2, {.stride = 2, .bias = false});
  transposed.weight.assign(Tensor::of({{{1.f, 10.f}}}));
  expect_near(transposed(Tensor::of({{{1.f, 2.f, 3.f}}})), {1, 10, 2, 20, 3, 30});
}

TEST(Layers, BatchNormUsesTheBatchAndTracksItWhileTraining) {
  nn::BatchNorm norm(2);
  Tensor x = Tensor::of({{1.f, 10.f}, {2.f, 10.f}, {3.f, 10.f}, {4.f, 14.f}});
  {
    Training on;
    float a = 1.5f / std::sqrt(1.25f + 1e-5f), b = 0.5f / std::sqrt(1.25f + 1e-5f), c = std::sqrt(3.f);
    expect_near(norm(x), {-a, -1 / c, -b, -1 / c, b, -1 / c, a, c});
  }
  expect_near(norm.running_mean, {0.25, 1.1f});
  // The variance kept is the unbiased one.
  expect_near(norm.running_var, {0.9f + 0.1f * 5 / 3, 0.9f + 0.1f * 4});
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_EQ(parameters(norm).size(), 2u);
  EXPECT_EQ(state_dict(norm).size(), 5u);
}

TEST(Layers, BatchNormUsesRunningStatisticsElse) {
  nn::BatchNorm norm(2, {.affine = false});
  norm.running_mean.assign(Tensor::of({1.f, 2.f}));
  norm.running_var.assign(Tensor::of({4.f, 9.f}));
  expect_near(norm(Tensor::of({{3.f, 2.f}, {1.f, 5.f}})), {1, 0, 0, 1});
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 0);

  nn::BatchNorm batch(1, {.track_running_stats = false});
  expect_near(batch(Tensor::of({{1.f}, {3.f}})), {-1, 1});
  EXPECT_EQ(batch(Tensor::ones({2, 1, 3, 3}, {.dtype = f16})).dtype(), f16);
}

TEST(Layers, BatchNormOfAllAxesButTheSecond) {
  nn::BatchNorm norm(3);
  Training on;
  Tensor y = norm(Tensor::randn({4, 3, 5, 5}) * 7 + 3);
  expect_near(y.mean({0, 2, 3}), {0, 0, 0});
  expect_near(y.square().mean({0, 2, 3}), {1, 1, 1}, 1e-4f);
}

TEST(Layers, LayerNormOverTrailingAxes) {
  nn::LayerNorm norm({2, 2});
  norm.weight.assign(Tensor::of({{1.f, 2.f}, {1.f, 1.f}}));
  norm.bias.assign(Tensor::of({{0.f, 0.f}, {5.f, 0.f}}));
  float a = 1.5f / std::sqrt(1.25f), b = 0.5f / std::sqrt(1.25f);
  expect_near(norm(Tensor::of({{{1.f, 2.f}, {3.f, 4.f}}})), {-a, -2 * b, b + 5, a}, 1e-4f);
  EXPECT_THROW(norm(Tensor::ones({2, 3})), ShapeError);
  EXPECT_THROW(norm(Tensor::ones({2})), ShapeError);
}

TEST(Layers, GroupAndInstanceNorm) {
  nn::GroupNorm norm(1, 2);
  norm.bias.assign(Tensor::of({0.f, 10.f}));
  float a = 1.5f / std::sqrt(1.25f), b = 0.5f / std::sqrt(1.25f);
  Tensor x = Tensor::of({{{1.f, 2.f}, {3.f, 4.f}}});
  expect_near(norm(x), {-a, -b, b + 10, a + 10}, 1e-4f);
  expect_near(nn::InstanceNorm(2)(x), {-1, 1, -1, 1}, 1e-4f);
  EXPECT_THROW(norm(Tensor::ones({1, 3, 4})), ShapeError);
}

TEST(Layers, RmsNorm) {
  nn::RMSNorm norm(2);
  float rms = std::sqrt(12.5f);
  expect_near(norm(Tensor::of({{3.f, 4.f}})), {3 / rms, 4 / rms});
  // Squares of 300 are beyond f16.
  Tensor half = nn::RMSNorm(2, {.affine = false})(Tensor::of({300.0, 300.0}, {.dtype = f16}));
  EXPECT_EQ(half.dtype(), f16);
  expect_near(half, {1, 1}, 1e-3f);
}

TEST(Layers, EmbeddingReadsRows) {
  nn::Embedding table(3, 2);
  table.weight.assign(Tensor::of({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}));
  Tensor rows = table(Tensor::of({{2, 0}, {1, 2}}));
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  expect_near(rows, {5, 6, 1, 2, 3, 4, 5, 6});
  rows.sum().backward();
  expect_near(table.weight.grad(), {1, 1, 1, 1, 2, 2});
}

TEST(Layers, AStepOfALstm) {
  nn::LSTMCell cell(2, 1);
  auto fill = [](Tensor& t, std::vector<float> values) { t.assign(Tensor::of(values, t.shape())); };
  NoGrad off;
  std::vector<float> ih = {0.1f, 0.2f, -0.3f, 0.4f, 0.5f, -0.6f, 0.7f, 0.8f}, hh = {0.5f, -0.5f, 0.25f, 1.f},
                     b = {0.1f, 0.2f, 0.3f, 0.4f};
  fill(cell.weight_ih, ih), fill(cell.weight_hh, hh), fill(cell.bias_ih, b);
  double h = 0, c = 0;
  Tensor x = Tensor::of({{1.f, -2.f}}), th, tc;
  for (int step = 0; step < 3; step++) {
    std::tie(th, tc) = step ? cell(x, th, tc) : cell(x);
    double gate[4];
    for (size_t k = 0; k < 4; k++) gate[k] = ih[2 * k] - 2 * ih[2 * k + 1] + hh[k] * h + b[k];
    auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    c = sigmoid(gate[1]) * c + sigmoid(gate[0]) * std::tanh(gate[2]);
    h = sigmoid(gate[3]) * std::tanh(c);
    EXPECT_NEAR(th.item<float>(), h, 1e-6) << step;
    EXPECT_NEAR(tc.item<float>(), c, 1e-6) << step;
  }
  EXPECT_EQ(named_parameters(nn::LSTMCell(3, 5)).size(), 4u);
  EXPECT_EQ(named_parameters(nn::LSTMCell(3, 5, {.bias = false})).size(), 2u);
  auto [y, state] = nn::LSTMCell(3, 5)(Tensor::ones({2, 3}));
  EXPECT_EQ(y.shape(), (Shape{2, 5}));
  EXPECT_EQ(state.shape(), (Shape{2, 5}));
  EXPECT_THROW(nn::LSTMCell(0, 5), ValueError);
}

TEST(Layers, DropoutOnlyWhileTraining) {
  Tensor::manual_seed(1);
  nn::Dropout drop(0.5);
  expect_near(drop(Tensor::ones({4})), {1, 1, 1, 1});
  Training on;
  for (float value : drop(Tensor::ones({100})).to_vector<float>()) EXPECT_TRUE(value == 0 || value == 2);
}

TEST(Layers, RefuseWhatCannotBe) {
  EXPECT_THROW(nn::Linear(0, 2), ValueError);
  EXPECT_THROW(nn::Conv2d(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(nn::Conv2d(3, 4, {3, 3, 3}), ValueError);
  EXPECT_THROW(nn::Conv2d(3, 4, 3, {.stride = 2, .padding = nn::same}), ValueError);
  EXPECT_THROW(nn::GroupNorm(2, 3), ValueError);
  EXPECT_THROW(nn::LayerNorm(Ints{}), ValueError);
  EXPECT_THROW(nn::Embedding(10, -1), ValueError);
  Training on;
  EXPECT_THROW(nn::BatchNorm(3)(Tensor::ones({1, 3})), ShapeError);
  EXPECT_THROW(nn::BatchNorm(3)(Tensor::ones({3})), ShapeError);
}

}  // namespace
}  // namespace pg
