// Reductions, and what is made of them: statistics, softmax, running results, sorting.
#include <bit>
#include <limits>

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

// --- along an axis
// -------------------------------------------------------------------------------------------------

// x with the axis last, n there; and the way back.
struct Along {
  Tensor x;
  std::vector<std::int64_t> back;
  Dim n;
};
Along along(const char* op, const Tensor& x, std::int64_t axis) {
  GraphScope scope;
  Along r;
  int a = axis_of(op, axis, read(x, op).shape());
  std::vector<std::int64_t> order;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != a) order.push_back(i);
  order.push_back(a);
  r.back.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    r.back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  r.x = x.permute(order);
  r.n = x.size(a);
  return r;
}

// Running result over the last axis: each element reduces those up to it, others masked by the neutral
// element. For long axes in blocks, and then over the blocks.
Tensor running(const Tensor& x, Op how, DType t) {
  constexpr std::int64_t kLong = 512, kBlock = 256;
  int axes = x.ndim();
  Dim n = x.size(-1);
  Scalar neutral;
  {
    GraphScope scope;
    neutral = identity_of(how, t);
  }
  Number none = is_float(t) ? Number(neutral.f) : Number(neutral.i);
  if (!n.is_symbolic() && n > kLong) {
    std::int64_t blocks = (n + kBlock - 1) / kBlock;
    Pairs widths(static_cast<std::size_t>(axes), {0, 0});
    widths.back().second = blocks * kBlock - n;
    Tensor padded = none.to_double() == 0
                        ? x.pad(widths)
                        : pg::where(x.ones_like({.dtype = DType::Bool}).pad(widths), x.pad(widths), none);
    Tensor inner = running(padded.unflatten(-1, {blocks, kBlock}), how, t);
    Pairs last;
    for (int i = 0; i < axes; ++i) last.emplace_back(0, inner.size(i));
    last.emplace_back(kBlock - 1, kBlock);
    Tensor totals = running(inner.shrink(last).squeeze(-1), how, t);
    // What stands before a block: the totals shifted by one.
    Pairs but_last, shift(static_cast<std::size_t>(axes), {0, 0});
    for (int i = 0; i < axes; ++i) but_last.emplace_back(0, i == axes - 1 ? Dim(blocks - 1) : totals.size(i));
    shift.back().first = 1;
    Tensor before = totals.shrink(but_last);
    before = none.to_double() == 0
                 ? before.pad(shift)
                 : pg::where(before.ones_like({.dtype = DType::Bool}).pad(shift), before.pad(shift), none);
    GraphScope scope;
    Value a = read(inner, "cumulative"), b = read(before.unsqueeze(-1), "cumulative");
    Tensor joined = computed(alu(how, {a.node, b.node}), a.tracked || b.tracked, a.device).flatten(-2, -1);
    Pairs bounds;
    for (int i = 0; i < axes; ++i) bounds.emplace_back(0, i == axes - 1 ? n : joined.size(i));
    return joined.shrink(bounds);
  }
  Tensor upto = positions(i32, n, axes - 1, axes + 1) >= positions(i32, n, axes, axes + 1);
  GraphScope scope;
  Tensor masked = upto.where(x.unsqueeze(-2), computed(scalar_const(t, neutral), false, nullptr));
  return drop_axes(reduce_axes("cumulative", masked, how, std::uint64_t{1} << axes),
                   std::uint64_t{1} << axes);
}

Tensor value_copy(const Tensor& x, const char* op) {
  GraphScope scope;
  Value v = read(x, op);
  return computed(v.node, v.tracked, v.device);
}

