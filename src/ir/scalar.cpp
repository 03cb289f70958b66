#include "ir/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

namespace pg {
namespace {

using U = std::uint64_t;

int bits_of(DType t) { return t == DType::Bool ? 1 : static_cast<int>(itemsize(t)) * 8; }

// Double to a binary format with `mant` stored mantissa bits and exponents down to `emin` (of the smallest
// normal). Exact apart from the one rounding: scale so that the last kept bit is the unit, round, scale back.
double round_float(double v, int mant, int emin, double overflow) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e = std::max(std::ilogb(v), emin);
  double unit = std::ldexp(1.0, e - mant);
  double r = std::nearbyint(v / unit) * unit;
  return std::abs(r) >= overflow ? std::copysign(std::numeric_limits<double>::infinity(), v) : r;
}

std::int64_t saturate(double v, DType t) {
  if (std::isnan(v)) return 0;
  if (t == u64) {
    if (v <= 0) return 0;
    return v >= 18446744073709551616.0 ? -1 : static_cast<std::int64_t>(static_cast<U>(v));
  }
  double lo = static_cast<double>(int_min(t)), hi = static_cast<double>(int_max(t));
  if (v <= lo) return int_min(t);
  if (v >= hi) return int_max(t);
  return static_cast<std::int64_t>(v);
}

template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<U>(a));
  return a / b;
}
template <class T>
T remainder_of(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
}

std::int64_t eval_int(Op op, DType t, std::int64_t a, std::int64_t b, std::int64_t c) {
  auto ua = static_cast<U>(a), ub = static_cast<U>(b);
  bool wide_unsigned = t == u64;
  switch (op) {
    case Op::Neg:
      return static_cast<std::int64_t>(0 - ua);
    case Op::Trunc:
      return a;
    case Op::Add:
      return static_cast<std::int64_t>(t == DType::Bool ? (ua | ub) : ua + ub);
    case Op::Sub:
      return static_cast<std::int64_t>(ua - ub);
    case Op::Mul:
      return static_cast<std::int64_t>(ua * ub);
    case Op::MulAcc:
      return static_cast<std::int64_t>(ua * ub + static_cast<U>(c));
    case Op::DotBytes:
      for (int i = 0; i < 32; i += 8)
        c += static_cast<std::int64_t>(ua >> i & 255) * static_cast<std::int8_t>(ub >> i & 255);
      return c;
    case Op::CDiv:
      return wide_unsigned ? static_cast<std::int64_t>(quotient(ua, ub)) : quotient(a, b);
    case Op::CMod:
      return wide_unsigned ? static_cast<std::int64_t>(remainder_of(ua, ub)) : remainder_of(a, b);
    case Op::FloorDiv:
      return wide_unsigned ? static_cast<std::int64_t>(quotient(ua, ub)) : floor_div(a, b);
    case Op::FloorMod:
      return wide_unsigned ? static_cast<std::int64_t>(remainder_of(ua, ub)) : floor_mod(a, b);
    case Op::Max:
      return wide_unsigned ? static_cast<std::int64_t>(std::max(ua, ub)) : std::max(a, b);
    case Op::Min:
      return wide_unsigned ? static_cast<std::int64_t>(std::min(ua, ub)) : std::min(a, b);
    case Op::And:
      return a & b;
    case Op::Or:
      return a | b;
    case Op::Xor:
      return a ^ b;
    case Op::Shl:
      return ub >= static_cast<U>(bits_of(t)) ? 0 : static_cast<std::int64_t>(ua << ub);
    case Op::Shr:
      if (ub >= static_cast<U>(bits_of(t))) return a < 0 && !wide_unsigned ? -1 : 0;
      return wide_unsigned ? static_cast<std::int64_t>(ua >> ub) : a >> ub;
    case Op::Threefry:
      return static_cast<std::int64_t>(threefry2x32(ua, ub));
    case Op::Pow: {  // by squaring, wrapping; a negative exponent truncates 1/a^n
      if (b < 0 && !is_unsigned(t)) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
      U r = 1;
      for (U e = ub, base = ua; e; e >>= 1, base *= base)
        if (e & 1) r *= base;
      return static_cast<std::int64_t>(r);
    }
    default:
      throw InternalError("[fold] " + std::string(info(op).name) + " on integers");
  }
}

