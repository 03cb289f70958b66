// Making tensors: from host data, constants, ranges.
#include <cmath>
#include <cstring>

#include "engine/engine.h"
#include "runtime/device.h"
#include "tensor/disk.h"
#include "tensor/ops.h"

namespace pg {

using namespace detail;

namespace {

DType dtype_or(const char* op, DType asked, DType otherwise) {
  if (asked == DType::Void) return otherwise;
  if (is_weak(asked)) fail<DTypeError>(op, "{} is no dtype of tensors", detail::text(asked));
  return asked;
}

void check_sizes(const char* op, const Shape& shape) {
  for (const Dim& d : shape)
    if (d.max() < 0) fail<ShapeError>(op, "{} has a negative size", shape.str());
}

// A constant has a device only if one was named.
Device named_or_none(const std::string& name) { return name.empty() ? nullptr : device_named(name); }

Tensor constant(const char* op, const Shape& shape, Number value, DType t, const std::string& device) {
  GraphScope scope;
  check_sizes(op, shape);
  return computed(full_node(t, value, shape_from(shape)), false, named_or_none(device));
}

}  // namespace

Tensor::Tensor(Number value) : Tensor() {
  GraphScope scope;
  Tensor t = computed(number_const(strong(value.dtype()), value), false, nullptr);
  std::swap(impl_, t.impl_);
}

Tensor detail::on_disk(const std::string& name, std::size_t offset, const Shape& shape, DType t) {
  Device device = device_named(name);
  std::vector<std::int64_t> dims = shape.concrete();
  std::size_t bytes = itemsize(t);
  for (std::int64_t d : dims) bytes *= static_cast<std::size_t>(d);
  runtime::Buffer file = runtime::device(*device).contents();
  if (offset > file.bytes || bytes > file.bytes - offset)
    throw FileError(fmt::format("[on_disk] {}: bytes {} to {} of a file of {}", *device, offset,
                                offset + bytes, file.bytes));
  UOp leaf = engine::buffer_of(*device, t, dims, file.slice(offset, bytes));
  GraphScope scope;
  return computed(leaf, false, device);
}

Tensor Tensor::position(const Dim& value) {
  GraphScope scope;
  return computed(pg::cast(dim_from(value), i32), false, nullptr);
}

void Tensor::check_row(std::size_t length, std::size_t expected) {
  if (length != expected) fail<ShapeError>("of", "rows of {} and of {} elements", expected, length);
}
void Tensor::check_count(std::size_t values, const Shape& shape) {
  if (static_cast<std::int64_t>(values) != shape.numel())
    fail<ShapeError>("of", "{} values for shape {}", values, shape.str());
}

Tensor Tensor::from_host(const void* data, const Shape& shape, DType t, const Options& options) {
  constexpr const char* kName = "from_host";
  dtype_or(kName, t, f32);
  std::vector<std::int64_t> sizes = shape.concrete();
  check_sizes(kName, shape);
  Device device = device_named(options.device);
  DType out = dtype_or(kName, options.dtype, t);
  std::size_t count = 1;
  for (std::int64_t n : sizes) count *= static_cast<std::size_t>(n);
  if (count && !data) fail<ValueError>(kName, "no data for shape {}", shape.str());
  Tensor x;
  if (count == 1 && options.device.empty()) {
    // One number needs no storage.
    std::uint64_t bits = 0;
    std::memcpy(&bits, data, itemsize(t));
    GraphScope scope;
    x = computed(pg::expand(scalar_const(t, from_bits(t, bits)), shape_from(shape)), false, nullptr);
  } else {
    UOp buffer = engine::buffer_from_host(*device, t, sizes, data);
    GraphScope scope;
    x = computed(buffer, false, device);
  }
  return out == t ? x : x.cast(out);
}

// Literals of double are f32, but converted once where a dtype is named.
Tensor Tensor::from_literal(const void* data, const Shape& shape, DType t, const Options& options) {
  DType out = dtype_or("of", options.dtype, t == f64 ? f32 : t);
  if (out == t) return from_host(data, shape, t, options);
  auto count = static_cast<std::size_t>(shape.numel().max());
  std::vector<std::uint8_t> converted(count * itemsize(out));
  const auto* from = static_cast<const std::uint8_t*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from + i * itemsize(t), itemsize(t));
    bits = to_bits(out, cast_scalar(from_bits(t, bits), t, out));
    std::memcpy(converted.data() + i * itemsize(out), &bits, itemsize(out));
  }
  return from_host(converted.data(), shape, out, {.device = options.device});
}

Tensor Tensor::full(const Shape& shape, Number value, const Options& options) {
  return constant("full", shape, value, dtype_or("full", options.dtype, strong(value.dtype())),
                  options.device);
}
Tensor Tensor::zeros(const Shape& shape, const Options& options) {
  return constant("zeros", shape, 0, dtype_or("zeros", options.dtype, f32), options.device);
}
Tensor Tensor::ones(const Shape& shape, const Options& options) {
  return constant("ones", shape, 1, dtype_or("ones", options.dtype, f32), options.device);
}

