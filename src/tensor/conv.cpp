// Windows over trailing axes, and what slides them: convolution, pooling, unfold, interpolate.
#include <algorithm>
#include <cmath>

#include "tensor/ops.h"

namespace pg {
namespace detail {
namespace {

using Extents = absl::InlinedVector<std::int64_t, 4>;

Extents extents(const char* op, const char* what, const Ints& given, int n, std::int64_t least) {
  if (given.size() != 1 && given.size() != static_cast<std::size_t>(n))
    fail<ShapeError>(op, "{} numbers as {} for {} spatial axes", given.size(), what, n);
  Extents out;
  for (int i = 0; i < n; ++i) {
    out.push_back(given[given.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
    if (out.back() < least) fail<ValueError>(op, "a {} of {}", what, out.back());
  }
  return out;
}

struct Padding {
  std::int64_t before, after;
};
absl::InlinedVector<Padding, 4> paddings(const char* op, const Ints& given, int n) {
  absl::InlinedVector<Padding, 4> out;
  auto size = given.size(), count = static_cast<std::size_t>(n);
  if (size != 1 && size != count && size != 2 * count)
    fail<ShapeError>(op, "{} numbers as padding for {} spatial axes", size, n);
  for (std::size_t i = 0; i < count; ++i) {
    if (size == 2 * count && size != 1)
      out.push_back({given[2 * i], given[2 * i + 1]});
    else
      out.push_back({given[size == 1 ? 0 : i], given[size == 1 ? 0 : i]});
  }
  return out;
}

// Windows over the trailing axes, one for each size: (..., i) becomes (..., o, k), all o before all k, where
// out[o][k] = x[o*stride + k*dilation].
//
// By shearing: every row k of a k-fold repetition is padded in front and behind so that cutting the flat
// whole into rows that are longer by the dilation moves row k by k*dilation. Both this and its transpose
// (what a gradient needs) come down to indices without division, because no element of a row ever crosses
// into the next.
Ref windows(Ref x, const Extents& size, const Extents& stride, const Extents& dilation) {
  Ref shape = shape_of(x);
  int n = static_cast<int>(size.size()), lead = rank(shape) - n;
  // Pads trailing pairs (k, length) to other lengths. Shapes below hold the leading axes, then pairs.
  Sizes front;
  for (int i = 0; i < lead; ++i) front.push_back(dim(shape, i));
  auto with = [&](auto each, std::size_t per) {
    Sizes s = front;
    for (int i = 0; i < n; ++i)
      for (std::size_t j = 0; j < per; ++j) s.push_back(each(static_cast<std::size_t>(i), j));
    return shape_of_sizes(s);
  };
  auto zeros_with = [&](auto each, std::size_t per) {
    Sizes s(static_cast<std::size_t>(lead), idx(0));
    for (int i = 0; i < n; ++i)
      for (std::size_t j = 0; j < per; ++j) s.push_back(each(static_cast<std::size_t>(i), j));
    return shape_of_sizes(s);
  };
  Extents in, out, steps;  // length; windows at stride 1; windows
  for (int i = 0; i < n; ++i) {
    auto a = static_cast<std::size_t>(i);
    in.push_back(dim(shape, lead + i).i());
    out.push_back(in[a] - dilation[a] * (size[a] - 1));
    steps.push_back((out[a] - 1) / stride[a] + 1);
  }
  // Windows that lie side by side are a reshape.
  bool tiled = true;
  for (std::size_t a = 0; a < size.size(); ++a)
    tiled &= (size[a] == stride[a] && dilation[a] == 1) || size[a] == 1;
  Ref y;
  absl::InlinedVector<std::int64_t, 8> order;
  for (int i = 0; i < lead; ++i) order.push_back(i);
  if (tiled) {
    Ref zero = zeros_with([&](std::size_t, std::size_t) { return idx(0); }, 1);
    auto span = [&](std::size_t a) { return size[a] == 1 ? out[a] : steps[a] * size[a]; };
    y = shrink(x, with([&](std::size_t a, std::size_t) { return idx(span(a)); }, 1), zero);
    y = reshape(
        y, with([&](std::size_t a,
                    std::size_t j) { return idx(j == 0 ? (size[a] == 1 ? out[a] : steps[a]) : size[a]); },
                2));
    for (std::size_t a = 0; a < size.size(); ++a) in[a] = size[a] == 1 ? out[a] : steps[a];
    // A window of one still has its stride.
    bool strided = false;
    for (std::size_t a = 0; a < size.size(); ++a) strided |= in[a] != steps[a];
    if (strided) {
      auto step = [&](std::size_t a) { return in[a] == steps[a] ? 1 : stride[a]; };
      Ref none = zeros_with([&](std::size_t, std::size_t) { return idx(0); }, 2);
      Ref wide =
          with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? steps[a] * step(a) : size[a]); }, 2);
      Ref cut =
          with([&](std::size_t a,
                   std::size_t j) { return idx(j == 0 ? std::min(in[a], steps[a] * step(a)) : size[a]); },
               2);
      y = pad(shrink(y, cut, none), wide, none);
      y = reshape(y, with(
                         [&](std::size_t a, std::size_t j) {
                           return idx(j == 0 ? steps[a] : j == 1 ? step(a) : size[a]);
                         },
                         3));
      y = shrink(
          y,
          with([&](std::size_t a, std::size_t j) { return idx(j == 0   ? steps[a]
                                                              : j == 1 ? 1
                                                                       : size[a]); },
               3),
          zeros_with([&](std::size_t, std::size_t) { return idx(0); }, 3));
      y = reshape(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? steps[a] : size[a]); }, 2));
    }
    for (int i = 0; i < n; ++i) order.push_back(lead + 2 * i);
    for (int i = 0; i < n; ++i) order.push_back(lead + 2 * i + 1);
    return permute(y, order);
  }
  auto row = [&](std::size_t a) { return out[a] + 2 * (size[a] - 1) * dilation[a]; };
  auto short_row = [&](std::size_t a) { return size[a] == 1 ? row(a) : row(a) - dilation[a]; };
  auto shift = [&](std::size_t a) { return (size[a] - 1) * dilation[a]; };
  Ref none2 = zeros_with([&](std::size_t, std::size_t) { return idx(0); }, 2);
  y = reshape(x, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? 1 : in[a]); }, 2));
  y = expand(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : in[a]); }, 2));
  y = pad(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : short_row(a)); }, 2),
          none2);
  y = reshape(y, with([&](std::size_t a, std::size_t) { return idx(size[a] * short_row(a)); }, 1));
  y = pad(y, with([&](std::size_t a, std::size_t) { return idx(size[a] * row(a)); }, 1),
          zeros_with([&](std::size_t a, std::size_t) { return idx(size[a] == 1 ? 0 : shift(a)); }, 1));
  y = reshape(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : row(a)); }, 2));
  y = shrink(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : out[a]); }, 2),
             zeros_with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? 0 : shift(a)); }, 2));
  bool strided = false;
  for (std::size_t a = 0; a < size.size(); ++a) strided |= stride[a] != 1;
  if (strided) {
    Ref wide =
        with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : steps[a] * stride[a]); }, 2);
    Ref cut =
        with([&](std::size_t a,
                 std::size_t j) { return idx(j == 0 ? size[a] : std::min(out[a], steps[a] * stride[a])); },
             2);
    y = pad(shrink(y, cut, none2), wide, none2);
    y = reshape(y, with(
                       [&](std::size_t a, std::size_t j) {
                         return idx(j == 0 ? size[a] : j == 1 ? steps[a] : stride[a]);
                       },
                       3));
    y = shrink(
        y,
        with([&](std::size_t a, std::size_t j) { return idx(j == 0   ? size[a]
                                                            : j == 1 ? steps[a]
                                                                     : 1); }, 3),
        zeros_with([&](std::size_t, std::size_t) { return idx(0); }, 3));
    y = reshape(y, with([&](std::size_t a, std::size_t j) { return idx(j == 0 ? size[a] : steps[a]); }, 2));
  }
  for (int i = 0; i < n; ++i) order.push_back(lead + 2 * i + 1);
  for (int i = 0; i < n; ++i) order.push_back(lead + 2 * i);
  return permute(y, order);
}