// a + b rounded to odd, so that rounding the result to a half rounds the sum once. The halves' products are
// exact here.
double sum_to_odd(double a, double b) {
  double s = a + b, v = s - a, error = (a - (s - v)) + (b - v);
  if (error == 0 || !std::isfinite(s) || (std::bit_cast<U>(s) & 1)) return s;
  return std::nextafter(s, std::copysign(std::numeric_limits<double>::infinity(), error));
}

double eval_float(Op op, DType t, double a, double b, double c) {
  switch (op) {
    case Op::Neg:
      return -a;
    case Op::Trunc:
      return std::trunc(a);
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::Max:
      return std::isnan(a) || std::isnan(b) ? std::nan("")
             : a == b                       ? (std::signbit(a) ? b : a)
                                            : std::max(a, b);
    case Op::Min:
      return std::isnan(a) || std::isnan(b) ? std::nan("")
             : a == b                       ? (std::signbit(a) ? a : b)
                                            : std::min(a, b);
    case Op::MulAcc:
      return t == f32 ? static_cast<double>(
                            std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)))
             : t == f16 || t == bf16 ? sum_to_odd(a * b, c)
                                     : std::fma(a, b, c);
    default:
      throw InternalError("[fold] " + std::string(info(op).name) + " on floats");
  }
}

bool compare(Op op, DType from, Scalar a, Scalar b) {
  if (is_float(from)) return op == Op::CmpLt ? a.f < b.f : op == Op::CmpEq ? a.f == b.f : a.f != b.f;
  if (op == Op::CmpLt) return from == u64 ? static_cast<U>(a.i) < static_cast<U>(b.i) : a.i < b.i;
  return op == Op::CmpEq ? a.i == b.i : a.i != b.i;
}

}  // namespace

std::int64_t wrap(DType t, std::int64_t v) {
  switch (t) {
    case DType::Bool:
      return v & 1;
    case DType::I8:
      return static_cast<std::int8_t>(v);
    case DType::U8:
      return static_cast<std::uint8_t>(v);
    case DType::I16:
      return static_cast<std::int16_t>(v);
    case DType::U16:
      return static_cast<std::uint16_t>(v);
    case DType::I32:
      return static_cast<std::int32_t>(v);
    case DType::U32:
      return static_cast<std::uint32_t>(v);
    default:
      return v;
  }
}

double round_to(DType t, double v) {
  switch (t) {
    case DType::F32:
      return static_cast<double>(static_cast<float>(v));
    case DType::F16:
      return round_float(v, 10, -14, 65536.0);
    case DType::BF16:
      return round_float(v, 7, -126, 0x1p128);
    default:
      return v;
  }
}

bool is_exact(Op op) {
  if (!(info(op).flags & kElementwise)) return false;
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Sin:
    case Op::Cos:
    case Op::Tanh:
    case Op::Erf:
    case Op::Pow:
      return false;
    default:
      return true;
  }
}

Scalar cast_scalar(Scalar v, DType from, DType to) {
  if (is_float(from)) {
    if (is_float(to)) return float_scalar(round_to(to, v.f));
    if (to == DType::Bool) return int_scalar(v.f != 0);
    return int_scalar(saturate(v.f, to));
  }
  if (to == DType::Bool) return int_scalar(v.i != 0);
  if (!is_float(to)) return int_scalar(wrap(to, v.i));
  // Through float for f32: a 64-bit integer would round twice through double.
  if (to == f32)
    return float_scalar(from == u64 ? static_cast<float>(static_cast<U>(v.i)) : static_cast<float>(v.i));
  // Nor may f16 and bf16 round twice: what double has no room for is joined into one bit far below theirs.
  constexpr U kExact = U{1} << 53;
  bool large = from == u64 ? static_cast<U>(v.i) > kExact : static_cast<U>(v.i) + kExact > 2 * kExact;
  if ((to == f16 || to == bf16) && large) v.i = (v.i & ~std::int64_t{4095}) | ((v.i & 4095) != 0 ? 4096 : 0);
  double d = from == u64 ? static_cast<double>(static_cast<U>(v.i)) : static_cast<double>(v.i);
  return float_scalar(round_to(to, d));
}

std::uint16_t f16_from(double v) {
  if (std::isnan(v)) return 0x7e00;
  std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  double r = std::abs(round_to(f16, v));
  if (std::isinf(r)) return sign | 0x7c00;
  if (r < 0x1p-14) return sign | static_cast<std::uint16_t>(r * 0x1p24);
  int e = std::ilogb(r);
  return sign | static_cast<std::uint16_t>((e + 15) << 10 | static_cast<int>(std::ldexp(r, 10 - e) - 1024));
}

