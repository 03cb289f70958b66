#include "render/exact_alu.h"

#include <cmath>

#include <fmt/format.h>

namespace pg::render {
namespace {

bool is_signed(DType t) { return is_int(t) && !is_unsigned(t); }

// The unsigned dtype of as many bits.
DType bits_dtype(DType t) { return itemsize(t) == 2 ? u16 : itemsize(t) == 4 ? u32 : u64; }

// Of a constant or a splat of one.
bool is_constant(const Operand& x, Scalar& value) {
  if (!x.node) return false;
  Ref c = x.node.is(Op::Splat) ? x.node.src(0) : x.node;
  if (c.is_const()) value = c->arg;
  return c.is_const();
}

// Whether x op y, of integers, stays within dtype t, from the bounds of both; `overflows` computes one
// corner. Exact if both corners that matter are: for sums, and for products of numbers that are not negative.
template <class F>
bool stays_within(DType t, Ref node, F overflows) {
  if (!node || !is_signed(t)) return false;
  std::int64_t lo = 0, hi = 0;
  Ref x = node.src(0), y = node.src(1);
  if (overflows(x.lo(), y.lo(), &lo) || overflows(x.hi(), y.hi(), &hi)) return false;
  return lo >= int_min(t) && hi <= int_max(t);
}

}  // namespace

int bits_of(DType t) { return t == DType::Bool ? 1 : static_cast<int>(itemsize(t)) * 8; }

std::string ExactAlu::alu(Op op, Shape to, DType from, const std::vector<Operand>& s, Ref node) {
  if (op == Op::Cast) return cast(to, from, s[0].text);
  if (op == Op::Bitcast) return bitcast(to, from, s[0].text);
  if (op == Op::Where) return select(to, s[0].text, s[1].text, s[2].text);
  if (!target_.computes.has(from))
    throw InternalError(
        fmt::format("[render] {} on {}, which the target only stores", info(op).name, name(from)));
  if (!target_.has(op))
    throw InternalError(fmt::format("[render] {} should have been decomposed", info(op).name));
  if (info(op).flags & kComparison) return compare(op, {from, to.lanes}, s[0].text, s[1].text);
  if (from == DType::Bool) return bool_alu(op, to, s[0].text, s.size() > 1 ? s[1].text : s[0].text);
  return is_float(from) ? float_alu(op, to, s) : int_alu(op, to, s, node);
}

std::string ExactAlu::float_alu(Op op, Shape s, const std::vector<Operand>& x) {
  const std::string& a = x[0].text;
  const std::string& b = x.size() > 1 ? x[1].text : a;
  switch (op) {
    case Op::Neg:
      return unary(Prim::FNeg, s, a);
    case Op::Trunc:
      return unary(Prim::FTrunc, s, a);
    case Op::Sqrt:
      return unary(Prim::FSqrt, s, a);
    case Op::Add:
      return binary(Prim::FAdd, s, a, b);
    case Op::Sub:
      return binary(Prim::FSub, s, a, b);
    case Op::Mul:
      return binary(Prim::FMul, s, a, b);
    case Op::Div:
      return binary(Prim::FDiv, s, a, b);
    case Op::Max:
    case Op::Min:
      return float_max(op, s, x[0], x[1]);
    case Op::MulAcc:
      return fma(s, a, b, x[2].text);
    default:
      throw InternalError(fmt::format("[render] {} on floats", info(op).name));
  }
}

std::string ExactAlu::int_alu(Op op, Shape s, const std::vector<Operand>& x, Ref node) {
  const std::string& a = x[0].text;
  const std::string& b = x.size() > 1 ? x[1].text : a;
  bool sign = is_signed(s.dtype);
  auto sum = [](std::int64_t p, std::int64_t q, std::int64_t* r) { return __builtin_add_overflow(p, q, r); };
  auto product = [](std::int64_t p, std::int64_t q, std::int64_t* r) {
    return __builtin_mul_overflow(p, q, r);
  };
  switch (op) {
    case Op::Neg:
      return binary(Prim::Sub, s, integer(s, 0), a);
    case Op::Trunc:
      return a;
    case Op::Add:
      return binary(Prim::Add, s, a, b, stays_within(s.dtype, node, sum));
    case Op::Sub:
      return binary(Prim::Sub, s, a, b);
    case Op::Mul: {
      bool plain = x[0].nonnegative() && x[1].nonnegative();
      return binary(Prim::Mul, s, a, b, plain && stays_within(s.dtype, node, product));
    }
    case Op::MulAcc:
      return binary(Prim::Add, s, binary(Prim::Mul, s, a, b), x[2].text);
    case Op::DotBytes: {
      if (std::string dot = dot_bytes(s, a, b, x[2].text); !dot.empty()) return dot;
      std::string dot = x[2].text;
      for (int down : {0, 8, 16, 24}) {
        auto byte = [&](DType t, const std::string& v) {
          return resize(s, t, resize({t, s.lanes}, i32, binary(Prim::LShr, s, v, integer(s, down)), false),
                        t == i8);
        };
        dot = binary(Prim::Add, s, dot, binary(Prim::Mul, s, byte(u8, a), byte(i8, b)));
      }
      return dot;
    }
    case Op::CDiv:
    case Op::CMod:
    case Op::FloorDiv:
    case Op::FloorMod:
      return divide(op, s, x[0], x[1]);
    case Op::Max:
      return binary(sign ? Prim::SMax : Prim::UMax, s, a, b);
    case Op::Min:
      return binary(sign ? Prim::SMin : Prim::UMin, s, a, b);
    case Op::And:
      return binary(Prim::And, s, a, b);
    case Op::Or:
      return binary(Prim::Or, s, a, b);
    case Op::Xor:
      return binary(Prim::Xor, s, a, b);
    case Op::Shl:
    case Op::Shr:
      return shift(op, s, a, x[1]);
    default:
      throw InternalError(fmt::format("[render] {} on integers", info(op).name));
  }
}

std::string ExactAlu::bool_alu(Op op, Shape s, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::Max:
      return binary(Prim::Or, s, a, b);
    case Op::Mul:
    case Op::And:
    case Op::Min:
      return binary(Prim::And, s, a, b);
    case Op::Xor:
      return binary(Prim::Xor, s, a, b);
    default:
      throw InternalError(fmt::format("[render] {} on bools", info(op).name));
  }
}