// The spatial axes must be numbers: window arithmetic is done here.
void check_spatial(const char* op, Ref shape, int n) {
  for (int i = rank(shape) - n; i < rank(shape); ++i)
    if (!dim(shape, i).is_const()) fail<ShapeError>(op, "the spatial axes of {} are symbolic", text(shape));
}

Ref pad_spatial(Ref x, std::span<const Padding> padding) {
  Ref shape = shape_of(x);
  int lead = rank(shape) - static_cast<int>(padding.size());
  Sizes cut = sizes_of(shape), from(cut.size(), idx(0)), sizes, before(from);
  for (std::size_t i = 0; i < padding.size(); ++i) {
    auto a = static_cast<std::size_t>(lead) + i;
    std::int64_t drop_before = std::max<std::int64_t>(0, -padding[i].before),
                 drop_after = std::max<std::int64_t>(0, -padding[i].after);
    cut[a] = cut[a] - idx(drop_before + drop_after);
    from[a] = idx(drop_before);
    before[a] = idx(std::max<std::int64_t>(0, padding[i].before));
  }
  sizes = cut;
  for (std::size_t i = 0; i < padding.size(); ++i) {
    auto a = static_cast<std::size_t>(lead) + i;
    sizes[a] = sizes[a] + before[a] + idx(std::max<std::int64_t>(0, padding[i].after));
  }
  return pad(shrink(x, shape_of_sizes(cut), shape_of_sizes(from)), shape_of_sizes(sizes),
             shape_of_sizes(before));
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::conv2d(const Tensor& weight, const ConvOptions& options) const {
  return conv2d(weight, Tensor(), options);
}

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& options) const {
  constexpr const char* kName = "conv";
  GraphScope scope;
  Value x = detail::read(*this, kName), w = detail::read(weight, kName);
  Ref sx = x.shape(), sw = w.shape();
  int n = rank(sw) - 2;
  std::int64_t groups = options.groups;
  if (n < 1 || rank(sx) != n + 2)
    fail<ShapeError>(
        kName,
        "an input of shape {} and a weight of shape {}: both are (batch or out, channels, spatial axes...)",
        detail::text(sx), detail::text(sw));
  if (!dim(sx, 1).is_const() || groups < 1 || !is_concrete(sw) || dim(sx, 1).i() != groups * dims(sw)[1] ||
      dims(sw)[0] % groups)
    fail<ShapeError>(kName, "an input of shape {}, a weight of shape {} and {} groups do not fit",
                     detail::text(sx), detail::text(sw), groups);
  check_spatial(kName, sx, n);
  Extents stride = extents(kName, "stride", options.stride, n, 1),
          dilation = extents(kName, "dilation", options.dilation, n, 1);
  auto padding = paddings(kName, options.padding, n);
  Extents size;
  for (int i = 0; i < n; ++i) size.push_back(dims(sw)[static_cast<std::size_t>(2 + i)]);
  for (int i = 0; i < n; ++i) {
    auto a = static_cast<std::size_t>(i);
    std::int64_t length = dim(sx, 2 + i).i() + padding[a].before + padding[a].after;
    if (size[a] < 1 || length < dilation[a] * (size[a] - 1) + 1)
      fail<ShapeError>(kName, "a window of {} does not fit into axis {} of {}", detail::text(sw), i + 2,
                       detail::text(sx));
  }
  DType out = options.dtype != DType::Void ? options.dtype : strong(promote(x.dtype(), w.dtype()));
  DType wide = accumulator(out);
  std::int64_t channels = dims(sw)[1], filters = dims(sw)[0] / groups;
  Ref y = windows(pad_spatial(pg::cast(pg::cast(x.node, out), wide), padding), size, stride, dilation);
  // (batch, groups, 1, channels, o..., k...) * (1, groups, filters, channels, 1..., k...), summed up over
  // channels and k.
  Ref sy = shape_of(y);
  Sizes left{dim(sy, 0), idx(groups), idx(1), idx(channels)},
      right{idx(1), idx(groups), idx(filters), idx(channels)}, result{dim(sy, 0), idx(groups * filters)};
  for (int i = 0; i < n; ++i) {
    left.push_back(dim(sy, 2 + i));
    right.push_back(idx(1));
    result.push_back(dim(sy, 2 + i));
  }
  std::uint64_t summed = 1u << 3;
  for (int i = 0; i < n; ++i) {
    left.push_back(idx(size[static_cast<std::size_t>(i)]));
    right.push_back(idx(size[static_cast<std::size_t>(i)]));
    summed |= std::uint64_t{1} << (4 + n + i);
  }
  Ref product = pg::reshape(y, shape_of_sizes(left)) *
                pg::reshape(pg::cast(pg::cast(w.node, out), wide), shape_of_sizes(right));
  Ref sum = pg::cast(pg::reshape(pg::reduce(product, Op::Add, summed), shape_of_sizes(result)), out);
  Tensor r = computed(sum, x.tracked || w.tracked, detail::device_of(kName, x, w));
  if (!bias.defined()) return r;
  Ref sb = detail::read(bias, kName).shape();
  if (rank(sb) != 1 || !same(dim(sb, 0), result[1]))
    fail<ShapeError>(kName, "a bias of shape {} for {} channels", detail::text(sb), groups * filters);
  Sizes along(static_cast<std::size_t>(n + 1), idx(1));
  along[0] = result[1];
  Tensor b = reshaped(bias, shape_of_sizes(along));
  return r + (options.dtype != DType::Void ? b.cast(out) : b);
}

