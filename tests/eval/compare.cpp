#include "eval/compare.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

namespace pg::eval {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Position of a value among the values of its format: 0 for both zeros, then upwards by one.
double rank(DType t, double v) {
  std::uint64_t bits = encode(t, float_scalar(v));
  int width = static_cast<int>(itemsize(t)) * 8;
  std::uint64_t magnitude = bits & ((std::uint64_t{1} << (width - 1)) - 1);
  return std::signbit(v) ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

std::string coordinates(const Array& a, std::int64_t i) {
  Dims c(a.dims.size());
  for (std::size_t k = c.size(); k-- > 0;) {
    c[k] = i % a.dims[k];
    i /= a.dims[k];
  }
  return text(c);
}

std::string pair(const Array& got, const Array& want, std::int64_t i) {
  auto k = static_cast<std::size_t>(i);
  std::string s = "at " + coordinates(want, i) + " got " + text(got.dtype, got.data[k]) + ", want " +
                  text(want.dtype, want.data[k]);
  if (is_float(want.dtype)) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, " (%.4g ulp)",
                  ulp_distance(want.dtype, got.data[k].f, want.data[k].f));
    s += buffer;
  }
  return s;
}

}  // namespace

double epsilon(DType t) {
  switch (t) {
    case DType::F16:
      return 0x1p-11;
    case DType::BF16:
      return 0x1p-8;
    case DType::F32:
      return 0x1p-24;
    case DType::F64:
    case DType::WeakFloat:
      return 0x1p-53;
    default:
      return 0;
  }
}

Tolerance tolerance(DType t, double steps, double scale) {
  return {.ulp = steps, .abs = steps * scale * 2 * epsilon(t)};
}

double ulp_distance(DType t, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInf;
  if (a == b) return 0;
  // Same sign and wide format: subtract as integers, a double would lose the low bits.
  if (itemsize(t) == 8 && std::signbit(a) == std::signbit(b)) {
    auto x = std::bit_cast<std::int64_t>(a), y = std::bit_cast<std::int64_t>(b);
    return static_cast<double>(x > y ? x - y : y - x);
  }
  return std::abs(rank(t, a) - rank(t, b));
}

bool close(DType t, Scalar got, Scalar want, const Tolerance& tolerance) {
  if (!is_float(t)) return got.i == want.i;
  double a = got.f, b = want.f;
  if (std::isnan(b)) return std::isnan(a);
  if (a == b) return a != 0 || !tolerance.zero_signs || std::signbit(a) == std::signbit(b);
  if (std::isnan(a)) return false;
  // Overflow is one step past the greatest value; no relative bound may excuse it.
  if (ulp_distance(t, a, b) <= tolerance.ulp) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  double apart = std::abs(a - b);
  return apart <= tolerance.rel * std::abs(b) || apart <= tolerance.abs;
}

std::string difference(const Array& got, const Array& want, const Tolerance& tolerance) {
  if (got.dtype != want.dtype) return "got " + text(got) + ", want dtype " + std::string(name(want.dtype));
  if (got.dims != want.dims) return "got " + text(got) + ", want shape " + text(want.dims);
  std::int64_t first = -1, worst = -1, wrong = 0;
  double most = -1;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    auto k = static_cast<std::size_t>(i);
    if (close(want.dtype, got.data[k], want.data[k], tolerance)) continue;
    ++wrong;
    if (first < 0) first = i;
    double apart = std::abs(got.at(i) - want.at(i));
    if (std::isnan(apart)) apart = kInf;
    if (apart > most) {
      most = apart;
      worst = i;
    }
  }
  if (!wrong) return "";
  std::string s = std::string(name(want.dtype)) + " " + text(want.dims) + ": " + pair(got, want, first);
  if (wrong > 1) s += "; " + std::to_string(wrong) + " of " + std::to_string(want.size()) + " differ";
  if (worst != first) s += ", worst " + pair(got, want, worst);
  return s;
}

}  // namespace pg::eval
