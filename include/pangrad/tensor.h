// Tensor: a lazy, typed, shaped array. Everything a program does with pangrad goes through it.
//
// An operation checks its arguments at once, in the caller's words, and then only describes work; realize(),
// item() and to_vector() do it. Laziness never shows: a program reads what it would have read had every line
// run when reached.
//
// A Tensor is a handle. Copying it copies the handle; views (what movement methods and basic indexing return)
// look at the same storage, and see what is written to it. `t = v` rebinds the handle; t[i] = v, t += v and
// t.assign(v) write. Methods return values unless they say "view of".
//
// Threads: const methods and operations may run on one tensor from many threads at once. What writes (assign,
// +=, t[i] = v, backward, marks and gradients) needs the caller's own lock.
//
// Errors: ShapeError, DTypeError, DeviceError, IndexError and ValueError (error.h) where the operation is
// written; the message begins with the operation in brackets. A default constructed or moved-from Tensor
// throws ValueError on use.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pangrad/dtype.h>
#include <pangrad/error.h>
#include <pangrad/handles.h>
#include <pangrad/operand.h>
#include <pangrad/options.h>
#include <pangrad/scope.h>
#include <pangrad/shape.h>

namespace pg {

class Indexed;
namespace detail {
struct Impl;
struct Access;
}  // namespace detail

class PG_API Tensor {
 public:
  /// Holds nothing; every use throws ValueError.
  Tensor() noexcept {
    if (detail::is_recording()) detail::handle_made(this, nullptr);
  }
  /// A scalar: f32, i32 or bool by the kind of number. Needs no storage.
  explicit Tensor(Number value);
  /// A scalar i32 tensor of a position (of a bound Variable, say).
  template <std::same_as<Dim> D>
  explicit Tensor(const D& value) : Tensor(position(value)) {}
  Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
    retain();
    if (detail::is_recording()) detail::handle_made(this, &other);
  }
  Tensor(Tensor&& other) noexcept : impl_(other.impl_) {
    if (detail::is_recording()) detail::handle_made(this, &other);
    if (detail::is_watched(&other)) detail::handle_changes(&other, nullptr);
    other.impl_ = nullptr;
  }
  ~Tensor() {
    if (detail::is_watched(this)) detail::handle_gone(this);
    release();
  }
  /// Rebinds the handle. On what a method or index returns assignment does not compile: use assign().
  Tensor& operator=(const Tensor& other) & noexcept {
    if (this != &other) {
      if (detail::is_watched(this)) detail::handle_changes(this, other.impl_);
      release();
      impl_ = other.impl_;
      retain();
    }
    return *this;
  }
  Tensor& operator=(Tensor&& other) & noexcept {
    if (this != &other) {
      if (detail::is_watched(this)) detail::handle_changes(this, other.impl_);
      if (detail::is_watched(&other)) detail::handle_changes(&other, nullptr);
      release();
      impl_ = std::exchange(other.impl_, nullptr);
    }
    return *this;
  }

  // --- creation
  // ---------------------------------------------------------------------------------------------------- Data
  // is copied at once. Devices are named as in DEV= ("CPU", "CPU:1"); DeviceError if unknown.