Tensor Tensor::conv_transpose2d(const Tensor& weight, const ConvTransposeOptions& options) const {
  return conv_transpose2d(weight, Tensor(), options);
}

// A convolution with the flipped window, in and out swapped, of the input with stride - 1 zeros between its
// elements.
Tensor Tensor::conv_transpose2d(const Tensor& weight, const Tensor& bias,
                                const ConvTransposeOptions& options) const {
  constexpr const char* kName = "conv_transpose";
  GraphScope scope;
  Ref sx = detail::read(*this, kName).shape(), sw = detail::read(weight, kName).shape();
  int n = rank(sw) - 2;
  std::int64_t groups = options.groups;
  if (n < 1 || rank(sx) != n + 2)
    fail<ShapeError>(
        kName,
        "an input of shape {} and a weight of shape {}: both are (batch or in, channels, spatial axes...)",
        detail::text(sx), detail::text(sw));
  if (!is_concrete(sw) || groups < 1 || !dim(sx, 1).is_const() || dim(sx, 1).i() != dims(sw)[0] ||
      dims(sw)[0] % groups)
    fail<ShapeError>(kName, "an input of shape {}, a weight of shape {} and {} groups do not fit",
                     detail::text(sx), detail::text(sw), groups);
  check_spatial(kName, sx, n);
  Extents stride = extents(kName, "stride", options.stride, n, 1),
          dilation = extents(kName, "dilation", options.dilation, n, 1);
  Extents extra = extents(kName, "output padding", options.output_padding, n, 0);
  auto padding = paddings(kName, options.padding, n);
  std::int64_t in = dims(sw)[0], out = dims(sw)[1];
  // (in, out / groups, k...) to (out, in / groups, k...).
  Shape grouped{groups, in / groups, out}, swapped{groups * out, in / groups};
  std::vector<std::int64_t> order{0, 2, 1}, flips;
  for (int i = 0; i < n; ++i) {
    grouped.push_back(dims(sw)[static_cast<std::size_t>(2 + i)]);
    swapped.push_back(grouped.back());
    order.push_back(3 + i);
    flips.push_back(3 + i);
  }
  Tensor w = weight.reshape(grouped).permute(order).flip(flips).reshape(swapped);
  Tensor x = *this;
  if (std::any_of(stride.begin(), stride.end(), [](auto s) { return s > 1; })) {
    Shape apart{size(0), size(1)}, flat{size(0), size(1)};
    Pairs widths{{0, 0}, {0, 0}}, bounds{{0, size(0)}, {0, size(1)}};
    for (int i = 0; i < n; ++i) {
      auto a = static_cast<std::size_t>(i);
      std::int64_t length = size(2 + i);
      apart.push_back(length);
      apart.push_back(1);
      widths.insert(widths.end(), {{0, 0}, {0, stride[a] - 1}});
      flat.push_back(length * stride[a]);
      bounds.emplace_back(0, std::max<std::int64_t>(0, length * stride[a] - (stride[a] - 1)));
    }
    x = x.reshape(apart).pad(widths).reshape(flat).shrink(bounds);
  }
  std::vector<std::int64_t> around, apart;
  for (int i = 0; i < n; ++i) {
    auto a = static_cast<std::size_t>(i);
    std::int64_t reach = (dims(sw)[static_cast<std::size_t>(2 + i)] - 1) * dilation[a];
    around.push_back(reach - padding[a].before);
    around.push_back(reach - padding[a].after + extra[a]);
    apart.push_back(dilation[a]);
  }
  return x.conv2d(w, bias, {.padding = around, .dilation = apart, .groups = groups});
}

