// Normalisation and losses.
#include "tensor/ops.h"

namespace pg {

using namespace detail;

namespace {

Tensor reduced(const Tensor& loss, Reduction how) {
  return how == Reduction::Mean ? loss.mean() : how == Reduction::Sum ? loss.sum() : loss;
}

void check_smoothing(const char* op, double s) {
  if (!(s >= 0 && s <= 1)) fail<ValueError>(op, "a label smoothing of {}", s);
}

void check_classes(const char* op, const Tensor& target) {
  if (!is_int(target.dtype()))
    fail<DTypeError>(op, "the target is {}: classes are integers", detail::text(target.dtype()));
}

void check_same_shape(const char* op, const Tensor& x, const Tensor& target) {
  if (!(x.shape() == target.shape()))
    fail<ShapeError>(op, "an input of shape {} and a target of shape {}", x.shape().str(),
                     target.shape().str());
}

// The classes' axis of an input against a target without it.
int class_axis(const char* op, const Tensor& x, const Tensor& target) {
  if (x.ndim() == 0) fail<ShapeError>(op, "a scalar has no classes");
  int axis = x.ndim() == 1 ? 0 : 1;
  Shape rest = x.shape();
  rest.erase(axis);
  if (!(rest == target.shape()))
    fail<ShapeError>(op, "an input of shape {} with classes along axis {}, and a target of shape {}",
                     x.shape().str(), axis, target.shape().str());
  return axis;
}

// True at the class of each target, along an axis of classes.
Tensor at_class(const Tensor& target, int axis, const Dim& classes) {
  Tensor t = target.unsqueeze(axis);
  return t == positions(t.dtype(), classes, axis, t.ndim());
}

}  // namespace

Tensor Tensor::batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& invstd,
                         const Axes& axes) const {
  constexpr const char* kName = "batchnorm";
  GraphScope scope;
  std::uint64_t mask = axes_of(kName, axes, detail::read(*this, kName).shape());
  Shape along(std::vector<Dim>(static_cast<std::size_t>(ndim()), 1));
  for (int i = 0; i < ndim(); ++i)
    if (mask >> i & 1) along[i] = size(i);
  auto wide = [&](const Tensor& t, const char* what) {
    if (!(t.numel() == along.numel()))
      fail<ShapeError>(kName, "{} of shape {} for axes of shape {}", what, t.shape().str(), along.str());
    return t.reshape(along);
  };
  Tensor x = *this - wide(mean, "a mean");
  if (weight.defined()) x = x * wide(weight, "a weight");
  x = x * wide(invstd, "an inverse deviation");
  return bias.defined() ? x + wide(bias, "a bias") : x;
}

Tensor Tensor::layernorm(const Axes& axes, double eps) const {
  Tensor x = as_float(*this, "layernorm");
  auto [spread, average] = x.var_mean(axes, {.keepdim = true, .correction = 0});
  return (x - average) * (spread + eps).rsqrt();
}

Tensor Tensor::cross_entropy(const Tensor& target, const CrossEntropyOptions& options) const {
  constexpr const char* kName = "cross_entropy";
  check_smoothing(kName, options.label_smoothing);
  Tensor logs, y;
  int axis = ndim() <= 1 ? 0 : 1;
  if (is_int(target.dtype())) {
    axis = class_axis(kName, *this, target);
    logs = log_softmax(axis);
    y = at_class(target, axis, size(axis)).cast(logs.dtype());
  } else {
    check_same_shape(kName, *this, target);
    logs = log_softmax(axis);
    y = target;
  }
  if (options.label_smoothing > 0)
    y = y * (1 - options.label_smoothing) + options.label_smoothing / static_cast<double>(size(axis).max());
  return reduced(-(logs * y).sum(axis), options.reduction);
}

Tensor Tensor::sparse_categorical_crossentropy(const Tensor& target,
                                               const SparseCrossEntropyOptions& options) const {
  constexpr const char* kName = "sparse_categorical_crossentropy";
  check_smoothing(kName, options.label_smoothing);
  check_classes(kName, target);
  Shape rest = shape();
  if (ndim()) rest.erase(-1);
  if (!ndim() || !(rest == target.shape()))
    fail<ShapeError>(kName, "logits of shape {} and a target of shape {}", shape().str(),
                     target.shape().str());
  Tensor logs = log_softmax(-1);
  Tensor counts = target != options.ignore_index;
  Tensor picked = (at_class(target, ndim() - 1, size(-1)).where(logs, 0)).sum(-1);
  Tensor each = picked * (1 - options.label_smoothing);
  if (options.label_smoothing > 0) each = each + logs.mean(-1) * options.label_smoothing;
  each = counts.where(-each, 0);
  switch (options.reduction) {
    case Reduction::None:
      return each;
    case Reduction::Sum:
      return each.sum();
    default:
      return each.sum() / counts.sum().cast(each.dtype());
  }
}

Tensor Tensor::nll_loss(const Tensor& target, const Tensor& weight, const NllOptions& options) const {
  constexpr const char* kName = "nll_loss";
  check_classes(kName, target);
  int axis = class_axis(kName, *this, target);
  Tensor hit = at_class(target, axis, size(axis));
  Tensor scale;
  if (weight.defined()) {
    if (weight.ndim() != 1 || !(weight.size(0) == size(axis)))
      fail<ShapeError>(kName, "weights of shape {} for {} classes", weight.shape().str(), size(axis).str());
    Shape along(std::vector<Dim>(static_cast<std::size_t>(ndim()), 1));
    along[axis] = size(axis);
    scale = hit.where(weight.reshape(along), 0).sum(axis);
  } else {
    scale = target.full_like(1, {.dtype = dtype()});
  }
  if (options.ignore_index) scale = (target != *options.ignore_index).where(scale, 0);
  Tensor each = -(hit.where(*this, 0).sum(axis)) * scale;
  switch (options.reduction) {
    case Reduction::None:
      return each;
    case Reduction::Sum:
      return each.sum();
    default:
      return each.sum() / scale.sum();
  }
}

Tensor Tensor::binary_crossentropy(const Tensor& target, const LossOptions& options) const {
  check_same_shape("binary_crossentropy", *this, target);
  return reduced(-(target * log()) - (1 - target) * (1 - *this).log(), options.reduction);
}

// max(x, 0) - x y + log(1 + exp(-|x|)), as log sigmoids.
Tensor Tensor::binary_crossentropy_logits(const Tensor& target, const Tensor& pos_weight,
                                          const LossOptions& options) const {
  check_same_shape("binary_crossentropy_logits", *this, target);
  Tensor hit = logsigmoid() * target, miss = neg().logsigmoid() * (1 - target);
  if (pos_weight.defined()) hit = hit * pos_weight;
  return reduced(-(hit + miss), options.reduction);
}

}  // namespace pg
