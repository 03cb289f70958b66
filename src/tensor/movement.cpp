// Movement: views by reshape, permute, expand, flip, shrink and what is made of them; pad, cat and other
// values.
#include <numeric>

#include "tensor/ops.h"

namespace pg {
namespace detail {

Tensor reshaped(const Tensor& x, Ref shape) {
  return view_of(x, "reshape", [&](Ref n) { return reshape(n, shape); });
}

Tensor drop_axes(const Tensor& x, std::uint64_t axes) {
  GraphScope scope;
  Value v = read(x, "reduce");
  Ref shape = v.shape();
  Sizes sizes;
  for (int i = 0; i < rank(shape); ++i)
    if (!(axes >> i & 1)) sizes.push_back(dim(shape, i));
  return computed(reshape(v.node, shape_of_sizes(sizes)), v.tracked, v.device);
}

Tensor positions(DType t, const Dim& n, int axis, int ndim) {
  GraphScope scope;
  Sizes sizes(static_cast<std::size_t>(ndim), idx(1));
  sizes[static_cast<std::size_t>(axis)] = dim_from(n);
  return computed(reshape(arange_node(t, dim_from(n)), shape_of_sizes(sizes)), false, nullptr);
}

namespace {

// A -1 in the place of one size, worked out from the number of elements.
Sizes infer(const char* op, const Shape& asked, Ref total, const std::string& of) {
  Sizes sizes;
  int unknown = -1;
  Ref known = idx(1);
  for (int i = 0; i < asked.rank(); ++i) {
    const Dim& d = asked[i];
    if (!d.is_symbolic() && d.max() == -1) {
      if (unknown >= 0) fail<ShapeError>(op, "{} leaves more than one size open", asked.str());
      unknown = i;
      sizes.push_back(idx(1));
      continue;
    }
    if (!d.is_symbolic() && d.max() < 0) fail<ShapeError>(op, "{} has a negative size", asked.str());
    sizes.push_back(dim_from(d));
    known = known * sizes.back();
  }
  if (unknown >= 0) {
    if (known.is_const() && total.is_const() && (known.i() == 0 || total.i() % known.i() != 0))
      fail<ShapeError>(op, "{} has {} elements, which do not divide into {}", of, total.i(), asked.str());
    sizes[static_cast<std::size_t>(unknown)] = total / known;
  } else if (known.is_const() && total.is_const() && known.i() != total.i()) {
    fail<ShapeError>(op, "{} has {} elements, {} has {}", of, total.i(), asked.str(), known.i());
  } else if (bound_value(known) != bound_value(total)) {
    fail<ShapeError>(op, "{} and {} differ in their number of elements", of, asked.str());
  }
  return sizes;
}

// Shapes of one pair of bounds for each axis; checks that there are as many.
void check_pairs(const char* op, const Pairs& pairs, Ref shape) {
  if (pairs.size() != static_cast<std::size_t>(rank(shape)))
    fail<ShapeError>(op, "{} pairs for shape {}, which has {} axes", pairs.size(), text(shape), rank(shape));
}

// The box of `sizes` at `offsets`, as a view.
Tensor boxed(const Tensor& x, const char* op, const Sizes& sizes, const Sizes& offsets) {
  Ref shape = shape_of_sizes(sizes), offset = shape_of_sizes(offsets);
  return view_of(x, op, [&](Ref n) { return shrink(n, shape, offset); });
}

// Zeros around a value.
Tensor padded(const Tensor& x, const char* op, const Sizes& before, const Sizes& sizes) {
  Value v = read(x, op);
  return computed(pad(v.node, shape_of_sizes(sizes), shape_of_sizes(before)), v.tracked, v.device);
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::reshape(const Shape& shape) const {
  GraphScope scope;
  Ref from = detail::read(*this, "reshape").shape();
  Sizes sizes = infer("reshape", shape, detail::count(from), detail::text(from));
  return reshaped(*this, shape_of_sizes(sizes));
}

Tensor Tensor::permute(const Axes& order) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "permute").shape();
  absl::InlinedVector<std::int64_t, 8> axes;
  std::uint64_t seen = 0;
  for (std::int64_t axis : order) {
    axes.push_back(axis_of("permute", axis, shape));
    seen |= std::uint64_t{1} << axes.back();
  }
  if (axes.size() != static_cast<std::size_t>(rank(shape)) || seen + 1 != std::uint64_t{1} << rank(shape))
    fail<ShapeError>("permute", "({}) is no order of the axes of {}", fmt::join(order, ", "),
                     detail::text(shape));
  return view_of(*this, "permute", [&](Ref n) { return pg::permute(n, axes); });
}

Tensor Tensor::transpose(std::int64_t axis0, std::int64_t axis1) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "transpose").shape();
  int a = axis_of("transpose", axis0, shape), b = axis_of("transpose", axis1, shape);
  absl::InlinedVector<std::int64_t, 8> axes(static_cast<std::size_t>(rank(shape)));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(a)], axes[static_cast<std::size_t>(b)]);
  return view_of(*this, "transpose", [&](Ref n) { return pg::permute(n, axes); });
}