// --- pooling
// -------------------------------------------------------------------------------------------------------

namespace {

struct Pool {
  int n;
  Extents size, stride, dilation;
  absl::InlinedVector<Padding, 4> padding;
  std::uint64_t mask;  // of the window's axes in the windows
};

Pool pool_of(const char* op, const Tensor& x, const Ints& kernel, const PoolOptions& options) {
  Pool p;
  Ref shape = read(x, op).shape();
  p.n = kernel.is_number() ? 2 : static_cast<int>(kernel.size());
  if (rank(shape) < p.n) fail<ShapeError>(op, "shape {} has fewer axes than the kernel", text(shape));
  check_spatial(op, shape, p.n);
  p.size = extents(op, "kernel", kernel, p.n, 1);
  p.stride = options.stride.empty() ? p.size : extents(op, "stride", options.stride, p.n, 1);
  p.dilation = extents(op, "dilation", options.dilation, p.n, 1);
  p.padding = paddings(op, options.padding, p.n);
  p.mask = 0;
  for (int i = 0; i < p.n; ++i) {
    auto a = static_cast<std::size_t>(i);
    std::int64_t length = dim(shape, rank(shape) - p.n + i).i(), reach = p.dilation[a] * (p.size[a] - 1) + 1;
    std::int64_t padded = length + p.padding[a].before + p.padding[a].after;
    if (padded < reach)
      fail<ShapeError>(op, "a window of {} does not fit into axis {} of {}", p.size[a], rank(shape) - p.n + i,
                       text(shape));
    if (options.ceil_mode) {
      std::int64_t steps = (padded - reach + p.stride[a] - 1) / p.stride[a] + 1;
      // The last one must begin within the input or the padding before it.
      if ((steps - 1) * p.stride[a] >= length + p.padding[a].before) --steps;
      p.padding[a].after += std::max<std::int64_t>(0, (steps - 1) * p.stride[a] + reach - padded);
    }
    p.mask |= std::uint64_t{1} << (rank(shape) + i);
  }
  return p;
}

Tensor pool_windows(const char* op, const Tensor& x, const Pool& p, std::span<const Padding> padding) {
  Value v = read(x, op);
  return computed(windows(pad_spatial(v.node, padding), p.size, p.stride, p.dilation), v.tracked, v.device);
}

}  // namespace