Tensor Tensor::empty(const Shape& shape, const Options& options) {
  constexpr const char* kName = "empty";
  DType t = dtype_or(kName, options.dtype, f32);
  check_sizes(kName, shape);
  Device device = device_named(options.device);
  // Symbolic sizes: storage for the greatest, of which the front is used.
  std::vector<std::int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.max());
  UOp buffer = engine::empty_buffer(*device, t, sizes);
  GraphScope scope;
  Tensor x = computed(buffer, false, device);
  if (!shape.is_symbolic()) return x;
  Pairs bounds;
  for (const Dim& d : shape) bounds.emplace_back(0, d);
  return x.shrink(bounds);
}

Tensor Tensor::eye(std::int64_t n, const Options& options) { return eye(n, n, options); }
Tensor Tensor::eye(std::int64_t n, std::int64_t m, const Options& options) {
  DType t = dtype_or("eye", options.dtype, f32);
  if (n < 0 || m < 0) fail<ValueError>("eye", "a matrix of {} by {}", n, m);
  Tensor x = (positions(i32, n, 0, 2) == positions(i32, m, 1, 2)).cast(t);
  x.impl()->cell->device = named_or_none(options.device);
  return x;
}

Tensor Tensor::arange(Number stop, const Options& options) { return arange(0, stop, 1, options); }
Tensor Tensor::arange(Number start, Number stop, const Options& options) {
  return arange(start, stop, 1, options);
}

Tensor Tensor::arange(Number start, Number stop, Number step, const Options& options) {
  constexpr const char* kName = "arange";
  bool real = start.dtype() == DType::WeakFloat || stop.dtype() == DType::WeakFloat ||
              step.dtype() == DType::WeakFloat;
  if (step.to_double() == 0) fail<ValueError>(kName, "a step of 0");
  std::int64_t count;
  if (real) {
    count = static_cast<std::int64_t>(std::ceil((stop.to_double() - start.to_double()) / step.to_double()));
  } else {
    std::int64_t width = stop.to_int() - start.to_int(), by = step.to_int();
    count = width / by + (width % by != 0 && (width < 0) == (by < 0));
  }
  count = std::max<std::int64_t>(0, count);
  double last =
      start.to_double() + static_cast<double>(std::max<std::int64_t>(0, count - 1)) * step.to_double();
  double low = std::min(start.to_double(), last), high = std::max(start.to_double(), last);
  auto holds = [&](DType t) {
    return is_float(t) || (low >= static_cast<double>(int_min(t)) && high <= static_cast<double>(int_max(t)));
  };
  DType t = dtype_or(kName, options.dtype, real ? f32 : holds(i32) ? i32 : i64);
  if (t == DType::Bool || (!is_float(t) && real) || !holds(t))
    fail<ValueError>(kName, "{} cannot hold the range {} to {}", detail::text(t), start.to_double(), last);
  GraphScope scope;
  // Floats count in at least f32 and round once at the end.
  DType wide = is_float(t) ? promote(t, f32) : t;
  Ref x = arange_node(wide, idx(count));
  if (step.to_double() != 1) x = x * number_const(wide, step);
  if (start.to_double() != 0) x = x + number_const(wide, start);
  return computed(pg::cast(x, t), false, named_or_none(options.device));
}

Tensor Tensor::linspace(double start, double stop, std::int64_t steps, const Options& options) {
  constexpr const char* kName = "linspace";
  DType t = dtype_or(kName, options.dtype, f32);
  if (steps < 0) fail<ValueError>(kName, "{} steps", steps);
  if (t == DType::Bool) fail<ValueError>(kName, "bool holds no range");
  GraphScope scope;
  DType wide = promote(t, f32);
  if (!is_float(wide)) wide = f32;
  Ref x = arange_node(wide, idx(steps));
  double width = steps > 1 ? (stop - start) / static_cast<double>(steps - 1) : 0;
  return computed(pg::cast(x * float_const(wide, width) + float_const(wide, start), t), false,
                  named_or_none(options.device));
}

namespace {

// Sizes, dtype and device of a tensor that options may override.
struct Like {
  Shape shape;
  DType dtype;
  Device device;
};
Like like(const char* op, const Tensor& x, const Options& options) {
  GraphScope scope;
  Value v = detail::read(x, op);
  return {shape_to(v.shape()), dtype_or(op, options.dtype, v.dtype()),
          options.device.empty() ? v.device : device_named(options.device)};
}
Tensor full_of(const Like& l, Number value) {
  GraphScope scope;
  return computed(full_node(l.dtype, value, shape_from(l.shape)), false, l.device);
}

}  // namespace

Tensor Tensor::full_like(Number value, const Options& options) const {
  return full_of(like("full_like", *this, options), value);
}
Tensor Tensor::zeros_like(const Options& options) const {
  return full_of(like("zeros_like", *this, options), 0);
}
Tensor Tensor::ones_like(const Options& options) const {
  return full_of(like("ones_like", *this, options), 1);
}
Tensor Tensor::empty_like(const Options& options) const {
  Like l = like("empty_like", *this, options);
  return empty(l.shape, {.dtype = l.dtype, .device = l.device ? *l.device : std::string()});
}
Tensor Tensor::rand_like(const Options& options) const {
  Like l = like("rand_like", *this, options);
  return rand(l.shape, {.dtype = l.dtype, .device = l.device ? *l.device : std::string()});
}
Tensor Tensor::randn_like(const Options& options) const {
  Like l = like("randn_like", *this, options);
  return randn(l.shape, {.dtype = l.dtype, .device = l.device ? *l.device : std::string()});
}

}  // namespace pg