std::pair<Tensor, Tensor> running_extreme(const char* op, const Tensor& x, std::int64_t axis, Op how) {
  if (x.ndim() == 0) return {value_copy(x, op), Tensor::zeros({}, {.dtype = i32})};
  Along a = along(op, x, axis);
  Tensor best = running(a.x, how, x.dtype());
  // The first position that equals the running result.
  int axes = a.x.ndim();
  Tensor hit = (a.x.unsqueeze(-2) == best.unsqueeze(-1));
  if (x.is_floating_point()) hit = hit | a.x.isnan().unsqueeze(-2);
  hit = hit & (positions(i32, a.n, axes - 1, axes + 1) >= positions(i32, a.n, axes, axes + 1));
  Tensor at = hit.where(positions(i32, a.n, axes, axes + 1), int_max(i32)).min(-1);
  return {best.permute(a.back), at.permute(a.back)};
}

// a before b in the order of sort: NaN after everything.
Tensor before(const Tensor& a, const Tensor& b, bool descending) {
  Tensor less = descending ? b < a : a < b;
  if (a.is_floating_point())
    less = descending ? less | (a.isnan() & ~b.isnan()) : less | (b.isnan() & ~a.isnan());
  return less;
}

// Position of each element in the sorted order: how many come before it, equal ones by position.
Tensor ranks(const Tensor& x, const Dim& n, bool descending) {
  int axes = x.ndim();
  Tensor mine = x.unsqueeze(-1), other = x.unsqueeze(-2);
  Tensor first = before(other, mine, descending);
  Tensor tie = ~first & ~before(mine, other, descending) &
               (positions(i32, n, axes, axes + 1) < positions(i32, n, axes - 1, axes + 1));
  return (first | tie).sum(-1);
}

