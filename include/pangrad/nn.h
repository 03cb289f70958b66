// Layers. A layer is a value: it holds tensors, is called like a function, and names its fields (fields.h),
// so that state.h finds its parameters. Copies share storage. Weights are drawn lazily: making a layer
// computes nothing.
//
// Calling a layer is const and safe from many threads at once, but for BatchNorm in a Training scope, which
// writes its running statistics.
//
// Sizes that are not positive throw ValueError; inputs that do not fit throw ShapeError where they are used.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <pangrad/dtype.h>
#include <pangrad/error.h>
#include <pangrad/fields.h>
#include <pangrad/options.h>
#include <pangrad/shape.h>
#include <pangrad/state.h>
#include <pangrad/tensor.h>

namespace pg::nn {

/// What modules may derive from to say that they are one; it holds nothing. What makes a module is fields().
struct Module {};

/// Marks a tensor as a parameter, in modules of one's own: Tensor scale = nn::parameter(Tensor::ones({8}));
inline Tensor parameter(const Tensor& tensor) { return tensor.requires_grad(); }

struct LinearOptions {
  bool bias = true;
  DType dtype = f32;
  std::string device = {};
};
/// x W^T + b over the last axis. Weight is (out, in); both are uniform within 1 / sqrt(in).
struct PG_API Linear : Module {
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  /// (..., in) to (..., out).
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight), field("bias", bias); }

  Tensor weight, bias;
};

/// Padding of a convolution: a number, one for each axis, two for each axis (before, after), or `same`, which
/// keeps the sizes of the input and needs a stride of 1.
struct Same {};
inline constexpr Same same{};
class Padding {
 public:
  template <Integer T>
  Padding(T width) : widths_(width) {}
  Padding(std::initializer_list<std::int64_t> widths) : widths_(widths) {}
  Padding(Ints widths) : widths_(std::move(widths)) {}
  Padding(Same) : same_(true) {}
  bool is_same() const { return same_; }
  const Ints& widths() const { return widths_; }

 private:
  Ints widths_;
  bool same_ = false;
};

struct ConvLayerOptions {
  Ints stride = 1;
  Padding padding = 0;
  Ints dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  DType dtype = f32;
  std::string device = {};
};
/// What the convolutions have in common. Weight is (out, in / groups, window...); both are uniform within
/// 1 / sqrt(in * window).
struct PG_API Conv : Module {
  /// (batch, in, spatial...) to (batch, out, spatial...).
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight), field("bias", bias); }

  Tensor weight, bias;
  ConvOptions options;

 protected:
  Conv(int rank, std::int64_t in, std::int64_t out, const Ints& kernel, const ConvLayerOptions& layer);
};
/// The window is a number, or an extent for each spatial axis. ValueError unless groups divides in and out.
struct Conv1d : Conv {
  Conv1d(std::int64_t in, std::int64_t out, const Ints& kernel, const ConvLayerOptions& layer = {})
      : Conv(1, in, out, kernel, layer) {}
};
struct Conv2d : Conv {
  Conv2d(std::int64_t in, std::int64_t out, const Ints& kernel, const ConvLayerOptions& layer = {})
      : Conv(2, in, out, kernel, layer) {}
};
struct Conv3d : Conv {
  Conv3d(std::int64_t in, std::int64_t out, const Ints& kernel, const ConvLayerOptions& layer = {})
      : Conv(3, in, out, kernel, layer) {}
};

struct ConvTransposeLayerOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints output_padding = 0;
  Ints dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  DType dtype = f32;
  std::string device = {};
};
/// The transpose of Conv. Weight is (in, out / groups, window...), with the same bounds.
struct PG_API ConvTranspose : Module {
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight), field("bias", bias); }

  Tensor weight, bias;
  ConvTransposeOptions options;

 protected:
  ConvTranspose(int rank, std::int64_t in, std::int64_t out, const Ints& kernel,
                const ConvTransposeLayerOptions& layer);
};
struct ConvTranspose1d : ConvTranspose {
  ConvTranspose1d(std::int64_t in, std::int64_t out, const Ints& kernel,
                  const ConvTransposeLayerOptions& layer = {})
      : ConvTranspose(1, in, out, kernel, layer) {}
};
struct ConvTranspose2d : ConvTranspose {
  ConvTranspose2d(std::int64_t in, std::int64_t out, const Ints& kernel,
                  const ConvTransposeLayerOptions& layer = {})
      : ConvTranspose(2, in, out, kernel, layer) {}
};