std::string ExactAlu::compare(Op op, Shape s, const std::string& a, const std::string& b) {
  bool real = is_float(s.dtype);
  if (op == Op::CmpLt) return binary(real ? Prim::FLt : is_signed(s.dtype) ? Prim::SLt : Prim::ULt, s, a, b);
  if (op == Op::CmpEq) return binary(real ? Prim::FEq : Prim::Eq, s, a, b);
  return binary(real ? Prim::FNe : Prim::Ne, s, a, b);
}

std::string ExactAlu::divide(Op op, Shape s, const Operand& a, const Operand& b) {
  bool modulo = op == Op::CMod || op == Op::FloorMod, floor = op == Op::FloorDiv || op == Op::FloorMod;
  bool bounded = s.dtype != u64;  // whose bounds say nothing
  std::string zero = integer(s, 0), one = integer(s, 1), d = b.text;
  Scalar divisor{};
  bool fixed = is_constant(b, divisor);
  if (fixed && divisor.i == 0) return zero;
  bool never_zero = fixed || (b.node && bounded && (b.node.lo() > 0 || b.node.hi() < 0));
  std::string is_zero = never_zero ? "" : binary(Prim::Eq, s, d, zero);

  std::string result;
  if (is_unsigned(s.dtype) || (a.nonnegative() && b.nonnegative())) {
    if (!never_zero) d = select(s, is_zero, one, d);
    result = binary(modulo ? Prim::URem : Prim::UDiv, s, a.text, d);
  } else {
    if (fixed && divisor.i == -1) return modulo ? zero : binary(Prim::Sub, s, zero, a.text);
    // Dividing by 1 instead gives what a wrapping division of the smallest by -1 would.
    bool has_minus_one = !fixed && !(b.node && (b.node.lo() > -1 || b.node.hi() < -1));
    std::string bad = is_zero;
    if (has_minus_one && !(a.node && a.node.lo() > int_min(s.dtype))) {
      std::string smallest = binary(Prim::Eq, s, a.text, integer(s, int_min(s.dtype)));
      std::string overflow =
          binary(Prim::And, {boolean, s.lanes}, smallest, binary(Prim::Eq, s, d, integer(s, -1)));
      bad = never_zero ? overflow : binary(Prim::Or, {boolean, s.lanes}, is_zero, overflow);
    }
    if (!bad.empty()) d = select(s, bad, one, d);
    result = binary(modulo ? Prim::SRem : Prim::SDiv, s, a.text, d);
    if (floor) {
      // The remainder has the sign of the dividend; where that is not the divisor's, one step down.
      std::string rest = modulo ? result : binary(Prim::Sub, s, a.text, binary(Prim::Mul, s, result, d));
      std::string crossed = binary(Prim::SLt, s, binary(Prim::Xor, s, rest, d), zero);
      std::string down = binary(Prim::And, {boolean, s.lanes}, binary(Prim::Ne, s, rest, zero), crossed);
      result =
          select(s, down, modulo ? binary(Prim::Add, s, rest, d) : binary(Prim::Sub, s, result, one), result);
    }
  }
  return never_zero ? result : select(s, is_zero, zero, result);
}

