#include "eval/arith.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pg::eval {
namespace {

__extension__ using Wide = __int128;
__extension__ using UWide = unsigned __int128;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Calls f with a value of the C++ type of an integer dtype.
template <class F>
auto with_int(DType t, F f) {
  switch (t) {
    case DType::I8:
      return f(std::int8_t{});
    case DType::U8:
      return f(std::uint8_t{});
    case DType::I16:
      return f(std::int16_t{});
    case DType::U16:
      return f(std::uint16_t{});
    case DType::I32:
      return f(std::int32_t{});
    case DType::U32:
      return f(std::uint32_t{});
    case DType::U64:
      return f(std::uint64_t{});
    case DType::I64:
    case DType::WeakInt:
      return f(std::int64_t{});
    default:
      throw InternalError("[eval] " + std::string(name(t)) + " is no integer type");
  }
}

// The number an element stands for, and the element of a number, wrapped.
Wide number(DType t, Scalar v) {
  if (t == DType::Bool) return v.i & 1;
  return with_int(t, [&](auto zero) { return static_cast<Wide>(static_cast<decltype(zero)>(v.i)); });
}
Scalar element(DType t, Wide v) {
  if (t == DType::Bool) return int_scalar(static_cast<std::int64_t>(v & 1));
  return with_int(
      t, [&](auto zero) { return int_scalar(static_cast<std::int64_t>(static_cast<decltype(zero)>(v))); });
}
int width(DType t) { return t == DType::Bool ? 1 : static_cast<int>(itemsize(t)) * 8; }

// A float format: precision with the implicit bit, exponent of the least normal, of the greatest value.
struct Format {
  int precision, emin, emax;
};
constexpr Format kHalf{11, -14, 15}, kBrain{8, -126, 127};

double round_format(Format f, long double v) {
  if (v == 0 || !std::isfinite(v)) return static_cast<double>(v);
  int e;
  long double m = std::frexp(std::abs(v), &e);  // m in [1/2, 1), |v| = m * 2^e
  auto whole = static_cast<std::uint64_t>(std::ldexp(m, 64));
  int keep = f.precision - std::max(0, f.emin - (e - 1));  // bits of whole that stay
  std::uint64_t top = 0, rest = whole, half = std::uint64_t{1} << 63;
  if (keep > 0) {
    top = whole >> (64 - keep);
    rest = whole << keep;
  } else if (keep < 0) {
    rest = 0;  // less than half of the least value
  }
  if (rest > half || (rest == half && (top & 1))) ++top;
  double r = std::ldexp(static_cast<double>(top), e - keep);
  if (r >= std::ldexp(1.0, f.emax + 1)) r = kInf;
  return std::signbit(v) ? -r : r;
}

// NaNs keep their bits through a double: storage may be looked at as integers. Built as bits, since a
// conversion would make a signalling one quiet.
std::uint64_t nan_bits(double v, int mant, int expo_bits) {
  auto bits = std::bit_cast<std::uint64_t>(v);
  std::uint64_t payload = bits << 12 >> (64 - mant);
  if (!payload) payload = std::uint64_t{1} << (mant - 1);
  std::uint64_t all = (std::uint64_t{1} << expo_bits) - 1;
  return (bits >> 63) << (mant + expo_bits) | all << mant | payload;
}
double nan_or_infinity(std::uint64_t bits, int mant, int expo_bits) {
  std::uint64_t sign = bits >> (mant + expo_bits) & 1, payload = bits & ((std::uint64_t{1} << mant) - 1);
  return std::bit_cast<double>(sign << 63 | std::uint64_t{0x7ff} << 52 | payload << (52 - mant));
}

// Bits of a value that fits the format: sign, exponent, stored mantissa.
std::uint64_t encode_format(Format f, double v) {
  int mant = f.precision - 1, expo_bits = f.emax == 15 ? 5 : 8;
  std::uint64_t sign = std::signbit(v) ? std::uint64_t{1} << (mant + expo_bits) : 0;
  std::uint64_t all = (std::uint64_t{1} << expo_bits) - 1;
  if (std::isnan(v)) return nan_bits(v, mant, expo_bits);
  double a = std::abs(v);
  if (std::isinf(v)) return sign | all << mant;
  if (a < std::ldexp(1.0, f.emin)) return sign | static_cast<std::uint64_t>(std::ldexp(a, mant - f.emin));
  int e;
  double m = std::frexp(a, &e);
  auto stored = static_cast<std::uint64_t>(std::ldexp(m, f.precision)) - (std::uint64_t{1} << mant);
  return sign | static_cast<std::uint64_t>(e - 1 - f.emin + 1) << mant | stored;
}
double decode_format(Format f, std::uint64_t bits) {
  int mant = f.precision - 1, expo_bits = f.emax == 15 ? 5 : 8;
  std::uint64_t all = (std::uint64_t{1} << expo_bits) - 1, e = bits >> mant & all;
  std::uint64_t m = bits & ((std::uint64_t{1} << mant) - 1);
  if (e == all) return nan_or_infinity(bits, mant, expo_bits);
  if (e) m |= std::uint64_t{1} << mant;
  double v =
      std::ldexp(static_cast<double>(m), static_cast<int>(std::max<std::uint64_t>(e, 1)) - 1 + f.emin - mant);
  return bits >> (mant + expo_bits) & 1 ? -v : v;
}

Wide floor_quotient(Wide a, Wide b) {
  Wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

// Left to right over the bits of the exponent, modulo 2^128 (so modulo any narrower width).
Wide int_power(Wide base, Wide exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  UWide r = 1;
  for (int bit = 63; bit >= 0; --bit) {
    r *= r;
    if (exponent >> bit & 1) r *= static_cast<UWide>(base);
  }
  return static_cast<Wide>(r);
}

// One block of threefry-2x32: twenty rounds, a key injected after every fourth.
std::uint64_t threefry(std::uint64_t counter, std::uint64_t key) {
  std::uint32_t k[3] = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), 0x1BD11BDA};
  k[2] ^= k[0] ^ k[1];
  std::uint32_t a = static_cast<std::uint32_t>(counter) + k[0],
                b = static_cast<std::uint32_t>(counter >> 32) + k[1];
  const int rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  for (std::uint32_t round = 0; round < 20; ++round) {
    a += b;
    b = (b << rotation[round % 8] | b >> (32 - rotation[round % 8])) ^ a;
    if (round % 4 == 3) {
      std::uint32_t injection = round / 4 + 1;
      a += k[injection % 3];
      b += k[(injection + 1) % 3] + injection;
    }
  }
  return std::uint64_t{b} << 32 | a;
}

