// Layers that normalise.
#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "nn/checks.h"
#include "nn/scalars.h"
#include <pangrad/nn.h>
#include <pangrad/scope.h>

namespace pg::nn {
namespace {

// Statistics of narrow floats are taken in f32.
Tensor widened(const Tensor& x) {
  DType wide = promote(x.dtype(), f32);
  return x.dtype() == wide ? x : x.cast(wide);
}
Tensor narrowed(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

// A tensor by channel, for what has channels at axis 1 of `rank` axes.
Tensor by_channel(const Tensor& tensor, int rank) {
  Shape shape{tensor.size(0)};
  for (int axis = 2; axis < rank; axis++) shape.push_back(1);
  return tensor.reshape(shape);
}

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias, int rank) {
  return weight.defined() ? x * by_channel(weight, rank) + by_channel(bias, rank) : x;
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t features, const BatchNormOptions& options)
    : eps(options.eps), momentum(options.momentum) {
  check_positive("BatchNorm", "features", features);
  Options make{.dtype = options.dtype, .device = options.device};
  if (options.affine) {
    weight = parameter(Tensor::ones({features}, make));
    bias = parameter(Tensor::zeros({features}, make));
  }
  if (options.track_running_stats) {
    running_mean = Tensor::zeros({features}, make);
    running_var = Tensor::ones({features}, make);
    num_batches_tracked = stored_scalar(0, i64, options.device);
  }
}

Tensor BatchNorm::operator()(const Tensor& x) const {
  int rank = x.ndim();
  if (rank < 2)
    throw ShapeError(fmt::format("[BatchNorm] channels are axis 1, but the input is {}", x.shape().str()));
  bool tracks = running_mean.defined(), training = Training::enabled();
  Tensor wide = widened(x);
  auto normalised = [&](const Tensor& mean, const Tensor& var) {
    return narrowed(wide.batchnorm(weight, bias, mean, (var + eps).rsqrt()), x.dtype());
  };
  if (tracks && !training) return normalised(running_mean, running_var);

  std::vector<std::int64_t> axes{0};
  for (int axis = 2; axis < rank; axis++) axes.push_back(axis);
  Tensor mean = wide.mean(axes);
  // The variance does not depend on the mean to first order, so no gradient goes through it.
  Tensor var = (wide - by_channel(mean.detach(), rank)).square().mean(axes);
  if (tracks) track(mean.detach(), var.detach(), x.numel() / x.size(1));
  return normalised(mean, var);
}

void BatchNorm::track(const Tensor& mean, const Tensor& var, const Dim& count) const {
  if (count == 1) throw ShapeError("[BatchNorm] one value for each channel, which has no variance");
  NoGrad no_grad;
  // Nobody may ever read these. What an earlier batch left to do is done first, or it would pile up.
  realize({running_mean, running_var, num_batches_tracked});
  Tensor unbiased = var * (Tensor(count).cast(f32) / Tensor(count - 1));
  // Handles of this layer's storage: calling a layer is const, as what it computes with does not change.
  Tensor kept_mean = running_mean, kept_var = running_var, batches = num_batches_tracked;
  auto moved = [&](const Tensor& kept, const Tensor& newest) {
    return narrowed(kept * (1 - momentum) + newest * momentum, kept.dtype());
  };
  kept_mean.assign(moved(kept_mean, mean));
  kept_var.assign(moved(kept_var, unbiased));
  batches += 1;
}

LayerNorm::LayerNorm(const Ints& trailing, const NormOptions& options) : shape(trailing), eps(options.eps) {
  if (trailing.empty()) throw ValueError("[LayerNorm] needs at least one axis");
  for (std::int64_t extent : trailing) check_positive("LayerNorm", "an extent", extent);
  if (!options.affine) return;
  Shape full(std::vector<Dim>(trailing.begin(), trailing.end()));
  Options make{.dtype = options.dtype, .device = options.device};
  weight = parameter(Tensor::ones(full, make));
  bias = parameter(Tensor::zeros(full, make));
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  int trailing = static_cast<int>(shape.size());
  Shape input = x.shape();
  bool fits = input.rank() >= trailing;
  for (int i = 0; fits && i < trailing; i++) fits = input[i - trailing] == shape[static_cast<size_t>(i)];
  if (!fits) {
    throw ShapeError(fmt::format("[LayerNorm] made for {}, the input is {}",
                                 Shape(std::vector<Dim>(shape.begin(), shape.end())).str(), input.str()));
  }
  std::vector<std::int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), -trailing);
  Tensor normal = x.layernorm(axes, eps);
  return weight.defined() ? normal * weight + bias : normal;
}

GroupNorm::GroupNorm(std::int64_t group_count, std::int64_t channel_count, const NormOptions& options)
    : groups(group_count), channels(channel_count), eps(options.eps) {
  check_positive("GroupNorm", "groups", groups);
  check_positive("GroupNorm", "channels", channels);
  if (channels % groups != 0)
    throw ValueError(fmt::format("[GroupNorm] {} groups do not divide {} channels", groups, channels));
  if (!options.affine) return;
  Options make{.dtype = options.dtype, .device = options.device};
  weight = parameter(Tensor::ones({channels}, make));
  bias = parameter(Tensor::zeros({channels}, make));
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  Shape input = x.shape();
  if (input.rank() < 2 || !(input[1] == channels))
    throw ShapeError(
        fmt::format("[GroupNorm] made for {} channels at axis 1, the input is {}", channels, input.str()));
  Tensor normal = x.reshape({input[0], groups, -1}).layernorm(-1, eps).reshape(input);
  return affine(normal, weight, bias, input.rank());
}

RMSNorm::RMSNorm(std::int64_t features, const RMSNormOptions& options) : eps(options.eps) {
  check_positive("RMSNorm", "features", features);
  if (options.affine)
    weight = parameter(Tensor::ones({features}, {.dtype = options.dtype, .device = options.device}));
}

Tensor RMSNorm::operator()(const Tensor& x) const {
  Tensor wide = widened(x);
  Tensor normal = narrowed(wide * (wide.square().mean(-1, {.keepdim = true}) + eps).rsqrt(), x.dtype());
  return weight.defined() ? normal * weight : normal;
}

}  // namespace pg::nn
