// Sizes and positions: dimensions (numbers, or expressions of Variables), shapes, lists of axes, and the
// forms of an index. What tensor.h takes as arguments before the options of an operation.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pangrad/dtype.h>
#include <pangrad/error.h>

namespace pg {

struct Node;

template <class T>
concept Integer = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool>;

/// One dimension, or a position along one: a number, or an expression of bound Variables.
class PG_API Dim {
 public:
  Dim() = default;
  template <Integer T>
  Dim(T value) : value_(static_cast<std::int64_t>(value)) {}
  Dim(const Dim& other) : value_(other.value_), node_(other.node_) {
    if (node_) retain();
  }
  Dim(Dim&& other) noexcept : value_(other.value_), node_(std::exchange(other.node_, nullptr)) {}
  Dim& operator=(Dim other) noexcept {
    std::swap(value_, other.value_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~Dim() {
    if (node_) release();
  }

  bool is_symbolic() const { return node_ != nullptr; }
  /// The number. Throws ShapeError if symbolic: say value() or max() then.
  operator std::int64_t() const {
    if (node_) refuse();
    return value_;
  }
  /// The number, with each Variable at what it is bound to.
  std::int64_t value() const;
  /// The greatest number it can be.
  std::int64_t max() const { return value_; }
  /// The number, or the expression.
  std::string str() const;

  friend PG_API Dim operator+(const Dim& a, const Dim& b);
  friend PG_API Dim operator-(const Dim& a, const Dim& b);
  friend PG_API Dim operator*(const Dim& a, const Dim& b);
  /// Rounds down; by zero gives 0, as everywhere.
  friend PG_API Dim operator/(const Dim& a, const Dim& b);
  friend PG_API Dim operator%(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b) { return a.node_ == b.node_ && a.value_ == b.value_; }
  template <Integer T>
  friend Dim operator+(const Dim& a, T b) {
    return a + Dim(b);
  }
  template <Integer T>
  friend Dim operator+(T a, const Dim& b) {
    return Dim(a) + b;
  }
  template <Integer T>
  friend Dim operator-(const Dim& a, T b) {
    return a - Dim(b);
  }
  template <Integer T>
  friend Dim operator-(T a, const Dim& b) {
    return Dim(a) - b;
  }
  template <Integer T>
  friend Dim operator*(const Dim& a, T b) {
    return a * Dim(b);
  }
  template <Integer T>
  friend Dim operator*(T a, const Dim& b) {
    return Dim(a) * b;
  }
  template <Integer T>
  friend Dim operator/(const Dim& a, T b) {
    return a / Dim(b);
  }
  template <Integer T>
  friend Dim operator/(T a, const Dim& b) {
    return Dim(a) / b;
  }
  template <Integer T>
  friend Dim operator%(const Dim& a, T b) {
    return a % Dim(b);
  }
  template <Integer T>
  friend Dim operator%(T a, const Dim& b) {
    return Dim(a) % b;
  }
  template <Integer T>
  friend bool operator==(const Dim& a, T b) {
    return a == Dim(b);
  }

  /// For the library: wraps an integer node of the graph, and hands it out (null for a number).
  explicit Dim(const Node* node);
  const Node* node() const { return node_; }

 private:
  void retain() const;
  void release() const;
  [[noreturn]] void refuse() const;
  std::int64_t value_ = 0;  // the upper bound if symbolic
  const Node* node_ = nullptr;
};

/// A symbolic integer with bounds. Bound to a value it is a Dim, usable in shapes, slices and indices:
/// kernels take it as an argument, so one compiled kernel serves all values. Its name and bounds are its
/// identity.
class PG_API Variable {
 public:
  /// lo <= hi, both included. Throws ValueError otherwise.
  Variable(std::string_view name, std::int64_t lo, std::int64_t hi);
  /// This variable with a value for one use. Throws ValueError outside the bounds.
  Dim bind(std::int64_t value) const;
  const std::string& name() const { return name_; }
  std::int64_t lo() const { return lo_; }
  std::int64_t hi() const { return hi_; }

 private:
  std::string name_;
  std::int64_t lo_, hi_;
};

/// The dimensions of a tensor. Written in braces: {2, 3}; {} is the shape of a scalar.
class PG_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  template <Integer T>
  Shape(const std::vector<T>& dims) : dims_(dims.begin(), dims.end()) {}
  template <Integer T>
  Shape(std::span<const T> dims) : dims_(dims.begin(), dims.end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::size_t size() const { return dims_.size(); }
  bool empty() const { return dims_.empty(); }
  /// Dimension of an axis; negative axes count from the end. Throws IndexError.
  const Dim& operator[](int axis) const;
  Dim& operator[](int axis);
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  const Dim& front() const { return (*this)[0]; }
  const Dim& back() const { return (*this)[-1]; }
  void push_back(Dim dim) { dims_.push_back(std::move(dim)); }
  /// Inserts before an axis (rank() appends).
  void insert(int axis, Dim dim);
  void erase(int axis);
  /// Product of the dimensions.
  Dim numel() const;
  bool is_symbolic() const;
  /// The dimensions as numbers. Throws ShapeError if symbolic.
  std::vector<std::int64_t> concrete() const;
  /// "(2, 3)"
  std::string str() const;
  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

 private:
  std::vector<Dim> dims_;
};

PG_API std::ostream& operator<<(std::ostream& out, const Dim& dim);
PG_API std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// A number, or several in braces: axes (negative ones count from the end), or an extent for each spatial
/// axis.
class Ints {
 public:
  Ints() = default;
  template <Integer T>
  Ints(T value) : values_{static_cast<std::int64_t>(value)}, number_(true) {}
  Ints(std::initializer_list<std::int64_t> values) : values_(values) {}
  template <Integer T>
  Ints(const std::vector<T>& values) : values_(values.begin(), values.end()) {}
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  /// Written without braces.
  bool is_number() const { return number_; }

 private:
  std::vector<std::int64_t> values_;
  bool number_ = false;
};

/// Axes of a tensor. For reductions no axes means all of them.
using Axes = Ints;

/// A pair of positions or widths for each axis: {{1, 1}, {0, 2}}.
using Pairs = std::vector<std::pair<Dim, Dim>>;

/// Positions start, start + step, ... before stop, as in Python: negative positions count from the end, those
/// beyond an end are clipped, what is left out is everything in that direction. Slice{1, 3}, Slice{.stop =
/// -1}, Slice{.step = -1}, Slice{}.
struct Slice {
  std::optional<Dim> start = {};
  std::optional<Dim> stop = {};
  std::int64_t step = 1;
};
/// Stands for as many whole axes as are not named otherwise; at most once in an index.
struct Ellipsis {};
/// A new axis of 1 in an index.
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};
inline constexpr NewAxis newaxis{};

}  // namespace pg