struct BatchNormOptions {
  double eps = 1e-5;
  bool affine = true;               ///< a weight (of ones) and a bias (of zeros)
  bool track_running_stats = true;  ///< else the statistics are always those of the batch
  double momentum = 0.1;            ///< of the newest batch in the running statistics
  DType dtype = f32;
  std::string device = {};
};
/// (x - mean) / sqrt(var + eps) * weight + bias for each channel, axis 1 of any input (Ioffe and Szegedy
/// 2015). In a Training scope the statistics are those of the batch (biased variance), and the running ones
/// move towards them (unbiased); else the running ones are used.
struct PG_API BatchNorm : Module {
  explicit BatchNorm(std::int64_t features, const BatchNormOptions& options = {});
  /// Of the same shape and dtype. ShapeError in training with one value a channel, which has no variance.
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) {
    field("weight", weight), field("bias", bias);
    field("running_mean", running_mean), field("running_var", running_var);
    field("num_batches_tracked", num_batches_tracked);
  }

  Tensor weight, bias;
  Tensor running_mean, running_var, num_batches_tracked;  // buffers, not parameters
  double eps, momentum;

 private:
  void track(const Tensor& mean, const Tensor& var, const Dim& count) const;
};

struct NormOptions {
  double eps = 1e-5;
  bool affine = true;
  DType dtype = f32;
  std::string device = {};
};
/// Mean 0 and variance 1 over the trailing axes, then weight and bias by element (Ba et al. 2016).
struct PG_API LayerNorm : Module {
  /// The trailing shape: LayerNorm(512), LayerNorm({32, 32}).
  explicit LayerNorm(const Ints& shape, const NormOptions& options = {});
  /// ShapeError unless the trailing dimensions are those of the layer.
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight), field("bias", bias); }

  Tensor weight, bias;
  Ints shape;
  double eps;
};

/// Mean 0 and variance 1 over groups of channels of (batch, channels, ...), then weight and bias by channel
/// (Wu and He 2018).
struct PG_API GroupNorm : Module {
  /// ValueError unless groups divides channels.
  GroupNorm(std::int64_t groups, std::int64_t channels, const NormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight), field("bias", bias); }

  Tensor weight, bias;
  std::int64_t groups, channels;
  double eps;
};
/// GroupNorm with each channel a group of its own.
struct InstanceNorm : GroupNorm {
  explicit InstanceNorm(std::int64_t features, const NormOptions& options = {})
      : GroupNorm(features, features, options) {}
};

struct RMSNormOptions {
  double eps = 1e-6;
  bool affine = true;
  DType dtype = f32;
  std::string device = {};
};
/// x / sqrt(mean(x^2) + eps) * weight over the last axis, computed in f32 at least (Zhang and Sennrich 2019).
struct PG_API RMSNorm : Module {
  explicit RMSNorm(std::int64_t features, const RMSNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(auto&& field) { field("weight", weight); }

  Tensor weight;
  double eps;
};

struct EmbeddingOptions {
  DType dtype = f32;
  std::string device = {};
};
/// Rows of a (vocabulary, width) table drawn by glorot_uniform; an index out of range reads zeros.
struct PG_API Embedding : Module {
  Embedding(std::int64_t vocabulary, std::int64_t width, const EmbeddingOptions& options = {});
  /// Integers (...) to (..., width).
  Tensor operator()(const Tensor& index) const;
  void fields(auto&& field) { field("weight", weight); }

  Tensor weight;
};

struct LSTMCellOptions {
  bool bias = true;
  DType dtype = f32;
  std::string device = {};
};
/// One step of a long short-term memory (Hochreiter and Schmidhuber 1997). With gates i, f, g, o in this
/// order along the first axis of the weights: c' = sigmoid(f) * c + sigmoid(i) * tanh(g), h' = sigmoid(o) *
/// tanh(c'). Weights begin uniform within 1 / sqrt(hidden), biases at 0.
struct PG_API LSTMCell : Module {
  LSTMCell(std::int64_t input, std::int64_t hidden, const LSTMCellOptions& options = {});
  /// (batch, input) and the (batch, hidden) pair of before to the pair {h', c'}; without it, from zeros.
  std::pair<Tensor, Tensor> operator()(const Tensor& x) const;
  std::pair<Tensor, Tensor> operator()(const Tensor& x, const Tensor& h, const Tensor& c) const;
  void fields(auto&& field) {
    field("weight_ih", weight_ih), field("weight_hh", weight_hh);
    field("bias_ih", bias_ih), field("bias_hh", bias_hh);
  }

  Tensor weight_ih, weight_hh;  // (4 hidden, input), (4 hidden, hidden)
  Tensor bias_ih, bias_hh;
  std::int64_t hidden;
};

/// Tensor::dropout as a layer.
struct Dropout : Module {
  explicit Dropout(double probability = 0.5) : p(probability) {}
  Tensor operator()(const Tensor& x) const { return x.dropout(p); }
  void fields(auto&&) {}

  double p;
};

}  // namespace pg::nn