// Batcher's bitonic network on (value, position) pairs, for axes too long to compare all with all.
std::pair<Tensor, Tensor> bitonic(Tensor x, std::int64_t n, bool descending) {
  auto width = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  int axes = x.ndim();
  Tensor at = positions(i32, n, axes - 1, axes).expand(x.shape());
  Pairs widths(static_cast<std::size_t>(axes), {0, 0});
  widths.back().second = width - n;
  // Padding sorts last: it is marked by its position, which is beyond n.
  x = x.pad(widths);
  at = pg::where(at.ones_like({.dtype = DType::Bool}).pad(widths), at.pad(widths),
                 positions(i32, width, axes - 1, axes));
  auto comes_first = [&](const Tensor& xa, const Tensor& ia, const Tensor& xb, const Tensor& ib) {
    Tensor real = (ia < n) & (ib >= n), both = (ia < n) == (ib < n);
    Tensor less = before(xa, xb, descending), equal = ~less & ~before(xb, xa, descending);
    return real | (both & (less | (equal & (ia < ib))));
  };
  for (std::int64_t size = 2; size <= width; size *= 2)
    for (std::int64_t step = size / 2; step >= 1; step /= 2) {
      Shape pairs = x.shape();
      pairs[-1] = width / (2 * step);
      pairs.push_back(2);
      pairs.push_back(step);
      Shape flat = x.shape();
      Tensor xs = x.reshape(pairs), is = at.reshape(pairs);
      auto half = [&](const Tensor& t, std::int64_t k) {
        return t.at(std::vector<Index>{ellipsis, k, Slice{}}).unsqueeze(-2);
      };
      Tensor xa = half(xs, 0), xb = half(xs, 1), ia = half(is, 0), ib = half(is, 1);
      // Which way this pair goes: up where the block of `size` has an even number.
      Tensor block = positions(i32, width / (2 * step), axes - 1, axes + 2);
      Tensor up =
          (block * static_cast<std::int32_t>(2 * step)).floor_div(static_cast<std::int32_t>(size)) % 2 == 0;
      Tensor keep = comes_first(xa, ia, xb, ib) == up;
      x = cat({pg::where(keep, xa, xb), pg::where(keep, xb, xa)}, -2).reshape(flat).contiguous();
      at = cat({pg::where(keep, ia, ib), pg::where(keep, ib, ia)}, -2).reshape(flat).contiguous();
    }
  Pairs bounds;
  for (int i = 0; i < axes; ++i) bounds.emplace_back(0, i == axes - 1 ? Dim(n) : x.size(i));
  return {x.shrink(bounds), at.shrink(bounds)};
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
  return e / e.sum(axis, {.keepdim = true});
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

Tensor Tensor::cumsum(std::int64_t axis) const {
  DType t = accumulator(dtype());
  if (ndim() == 0) return is_floating_point() ? value_copy(*this, "cumsum") : cast(t);
  Along a = along("cumsum", *this, axis);
  Tensor r = running(a.x.cast(t), Op::Add, t).permute(a.back);
  return is_floating_point() ? r.cast(dtype()) : value_copy(r, "cumsum");
}
Tensor Tensor::cumprod(std::int64_t axis) const {
  if (ndim() == 0) return value_copy(*this, "cumprod");
  Along a = along("cumprod", *this, axis);
  return value_copy(running(a.x, Op::Mul, dtype()).permute(a.back), "cumprod");
}
std::pair<Tensor, Tensor> Tensor::cummax(std::int64_t axis) const {
  return running_extreme("cummax", *this, axis, Op::Max);
}
std::pair<Tensor, Tensor> Tensor::cummin(std::int64_t axis) const {
  return running_extreme("cummin", *this, axis, Op::Min);
}

Tensor Tensor::logcumsumexp(std::int64_t axis) const {
  Tensor y = as_float(*this, "logcumsumexp");
  if (ndim() == 0) return value_copy(y, "logcumsumexp");
  Along a = along("logcumsumexp", y, axis);
  int axes = a.x.ndim();
  Tensor upto = positions(i32, a.n, axes - 1, axes + 1) >= positions(i32, a.n, axes, axes + 1);
  Tensor masked = upto.where(a.x.unsqueeze(-2), -std::numeric_limits<double>::infinity());
  return masked.logsumexp(-1).permute(a.back);
}

std::pair<Tensor, Tensor> Tensor::sort(std::int64_t axis, const SortOptions& options) const {
  constexpr std::int64_t kShort = 2048;
  if (ndim() == 0) return {value_copy(*this, "sort"), zeros({}, {.dtype = i32})};
  Along a = along("sort", *this, axis);
  if (a.n.is_symbolic()) fail<ShapeError>("sort", "axis {} of {} is symbolic", axis, shape().str());
  if (a.n > kShort) {
    auto [values, at] = bitonic(a.x, a.n, options.descending);
    return {values.permute(a.back), at.permute(a.back)};
  }
  if (a.n == 0) return {value_copy(*this, "sort"), zeros(shape(), {.dtype = i32})};
  // Element k of the result is the one of rank k.
  int axes = a.x.ndim();
  Tensor hit =
      ranks(a.x.detach(), a.n, options.descending).unsqueeze(-2) == positions(i32, a.n, axes - 1, axes + 1);
  Tensor at = hit.where(positions(i32, a.n, axes, axes + 1), 0).sum(-1);
  return {a.x.gather(-1, at).permute(a.back), at.permute(a.back)};
}
Tensor Tensor::argsort(std::int64_t axis, const SortOptions& options) const {
  return sort(axis, options).second;
}

std::pair<Tensor, Tensor> Tensor::topk(std::int64_t k, std::int64_t axis, const TopkOptions& options) const {
  if (k < 0 || k > size(axis)) fail<ValueError>("topk", "{} of axis {} of {}", k, axis, shape().str());
  auto [values, at] = sort(axis, {.descending = options.largest});
  Pairs bounds;
  int a = static_cast<int>(axis < 0 ? axis + ndim() : axis);
  for (int i = 0; i < ndim(); ++i) bounds.emplace_back(0, i == a ? Dim(k) : size(i));
  return {value_copy(values.shrink(bounds), "topk"), value_copy(at.shrink(bounds), "topk")};
}

}  // namespace pg
