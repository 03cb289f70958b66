// Reductions, and what is made of them: statistics, softmax.

#include "tensor/ops.h"

namespace pg {
namespace detail {

Tensor reduce_axes(const char* op, const Tensor& x, Op how, std::uint64_t axes) {
  Value v = read(x, op);
  return computed(reduce(v.node, how, axes), v.tracked, v.device);
}

Tensor sum_axes(const char* op, const Tensor& x, std::uint64_t axes, DType out) {
  Value v = read(x, op);
  DType t = v.dtype(), wide = out == DType::Void ? accumulator(t) : accumulator(out);
  // Narrow floats give themselves back, integers what they were summed up in.
  if (out == DType::Void) out = is_float(t) ? t : wide;
  return computed(cast(reduce(cast(v.node, wide), Op::Add, axes), out), v.tracked, v.device);
}

namespace {

Tensor finish(const Tensor& kept, std::uint64_t axes, bool keepdim) {
  return keepdim ? kept : drop_axes(kept, axes);
}

// As a value: the reduction's own axes dropped is a view of a Cell nobody else has.
std::uint64_t mask_of(const char* op, const Tensor& x, const Axes& axes) {
  return axes_of(op, axes, read(x, op).shape());
}

// How many elements go into one of the result.
Dim reduced_count(const Tensor& x, std::uint64_t axes) {
  Dim n = 1;
  for (int i = 0; i < x.ndim(); ++i)
    if (axes >> i & 1) n = n * x.size(i);
  return n;
}

// A count as an operand, symbolic ones too.
Tensor as_scalar(const Dim& n, DType t) {
  GraphScope scope;
  return computed(cast(cast(dim_from(n), i64), t), false, nullptr);
}

Tensor extreme(const char* op, const Tensor& x, Op how, const Axes& axes, bool keepdim) {
  GraphScope scope;
  std::uint64_t mask = mask_of(op, x, axes);
  return finish(reduce_axes(op, x, how, mask), mask, keepdim);
}

Tensor arg_extreme(const char* op, const Tensor& x, Op how, std::int64_t axis, bool keepdim) {
  GraphScope scope;
  int a = axis_of(op, axis, read(x, op).shape());
  Dim n = x.size(a);
  if (!n.is_symbolic() && n == 0) fail<ShapeError>(op, "axis {} of {} is empty", axis, x.shape().str());
  std::uint64_t mask = std::uint64_t{1} << a;
  Tensor best = reduce_axes(op, x, how, mask), hit = x == best;
  if (x.is_floating_point()) hit = hit | (x != x);  // NaN wins
  Tensor first = reduce_axes(op, hit.where(positions(i32, n, a, x.ndim()), int_max(i32)), Op::Min, mask);
  return finish(first, mask, keepdim);
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::sum(const Axes& axes, const ReduceOptions& options) const {
  GraphScope scope;
  std::uint64_t mask = mask_of("sum", *this, axes);
  const Tensor x = options.dtype == DType::Void ? *this : cast(options.dtype);
  return finish(sum_axes("sum", x, mask, options.dtype), mask, options.keepdim);
}

Tensor Tensor::prod(const Axes& axes, const ReduceOptions& options) const {
  GraphScope scope;
  std::uint64_t mask = mask_of("prod", *this, axes);
  const Tensor x = options.dtype == DType::Void ? *this : cast(options.dtype);
  return finish(reduce_axes("prod", x, Op::Mul, mask), mask, options.keepdim);
}

Tensor Tensor::max(const Axes& axes, const ReduceOptions& options) const {
  return extreme("max", *this, Op::Max, axes, options.keepdim);
}
Tensor Tensor::min(const Axes& axes, const ReduceOptions& options) const {
  return extreme("min", *this, Op::Min, axes, options.keepdim);
}

Tensor Tensor::mean(const Axes& axes, const ReduceOptions& options) const {
  GraphScope scope;
  std::uint64_t mask = mask_of("mean", *this, axes);
  DType t = is_floating_point() ? dtype() : f32, wide = accumulator(t);
  Tensor total = sum_axes("mean", cast(wide), mask, wide);
  return finish((total / as_scalar(reduced_count(*this, mask), wide)).cast(t), mask, options.keepdim);
}

std::pair<Tensor, Tensor> Tensor::var_mean(const Axes& axes, const VarOptions& options) const {
  GraphScope scope;
  std::uint64_t mask = mask_of("var", *this, axes);
  DType t = is_floating_point() ? dtype() : f32, wide = accumulator(t);
  Tensor x = cast(wide), n = as_scalar(reduced_count(*this, mask), wide);
  Tensor average = sum_axes("var", x, mask, wide) / n;
  Tensor squares = sum_axes("var", (x - average).square(), mask, wide);
  Tensor spread = squares / (n - static_cast<double>(options.correction)).maximum(0);
  return {finish(spread.cast(t), mask, options.keepdim), finish(average.cast(t), mask, options.keepdim)};
}
Tensor Tensor::var(const Axes& axes, const VarOptions& options) const {
  return var_mean(axes, options).first;
}
Tensor Tensor::std(const Axes& axes, const VarOptions& options) const { return var(axes, options).sqrt(); }
std::pair<Tensor, Tensor> Tensor::std_mean(const Axes& axes, const VarOptions& options) const {
  auto [spread, average] = var_mean(axes, options);
  return {spread.sqrt(), average};
}

Tensor Tensor::any(const Axes& axes, const ReduceOptions& options) const {
  return extreme("any", cast(DType::Bool), Op::Max, axes, options.keepdim);
}
Tensor Tensor::all(const Axes& axes, const ReduceOptions& options) const {
  return extreme("all", cast(DType::Bool), Op::Min, axes, options.keepdim);
}

Tensor Tensor::argmax() const { return flatten().argmax(0); }
Tensor Tensor::argmax(std::int64_t axis, const ReduceOptions& options) const {
  return arg_extreme("argmax", *this, Op::Max, axis, options.keepdim);
}
Tensor Tensor::argmin() const { return flatten().argmin(0); }
Tensor Tensor::argmin(std::int64_t axis, const ReduceOptions& options) const {
  return arg_extreme("argmin", *this, Op::Min, axis, options.keepdim);
}

Tensor Tensor::logsumexp(const Axes& axes, const ReduceOptions& options) const {
  GraphScope scope;
  Tensor x = as_float(*this, "logsumexp");
  std::uint64_t mask = mask_of("logsumexp", x, axes);
  Tensor m = reduce_axes("logsumexp", x, Op::Max, mask).detach();
  m = m.isinf().where(0.0, m);
  return finish(sum_axes("logsumexp", (x - m).exp(), mask).log() + m, mask, options.keepdim);
}

namespace {

// x - max and its exponential along an axis.
std::pair<Tensor, Tensor> shifted(const char* op, const Tensor& x, std::int64_t axis, DType t) {
  GraphScope scope;
  Tensor y = as_float(x, op);
  if (t != DType::Void) check_float(op, t);
  std::uint64_t mask = std::uint64_t{1} << axis_of(op, axis, read(y, op).shape());
  Tensor m = y - reduce_axes(op, y, Op::Max, mask).detach();
  if (t != DType::Void) m = m.cast(t);
  return {m, m.exp()};
}

}  // namespace

Tensor Tensor::softmax(std::int64_t axis, DType t) const {
  if (ndim() == 0) return unsqueeze(0).softmax(0, t).squeeze(0);
  auto [m, e] = shifted("softmax", *this, axis, t);
  return e * e.sum(axis, {.keepdim = true}).reciprocal();  // a division for the row, not for each element
}
Tensor Tensor::softmin(std::int64_t axis, DType t) const { return neg().softmax(axis, t); }
Tensor Tensor::log_softmax(std::int64_t axis, DType t) const {
  if (ndim() == 0) return unsqueeze(0).log_softmax(0, t).squeeze(0);
  auto [m, e] = shifted("log_softmax", *this, axis, t);
  return m - e.sum(axis, {.keepdim = true}).log();
}

Tensor Tensor::normalize(double p, std::int64_t axis, double eps) const {
  Tensor x = as_float(*this, "normalize");
  Tensor norm = p == 0   ? (x != 0.0).sum(axis, {.keepdim = true}).cast(x.dtype())
                : p == 1 ? x.abs().sum(axis, {.keepdim = true})
                : p == 2 ? x.square().sum(axis, {.keepdim = true}).sqrt()
                         : x.abs().pow(p).sum(axis, {.keepdim = true}).pow(1 / p);
  return x / norm.maximum(eps);
}

}  // namespace pg