std::string ExactAlu::shift(Op op, Shape s, const std::string& a, const Operand& b) {
  int bits = bits_of(s.dtype);
  Scalar by{};
  bool fixed = is_constant(b, by), far = fixed && (by.i < 0 || by.i >= bits);
  bool near = fixed ? !far : b.node && s.dtype != u64 && b.node.lo() >= 0 && b.node.hi() < bits;
  if (op == Op::Shr && is_signed(s.dtype)) {
    // By the width less one nothing but the sign is left.
    std::string last = integer(s, bits - 1);
    return binary(Prim::AShr, s, a, near ? b.text : far ? last : binary(Prim::UMin, s, b.text, last));
  }
  if (far) return integer(s, 0);
  Prim how = op == Op::Shl ? Prim::Shl : Prim::LShr;
  if (near) return binary(how, s, a, b.text);
  return select(s, binary(Prim::ULt, s, b.text, integer(s, bits)), binary(how, s, a, b.text), integer(s, 0));
}

// NaN if either is, and +0 is above -0. A machine's maximum is `x > y ? x : y`, its second operand where the
// two are equal or not comparable; a constant in its first place leaves little to repair.
std::string ExactAlu::float_max(Op op, Shape s, const Operand& a, const Operand& b) {
  Prim above = op == Op::Max ? Prim::FGt : Prim::FLt;
  auto machine = [&](const std::string& x, const std::string& y) {
    return select(s, binary(above, s, x, y), x, y);
  };
  for (const auto& [c, x] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    Scalar value{};
    if (!is_constant(*c, value) || std::isnan(value.f)) continue;
    bool decided =
        value.f != 0 || std::signbit(value.f) == (op == Op::Max);  // between zeros x itself is right
    if (decided) return machine(c->text, x->text);
    // Max(x, +0): adding +0 turns -0 into it.
    if (op == Op::Max) return binary(Prim::FAdd, s, machine(c->text, x->text), c->text);
  }
  // Either order of the operands gives the same but between zeros and where there is a NaN, so the bits may
  // be joined: of the sign both for Max, and of the rest any, which keeps a NaN one.
  Shape bits{bits_dtype(s.dtype), s.lanes};
  std::string x = unary(Prim::Bits, bits, s.dtype, machine(a.text, b.text));
  std::string y = unary(Prim::Bits, bits, s.dtype, machine(b.text, a.text));
  std::string joined = binary(Prim::Or, bits, x, y);
  if (op == Op::Max) {
    auto magnitude = static_cast<std::int64_t>((std::uint64_t{1} << (bits_of(s.dtype) - 1)) - 1);
    joined = binary(Prim::Or, bits, binary(Prim::And, bits, joined, integer(bits, magnitude)),
                    binary(Prim::And, bits, x, y));
  }
  return unary(Prim::Bits, s, bits.dtype, joined);
}