  /// From nested braces: of({1, 2}), of({{1.f, 2.f}, {3.f, 4.f}}). double literals give f32, unless a dtype
  /// is named; other types give their own dtype. Throws ShapeError if rows differ in length.
  template <Arithmetic T>
  static Tensor of(std::initializer_list<T> values, const Options& options = {}) {
    return literal({values.size()}, flat(values), DTypeOf<T>::value, options);
  }
  template <Arithmetic T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> values, const Options& options = {}) {
    std::vector<T> data;
    std::size_t inner = values.size() ? values.begin()->size() : 0;
    for (const auto& row : values) append(data, row, inner);
    return literal({values.size(), inner}, data, DTypeOf<T>::value, options);
  }
  template <Arithmetic T>
  static Tensor of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
                   const Options& options = {}) {
    std::vector<T> data;
    std::size_t rows = values.size() ? values.begin()->size() : 0;
    std::size_t inner = rows ? values.begin()->begin()->size() : 0;
    for (const auto& plane : values) {
      check_row(plane.size(), rows);
      for (const auto& row : plane) append(data, row, inner);
    }
    return literal({values.size(), rows, inner}, data, DTypeOf<T>::value, options);
  }
  /// From host data in row-major order, of its own dtype. Without a shape: one axis. Throws ShapeError if the
  /// number of elements is not that of the shape.
  template <Element T>
  static Tensor of(std::span<const T> values, const Options& options = {}) {
    return from_host(values.data(), {values.size()}, DTypeOf<T>::value, options);
  }
  template <Element T>
  static Tensor of(std::span<const T> values, const Shape& shape, const Options& options = {}) {
    check_count(values.size(), shape);
    return from_host(values.data(), shape, DTypeOf<T>::value, options);
  }
  template <Element T>
  static Tensor of(const std::vector<T>& values, const Options& options = {}) {
    if constexpr (std::same_as<T, bool>) {
      std::vector<std::uint8_t> bytes(values.begin(), values.end());
      return from_host(bytes.data(), {values.size()}, DType::Bool, options);
    } else {
      return of(std::span<const T>(values), options);
    }
  }
  template <Element T>
  static Tensor of(const std::vector<T>& values, const Shape& shape, const Options& options = {}) {
    check_count(values.size(), shape);
    if constexpr (std::same_as<T, bool>) {
      std::vector<std::uint8_t> bytes(values.begin(), values.end());
      return from_host(bytes.data(), shape, DType::Bool, options);
    } else {
      return from_host(values.data(), shape, DTypeOf<T>::value, options);
    }
  }
  /// A scalar of exactly the type given.
  template <Element T>
  static Tensor of(T value, const Options& options = {}) {
    return from_host(&value, {}, DTypeOf<T>::value, options);
  }
  /// Copies numel elements of dtype t in row-major order from host memory; options.dtype converts afterwards.
  static Tensor from_host(const void* data, const Shape& shape, DType t, const Options& options = {});

  /// All elements equal: f32, i32 or bool by the kind of the value unless a dtype is named. No storage until
  /// written to.
  static Tensor full(const Shape& shape, Number value, const Options& options = {});
  /// f32 unless a dtype is named.
  static Tensor zeros(const Shape& shape, const Options& options = {});
  static Tensor ones(const Shape& shape, const Options& options = {});
  /// Storage with unspecified contents; f32 unless a dtype is named.
  static Tensor empty(const Shape& shape, const Options& options = {});
  /// The identity matrix, n x n or n x m; f32 unless a dtype is named.
  static Tensor eye(std::int64_t n, const Options& options = {});
  static Tensor eye(std::int64_t n, std::int64_t m, const Options& options = {});
  /// start, start + step, ... before stop: f32 if any is a float, else i32 (i64 if the range needs it). Never
  /// becomes memory inside an expression. Throws ValueError if step is 0 or the dtype cannot hold the range.
  static Tensor arange(Number stop, const Options& options = {});
  static Tensor arange(Number start, Number stop, const Options& options = {});
  static Tensor arange(Number start, Number stop, Number step, const Options& options = {});
  /// `steps` values from start to stop, both included; f32 unless a dtype is named.
  static Tensor linspace(double start, double stop, std::int64_t steps, const Options& options = {});
  /// Of the shape, dtype and device of this tensor, unless options name others.
  Tensor full_like(Number value, const Options& options = {}) const;
  Tensor zeros_like(const Options& options = {}) const;
  Tensor ones_like(const Options& options = {}) const;
  Tensor empty_like(const Options& options = {}) const;

  // --- random numbers
  // ----------------------------------------------------------------------------------------------
  // Threefry-2x32 (Salmon et al. 2011) by position: a seed and a number of draws give the same values on
  // every device, whenever they are computed. Float dtypes, f32 unless named; shapes must be concrete
  // (ShapeError).

  /// Starts all generators anew.
  static void manual_seed(std::uint64_t seed);
  /// Uniform in [0, 1).
  static Tensor rand(const Shape& shape, const Options& options = {});
  /// Standard normal, by Box-Muller in f32.
  static Tensor randn(const Shape& shape, const Options& options = {});
  /// Integers in [low, high). Throws DTypeError unless the dtype is an integer, ValueError unless low < high.
  static Tensor randint(const Shape& shape, const RandintOptions& options = {});
  static Tensor uniform(const Shape& shape, const UniformOptions& options = {});
  /// Throws ValueError if std < 0.
  static Tensor normal(const Shape& shape, const NormalOptions& options = {});
  /// Uniform in [-1, 1) / sqrt(numel).
  static Tensor scaled_uniform(const Shape& shape, const Options& options = {});
  /// Uniform within sqrt(6 / (shape[0] + product of the rest)) (Glorot and Bengio 2010).
  static Tensor glorot_uniform(const Shape& shape, const Options& options = {});
  /// Within sqrt(6 / (1 + a^2) / fan_in), or of deviation sqrt(2 / (1 + a^2) / fan_in), where fan_in is the
  /// product of all dimensions but the first (He et al. 2015).
  static Tensor kaiming_uniform(const Shape& shape, const KaimingOptions& options = {});
  static Tensor kaiming_normal(const Shape& shape, const KaimingOptions& options = {});
  /// A random order of 0..n-1; i32 unless named.
  static Tensor randperm(std::int64_t n, const Options& options = {});
  Tensor rand_like(const Options& options = {}) const;
  Tensor randn_like(const Options& options = {}) const;
  /// Draws column numbers (i32) by the weights in each row of this (n) or (b, n) tensor. Without replacement
  /// no more than n (ValueError).
  Tensor multinomial(std::int64_t samples = 1, bool replacement = false) const;
  /// In a Training scope zeroes elements with probability p and scales the rest by 1 / (1 - p); else this
  /// tensor. Throws ValueError unless 0 <= p <= 1.
  Tensor dropout(double p = 0.5) const;

  // --- what it is
  // --------------------------------------------------------------------------------------------------

  /// False for a Tensor that holds nothing.
  explicit operator bool() const = delete;
  bool defined() const noexcept { return impl_ != nullptr; }
  Shape shape() const;
  int ndim() const;
  /// One dimension; negative axes count from the end. Throws IndexError.
  Dim size(std::int64_t axis) const;
  Dim numel() const;
  /// Elements times bytes of each, symbolic dimensions at their greatest.
  std::size_t nbytes() const;
  DType dtype() const;
  /// The name of its device; the default device for constants.
  std::string device() const;
  bool is_floating_point() const;
  /// Shape, dtype, device; computes nothing.
  std::string str() const;

  // --- computing, reading
  // ------------------------------------------------------------------------------------------

  /// Computes the value and keeps it in storage. Returns this handle. Throws what the device throws
  /// (OutOfMemory, ...).
  Tensor realize() const;
  /// The value of a tensor with one element. Throws ShapeError if it has more, DTypeError if T cannot hold
  /// every value of the dtype.
  template <Element T>
  T item() const {
    T out{};
    read(&out, 1, DTypeOf<T>::value, "item");
    return out;
  }
  /// All elements in row-major order. Throws DTypeError if T cannot hold every value of the dtype, ShapeError
  /// never: symbolic dimensions count as bound.
  template <Element T>
  std::vector<T> to_vector() const {
    std::size_t n = count();
    if constexpr (std::same_as<T, bool>) {
      auto bytes = std::make_unique<bool[]>(n);
      read(bytes.get(), n, DType::Bool, "to_vector");
      return std::vector<bool>(bytes.get(), bytes.get() + n);
    } else {
      std::vector<T> out(n);
      read(out.data(), n, DTypeOf<T>::value, "to_vector");
      return out;
    }
  }
  /// Copies the elements, row-major, in their own dtype. Throws ValueError unless bytes is their size.
  void copy_to(void* out, std::size_t bytes) const;
  /// The value asked for in row-major storage of its own; where it already is, the same storage (but never a
  /// view).
  Tensor contiguous() const;
  /// The value; gradients that pass are made contiguous.
  Tensor contiguous_backward() const;
  /// A copy with storage of its own.
  Tensor clone() const;
  Tensor clone(std::string_view device) const;
  /// View of it on its own device; a copy on another. Throws DeviceError on unknown devices.
  Tensor to(std::string_view device) const;

  // --- writing
  // -----------------------------------------------------------------------------------------------------
  // Values computed before keep what they read. The value broadcasts to the target, never the reverse
  // (ShapeError); its dtype must be the target's (DTypeError), numbers are cast; its device too
  // (DeviceError). Into an expanded view, in which an element appears twice, a write throws ShapeError.

  Tensor& assign(const Operand& value);
  Tensor& operator+=(const Operand& value);
  Tensor& operator-=(const Operand& value);
  Tensor& operator*=(const Operand& value);
  Tensor& operator/=(const Operand& value);
  Tensor& operator&=(const Operand& value);
  Tensor& operator|=(const Operand& value);
  Tensor& operator^=(const Operand& value);
  Tensor& operator<<=(const Operand& value);
  Tensor& operator>>=(const Operand& value);

  // --- gradients
  // ---------------------------------------------------------------------------------------------------

  /// Marks the storage as a target of gradients, before use. Floats only (DTypeError); the whole tensor, not
  /// a view (ValueError). Returns this handle.
  Tensor requires_grad(bool on = true) const;
  bool wants_grad() const;
  /// View of it through which no gradient flows.
  Tensor detach() const;
  /// Adds to the gradient of each marked tensor that this one was computed from. The history ends with it,
  /// unless retained. Throws ShapeError if this is no scalar and no gradient is given, ValueError if nothing
  /// marked is reached, or if a marked tensor was overwritten after it was read.
  void backward() const;
  struct BackwardOptions;
  void backward(const BackwardOptions& options) const;
  /// The gradients of this with respect to marked tensors, zeros where unrelated; `grad()` is left alone and
  /// the history kept. May be differentiated again. Errors as backward(); ValueError for a target without a
  /// mark.
  std::vector<Tensor> gradient(TensorList targets) const;
  std::vector<Tensor> gradient(TensorList targets, const Tensor& gradient) const;
  /// What backward() summed up; holds nothing before.
  Tensor grad() const;
  /// Replaces the gradient; an empty tensor removes it. Throws ShapeError, DTypeError unless like this
  /// tensor.
  void set_grad(const Tensor& gradient) const;
  void zero_grad() const { set_grad(Tensor()); }

  // --- elementwise, one operand
  // ------------------------------------------------------------------------------------ Functions of floats
  // keep a float dtype and give f32 for integers and bool.

  /// Converts: to integers truncates and saturates (NaN gives 0), between integers wraps. A value, also to
  /// its own dtype.
  Tensor cast(DType t) const;
  /// View of the same bytes as another dtype; the last axis scales with the sizes. Throws ShapeError if it
  /// does not divide.
  Tensor bitcast(DType t) const;
  Tensor neg() const;
  Tensor logical_not() const;
  Tensor bitwise_not() const;
  Tensor reciprocal() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor square() const;
  Tensor exp() const;
  Tensor exp2() const;
  Tensor log() const;
  Tensor log2() const;
  Tensor log10() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tan() const;
  Tensor asin() const;
  Tensor acos() const;
  Tensor atan() const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor tanh() const;
  Tensor asinh() const;
  Tensor acosh() const;
  Tensor atanh() const;
  Tensor erf() const;
  /// Toward zero, down, up, to nearest with halves to even; integers stay as they are.
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  /// -1, 0 or 1 in the same dtype.
  Tensor sign() const;
  /// The gradient at 0 is 0.
  Tensor abs() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor relu() const;
  Tensor relu6() const;
  Tensor leaky_relu(double slope = 0.01) const;
  Tensor elu(double alpha = 1) const;
  Tensor celu(double alpha = 1) const;
  Tensor selu() const;
  Tensor gelu(Gelu form = Gelu::Tanh) const;
  Tensor quick_gelu() const;
  Tensor sigmoid() const;
  Tensor logsigmoid() const;
  Tensor hardsigmoid() const;
  Tensor silu() const;
  Tensor hardswish() const;
  Tensor hardtanh(double low = -1, double high = 1) const;
  Tensor softplus(double beta = 1) const;
  Tensor softsign() const;
  Tensor mish() const;

  // --- elementwise, more operands
  // ---------------------------------------------------------------------------------- Shapes broadcast
  // (ShapeError), dtypes promote, devices must agree (DeviceError). Operators are declared below.

  Tensor add(const Operand& other) const;
  Tensor sub(const Operand& other) const;
  Tensor mul(const Operand& other) const;
  /// True division: integers give f32.
  Tensor div(const Operand& other) const;
  /// Rounded down, in the promoted dtype. Integers by zero give 0.
  Tensor floor_div(const Operand& other) const;
  /// Remainder with the sign of the divisor, and with that of the dividend.
  Tensor mod(const Operand& other) const;
  Tensor fmod(const Operand& other) const;
  /// Throws ValueError for an integer base with a negative or fractional number as exponent.
  Tensor pow(const Operand& other) const;
  Tensor bitwise_and(const Operand& other) const;
  Tensor bitwise_or(const Operand& other) const;
  Tensor bitwise_xor(const Operand& other) const;
  Tensor lshift(const Operand& other) const;
  Tensor rshift(const Operand& other) const;
  Tensor eq(const Operand& other) const;
  Tensor ne(const Operand& other) const;
  Tensor maximum(const Operand& other) const;
  Tensor minimum(const Operand& other) const;
  Tensor clamp(const Operand& low, const Operand& high) const;
  Tensor clamp_min(const Operand& low) const;
  Tensor clamp_max(const Operand& high) const;
  Tensor lerp(const Tensor& end, const Operand& weight) const;
  Tensor copysign(const Operand& other) const;
  Tensor logaddexp(const Operand& other) const;
  /// This where the mask is false, the value where it is true. Throws DTypeError unless the mask is bool.
  Tensor masked_fill(const Tensor& mask, const Operand& value) const;
  /// This tensor chooses: a where true, b where false. Throws DTypeError unless this is bool.
  Tensor where(const Operand& a, const Operand& b) const;
  Tensor isclose(const Operand& other, const IsCloseOptions& options = {}) const;
  /// One bool: whether all elements are close.
  Tensor allclose(const Operand& other, const IsCloseOptions& options = {}) const;

  // --- movement
  // ----------------------------------------------------------------------------------------------------

  /// View of it in another shape of as many elements; one dimension may be -1. Throws ShapeError.
  Tensor reshape(const Shape& shape) const;
  Tensor view(const Shape& shape) const { return reshape(shape); }
  /// View of it with all axes in another order. Throws ShapeError unless a permutation.
  Tensor permute(const Axes& order) const;
  /// View of it with two axes swapped; T() swaps the last two.
  Tensor transpose(std::int64_t axis0 = 1, std::int64_t axis1 = 0) const;
  Tensor T() const { return transpose(-1, -2); }
  /// View of it in which axes of 1 repeat and new axes lead; -1 keeps a dimension. Throws ShapeError.
  Tensor expand(const Shape& shape) const;
  /// View of it with axes reversed.
  Tensor flip(const Axes& axes) const;
  /// View of it from start to stop, {start, stop} for each axis. Throws ShapeError outside.
  Tensor shrink(const Pairs& bounds) const;
  /// Widened by {before, after} for each axis; negative widths cut. Reflect needs widths less than the axis,
  /// Circular no more than it (ShapeError).
  Tensor pad(const Pairs& widths, const PadOptions& options = {}) const;
  /// View of the front of each axis. Throws ShapeError unless a size for each, none longer.
  Tensor shrink_to(const Shape& shape) const;
  /// Widened at the end of each axis to a size. Throws ShapeError unless a size for each, none shorter.
  Tensor pad_to(const Shape& shape, double value = 0) const;
  /// View of it with the axes start..end (included) merged.
  Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
  /// View of it with an axis split into sizes; one may be -1.
  Tensor unflatten(std::int64_t axis, const Shape& sizes) const;
  /// View of it without axes of 1: all, or the one named if it is 1.
  Tensor squeeze() const;
  Tensor squeeze(std::int64_t axis) const;
  /// View of it with a new axis of 1.
  Tensor unsqueeze(std::int64_t axis) const;
  /// Views of it: pieces of `size` along an axis (the last may be smaller), or of the sizes given, which must
  /// sum up.
  std::vector<Tensor> split(std::int64_t size, std::int64_t axis = 0) const;
  std::vector<Tensor> split(const std::vector<std::int64_t>& sizes, std::int64_t axis = 0) const;
  /// Views of it: at most n pieces of equal size, but for the last.
  std::vector<Tensor> chunk(std::int64_t n, std::int64_t axis = 0) const;
  /// Views of it: its slices along an axis, without that axis.
  std::vector<Tensor> unbind(std::int64_t axis = 0) const;
  /// View of the diagonal of two axes, as a last axis.
  Tensor diagonal(std::int64_t offset = 0, std::int64_t axis0 = 0, std::int64_t axis1 = 1) const;
  /// A square matrix with this (n) on its diagonal.
  Tensor diag() const;
  /// Each axis tiled; leading axes are added for more repeats than axes.
  Tensor repeat(const Axes& repeats) const;
  /// Each element repeated along an axis; without one, of the flattened tensor.
  Tensor repeat_interleave(std::int64_t repeats) const;
  Tensor repeat_interleave(std::int64_t repeats, std::int64_t axis) const;
  /// Shifted cyclically along axes; without axes the flattened tensor is.
  Tensor roll(const Axes& shifts, const Axes& axes = {}) const;
  /// Windows of `size`, `step` apart, along an axis: in a new last axis.
  Tensor unfold(std::int64_t axis, std::int64_t size, std::int64_t step) const;
  /// Zero above (tril) or below (triu) the diagonal of the last two axes.
  Tensor tril(std::int64_t diagonal = 0) const;
  Tensor triu(std::int64_t diagonal = 0) const;
  /// Axes by name: x.rearrange("b (h w) c -> b c h w", {{"h", 4}}). Throws ValueError on a malformed formula.
  Tensor rearrange(std::string_view formula,
                   std::initializer_list<std::pair<std::string_view, std::int64_t>> sizes = {}) const;

  // --- indexing
  // ----------------------------------------------------------------------------------------------------

  /// x[i], x[{i, Slice{1, 3}, ellipsis, newaxis, tensor}]. Integers and slices give a view. Integer tensors
  /// and lists give a value: a negative row counts from the end once, several broadcast together, in place if
  /// adjacent, else in front. Throws IndexError for an integer or a row of a list out of range, too many
  /// positions, a bool or float tensor; ValueError for a step of 0. The rows in a tensor are not looked at
  /// before they are used: one that is out of range reads 0. What it returns can be assigned to: x[i] = v,
  /// x[i] += v write (a row out of range writes nothing; of equal rows the last wins).
  Indexed operator[](std::initializer_list<Index> index);
  Indexed operator[](const Index& index);
  Tensor operator[](std::initializer_list<Index> index) const;
  Tensor operator[](const Index& index) const;
  /// The same with an index made at run time, and its write.
  Tensor at(std::span<const Index> index) const;
  void set(std::span<const Index> index, const Operand& value);
  /// Along an axis, at an integer tensor of the same rank whose other axes are no longer: out[i][j] =
  /// x[index[i][j]][j] for axis 0. Out of range reads 0.
  Tensor gather(std::int64_t axis, const Tensor& index) const;
  /// Rows along an axis at a 1-d index.
  Tensor index_select(std::int64_t axis, const Tensor& index) const;
  /// This with src written at index along an axis (shapes as gather); of equal targets the last wins.
  Tensor scatter(std::int64_t axis, const Tensor& index, const Operand& src) const;
  /// This with slices of src along an axis added at a 1-d index; src is of this shape but for that axis,
  /// which is as long as the index. What is out of range is ignored.
  Tensor index_add(std::int64_t axis, const Tensor& index, const Tensor& src) const;
  /// This with values of src combined at index along an axis.
  Tensor scatter_reduce(std::int64_t axis, const Tensor& index, const Tensor& src, Scatter reduce,
                        const ScatterOptions& options = {}) const;
  /// The values where the mask, which broadcasts, is true, in row-major order: one axis. Throws DTypeError
  /// unless it is bool.
  Tensor masked_select(const Tensor& mask, const SelectOptions& options = {}) const;
  /// The coordinates (i32) of the elements that are not zero, in row-major order: (n, axes).
  Tensor nonzero(const SelectOptions& options = {}) const;
  /// Integers to a new last axis of `classes` that is 1 at the integer, else 0; i32.
  Tensor one_hot(std::int64_t classes) const;

  // --- reductions
  // -------------------------------------------------------------------------------------------------- Over
  // all axes unless some are named: x.sum(), x.sum(1), x.sum({0, 1}), x.sum(-1, {.keepdim = true}), x.sum({},
  // {.keepdim = true}). Reduced axes go, unless kept as 1. Of nothing: 0, 1 for prod, the least for max, NaN
  // for mean. IndexError for an axis out of range or named twice.

  /// Integers accumulate in at least 32 bits and give that; f16 and bf16 accumulate in f32.
  Tensor sum(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  Tensor prod(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  /// NaN wins. Equal maxima share the gradient.
  Tensor max(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  Tensor min(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  /// f32 for integers.
  Tensor mean(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  Tensor var(const Axes& axes = {}, const VarOptions& options = {}) const;
  Tensor std(const Axes& axes = {}, const VarOptions& options = {}) const;
  std::pair<Tensor, Tensor> var_mean(const Axes& axes = {}, const VarOptions& options = {}) const;
  std::pair<Tensor, Tensor> std_mean(const Axes& axes = {}, const VarOptions& options = {}) const;
  /// bool.
  Tensor any(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  Tensor all(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  /// Position (i32) of the first greatest or least: along an axis, or in the flattened tensor.
  Tensor argmax() const;
  Tensor argmax(std::int64_t axis, const ReduceOptions& options = {}) const;
  Tensor argmin() const;
  Tensor argmin(std::int64_t axis, const ReduceOptions& options = {}) const;
  /// log(sum(exp(x))), shifted by the maximum.
  Tensor logsumexp(const Axes& axes = {}, const ReduceOptions& options = {}) const;
  /// exp(x - max) / sum; options of dtype: that of the exponentials.
  Tensor softmax(std::int64_t axis = -1, DType t = DType::Void) const;
  Tensor softmin(std::int64_t axis = -1, DType t = DType::Void) const;
  Tensor log_softmax(std::int64_t axis = -1, DType t = DType::Void) const;
  /// Divided by its p-norm along an axis, or by eps if that is greater.
  Tensor normalize(double p = 2, std::int64_t axis = 1, double eps = 1e-12) const;
  /// Running results along an axis. cumsum accumulates as sum.
  Tensor cumsum(std::int64_t axis = 0) const;
  Tensor cumprod(std::int64_t axis = 0) const;
  /// Running maximum and the position (i32) of its first occurrence.
  std::pair<Tensor, Tensor> cummax(std::int64_t axis = 0) const;
  std::pair<Tensor, Tensor> cummin(std::int64_t axis = 0) const;
  Tensor logcumsumexp(std::int64_t axis = 0) const;
  /// Values in order along an axis and their positions (i32); equal values keep their order.
  std::pair<Tensor, Tensor> sort(std::int64_t axis = -1, const SortOptions& options = {}) const;
  Tensor argsort(std::int64_t axis = -1, const SortOptions& options = {}) const;
  /// The first k of sort. Throws ValueError if k is more than the axis.
  std::pair<Tensor, Tensor> topk(std::int64_t k, std::int64_t axis = -1,
                                 const TopkOptions& options = {}) const;

  // --- products, convolution, pooling
  // ------------------------------------------------------------------------------

  /// Product of matrices, batched over leading axes, which broadcast; a 1-d operand is a vector. The promoted
  /// dtype (or the one named, for operands and result), accumulated as in sum. Throws ShapeError unless the
  /// inner axes agree.
  Tensor matmul(const Tensor& other, DType t = DType::Void) const;
  Tensor dot(const Tensor& other, DType t = DType::Void) const { return matmul(other, t); }
  /// x @ weight + bias, where weight is (in, out), or (in) for a product by element. An empty bias is none.
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  /// Correlation of (batch, in, spatial...) with weight (out, in / groups, window...), for any number of
  /// spatial axes, plus bias (out). Throws ShapeError unless they fit.
  Tensor conv2d(const Tensor& weight, const ConvOptions& options = {}) const;
  Tensor conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& options = {}) const;
  /// The transpose (gradient) of conv2d: weight is (in, out / groups, window...).
  Tensor conv_transpose2d(const Tensor& weight, const ConvTransposeOptions& options = {}) const;
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias,
                          const ConvTransposeOptions& options = {}) const;
  /// Over windows of the trailing axes, one for each extent of the kernel: {2} pools one axis, {2, 2} two; a
  /// number without braces is that extent for two axes.
  Tensor avg_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {}) const;
  Tensor max_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {}) const;
  /// Also the position (i32) of the first greatest, in the flattened trailing axes.
  std::pair<Tensor, Tensor> max_pool2d_with_indices(const Ints& kernel = {2, 2},
                                                    const PoolOptions& options = {}) const;
  /// Values put back where max_pool2d_with_indices found them, zeros elsewhere; trailing axes of `size`, else
  /// the least that could have been pooled. ShapeError unless the indices have this shape.
  Tensor max_unpool2d(const Tensor& indices, const Ints& kernel = {2, 2}, const PoolOptions& options = {},
                      const Ints& size = {}) const;
  /// The trailing axes resized; keeps the dtype.
  Tensor interpolate(const Ints& size, const InterpolateOptions& options = {}) const;
  /// softmax(q k^T / sqrt(d) + mask) v for q (..., l, d), k (..., s, d), v (..., s, e); scores in at least
  /// f32. An empty mask is none; a bool mask says what to attend to, others add. Throws ValueError if causal
  /// with a mask.
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value, const Tensor& mask = {},
                                      const AttentionOptions& options = {}) const;
  /// Odd polynomial iterations x <- a x + (b x x^T + c (x x^T)^2) x that make a matrix nearly orthogonal (as
  /// Muon uses).
  Tensor newton_schulz(int steps, const std::vector<double>& coefficients, double eps = 1e-7) const;

  // --- normalisation, losses
  // ---------------------------------------------------------------------------------------

  /// (x - mean) * weight * invstd + bias, each along an axis; empty weight and bias are none.
  Tensor batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& invstd,
                   const Axes& axes = 1) const;
  /// Mean 0 and variance 1 over axes.
  Tensor layernorm(const Axes& axes = -1, double eps = 1e-5) const;
  /// Loss of logits, class axis 1 (0 if 1-d), against classes (integers) or probabilities.
  Tensor cross_entropy(const Tensor& target, const CrossEntropyOptions& options = {}) const;
  /// Loss of logits, class axis last, against classes; the mean is over those not ignored.
  Tensor sparse_categorical_crossentropy(const Tensor& target,
                                         const SparseCrossEntropyOptions& options = {}) const;
  /// Negative log likelihood of log probabilities, class axis 1, against classes; weights of classes (empty:
  /// none).
  Tensor nll_loss(const Tensor& target, const Tensor& weight = {}, const NllOptions& options = {}) const;
  /// Of probabilities, and of logits, with a weight of positives (empty: none).
  Tensor binary_crossentropy(const Tensor& target, const LossOptions& options = {}) const;
  Tensor binary_crossentropy_logits(const Tensor& target, const Tensor& pos_weight = {},
                                    const LossOptions& options = {}) const;

  // --- for the library
  // ---------------------------------------------------------------------------------------------
  explicit Tensor(detail::Impl* owned) noexcept : impl_(owned) {
    if (detail::is_recording()) detail::handle_made(this, nullptr);
  }
  detail::Impl* impl() const { return impl_; }

 private:
  template <class T>
  static std::vector<T> flat(std::initializer_list<T> values) {
    return std::vector<T>(values);
  }
  template <class T>
  static void append(std::vector<T>& data, std::initializer_list<T> row, std::size_t expected) {
    check_row(row.size(), expected);
    data.insert(data.end(), row.begin(), row.end());
  }
  template <class T>
  static Tensor literal(const Shape& shape, const std::vector<T>& data, DType t, const Options& options) {
    if constexpr (std::same_as<T, bool>) {
      std::vector<std::uint8_t> bytes(data.begin(), data.end());
      return from_literal(bytes.data(), shape, t, options);
    } else {
      return from_literal(data.data(), shape, t, options);
    }
  }
  static Tensor position(const Dim& value);
  static Tensor from_literal(const void* data, const Shape& shape, DType t, const Options& options);
  static void check_row(std::size_t length, std::size_t expected);
  static void check_count(std::size_t values, const Shape& shape);
  void read(void* out, std::size_t n, DType t, const char* what) const;
  std::size_t count() const;
  void retain() const noexcept;
  void release() noexcept;

  detail::Impl* impl_ = nullptr;
};

