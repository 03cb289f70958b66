// Along an axis, at an index of the same rank: gather, scatter and its reductions; and rows added up.
#include "tensor/scatter.h"

#include <algorithm>
#include <bit>

namespace pg {
namespace detail {

Tensor count_up_to(const Tensor& sorted, const Tensor& bounds) {
  std::int64_t m = sorted.size(-1);
  Shape wanted = sorted.shape();
  wanted[-1] = bounds.size(-1);
  Tensor count = Tensor::zeros(wanted, {.dtype = i32});
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(m))); step;
       step /= 2) {
    Tensor next = count + static_cast<std::int32_t>(step);
    Tensor goes = (next <= static_cast<std::int32_t>(m)) & (sorted.gather(-1, next - 1) <= bounds);
    count = goes.where(next, count).contiguous();
  }
  return count;
}

Targets::Targets(const Tensor& index, const Dim& n) {
  int axes = index.ndim();
  DType t = index.dtype();
  bool holds = itemsize(t) >= 4 || n.max() - 1 <= int_max(t);
  Tensor at = holds ? index : index.cast(i32);
  names_ = at.unsqueeze(-2) == positions(at.dtype(), n, axes - 1, axes + 1);
}

Tensor Targets::hit() const { return names_.any(-1); }

Tensor Targets::last() const {
  int axes = names_.ndim();
  return names_.where(positions(i32, names_.size(-1), axes - 1, axes), -1).max(-1);
}

Tensor Targets::combined(const Tensor& source, const Combine& how) const {
  Tensor none = Tensor::full({}, how.none, {.dtype = source.dtype()});
  return how.over_last(names_.where(source.unsqueeze(-2), none));
}

Tensor Targets::combined_rows(const Tensor& source, const Combine& how) const {
  Tensor none = Tensor::full({}, how.none, {.dtype = source.dtype()});
  Shape over(std::vector<Dim>(static_cast<std::size_t>(source.ndim()), 1));
  over[0] = names_.size(-2);
  over.insert(1, names_.size(-1));
  return how.over_last(to_end(names_.reshape(over).where(source.unsqueeze(0), none), 1));
}