Tensor Tensor::expand(const Shape& shape) const {
  GraphScope scope;
  Ref from = detail::read(*this, "expand").shape();
  int extra = shape.rank() - rank(from);
  if (extra < 0) fail<ShapeError>("expand", "{} has more axes than {}", detail::text(from), shape.str());
  Sizes sizes;
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim& d = shape[i];
    bool keep = !d.is_symbolic() && d.max() == -1;
    if (i < extra) {
      if (keep) fail<ShapeError>("expand", "{} leaves the size of a new axis open", shape.str());
      sizes.push_back(dim_from(d));
      continue;
    }
    Ref old = dim(from, i - extra);
    sizes.push_back(keep ? old : dim_from(d));
    if (!same(sizes.back(), old) && !old.is_const(1))
      fail<ShapeError>("expand", "{} does not expand to {}", detail::text(from), shape.str());
  }
  Ref to = shape_of_sizes(sizes);
  return view_of(*this, "expand", [&](Ref n) { return pg::expand(n, to); });
}

Tensor Tensor::flip(const Axes& axes) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "flip").shape();
  std::uint64_t mask = axes.empty() ? 0 : axes_of("flip", axes, shape);
  return view_of(*this, "flip", [&](Ref n) { return pg::flip(n, mask); });
}

Tensor Tensor::shrink(const Pairs& bounds) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "shrink").shape();
  check_pairs("shrink", bounds, shape);
  Sizes sizes, offsets;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto& [start, stop] = bounds[i];
    Ref n = dim(shape, static_cast<int>(i));
    if (!start.is_symbolic() && !stop.is_symbolic() &&
        (start.max() < 0 || stop.max() < start.max() || stop.max() > n.hi()))
      fail<ShapeError>("shrink", "{}..{} is no part of axis {} of {}", start.max(), stop.max(), i,
                       detail::text(shape));
    offsets.push_back(dim_from(start));
    sizes.push_back(dim_from(stop - start));
  }
  return boxed(*this, "shrink", sizes, offsets);
}