int ExactAlu::vnni_bits(Shape s) const {
  bool fits = s.lanes == 4 || s.lanes == 8 || s.lanes == 16;
  return fits && target_.isa.find("avx512vnni") != std::string::npos ? s.lanes * 32 : 0;
}

// --- casts ---------------------------------------------------------------------------------------

std::string ExactAlu::bitcast(Shape to, DType from, const std::string& x) {
  if (itemsize(from) != itemsize(to.dtype)) throw InternalError("[render] Bitcast between sizes");
  if (from == to.dtype) return x;
  if (from == DType::Bool) return unary(Prim::ZExt, to, from, x);
  if (to.dtype == DType::Bool) return binary(Prim::Ne, {from, to.lanes}, x, integer({from, to.lanes}, 0));
  return unary(Prim::Bits, to, from, x);
}

std::string ExactAlu::resize(Shape to, DType from, const std::string& x, bool sign) {
  int now = bits_of(from), then = bits_of(to.dtype);
  if (now == then) return from == to.dtype ? x : unary(Prim::Bits, to, from, x);
  return unary(then < now ? Prim::Trunc : sign ? Prim::SExt : Prim::ZExt, to, from, x);
}

std::string ExactAlu::cast(Shape to, DType from, const std::string& x) {
  if (from == to.dtype) return x;
  if (is_float(from)) {
    if (!is_float(to.dtype)) return float_to_int(to, from, x);
    if (to.dtype == f32 || to.dtype == f64) return widen(to, from, x);
    if (from == f64 && to.dtype == f16 && target_.computes.has(f16)) return unary(Prim::FNarrow, to, from, x);
    std::string single = from == f64 ? f64_to_odd_f32(to.lanes, x) : widen({f32, to.lanes}, from, x);
    return to.dtype == f16 ? f32_to_f16(to.lanes, single) : f32_to_bf16(to.lanes, single);
  }
  if (is_float(to.dtype)) return int_to_float(to, from, x);
  if (to.dtype == DType::Bool) return binary(Prim::Ne, {from, to.lanes}, x, integer({from, to.lanes}, 0));
  return resize(to, from, x, is_signed(from));
}

std::string ExactAlu::int_to_float(Shape to, DType from, const std::string& x) {
  Prim how = is_signed(from) ? Prim::SToF : Prim::UToF;
  if (to.dtype == f32 || to.dtype == f64) return unary(how, to, from, x);
  // To f16 by way of f32: integers that f32 rounds are beyond the largest f16.
  if (to.dtype == f16 || bits_of(from) <= 16) return cast(to, f32, unary(how, {f32, to.lanes}, from, x));
  std::string exact = x;
  if (bits_of(from) == 64) {
    // Above 2^52 the low bits are joined into one, far below those that bf16 keeps, so that rounding sees
    // them and f64 holds it.
    Shape s{from, to.lanes};
    std::string low = binary(Prim::And, s, x, integer(s, 4095)),
                rest = binary(Prim::And, s, x, integer(s, -4096));
    std::string any = select(s, binary(Prim::Ne, s, low, integer(s, 0)), integer(s, 4096), integer(s, 0));
    constexpr std::int64_t kLimit = std::int64_t{1} << 52;
    std::string large = is_signed(from) ? binary(Prim::ULt, s, integer(s, 2 * kLimit),
                                                 binary(Prim::Add, s, x, integer(s, kLimit)))
                                        : binary(Prim::ULt, s, integer(s, kLimit), x);
    exact = select(s, large, binary(Prim::Or, s, rest, any), x);
  }
  return cast(to, f64, unary(how, {f64, to.lanes}, from, exact));
}