namespace {

// The windows of x, with the least value around it.
Tensor windows_for_max(const char* op, const Tensor& x, const Pool& p) {
  bool pads = std::any_of(p.padding.begin(), p.padding.end(), [](Padding e) { return e.before || e.after; });
  Tensor padded = x;
  if (pads) {
    Pairs widths(static_cast<std::size_t>(x.ndim() - p.n), {0, 0});
    for (Padding e : p.padding) widths.emplace_back(e.before, e.after);
    Number least =
        x.is_floating_point() ? Number(-std::numeric_limits<double>::infinity()) : Number(int_min(x.dtype()));
    Tensor inside = x.ones_like({.dtype = DType::Bool}).pad(widths);
    padded = inside.where(x.pad(widths), least);
  }
  absl::InlinedVector<Padding, 4> none(p.padding.size(), Padding{0, 0});
  return pool_windows(op, padded, p, none);
}

}  // namespace

Tensor Tensor::max_pool2d(const Ints& kernel, const PoolOptions& options) const {
  constexpr const char* kName = "max_pool";
  GraphScope scope;
  Pool p = pool_of(kName, *this, kernel, options);
  return drop_axes(reduce_axes(kName, windows_for_max(kName, *this, p), Op::Max, p.mask), p.mask);
}

std::pair<Tensor, Tensor> Tensor::max_pool2d_with_indices(const Ints& kernel,
                                                          const PoolOptions& options) const {
  constexpr const char* kName = "max_pool";
  GraphScope scope;
  Pool p = pool_of(kName, *this, kernel, options);
  Tensor in = windows_for_max(kName, *this, p), most = reduce_axes(kName, in, Op::Max, p.mask);
  Shape spatial(std::vector<Dim>(static_cast<std::size_t>(ndim() - p.n), 1));
  Dim count = 1;
  for (int i = ndim() - p.n; i < ndim(); ++i) {
    spatial.push_back(size(i));
    count = count * size(i);
  }
  // Numbered from 1, so that the zeros around them are nowhere.
  Tensor numbers =
      pool_windows(kName, (arange(static_cast<std::int64_t>(count)) + 1).reshape(spatial), p, p.padding);
  Tensor hit = in == most;
  if (is_floating_point()) hit = hit | (in != in);  // NaN wins
  Tensor first = reduce_axes(kName, (hit & (numbers > 0)).where(numbers, int_max(i32)), Op::Min, p.mask);
  return {drop_axes(most, p.mask), drop_axes(first, p.mask) - 1};
}