Tensor Tensor::shrink_to(const Shape& wanted) const {
  Pairs bounds;
  for (int i = 0; i < wanted.rank(); ++i) bounds.emplace_back(0, wanted[i]);
  return shrink(bounds);
}
Tensor Tensor::pad_to(const Shape& wanted, double value) const {
  Shape own = shape();
  bool fits = own.rank() == wanted.rank();
  Pairs widths;
  for (int i = 0; fits && i < wanted.rank(); ++i) {
    fits = wanted[i].max() >= own[i].max();
    widths.emplace_back(0, wanted[i] - own[i]);
  }
  if (!fits) fail<ShapeError>("pad_to", "shape {} to {}", own.str(), wanted.str());
  return pad(widths, {.value = value});
}
Tensor Tensor::pad(const Pairs& widths, const PadOptions& options) const {
  constexpr const char* kName = "pad";
  GraphScope scope;
  Ref shape = detail::read(*this, kName).shape();
  check_pairs(kName, widths, shape);
  // Negative widths cut first.
  Sizes sizes, offsets, before, padded_sizes;
  bool cuts = false, grows = false;
  Tensor x = *this;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    Ref n = dim(shape, static_cast<int>(i));
    auto cut = [](const Dim& d) { return d.is_symbolic() || d.max() >= 0 ? idx(0) : idx(-d.max()); };
    auto grow = [](const Dim& d) {
      return d.is_symbolic() ? dim_from(d) : idx(std::max<std::int64_t>(0, d.max()));
    };
    Ref cut_before = cut(widths[i].first), cut_after = cut(widths[i].second);
    if (cut_before.i() + cut_after.i() > n.hi())
      fail<ShapeError>(kName, "axis {} of {} is too short to cut {}", i, detail::text(shape),
                       cut_before.i() + cut_after.i());
    offsets.push_back(cut_before);
    sizes.push_back(n - cut_before - cut_after);
    before.push_back(grow(widths[i].first));
    Ref after = grow(widths[i].second);
    padded_sizes.push_back(sizes.back() + before.back() + after);
    cuts |= !cut_before.is_const(0) || !cut_after.is_const(0);
    grows |= !before.back().is_const(0) || !after.is_const(0);
  }
  if (cuts) x = boxed(x, kName, sizes, offsets);
  if (!grows) {
    Value v = detail::read(x, kName);
    return computed(v.node, v.tracked, v.device);
  }
  if (options.mode == PadMode::Constant) {
    Tensor zeros = padded(x, kName, before, padded_sizes);
    if (options.value == 0) return zeros;
    Ref inside = pg::pad(full_node(DType::Bool, true, shape_of_sizes(sizes)), shape_of_sizes(padded_sizes),
                         shape_of_sizes(before));
    return pg::where(computed(inside, false, nullptr), zeros,
                     computed(number_const(x.dtype(), options.value), false, nullptr));
  }
  // An axis at a time: pieces of the tensor itself on both sides.
  for (int i = 0; i < x.ndim(); ++i) {
    auto a = static_cast<std::size_t>(i);
    if (!before[a].is_const() || !sizes[a].is_const() || !padded_sizes[a].is_const())
      fail<ShapeError>(kName, "symbolic sizes take only the constant mode");
    std::int64_t n = sizes[a].i(), left = before[a].i(), right = padded_sizes[a].i() - n - left;
    if (!left && !right) continue;
    std::int64_t limit = options.mode == PadMode::Reflect    ? n - 1
                         : options.mode == PadMode::Circular ? n
                                                             : (n ? left + right : -1);
    if (left > limit || right > limit)
      fail<ShapeError>(kName, "axis {} of {} is too short for widths {} and {}", i, detail::text(shape), left,
                       right);
    auto part = [&](std::int64_t start, std::int64_t stop) {
      Pairs bounds;
      for (int k = 0; k < x.ndim(); ++k)
        bounds.emplace_back(k == i ? Dim(start) : Dim(0), k == i ? Dim(stop) : x.size(k));
      return x.shrink(bounds);
    };
    auto wide = [&](const Tensor& edge, std::int64_t k) {
      Shape s = x.shape();
      s[i] = k;
      return edge.expand(s);
    };
    std::vector<Tensor> parts;
    switch (options.mode) {
      case PadMode::Reflect:
        if (left) parts.push_back(part(1, left + 1).flip(i));
        parts.push_back(x);
        if (right) parts.push_back(part(n - 1 - right, n - 1).flip(i));
        break;
      case PadMode::Replicate:
        if (left) parts.push_back(wide(part(0, 1), left));
        parts.push_back(x);
        if (right) parts.push_back(wide(part(n - 1, n), right));
        break;
      default:
        if (left) parts.push_back(part(n - left, n));
        parts.push_back(x);
        if (right) parts.push_back(part(0, right));
    }
    x = cat(parts, i);
  }
  return x;
}

// --- made of these
// -------------------------------------------------------------------------------------------------