// Saturating, NaN to 0.
std::string ExactAlu::float_to_int(Shape to, DType from, const std::string& x) {
  Shape s{from == f64 ? f64 : f32, to.lanes};
  std::string v = widen(s, from, x);
  auto number = [&](double d) { return constant(s, float_scalar(d)); };
  if (to.dtype == DType::Bool) return binary(Prim::FNe, s, v, number(0));
  int bits = bits_of(to.dtype);
  bool sign = is_signed(to.dtype);
  double lowest = sign ? -std::ldexp(1.0, bits - 1) : 0, limit = std::ldexp(1.0, sign ? bits - 1 : bits);
  // Narrow results pass through i32, which vectors convert to in one step.
  Shape step{bits >= 32 ? to.dtype : i32, to.lanes};
  Prim how = is_signed(step.dtype) ? Prim::FToS : Prim::FToU;
  // NaN compares false, so it becomes the lowest.
  std::string y = select(s, binary(Prim::FGt, s, v, number(lowest)), v, number(lowest)), result;
  if (bits < 32 || (bits == 32 && s.dtype == f64)) {
    y = select(s, binary(Prim::FLt, s, y, number(limit - 1)), y, number(limit - 1));
    result = resize(to, step.dtype, unary(how, step, s.dtype, y), true);
  } else {  // the largest is not a float
    std::string over = binary(Prim::FGe, s, y, number(limit));
    result = unary(how, step, s.dtype, select(s, over, number(0), y));
    result = select(to, over, integer(to, sign ? int_max(to.dtype) : -1), result);
  }
  return sign ? select(to, binary(Prim::FUno, s, v, v), integer(to, 0), result) : result;
}

std::string ExactAlu::widen(Shape to, DType from, const std::string& x) {
  if (from == to.dtype) return x;
  if (from == f64) return unary(Prim::FNarrow, to, from, x);
  std::string single = x;
  if (from == f16) single = f16_to_f32(to.lanes, x);
  if (from == bf16) {
    Shape u{u32, to.lanes};
    std::string high = binary(Prim::Shl, u, unary(Prim::ZExt, u, u16, x), integer(u, 16));
    single = unary(Prim::Bits, {f32, to.lanes}, u32, high);
  }
  return to.dtype == f32 ? single : unary(Prim::FExt, to, f32, single);
}

std::string ExactAlu::f16_to_f32(int lanes, const std::string& x) {
  Shape u{u32, lanes}, f{f32, lanes};
  if (target_.computes.has(f16)) return unary(Prim::FExt, f, f16, x);
  if (target_.converts.has(f16)) return unary(Prim::HalfToF32, f, f16, x);
  // Mantissa and exponent in place, then scaled: exact for subnormal numbers too.
  std::string wide = unary(Prim::ZExt, u, u16, x);
  std::string shifted = binary(Prim::Shl, u, binary(Prim::And, u, wide, integer(u, 0x7fff)), integer(u, 13));
  std::string scaled =
      binary(Prim::FMul, f, unary(Prim::Bits, f, u32, shifted), constant(f, float_scalar(0x1p112)));
  std::string special = binary(Prim::ULt, u, integer(u, (0x7c00 << 13) - 1), shifted);
  std::string body = select(u, special, binary(Prim::Or, u, shifted, integer(u, 0x7f800000)),
                            unary(Prim::Bits, u, f32, scaled));
  std::string sign = binary(Prim::Shl, u, binary(Prim::And, u, wide, integer(u, 0x8000)), integer(u, 16));
  return unary(Prim::Bits, f, u32, binary(Prim::Or, u, body, sign));
}

