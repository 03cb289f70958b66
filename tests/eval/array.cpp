#include "eval/array.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace pg::eval {

std::int64_t count(const Dims& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

std::string text(const Dims& dims) {
  std::string s = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) s += (i ? ", " : "") + std::to_string(dims[i]);
  return s + ")";
}

Array::Array(DType t, Dims shape) : dtype(t), dims(std::move(shape)) {
  std::int64_t n = count(dims);
  if (n > std::int64_t{1} << 28)
    throw InternalError("[eval] an array of shape " + text(dims) + " is too large to evaluate");
  data.resize(static_cast<std::size_t>(n), is_float(t) ? float_scalar(0) : int_scalar(0));
}

Array Array::scalar(DType t, double v) { return Array(t, {}, std::vector<double>{v}); }

double Array::at(std::int64_t i) const {
  Scalar v = data.at(static_cast<std::size_t>(i));
  if (is_float(dtype)) return v.f;
  return dtype == u64 ? static_cast<double>(static_cast<std::uint64_t>(v.i)) : static_cast<double>(v.i);
}

std::vector<std::uint8_t> Array::bytes() const {
  std::size_t width = itemsize(dtype);
  std::vector<std::uint8_t> out(data.size() * width);
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::uint64_t bits = encode(dtype, data[i]);
    for (std::size_t k = 0; k < width; ++k) out[i * width + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  return out;
}

Array Array::from_bytes(DType t, Dims shape, const void* bytes) {
  Array a(t, std::move(shape));
  std::size_t width = itemsize(t);
  const auto* in = static_cast<const std::uint8_t*>(bytes);
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < width; ++k) bits |= std::uint64_t{in[i * width + k]} << (8 * k);
    a.data[i] = decode(t, bits);
  }
  return a;
}

std::string text(DType t, Scalar v) {
  if (t == DType::Bool) return v.i ? "true" : "false";
  if (t == u64) return std::to_string(static_cast<std::uint64_t>(v.i));
  if (!is_float(t)) return std::to_string(v.i);
  char buffer[40];
  int digits = t == f64 || t == DType::WeakFloat ? 17 : t == f32 ? 9 : t == f16 ? 5 : 4;
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, v.f);
  return buffer;
}

std::string text(const Array& a, std::int64_t most) {
  std::string s = std::string(name(a.dtype)) + " " + text(a.dims) + " {";
  for (std::int64_t i = 0; i < a.size() && i < most; ++i)
    s += (i ? ", " : "") + text(a.dtype, a.data[static_cast<std::size_t>(i)]);
  return s + (a.size() > most ? ", ...}" : "}");
}

}  // namespace pg::eval