Tensor Tensor::max_unpool2d(const Tensor& indices, const Ints& kernel, const PoolOptions& options,
                            const Ints& size) const {
  constexpr const char* kName = "max_unpool";
  int n = kernel.is_number() ? 2 : static_cast<int>(kernel.size());
  if (!(indices.shape() == shape()) || ndim() <= n)
    fail<ShapeError>(kName, "indices of shape {} for values of shape {} over {} axes", indices.shape().str(),
                     shape().str(), n);
  Extents window = extents(kName, "kernel", kernel, n, 1);
  Extents stride = options.stride.empty() ? window : extents(kName, "stride", options.stride, n, 1);
  auto padding = paddings(kName, options.padding, n);
  Shape result;
  std::int64_t count = 1;
  for (int i = 0; i < ndim() - n; ++i) result.push_back(this->size(i));
  Shape flat = result;
  if (!size.empty() && size.size() != static_cast<std::size_t>(n))
    fail<ShapeError>(kName, "{} sizes for {} axes", size.size(), n);
  for (int i = 0; i < n; ++i) {
    auto a = static_cast<std::size_t>(i);
    std::int64_t least =
        (this->size(ndim() - n + i) - 1) * stride[a] - padding[a].before - padding[a].after + window[a];
    result.push_back(size.empty() ? least : size[a]);
    count *= size.empty() ? least : size[a];
  }
  flat.push_back(count);
  Tensor values = flatten(ndim() - n), at = indices.flatten(ndim() - n);
  return zeros(flat, {.dtype = dtype()}).scatter(-1, at, values).reshape(result);
}

