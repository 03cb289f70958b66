// Linear layers, convolutions and tables: how their weights begin and what they compute.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "nn/checks.h"
#include <pangrad/nn.h>

namespace pg::nn {
namespace {

Tensor uniform(const Shape& shape, double bound, DType dtype, const std::string& device) {
  return parameter(Tensor::uniform(shape, {.low = -bound, .high = bound, .dtype = dtype, .device = device}));
}

// The window of a convolution as one extent for each spatial axis.
std::vector<std::int64_t> extents(const char* layer, int rank, const Ints& kernel) {
  std::vector<std::int64_t> window(kernel.begin(), kernel.end());
  if (window.size() == 1) window.resize(static_cast<size_t>(rank), window[0]);
  if (window.size() != static_cast<size_t>(rank))
    throw ValueError(
        fmt::format("[{}] a window of {} extents for {} spatial axes", layer, window.size(), rank));
  for (std::int64_t extent : window) check_positive(layer, "an extent of the window", extent);
  return window;
}

void check_groups(const char* layer, std::int64_t in, std::int64_t out, std::int64_t groups) {
  check_positive(layer, "in", in);
  check_positive(layer, "out", out);
  check_positive(layer, "groups", groups);
  if (in % groups != 0 || out % groups != 0) {
    throw ValueError(
        fmt::format("[{}] {} groups do not divide {} channels in and {} out", layer, groups, in, out));
  }
}

double bound_of(std::int64_t in, const std::vector<std::int64_t>& window) {
  double inputs = static_cast<double>(in);
  for (std::int64_t extent : window) inputs *= static_cast<double>(extent);
  return 1 / std::sqrt(inputs);
}

// The widths before and after each axis that keep its size; an odd one more goes after.
Ints same_padding(const std::vector<std::int64_t>& window, const ConvLayerOptions& layer) {
  for (std::int64_t stride : layer.stride) {
    if (stride != 1)
      throw ValueError(fmt::format("[Conv] padding `same` needs a stride of 1, not {}", stride));
  }
  std::vector<std::int64_t> widths;
  for (size_t axis = 0; axis < window.size(); axis++) {
    std::int64_t dilation = layer.dilation[layer.dilation.size() == 1 ? 0 : axis];
    std::int64_t total = dilation * (window[axis] - 1);
    widths.push_back(total / 2);
    widths.push_back(total - total / 2);
  }
  return widths;
}

Shape weight_shape(std::int64_t first, std::int64_t second, const std::vector<std::int64_t>& window) {
  Shape shape{first, second};
  for (std::int64_t extent : window) shape.push_back(extent);
  return shape;
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  check_positive("Linear", "in", in);
  check_positive("Linear", "out", out);
  double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = uniform({out, in}, bound, options.dtype, options.device);
  if (options.bias) bias = uniform({out}, bound, options.dtype, options.device);
}

Tensor Linear::operator()(const Tensor& x) const { return x.linear(weight.T(), bias); }

Conv::Conv(int rank, std::int64_t in, std::int64_t out, const Ints& kernel, const ConvLayerOptions& layer) {
  check_groups("Conv", in, out, layer.groups);
  std::vector<std::int64_t> window = extents("Conv", rank, kernel);
  double bound = bound_of(in, window);
  weight = uniform(weight_shape(out, in / layer.groups, window), bound, layer.dtype, layer.device);
  if (layer.bias) bias = uniform({out}, bound, layer.dtype, layer.device);
  if (layer.dilation.size() != 1 && layer.dilation.size() != window.size()) {
    throw ValueError(fmt::format("[Conv] {} dilations for {} spatial axes", layer.dilation.size(), rank));
  }
  options = {.stride = layer.stride,
             .padding = layer.padding.is_same() ? same_padding(window, layer) : layer.padding.widths(),
             .dilation = layer.dilation,
             .groups = layer.groups};
}

Tensor Conv::operator()(const Tensor& x) const { return x.conv2d(weight, bias, options); }

ConvTranspose::ConvTranspose(int rank, std::int64_t in, std::int64_t out, const Ints& kernel,
                             const ConvTransposeLayerOptions& layer) {
  check_groups("ConvTranspose", in, out, layer.groups);
  std::vector<std::int64_t> window = extents("ConvTranspose", rank, kernel);
  double bound = bound_of(in, window);
  weight = uniform(weight_shape(in, out / layer.groups, window), bound, layer.dtype, layer.device);
  if (layer.bias) bias = uniform({out}, bound, layer.dtype, layer.device);
  options = {.stride = layer.stride,
             .padding = layer.padding,
             .output_padding = layer.output_padding,
             .dilation = layer.dilation,
             .groups = layer.groups};
}

Tensor ConvTranspose::operator()(const Tensor& x) const { return x.conv_transpose2d(weight, bias, options); }

Embedding::Embedding(std::int64_t vocabulary, std::int64_t width, const EmbeddingOptions& options) {
  check_positive("Embedding", "vocabulary", vocabulary);
  check_positive("Embedding", "width", width);
  weight = parameter(
      Tensor::glorot_uniform({vocabulary, width}, {.dtype = options.dtype, .device = options.device}));
}

Tensor Embedding::operator()(const Tensor& index) const { return weight[index]; }

LSTMCell::LSTMCell(std::int64_t input, std::int64_t hidden_size, const LSTMCellOptions& options)
    : hidden(hidden_size) {
  check_positive("LSTMCell", "input", input);
  check_positive("LSTMCell", "hidden", hidden);
  double bound = 1 / std::sqrt(static_cast<double>(hidden));
  weight_ih = uniform({4 * hidden, input}, bound, options.dtype, options.device);
  weight_hh = uniform({4 * hidden, hidden}, bound, options.dtype, options.device);
  if (!options.bias) return;
  auto zeros = [&] {
    return parameter(Tensor::zeros({4 * hidden}, {.dtype = options.dtype, .device = options.device}).clone());
  };
  bias_ih = zeros();
  bias_hh = zeros();
}

std::pair<Tensor, Tensor> LSTMCell::operator()(const Tensor& x) const {
  Tensor zero =
      Tensor::zeros({x.size(0), hidden}, {.dtype = weight_hh.dtype(), .device = weight_hh.device()});
  return (*this)(x, zero, zero);
}

std::pair<Tensor, Tensor> LSTMCell::operator()(const Tensor& x, const Tensor& h, const Tensor& c) const {
  std::vector<Tensor> gates =
      (x.linear(weight_ih.T(), bias_ih) + h.linear(weight_hh.T(), bias_hh)).chunk(4, 1);
  Tensor next = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
  return {gates[3].sigmoid() * next.tanh(), next};
}

}  // namespace pg::nn