Tensor Tensor::flatten(std::int64_t start, std::int64_t end) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "flatten").shape();
  if (rank(shape) == 0) return reshape({1});
  int a = axis_of("flatten", start, shape), b = axis_of("flatten", end, shape);
  if (a > b) fail<IndexError>("flatten", "axis {} comes after axis {}", start, end);
  Sizes sizes;
  for (int i = 0; i < rank(shape); ++i) {
    if (i > a && i <= b)
      sizes.back() = sizes.back() * dim(shape, i);
    else
      sizes.push_back(dim(shape, i));
  }
  return reshaped(*this, shape_of_sizes(sizes));
}

Tensor Tensor::unflatten(std::int64_t axis, const Shape& sizes) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "unflatten").shape();
  int a = axis_of("unflatten", axis, shape);
  Sizes inner =
      infer("unflatten", sizes, dim(shape, a), fmt::format("axis {} of {}", a, detail::text(shape)));
  Sizes out = sizes_of(shape);
  out.erase(out.begin() + a);
  out.insert(out.begin() + a, inner.begin(), inner.end());
  return reshaped(*this, shape_of_sizes(out));
}

Tensor Tensor::squeeze() const {
  GraphScope scope;
  Ref shape = detail::read(*this, "squeeze").shape();
  Sizes sizes;
  for (Ref d : sizes_of(shape))
    if (!d.is_const(1)) sizes.push_back(d);
  return reshaped(*this, shape_of_sizes(sizes));
}

Tensor Tensor::squeeze(std::int64_t axis) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "squeeze").shape();
  int a = axis_of("squeeze", axis, shape);
  Sizes sizes = sizes_of(shape);
  if (sizes[static_cast<std::size_t>(a)].is_const(1)) sizes.erase(sizes.begin() + a);
  return reshaped(*this, shape_of_sizes(sizes));
}

Tensor Tensor::unsqueeze(std::int64_t axis) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "unsqueeze").shape();
  Sizes sizes = sizes_of(shape);
  sizes.insert(sizes.begin() + place_of("unsqueeze", axis, shape), idx(1));
  return reshaped(*this, shape_of_sizes(sizes));
}

std::vector<Tensor> Tensor::split(const std::vector<std::int64_t>& sizes, std::int64_t axis) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "split").shape();
  int a = axis_of("split", axis, shape);
  Ref n = dim(shape, a);
  std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (!n.is_const(static_cast<double>(total)))
    fail<ShapeError>("split", "the sizes ({}) sum up to {}, axis {} of {} does not", fmt::join(sizes, ", "),
                     total, a, detail::text(shape));
  std::vector<Tensor> out;
  Sizes part = sizes_of(shape), offset(part.size(), idx(0));
  std::int64_t at = 0;
  for (std::int64_t size : sizes) {
    part[static_cast<std::size_t>(a)] = idx(size);
    offset[static_cast<std::size_t>(a)] = idx(at);
    out.push_back(boxed(*this, "split", part, offset));
    at += size;
  }
  return out;
}

std::vector<Tensor> Tensor::split(std::int64_t size, std::int64_t axis) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "split").shape();
  Ref n = dim(shape, axis_of("split", axis, shape));
  if (!n.is_const()) fail<ShapeError>("split", "axis {} of {} is symbolic", axis, detail::text(shape));
  if (size <= 0) fail<ValueError>("split", "pieces of size {}", size);
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = n.i(); left > 0; left -= size) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split(sizes, axis);
}

std::vector<Tensor> Tensor::chunk(std::int64_t n, std::int64_t axis) const {
  if (n <= 0) fail<ValueError>("chunk", "{} pieces", n);
  std::int64_t length = size(axis);
  return split(std::max<std::int64_t>(1, (length + n - 1) / n), axis);
}

std::vector<Tensor> Tensor::unbind(std::int64_t axis) const {
  std::vector<Tensor> out;
  GraphScope scope;
  Ref shape = detail::read(*this, "unbind").shape();
  int a = axis_of("unbind", axis, shape);
  if (!dim(shape, a).is_const())
    fail<ShapeError>("unbind", "axis {} of {} is symbolic", axis, detail::text(shape));
  if (dim(shape, a).is_const(0)) return out;
  for (const Tensor& t : split(std::int64_t{1}, a)) out.push_back(t.squeeze(a));
  return out;
}