Scalar apply_int(Op op, DType t, const Scalar* s) {
  int n = info(op).nsrc;
  Wide a = number(t, s[0]), b = n > 1 ? number(t, s[1]) : 0, c = n > 2 ? number(t, s[2]) : 0;
  auto times = [](Wide x, Wide y) {
    return static_cast<Wide>(static_cast<UWide>(x) * static_cast<UWide>(y));
  };
  bool logic = t == DType::Bool;
  switch (op) {
    case Op::Neg:
      return element(t, -a);
    case Op::Trunc:
      return element(t, a);
    case Op::Add:
      return element(t, logic ? (a | b) : a + b);
    case Op::Sub:
      return element(t, a - b);
    case Op::Mul:
      return element(t, times(a, b));
    case Op::MulAcc:
      return element(t, static_cast<Wide>(static_cast<UWide>(times(a, b)) + static_cast<UWide>(c)));
    case Op::DotBytes: {
      Wide sum = c;
      for (int byte = 0; byte < 4; ++byte) {
        auto u = static_cast<std::uint8_t>(static_cast<UWide>(a) >> (8 * byte));
        auto v = static_cast<std::int8_t>(static_cast<UWide>(b) >> (8 * byte));
        sum += static_cast<Wide>(int{u} * int{v});
      }
      return element(t, sum);
    }
    case Op::CDiv:
      return element(t, b == 0 ? 0 : a / b);
    case Op::CMod:
      return element(t, b == 0 ? 0 : a % b);
    case Op::FloorDiv:
      return element(t, b == 0 ? 0 : floor_quotient(a, b));
    case Op::FloorMod:
      return element(t, b == 0 ? 0 : a - b * floor_quotient(a, b));
    case Op::Max:
      return element(t, a > b ? a : b);
    case Op::Min:
      return element(t, a < b ? a : b);
    case Op::And:
      return element(t, a & b);
    case Op::Or:
      return element(t, a | b);
    case Op::Xor:
      return element(t, a ^ b);
    // A negative count is a great one.
    case Op::Shl:
      return element(
          t, b < 0 || b >= width(t) ? 0 : static_cast<Wide>(static_cast<UWide>(a) << static_cast<int>(b)));
    case Op::Shr:
      return element(t, b < 0 || b >= width(t) ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b));
    case Op::Pow:
      return element(t, int_power(a, b));
    case Op::Threefry:
      return int_scalar(static_cast<std::int64_t>(
          threefry(static_cast<std::uint64_t>(s[0].i), static_cast<std::uint64_t>(s[1].i))));
    default:
      throw InternalError("[eval] " + std::string(info(op).name) + " on " + std::string(name(t)));
  }
}

// a*b + c with one rounding, for formats whose products are exact in double: the sum is rounded to odd, so
// that rounding it again is harmless.
double fused(DType t, double a, double b, double c) {
  if (t == f64 || t == DType::WeakFloat) return std::fma(a, b, c);
  double p = a * b, s = p + c;
  if (!std::isfinite(s)) return rounded(t, s);
  double v = s - p, error = (p - (s - v)) + (c - v);
  if (error != 0 && !(std::bit_cast<std::uint64_t>(s) & 1)) s = std::nextafter(s, error > 0 ? kInf : -kInf);
  return rounded(t, s);
}

template <class T>
T float_arith(Op op, T a, T b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::Sqrt:
      return std::sqrt(a);
    default:
      return 0;
  }
}