/// What x[index] returns: the tensor at that index, to which a value can be assigned while it is a temporary.
/// Bound to a name it is a Tensor like any other.
class PG_API Indexed : public Tensor {
 public:
  Indexed(const Indexed&) = default;
  Indexed(Indexed&&) = default;
  ~Indexed() = default;
  /// Writes, as assign().
  void operator=(const Operand& value) &&;
  void operator=(const Tensor& value) && { std::move(*this) = Operand(value); }
  void operator=(const Indexed& value) && { std::move(*this) = Operand(value); }
  void operator+=(const Operand& value) &&;
  void operator-=(const Operand& value) &&;
  void operator*=(const Operand& value) &&;
  void operator/=(const Operand& value) &&;

  // A name: as with any Tensor.
  Indexed& operator=(const Tensor& value) &;
  Indexed& operator=(const Indexed& value) & { return *this = static_cast<const Tensor&>(value); }
  Tensor& operator+=(const Operand& value) & { return Tensor::operator+=(value); }
  Tensor& operator-=(const Operand& value) & { return Tensor::operator-=(value); }
  Tensor& operator*=(const Operand& value) & { return Tensor::operator*=(value); }
  Tensor& operator/=(const Operand& value) & { return Tensor::operator/=(value); }

 private:
  friend class Tensor;
  Indexed(Tensor value, Tensor base, std::span<const Index> index);
  Tensor base_;  // empty if this is a view, which is written to directly
  std::shared_ptr<const std::vector<Index>> index_;
};