// Rows of length n + 1 turn a diagonal into a column.
Tensor Tensor::diagonal(std::int64_t offset, std::int64_t axis0, std::int64_t axis1) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "diagonal").shape();
  int a = axis_of("diagonal", axis0, shape), b = axis_of("diagonal", axis1, shape);
  if (a == b) fail<IndexError>("diagonal", "axes {} and {} are the same", axis0, axis1);
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank(shape); ++i)
    if (i != a && i != b) order.push_back(i);
  order.push_back(a);
  order.push_back(b);
  Tensor x = permute(order);
  std::int64_t rows = x.size(-2), columns = x.size(-1);
  std::int64_t top = std::max<std::int64_t>(0, -offset), left = std::max<std::int64_t>(0, offset);
  std::int64_t n = std::max<std::int64_t>(0, std::min(rows - top, columns - left));
  Pairs bounds;
  for (int i = 0; i + 2 < x.ndim(); ++i) bounds.emplace_back(0, x.size(i));
  bounds.emplace_back(std::min(top, rows), std::min(top, rows) + n);
  bounds.emplace_back(std::min(left, columns), std::min(left, columns) + n);
  x = x.shrink(bounds);
  if (n <= 1)
    return x.reshape([&] {
      Shape s = x.shape();
      s.erase(-1);
      return s;
    }());
  // (n, n) as n*n - 1 = (n - 1) rows of n + 1 begins with the diagonal but for its last element; taken with
  // step n + 1 from the flat n*n the last one comes along.
  Shape flat = x.shape();
  flat.erase(-1);
  flat[-1] = n * n;
  return x.reshape(flat).at(std::vector<Index>{ellipsis, Slice{.step = n + 1}});
}

Tensor Tensor::diag() const {
  if (ndim() != 1) fail<ShapeError>("diag", "takes one axis, not shape {}", shape().str());
  Dim n = size(0);
  return (positions(i32, n, 0, 2) == positions(i32, n, 1, 2))
      .where(unsqueeze(-1), zeros_like().unsqueeze(-1));
}

Tensor Tensor::repeat(const Axes& repeats) const {
  GraphScope scope;
  Value v = detail::read(*this, "repeat");
  Sizes sizes = sizes_of(v.shape()), flat, wide, out;
  if (repeats.size() < sizes.size())
    fail<ShapeError>("repeat", "({}) has fewer numbers than {} has axes", fmt::join(repeats, ", "),
                     detail::text(v.shape()));
  sizes.insert(sizes.begin(), repeats.size() - sizes.size(), idx(1));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (repeats[i] < 0) fail<ValueError>("repeat", "{} repeats", repeats[i]);
    flat.insert(flat.end(), {idx(1), sizes[i]});
    wide.insert(wide.end(), {idx(repeats[i]), sizes[i]});
    out.push_back(sizes[i] * idx(repeats[i]));
  }
  Ref r = pg::reshape(pg::expand(pg::reshape(v.node, shape_of_sizes(flat)), shape_of_sizes(wide)),
                      shape_of_sizes(out));
  return computed(r, v.tracked, v.device);
}

Tensor Tensor::repeat_interleave(std::int64_t repeats) const {
  return flatten().repeat_interleave(repeats, 0);
}

Tensor Tensor::repeat_interleave(std::int64_t repeats, std::int64_t axis) const {
  GraphScope scope;
  Value v = detail::read(*this, "repeat_interleave");
  int a = axis_of("repeat_interleave", axis, v.shape());
  if (repeats < 0) fail<ValueError>("repeat_interleave", "{} repeats", repeats);
  Sizes flat = sizes_of(v.shape()), out = flat;
  out[static_cast<std::size_t>(a)] = out[static_cast<std::size_t>(a)] * idx(repeats);
  flat.insert(flat.begin() + a + 1, idx(1));
  Sizes wide = flat;
  wide[static_cast<std::size_t>(a) + 1] = idx(repeats);
  Ref r = pg::reshape(pg::expand(pg::reshape(v.node, shape_of_sizes(flat)), shape_of_sizes(wide)),
                      shape_of_sizes(out));
  return computed(r, v.tracked, v.device);
}