double f16_value(std::uint16_t bits) {
  int e = bits >> 10 & 31, m = bits & 1023;
  double v = e == 31  ? (m ? std::nan("") : std::numeric_limits<double>::infinity())
             : e == 0 ? std::ldexp(m, -24)
                      : std::ldexp(1024 + m, e - 25);
  return bits & 0x8000 ? -v : v;
}

namespace {

// NaNs keep sign and payload through a Scalar, so that a bitcast there and back changes nothing. The upper
// bits of the payload are those of the narrow format, with `mant` mantissa bits of `bits`.
std::uint64_t nan_to_bits(double v, int bits, int mant) {
  auto wide = std::bit_cast<U>(v);
  U payload = (wide & ((U{1} << 52) - 1)) >> (52 - mant);
  U exponent = ((U{1} << (bits - 1 - mant)) - 1) << mant;
  return wide >> 63 << (bits - 1) | exponent | (payload ? payload : U{1} << (mant - 1));
}
double nan_from_bits(U v, int bits, int mant) {
  U payload = v & ((U{1} << mant) - 1);
  return std::bit_cast<double>(v >> (bits - 1) << 63 | U{0x7ff} << 52 | payload << (52 - mant));
}

}  // namespace

std::uint64_t to_bits(DType t, Scalar v) {
  if (is_float(t) && itemsize(t) < 8 && std::isnan(v.f))
    return nan_to_bits(v.f, bits_of(t), t == f16 ? 10 : t == bf16 ? 7 : 23);
  switch (t) {
    case DType::F16:
      return f16_from(v.f);
    case DType::BF16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(round_to(bf16, v.f))) >> 16;
    case DType::F32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(v.f));
    case DType::F64:
    case DType::WeakFloat:
      return std::bit_cast<std::uint64_t>(v.f);
    case DType::Bool:
      return v.i & 1;
    default: {
      auto bytes = itemsize(t);
      return bytes == 8 ? static_cast<U>(v.i) : static_cast<U>(v.i) & ((U{1} << bytes * 8) - 1);
    }
  }
}

Scalar from_bits(DType t, std::uint64_t bits) {
  switch (t) {
    case DType::F16:
      if ((bits & 0x7fff) > 0x7c00) return float_scalar(nan_from_bits(bits, 16, 10));
      return float_scalar(f16_value(static_cast<std::uint16_t>(bits)));
    case DType::BF16:
      return from_bits(f32, bits << 16);
    case DType::F32:
      if ((bits & 0x7fffffff) > 0x7f800000) return float_scalar(nan_from_bits(bits, 32, 23));
      return float_scalar(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case DType::F64:
    case DType::WeakFloat:
      return float_scalar(std::bit_cast<double>(bits));
    case DType::Bool:
      return int_scalar((bits & 255) != 0);
    default:
      return int_scalar(wrap(t, static_cast<std::int64_t>(bits)));
  }
}

Scalar eval_scalar(Op op, DType to, DType from, const Scalar* s) {
  switch (op) {
    case Op::Cast:
      return cast_scalar(s[0], from, to);
    case Op::Bitcast:
      return from_bits(to, to_bits(from, s[0]));
    case Op::Where:
      return s[0].i ? s[1] : s[2];
    case Op::CmpLt:
    case Op::CmpEq:
    case Op::CmpNe:
      return int_scalar(compare(op, from, s[0], s[1]));
    default:
      break;
  }
  int n = info(op).nsrc;
  Scalar a = s[0], b = n > 1 ? s[1] : Scalar{}, c = n > 2 ? s[2] : Scalar{};
  if (is_float(to)) return float_scalar(round_to(to, eval_float(op, to, a.f, b.f, c.f)));
  return int_scalar(wrap(to, eval_int(op, to, a.i, b.i, c.i)));
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<U>(a));
  std::int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::uint64_t threefry2x32(std::uint64_t counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  auto x0 = static_cast<std::uint32_t>(counter), x1 = static_cast<std::uint32_t>(counter >> 32);
  const std::uint32_t ks[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x0 += ks[0];
  x1 += ks[1];
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (int r : kRotations[i % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, r) ^ x0;
    }
    x0 += ks[(i + 1) % 3];
    x1 += ks[(i + 2) % 3] + i + 1;
  }
  return static_cast<std::uint64_t>(x1) << 32 | x0;
}

}  // namespace pg