std::string ExactAlu::f32_to_f16(int lanes, const std::string& x) {
  Shape half{f16, lanes}, u{u32, lanes}, f{f32, lanes};
  if (target_.computes.has(f16)) return unary(Prim::FNarrow, half, f32, x);
  if (target_.converts.has(f16)) return unary(Prim::F32ToHalf, half, f32, x);
  std::string all = unary(Prim::Bits, u, f32, x), size = binary(Prim::And, u, all, integer(u, 0x7fffffff));
  std::string sign = binary(Prim::LShr, u, binary(Prim::Xor, u, all, size), integer(u, 16));
  // Normal numbers: the exponent rebiased by -112 and the half added that rounds ties to even.
  std::string odd = binary(Prim::And, u, binary(Prim::LShr, u, size, integer(u, 13)), integer(u, 1));
  std::string rebiased = binary(Prim::Add, u, size, integer(u, 0xc8000fff));
  std::string normal = binary(Prim::LShr, u, binary(Prim::Add, u, rebiased, odd), integer(u, 13));
  // Subnormal ones: adding one half lets the float unit round at their last bit.
  std::string sum = binary(Prim::FAdd, f, unary(Prim::Bits, f, u32, size), constant(f, float_scalar(0.5)));
  std::string small = binary(Prim::Sub, u, unary(Prim::Bits, u, f32, sum), integer(u, 0x3f000000));
  std::string r = select(u, binary(Prim::ULt, u, size, integer(u, 0x38800000)), small, normal);
  r = select(u, binary(Prim::ULt, u, integer(u, 0x477fffff), size), integer(u, 0x7c00), r);
  r = select(u, binary(Prim::ULt, u, integer(u, 0x7f800000), size), integer(u, 0x7e00), r);
  return unary(Prim::Trunc, {u16, lanes}, u32, binary(Prim::Or, u, r, sign));
}

// By integer arithmetic: the instruction there is flushes subnormal numbers.
std::string ExactAlu::f32_to_bf16(int lanes, const std::string& x) {
  Shape u{u32, lanes};
  std::string all = unary(Prim::Bits, u, f32, x);
  std::string odd = binary(Prim::And, u, binary(Prim::LShr, u, all, integer(u, 16)), integer(u, 1));
  std::string sum = binary(Prim::Add, u, binary(Prim::Add, u, all, integer(u, 0x7fff)), odd);
  std::string r = select(u, binary(Prim::FUno, {f32, lanes}, x, x), integer(u, 0x7fc0),
                         binary(Prim::LShr, u, sum, integer(u, 16)));
  return unary(Prim::Trunc, {u16, lanes}, u32, r);
}

// f64 to the f32 whose last bit is odd wherever it is not exact: rounding that to fewer bits rounds as once
// (Boldo and Melquiond, "When double rounding is odd", 2005).
std::string ExactAlu::f64_to_odd_f32(int lanes, const std::string& x) {
  Shape u{i32, lanes}, f{f32, lanes}, d{f64, lanes};
  std::string y = unary(Prim::FNarrow, f, f64, x), bits = unary(Prim::Bits, u, f32, y);
  std::string even = binary(Prim::Eq, u, binary(Prim::And, u, bits, integer(u, 1)), integer(u, 0));
  std::string back = unary(Prim::FAbs, d, unary(Prim::FExt, d, f32, y)), size = unary(Prim::FAbs, d, x);
  std::string above = binary(Prim::FGt, d, back, size), below = binary(Prim::FLt, d, back, size);
  std::string step = select(u, above, integer(u, -1), select(u, below, integer(u, 1), integer(u, 0)));
  std::string odd = binary(Prim::Add, u, bits, select(u, even, step, integer(u, 0)));
  return unary(Prim::Bits, f, i32, odd);
}

}  // namespace pg::render