Scalar apply_float(Op op, DType t, const Scalar* s) {
  int n = info(op).nsrc;
  double a = s[0].f, b = n > 1 ? s[1].f : 0, c = n > 2 ? s[2].f : 0;
  auto x = static_cast<long double>(a), y = static_cast<long double>(b);
  auto out = [t](long double v) { return float_scalar(rounded(t, v)); };
  switch (op) {
    case Op::Neg:
      return float_scalar(-a);
    case Op::Trunc:
      return float_scalar(std::trunc(a));
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Sqrt:
      // In double and rounded again for the halves: exact, since 53 bits are more than twice theirs and two.
      if (t == f32)
        return float_scalar(
            static_cast<double>(float_arith(op, static_cast<float>(a), static_cast<float>(b))));
      return out(static_cast<long double>(float_arith(op, a, b)));
    case Op::MulAcc:
      return float_scalar(fused(t, a, b, c));
    case Op::Max:
    case Op::Min: {
      if (std::isnan(a) || std::isnan(b)) return float_scalar(kNaN);
      bool first = a != b ? (a > b) == (op == Op::Max) : std::signbit(a) == (op == Op::Min);
      return float_scalar(first ? a : b);
    }
    case Op::Exp:
      return out(std::exp(x));
    case Op::Exp2:
      return out(std::exp2(x));
    case Op::Log:
      return out(std::log(x));
    case Op::Log2:
      return out(std::log2(x));
    case Op::Sin:
      return out(std::sin(x));
    case Op::Cos:
      return out(std::cos(x));
    case Op::Tanh:
      return out(std::tanh(x));
    case Op::Erf:
      return out(std::erf(x));
    case Op::Pow:
      return out(std::pow(x, y));
    default:
      throw InternalError("[eval] " + std::string(info(op).name) + " on " + std::string(name(t)));
  }
}

}  // namespace

double rounded(DType t, long double v) {
  switch (t) {
    case DType::F16:
      return round_format(kHalf, v);
    case DType::BF16:
      return round_format(kBrain, v);
    case DType::F32:
      return static_cast<double>(static_cast<float>(v));
    default:
      return static_cast<double>(v);
  }
}

Scalar convert(Scalar v, DType from, DType to) {
  if (is_float(from)) {
    if (is_float(to)) return float_scalar(rounded(to, v.f));
    if (to == DType::Bool) return int_scalar(v.f != 0);
    return with_int(to, [&](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      // Extended precision holds every 64-bit integer.
      auto x = std::trunc(static_cast<long double>(v.f));
      if (std::isnan(x)) return int_scalar(0);
      if (x <= static_cast<long double>(Limits::min()))
        return int_scalar(static_cast<std::int64_t>(Limits::min()));
      if (x >= static_cast<long double>(Limits::max()))
        return int_scalar(static_cast<std::int64_t>(Limits::max()));
      return int_scalar(static_cast<std::int64_t>(static_cast<decltype(zero)>(x)));
    });
  }
  Wide n = number(from, v);
  if (to == DType::Bool) return int_scalar(n != 0);
  if (is_float(to)) return float_scalar(rounded(to, static_cast<long double>(n)));
  return element(to, n);
}

std::uint64_t encode(DType t, Scalar v) {
  switch (t) {
    case DType::F16:
      return encode_format(kHalf, v.f);
    case DType::BF16:
      return encode_format(kBrain, v.f);
    case DType::F32:
      return std::isnan(v.f) ? nan_bits(v.f, 23, 8) : std::bit_cast<std::uint32_t>(static_cast<float>(v.f));
    case DType::F64:
    case DType::WeakFloat:
      return std::bit_cast<std::uint64_t>(v.f);
    default: {
      UWide bits = static_cast<UWide>(number(t, v));
      return static_cast<std::uint64_t>(bits & ((UWide{1} << (itemsize(t) * 8)) - 1));
    }
  }
}

Scalar decode(DType t, std::uint64_t bits) {
  switch (t) {
    case DType::F16:
      return float_scalar(decode_format(kHalf, bits));
    case DType::BF16:
      return float_scalar(decode_format(kBrain, bits));
    case DType::F32:
      if ((bits & 0x7f800000) == 0x7f800000) return float_scalar(nan_or_infinity(bits, 23, 8));
      return float_scalar(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    case DType::F64:
    case DType::WeakFloat:
      return float_scalar(std::bit_cast<double>(bits));
    case DType::Bool:
      return int_scalar((bits & 255) != 0);
    default:
      return element(t, static_cast<Wide>(bits));
  }
}

Scalar apply(Op op, DType to, DType from, const Scalar* s) {
  switch (op) {
    case Op::Cast:
      return convert(s[0], from, to);
    case Op::Where:
      return s[0].i ? s[1] : s[2];
    case Op::CmpLt:
      return int_scalar(is_float(from) ? s[0].f < s[1].f : number(from, s[0]) < number(from, s[1]));
    case Op::CmpEq:
      return int_scalar(is_float(from) ? s[0].f == s[1].f : number(from, s[0]) == number(from, s[1]));
    case Op::CmpNe:
      return int_scalar(is_float(from) ? s[0].f != s[1].f : number(from, s[0]) != number(from, s[1]));
    default:
      return is_float(to) ? apply_float(op, to, s) : apply_int(op, to, s);
  }
}

}  // namespace pg::eval