Tensor Tensor::roll(const Axes& shifts, const Axes& axes) const {
  if (axes.empty()) {
    if (shifts.size() != 1) fail<ValueError>("roll", "{} shifts without axes", shifts.size());
    return ndim() == 1 ? roll(shifts, 0) : flatten().roll(shifts, 0).reshape(shape());
  }
  if (shifts.size() != axes.size())
    fail<ValueError>("roll", "{} shifts for {} axes", shifts.size(), axes.size());
  Tensor x = *this;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t n = x.size(axes[i]), k = n ? floor_mod(shifts[i], n) : 0;
    if (!k) continue;
    auto parts = x.split(std::vector<std::int64_t>{n - k, k}, axes[i]);
    x = cat({parts[1], parts[0]}, axes[i]);
  }
  GraphScope scope;
  Value v = detail::read(x, "roll");
  return x.impl() == impl() ? computed(v.node, v.tracked, v.device) : x;
}

Tensor Tensor::tril(std::int64_t diagonal) const {
  if (ndim() < 2) fail<ShapeError>("tril", "takes matrices, not shape {}", shape().str());
  Tensor keep = positions(i32, size(-1), 1, 2) <= positions(i32, size(-2), 0, 2) + diagonal;
  return keep.where(*this, full_like(0, {.dtype = dtype()}));
}

Tensor Tensor::triu(std::int64_t diagonal) const {
  if (ndim() < 2) fail<ShapeError>("triu", "takes matrices, not shape {}", shape().str());
  Tensor keep = positions(i32, size(-1), 1, 2) >= positions(i32, size(-2), 0, 2) + diagonal;
  return keep.where(*this, full_like(0, {.dtype = dtype()}));
}

// --- several tensors
// -----------------------------------------------------------------------------------------------

Tensor cat(TensorList tensors, std::int64_t axis) {
  constexpr const char* kName = "cat";
  GraphScope scope;
  auto list = tensors.span();
  if (list.empty()) fail<ValueError>(kName, "no tensors");
  std::vector<Value> values;
  for (const Tensor& t : list) values.push_back(detail::read(t, kName));
  Value all = values[0];
  Ref first = all.shape();
  int a = axis_of(kName, axis, first);
  DType t = all.dtype();
  for (const Value& v : values) {
    Ref s = v.shape();
    bool fits = rank(s) == rank(first);
    for (int i = 0; fits && i < rank(s); ++i) fits = i == a || same(dim(s, i), dim(first, i));
    if (!fits) fail<ShapeError>(kName, "shapes {} and {} differ besides axis {}", text(first), text(s), a);
    all.device = device_of(kName, all, v);
    all.tracked |= v.tracked;
    t = promote(t, v.dtype());
  }
  t = strong(t);
  std::vector<Ref> parts;
  for (Value& v : values)
    if (!dim(v.shape(), a).is_const(0)) parts.push_back(cast(v.node, t));
  if (parts.empty()) parts.push_back(cast(values[0].node, t));
  return computed(pg::cat(parts, a), all.tracked, all.device);
}

Tensor stack(TensorList tensors, std::int64_t axis) {
  constexpr const char* kName = "stack";
  GraphScope scope;
  auto list = tensors.span();
  if (list.empty()) fail<ValueError>(kName, "no tensors");
  Ref first = detail::read(list[0], kName).shape();
  std::vector<Tensor> parts;
  int a = place_of(kName, axis, first);
  for (const Tensor& t : list) {
    Ref s = detail::read(t, kName).shape();
    if (!same(s, first)) fail<ShapeError>(kName, "shapes {} and {} differ", text(first), text(s));
    parts.push_back(t.unsqueeze(a));
  }
  return cat(parts, a);
}