struct Tensor::BackwardOptions {
  /// Of a value that is no scalar: the gradient that enters, of its shape.
  Tensor gradient = {};
  /// Keeps the history for another backward().
  bool retain = false;
};

inline TensorList::TensorList(const std::vector<Tensor>& tensors)
    : first_(tensors.data()), count_(tensors.size()) {}
inline TensorList::TensorList(std::span<const Tensor> tensors)
    : first_(tensors.data()), count_(tensors.size()) {}
inline std::span<const Tensor> TensorList::span() const { return {first_, count_}; }
inline Index::Index(const Tensor& rows) : form_(std::make_shared<const Tensor>(rows)) {}

// --- operators
// -------------------------------------------------------------------------------------------------------
// Elementwise with broadcasting and promotion, as the methods. Comparisons give bool tensors.

PG_API Tensor operator+(const Operand& a, const Operand& b);
PG_API Tensor operator-(const Operand& a, const Operand& b);
PG_API Tensor operator*(const Operand& a, const Operand& b);
/// True division.
PG_API Tensor operator/(const Operand& a, const Operand& b);
/// Remainder with the sign of the divisor.
PG_API Tensor operator%(const Operand& a, const Operand& b);
/// Integers and bool (DTypeError).
PG_API Tensor operator&(const Operand& a, const Operand& b);
PG_API Tensor operator|(const Operand& a, const Operand& b);
PG_API Tensor operator^(const Operand& a, const Operand& b);
/// Integers (DTypeError), in the dtype of the left operand.
PG_API Tensor operator<<(const Operand& a, const Operand& b);
PG_API Tensor operator>>(const Operand& a, const Operand& b);
PG_API Tensor operator==(const Operand& a, const Operand& b);
PG_API Tensor operator!=(const Operand& a, const Operand& b);
PG_API Tensor operator<(const Operand& a, const Operand& b);
PG_API Tensor operator<=(const Operand& a, const Operand& b);
PG_API Tensor operator>(const Operand& a, const Operand& b);
PG_API Tensor operator>=(const Operand& a, const Operand& b);
PG_API Tensor operator-(const Tensor& a);
/// Complement of integers, negation of bool.
PG_API Tensor operator~(const Tensor& a);
PG_API std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// a where the condition is true, b where false. Throws DTypeError unless it is bool.
PG_API Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
/// Joined along an axis; other axes must agree (ShapeError), dtypes promote.
PG_API Tensor cat(TensorList tensors, std::int64_t axis = 0);
/// Joined along a new axis; shapes must agree (ShapeError), dtypes promote.
PG_API Tensor stack(TensorList tensors, std::int64_t axis = 0);
/// Coordinates of a grid of 1-d tensors, each of the shape of the grid, axes in order of the arguments.
PG_API std::vector<Tensor> meshgrid(TensorList tensors);
/// Sums of products by formula: einsum("bij,bjk->bik", {a, b}), with ellipsis, repeated letters and implicit
/// output. Throws ValueError on a malformed formula, ShapeError on sizes that disagree.
PG_API Tensor einsum(std::string_view formula, TensorList operands);
/// Computes several tensors at once, sharing work.
PG_API void realize(TensorList tensors);

}  // namespace pg