namespace {

// Checks an index along an axis; returns the axis.
int check_along(const char* op, const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor* src) {
  GraphScope scope;
  Ref shape = read(x, op).shape(), s = read(index, op).shape();
  int a = axis_of(op, axis, shape);
  if (!is_int(index.dtype()))
    fail<IndexError>(op, "the index is {}: indices are integers", text(index.dtype()));
  bool fits = rank(s) == rank(shape);
  for (int i = 0; fits && i < rank(s); ++i) fits = i == a || dim(s, i).hi() <= dim(shape, i).hi();
  if (!fits) fail<ShapeError>(op, "an index of shape {} along axis {} of {}", text(s), a, text(shape));
  if (src) {
    Ref from = read(*src, op).shape();
    bool covers = rank(from) == rank(s);
    for (int i = 0; covers && i < rank(s); ++i) covers = dim(s, i).hi() <= dim(from, i).hi();
    if (!covers)
      fail<ShapeError>(op, "an index of shape {} reads more than the source {} has", text(s), text(from));
    if (src->dtype() != x.dtype())
      fail<DTypeError>(op, "the source is {}, the target {}", text(src->dtype()), text(x.dtype()));
  }
  return a;
}

// The front of each axis, as long as another tensor's.
Tensor cut_to(const Tensor& x, const Shape& shape, int but) {
  Pairs bounds;
  for (int i = 0; i < x.ndim(); ++i) bounds.emplace_back(0, i == but ? x.size(i) : shape[i]);
  return x.shrink(bounds);
}

// Padded with zeros (false) at the end of each axis.
Tensor fill_to(const Tensor& x, const Shape& shape) {
  Pairs widths;
  for (int i = 0; i < x.ndim(); ++i) widths.emplace_back(0, shape[i] - x.size(i));
  return x.pad(widths);
}

// One element for each of the index, from the flattened tensor.
Tensor gathered(const char* op, const Tensor& x, int axis, const Tensor& index) {
  int axes = x.ndim();
  bool wide = x.numel() > int_max(i32) || itemsize(index.dtype()) > 4 || index.dtype() == u32;
  Tensor at = index.cast(wide ? i64 : i32);
  Tensor inside = (at >= 0) & (at < Tensor(x.size(axis)).cast(at.dtype())), flat;
  Dim stride = 1;
  for (int i = axes; i-- > 0;) {
    Tensor along = i == axis ? at : positions(at.dtype(), index.size(i), i, axes);
    Tensor term = stride == 1 ? along : along * Tensor(stride).cast(at.dtype());
    flat = flat.defined() ? flat + term : term;
    stride = stride * x.size(i);
  }
  flat = inside.where(flat.expand(index.shape()), -1);
  GraphScope scope;
  return read_rows(x.reshape({x.numel()}), flat, op);
}

// How a reduction combines, accumulated as sum() does.
struct Way {
  Combine how;
  DType dtype;
};
Way way_of(Scatter reduce, DType t) {
  switch (reduce) {
    case Scatter::Prod:
      return {combine(Op::Mul, t), t};
    case Scatter::Amax:
      return {combine(Op::Max, t), t};
    case Scatter::Amin:
      return {combine(Op::Min, t), t};
    default:
      return {combine(Op::Add, accumulator(t)), accumulator(t)};
  }
}

// What was there and what came to it.
Tensor joined(const Tensor& old, const Tensor& hit, const Tensor& came, const Tensor& times, const Way& way,
              Scatter reduce, bool include_self) {
  DType t = old.dtype();
  Tensor own = old.cast(way.dtype);
  if (!include_self) own = hit.where(Tensor::full({}, way.how.none, {.dtype = way.dtype}), own);
  Tensor both = way.how.both(own, came);
  if (reduce == Scatter::Mean) {
    Tensor count = (include_self ? times + 1 : times).maximum(1);
    both = is_float(t) ? both / count.cast(way.dtype) : both.cast(t).floor_div(count.cast(t));
  }
  return hit.where(both.cast(t), old);
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::gather(std::int64_t axis, const Tensor& index) const {
  constexpr const char* kName = "gather";
  int a = check_along(kName, *this, axis, index, nullptr);
  if (!numel().is_symbolic() && !index.numel().is_symbolic()) return gathered(kName, *this, a, index);
  // One of n for each element of the index, others masked.
  Tensor x = cut_to(*this, index.shape(), a);
  Tensor rows = to_end(x, a).unsqueeze(a);
  Tensor at = index.unsqueeze(-1);
  Tensor hit = at == positions(at.dtype(), size(a), at.ndim() - 1, at.ndim());
  return hit.where(rows, 0).sum(-1, {.dtype = dtype() == DType::Bool ? i32 : dtype()}).cast(dtype());
}

Tensor Tensor::scatter(std::int64_t axis, const Tensor& index, const Operand& src) const {
  constexpr const char* kName = "scatter";
  Tensor from = src.tensor() ? *src.tensor() : index.full_like(src.number(), {.dtype = dtype()});
  int a = check_along(kName, *this, axis, index, &from);
  if (!index.numel().is_symbolic() && index.numel() == 0) return *this + full_like(0, {.dtype = dtype()});
  Tensor winner = from_end(Targets(to_end(index, a), size(a)).last(), a);
  Tensor value = cut_to(from, index.shape(), -1).gather(a, winner);
  return pg::where(fill_to(winner >= 0, shape()), fill_to(value, shape()), *this);
}

Tensor Tensor::index_add(std::int64_t axis, const Tensor& index, const Tensor& src) const {
  constexpr const char* kName = "index_add";
  int a;
  {
    GraphScope scope;
    a = axis_of(kName, axis, detail::read(*this, kName).shape());
  }
  if (!is_int(index.dtype()))
    fail<IndexError>(kName, "the index is {}: indices are integers", detail::text(index.dtype()));
  Shape wanted = shape();
  if (index.ndim() == 1) wanted[a] = index.size(0);
  if (index.ndim() != 1 || !(src.shape() == wanted))
    fail<ShapeError>(kName, "an index of shape {} and a source of shape {} along axis {} of {}",
                     index.shape().str(), src.shape().str(), a, shape().str());
  if (src.dtype() != dtype())
    fail<DTypeError>(kName, "the source is {}, the target {}", detail::text(src.dtype()),
                     detail::text(dtype()));
  if (!index.numel().is_symbolic() && index.numel() == 0) return value_copy(*this, kName);
  Way way = way_of(Scatter::Sum, dtype());
  std::vector<std::int64_t> front{a};
  for (int i = 0; i < ndim(); ++i)
    if (i != a) front.push_back(i);
  Targets targets(index, size(a));
  Tensor came = targets.combined_rows(src.permute(front).cast(way.dtype), way.how);
  std::vector<std::int64_t> back(front.size());
  for (std::size_t i = 0; i < front.size(); ++i)
    back[static_cast<std::size_t>(front[i])] = static_cast<std::int64_t>(i);
  return (cast(way.dtype) + came.permute(back)).cast(dtype());
}

Tensor Tensor::scatter_reduce(std::int64_t axis, const Tensor& index, const Tensor& src, Scatter reduce,
                              const ScatterOptions& options) const {
  constexpr const char* kName = "scatter_reduce";
  int a = check_along(kName, *this, axis, index, &src);
  Targets targets(to_end(index, a), size(a));
  Way way = way_of(reduce, dtype());
  Tensor from = to_end(cut_to(src, index.shape(), -1), a).cast(way.dtype), times;
  auto placed = [&](const Tensor& x) { return fill_to(from_end(x, a), shape()); };
  Tensor hit = placed(targets.hit());
  if (reduce == Scatter::Mean)
    times = placed(targets.combined(to_end(index, a).ones_like({.dtype = i32}), combine(Op::Add, i32)));
  return joined(*this, hit, placed(targets.combined(from, way.how)), times, way, reduce,
                options.include_self);
}

}  // namespace pg