std::vector<Tensor> meshgrid(TensorList tensors) {
  auto list = tensors.span();
  Shape grid;
  for (const Tensor& t : list) {
    if (t.ndim() > 1)
      fail<ShapeError>("meshgrid", "takes tensors of one axis, not shape {}", t.shape().str());
    grid.push_back(t.ndim() ? t.size(0) : Dim(1));
  }
  std::vector<Tensor> out;
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    Shape s(std::vector<Dim>(list.size(), 1));
    s[i] = grid[i];
    Tensor part = list[static_cast<std::size_t>(i)].reshape(s).expand(grid);
    out.push_back(part);
  }
  return out;
}

// --- axes by name
// --------------------------------------------------------------------------------------------------

namespace {

// One side of a formula: groups of names.
std::vector<std::vector<std::string>> parse_side(std::string_view formula, std::string_view side) {
  std::vector<std::vector<std::string>> groups;
  bool open = false;
  for (std::size_t i = 0; i < side.size();) {
    char c = side[i];
    if (c == ' ') {
      ++i;
    } else if (c == '(' && !open) {
      open = true;
      groups.emplace_back();
      ++i;
    } else if (c == ')' && open) {
      open = false;
      ++i;
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      std::size_t end = i;
      while (end < side.size() && (std::isalnum(static_cast<unsigned char>(side[end])) || side[end] == '_'))
        ++end;
      if (!open) groups.emplace_back();
      groups.back().emplace_back(side.substr(i, end - i));
      i = end;
    } else {
      fail<ValueError>("rearrange", "unexpected '{}' in \"{}\"", c, formula);
    }
  }
  if (open) fail<ValueError>("rearrange", "a parenthesis is left open in \"{}\"", formula);
  return groups;
}

}  // namespace

Tensor Tensor::rearrange(std::string_view formula,
                         std::initializer_list<std::pair<std::string_view, std::int64_t>> sizes) const {
  constexpr const char* kName = "rearrange";
  auto arrow = formula.find("->");
  if (arrow == std::string_view::npos) fail<ValueError>(kName, "\"{}\" has no ->", formula);
  auto left = parse_side(formula, formula.substr(0, arrow)),
       right = parse_side(formula, formula.substr(arrow + 2));
  if (left.size() != static_cast<std::size_t>(ndim()))
    fail<ShapeError>(kName, "\"{}\" names {} axes, shape {} has {}", formula, left.size(), shape().str(),
                     ndim());
  auto given = [&](const std::string& axis) -> std::int64_t {
    if (axis == "1") return 1;
    for (const auto& [n, size] : sizes)
      if (n == axis) return size;
    return -1;
  };
  Tensor x = *this;
  std::vector<std::string> names;
  for (std::size_t g = left.size(); g-- > 0;) {
    Shape inner;
    for (const std::string& axis : left[g])
      inner.push_back(left[g].size() == 1 && axis != "1" ? Dim(-1) : Dim(given(axis)));
    x = x.unflatten(static_cast<std::int64_t>(g), inner);
  }
  for (auto& group : left) names.insert(names.end(), group.begin(), group.end());
  std::vector<std::int64_t> order;
  Shape out;
  std::vector<bool> used(names.size());
  for (auto& group : right) {
    Dim n = 1;
    for (const std::string& axis : group) {
      if (axis == "1") continue;
      auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), axis) - names.begin());
      if (at == names.size() || used[at])
        fail<ValueError>(kName, "axis {} does not stand once on each side of \"{}\"", axis, formula);
      used[at] = true;
      order.push_back(static_cast<std::int64_t>(at));
      n = n * x.size(static_cast<std::int64_t>(at));
    }
    out.push_back(n);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (used[i]) continue;
    if (names[i] != "1")
      fail<ValueError>(kName, "axis {} does not stand once on each side of \"{}\"", names[i], formula);
    order.push_back(static_cast<std::int64_t>(i));
  }
  return x.permute(order).reshape(out);
}

}  // namespace pg