Tensor Tensor::avg_pool2d(const Ints& kernel, const PoolOptions& options) const {
  constexpr const char* kName = "avg_pool";
  GraphScope scope;
  Pool asked = pool_of(kName, *this, kernel,
                       {.stride = options.stride, .padding = options.padding, .dilation = options.dilation});
  Pool p = pool_of(kName, *this, kernel, options);
  DType t = is_floating_point() ? dtype() : f32, wide = accumulator(t);
  auto total = [&](const Tensor& x, std::span<const Padding> padding) {
    return drop_axes(sum_axes(kName, pool_windows(kName, x, p, padding), p.mask, wide), p.mask);
  };
  Tensor sum = total(cast(wide), p.padding);
  bool pads = false, hangs = false;
  for (std::size_t a = 0; a < p.padding.size(); ++a) {
    pads |= p.padding[a].before || p.padding[a].after;
    hangs |= p.padding[a].after != asked.padding[a].after;
  }
  std::int64_t whole = 1;
  for (std::int64_t k : p.size) whole *= k;
  if (!pads || (options.count_include_pad && !hangs))
    return (sum * (1.0 / static_cast<double>(whole))).cast(t);
  // How many elements of each window count: those inside, or also those in the padding that was asked for.
  Shape spatial;
  for (int i = 0; i < p.n; ++i) {
    auto a = static_cast<std::size_t>(i);
    Dim length = size(ndim() - p.n + i);
    spatial.push_back(options.count_include_pad ? length + asked.padding[a].before + asked.padding[a].after
                                                : length);
  }
  absl::InlinedVector<Padding, 4> around = p.padding;
  if (options.count_include_pad)
    for (std::size_t a = 0; a < around.size(); ++a)
      around[a] = {0, p.padding[a].after - asked.padding[a].after};
  Pool counted = p;
  counted.mask = 0;
  for (int i = 0; i < p.n; ++i) counted.mask |= std::uint64_t{1} << (p.n + i);
  Tensor ones = Tensor::ones(spatial, {.dtype = wide});
  Tensor count =
      drop_axes(sum_axes(kName, pool_windows(kName, ones, p, around), counted.mask, wide), counted.mask);
  return (sum / count).cast(t);
}

Tensor Tensor::unfold(std::int64_t axis, std::int64_t size, std::int64_t step) const {
  constexpr const char* kName = "unfold";
  GraphScope scope;
  Value v = detail::read(*this, kName);
  int a = axis_of(kName, axis, v.shape());
  Ref n = dim(v.shape(), a);
  if (!n.is_const()) fail<ShapeError>(kName, "axis {} of {} is symbolic", axis, detail::text(v.shape()));
  if (size < 1 || step < 1 || size > n.i())
    fail<ValueError>(kName, "windows of {} in steps of {} along axis {} of {}", size, step, axis,
                     detail::text(v.shape()));
  std::vector<std::int64_t> there, back;
  for (int i = 0; i < ndim(); ++i)
    if (i != a) there.push_back(i);
  for (int i = 0; i < ndim(); ++i) back.push_back(i < a ? i : i == a ? ndim() - 1 : i - 1);
  back.push_back(ndim());
  there.push_back(a);
  Ref w = windows(pg::permute(v.node, there), {size}, {step}, {1});
  return computed(pg::permute(w, back), v.tracked, v.device);
}

// Positions of the result in the input are the same for all other axes, so each axis is a table of rows and
// weights.
Tensor Tensor::interpolate(const Ints& size, const InterpolateOptions& options) const {
  constexpr const char* kName = "interpolate";
  int n = static_cast<int>(size.size());
  if (n < 1 || n > ndim()) fail<ShapeError>(kName, "{} sizes for shape {}", n, shape().str());
  Tensor x = as_float(*this, kName);
  for (int i = 0; i < n; ++i) {
    int axis = ndim() - n + i;
    std::int64_t to = size[static_cast<std::size_t>(i)], from = x.size(axis);
    if (to < 1 || from < 1) fail<ShapeError>(kName, "axis {} of {} to size {}", axis, shape().str(), to);
    double ratio = static_cast<double>(from) / static_cast<double>(to);
    Tensor at = arange(to).cast(f32);
    if (options.mode == Interpolation::Linear) {
      at = options.align_corners
               ? (to > 1 ? at * (static_cast<double>(from - 1) / static_cast<double>(to - 1)) : at * 0.0)
               : (at + 0.5) * ratio - 0.5;
      at = at.clamp(0, static_cast<double>(from - 1));
      Shape along(std::vector<Dim>(static_cast<std::size_t>(ndim()), 1));
      along[axis] = to;
      Tensor low = at.floor(), weight = (at - low).reshape(along);
      Tensor a = x.index_select(axis, low.cast(i32)), b = x.index_select(axis, at.ceil().cast(i32));
      x = a.lerp(b, weight.cast(x.dtype()));
    } else {
      at = options.mode == Interpolation::Nearest ? at * ratio : (at + 0.5) * ratio;
      x = x.index_select(axis, at.floor().cast(i32).clamp(0, from - 1));
    }
  }
  return is_floating_point() ? x : x.round().cast(dtype());
}

}  // namespace pg
