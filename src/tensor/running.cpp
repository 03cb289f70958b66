// Running results along an axis.
#include <functional>
#include <limits>

#include "tensor/along.h"

namespace pg {
namespace detail {

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

Tensor pad_last(const Tensor& x, const Dim& before, const Dim& after, Number none) {
  if (before == 0 && after == 0) return x;
  Pairs widths(static_cast<std::size_t>(x.ndim()), {0, 0});
  widths.back() = {before, after};
  if (none.to_double() == 0) return x.pad(widths);
  return pg::where(x.ones_like({.dtype = DType::Bool}).pad(widths), x.pad(widths),
                   Tensor::full({}, none, {.dtype = x.dtype()}));
}

Tensor first_of_last(const Tensor& x, const Dim& n) {
  Pairs bounds;
  for (int i = 0; i < x.ndim(); ++i) bounds.emplace_back(0, i == x.ndim() - 1 ? n : x.size(i));
  return x.shrink(bounds);
}

Tensor value_copy(const Tensor& x, const char* op) {
  GraphScope scope;
  Value v = read(x, op);
  return computed(v.node, v.tracked, v.device);
}

Tensor to_end(const Tensor& x, int axis) {
  std::vector<std::int64_t> order;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return x.permute(order);
}
Tensor from_end(const Tensor& x, int axis) {
  std::vector<std::int64_t> order;
  for (int i = 0; i < x.ndim() - 1; ++i) order.push_back(i);
  order.insert(order.begin() + axis, x.ndim() - 1);
  return x.permute(order);
}

Combine combine(Op how, DType t) {
  GraphScope scope;
  Scalar neutral = identity_of(how, t);
  return {.none = is_float(t) ? Number(neutral.f) : Number(neutral.i),
          .over_last =
              [how](const Tensor& x) {
                GraphScope inner;
                std::uint64_t last = std::uint64_t{1} << (x.ndim() - 1);
                return drop_axes(reduce_axes("cumulative", x, how, last), last);
              },
          .both = [how](const Tensor& a, const Tensor& b) { return binary("cumulative", how, a, b); }};
}

// Within a block each element combines those up to it, the others masked; what stands before a block is the
// running result over the blocks. So the work grows as n, and x is read twice however long the axis is.
Tensor running(const Tensor& x, const Combine& how) {
  constexpr std::int64_t kBlock = 16;
  int axes = x.ndim();
  Dim n = x.size(-1);
  Tensor none = Tensor::full({}, how.none, {.dtype = x.dtype()});
  if (n.is_symbolic() || n <= kBlock) {
    Tensor upto = positions(i32, n, axes - 1, axes + 1) >= positions(i32, n, axes, axes + 1);
    return how.over_last(upto.where(x.unsqueeze(-2), none));
  }
  std::int64_t length = n, blocks = (length + kBlock - 1) / kBlock;
  Tensor padded = pad_last(x, 0, blocks * kBlock - length, how.none).unflatten(-1, {blocks, kBlock});
  Tensor through = first_of_last(running(how.over_last(padded), how), blocks - 1);
  Tensor before = pad_last(through, 1, 0, how.none).contiguous().unsqueeze(-1);
  return first_of_last(how.both(before, running(padded, how)).flatten(-2, -1), n);
}

namespace {

// The running extreme, and where it last changed: the first position of each.
std::pair<Tensor, Tensor> running_extreme(const char* op, const Tensor& x, std::int64_t axis, Op how) {
  if (x.ndim() == 0) return {value_copy(x, op), Tensor::zeros({}, {.dtype = i32})};
  Along a = along(op, x, axis);
  Tensor best = running(a.x, combine(how, x.dtype()));
  if (!a.n.is_symbolic() && a.n == 0)
    return {value_copy(best.permute(a.back), op), Tensor::zeros(x.shape(), {.dtype = i32})};
  Tensor now = best.detach(), before = pad_last(first_of_last(now, a.n - 1), 1, 0, 0);
  Tensor changed = now != before;
  if (x.is_floating_point()) changed = changed & ~(now.isnan() & before.isnan());
  // At the first position there is nothing to change, and 0 is what it says.
  Tensor at =
      running(changed.where(positions(i32, a.n, a.x.ndim() - 1, a.x.ndim()), 0), combine(Op::Max, i32));
  return {value_copy(best.permute(a.back), op), value_copy(at.permute(a.back), op)};
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::cumsum(std::int64_t axis) const {
  DType t = accumulator(dtype());
  if (ndim() == 0) return is_floating_point() ? value_copy(*this, "cumsum") : cast(t);
  Along a = along("cumsum", *this, axis);
  Tensor r = running(a.x.cast(t), combine(Op::Add, t)).permute(a.back);
  return is_floating_point() ? r.cast(dtype()) : value_copy(r, "cumsum");
}
Tensor Tensor::cumprod(std::int64_t axis) const {
  if (ndim() == 0) return value_copy(*this, "cumprod");
  Along a = along("cumprod", *this, axis);
  return value_copy(running(a.x, combine(Op::Mul, dtype())).permute(a.back), "cumprod");
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
  const Combine how{.none = -std::numeric_limits<double>::infinity(),
                    .over_last = [](const Tensor& x) { return x.logsumexp(-1); },
                    .both = [](const Tensor& p, const Tensor& q) { return p.logaddexp(q); }};
  return value_copy(running(a.x, how).permute(a.back), "logcumsumexp");
}

}  // namespace pg
