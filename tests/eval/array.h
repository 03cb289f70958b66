// A typed, shaped array on the host: what the evaluator computes with and what tests compare. Elements are
// kept wide, an integer or bool in 64 bits and a float as the double that holds it, so one container serves
// every dtype.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "eval/arith.h"

namespace pg::eval {

using Dims = std::vector<std::int64_t>;

/// Product of the dimensions.
std::int64_t count(const Dims& dims);
/// "(2, 3)".
std::string text(const Dims& dims);

struct Array {
  DType dtype = DType::Void;
  Dims dims;
  std::vector<Scalar> data;  // row-major

  Array() = default;
  /// Zeros.
  Array(DType t, Dims shape);
  /// Numbers, each converted to the dtype as a cast would.
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  Array(DType t, Dims shape, const std::vector<T>& values);
  template <class T>
  Array(DType t, Dims shape, std::initializer_list<T> values) : Array(t, shape, std::vector<T>(values)) {}

  static Array scalar(DType t, double v);
  std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
  /// Element by row-major position, as a double (64-bit integers may round).
  double at(std::int64_t i) const;
  /// The elements in the storage format of the dtype, and back.
  std::vector<std::uint8_t> bytes() const;
  static Array from_bytes(DType t, Dims shape, const void* bytes);
};

/// "f32 (2, 2) {1, 2, 3, nan}", cut after `most` elements.
std::string text(const Array& a, std::int64_t most = 16);
/// One element as text, with all its digits.
std::string text(DType t, Scalar v);

template <class T>
  requires std::integral<T> || std::floating_point<T>
Array::Array(DType t, Dims shape, const std::vector<T>& values) : Array(t, std::move(shape)) {
  if (static_cast<std::int64_t>(values.size()) != size())
    throw InternalError("[eval] " + std::to_string(values.size()) + " values for shape " + text(dims));
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto v = static_cast<T>(values[i]);
    if constexpr (std::floating_point<T>)
      data[i] = convert(float_scalar(static_cast<double>(v)), f64, t);
    else if constexpr (std::is_unsigned_v<T>)
      data[i] = convert(int_scalar(static_cast<std::int64_t>(v)), u64, t);
    else
      data[i] = convert(int_scalar(static_cast<std::int64_t>(v)), i64, t);
  }
}

}  // namespace pg::eval
