// The elementwise ops in LLVM IR, with the values of ir/scalar.h to the last bit: no flag that would let LLVM reorder or
// fuse floats, no operation that could trap or be undefined, and nothing that would become a call.
#include <bit>
#include <cmath>

#include "render/llvm_writer.h"

namespace pg::llvm {
namespace {

int bits_of(DType t) { return t == DType::Bool ? 1 : static_cast<int>(itemsize(t)) * 8; }
bool is_signed(DType t) { return is_int(t) && !is_unsigned(t); }

// The integer dtype of as many bits.
DType bits_dtype(DType t) {
  constexpr DType kBySize[] = {u8, u8, u16, u16, u32, u32, u32, u32, u64};
  return kBySize[itemsize(t)];
}

// Of a constant or a splat of one.
bool is_constant(const Operand& x, Scalar& value) {
  if (!x.node) return false;
  Ref c = x.node.is(Op::Splat) ? x.node.src(0) : x.node;
  if (c.is_const()) value = c->arg;
  return c.is_const();
}

}  // namespace

std::string Writer::type(Shape s, bool memory) const {
  std::string scalar;
  switch (s.dtype) {
    case DType::F32: scalar = "float"; break;
    case DType::F64: scalar = "double"; break;
    case DType::F16: scalar = target_.computes.has(f16) ? "half" : "i16"; break;
    case DType::BF16: scalar = "i16"; break;
    case DType::Void: case DType::WeakInt: case DType::WeakFloat:
      throw InternalError("[llvm] a value of dtype " + std::string(name(s.dtype)));
    default: scalar = "i" + std::to_string(s.dtype == DType::Bool && memory ? 8 : bits_of(s.dtype));
  }
  return s.lanes == 1 ? scalar : fmt::format("<{} x {}>", s.lanes, scalar);
}

std::string Writer::mangled(Shape s) const {
  std::string scalar = type({s.dtype, 1});
  if (scalar == "float") scalar = "f32";
  if (scalar == "double") scalar = "f64";
  if (scalar == "half") scalar = "f16";
  return s.lanes == 1 ? scalar : fmt::format("v{}{}", s.lanes, scalar);
}

std::string Writer::constant(Shape s, Scalar v) const {
  std::string scalar = type({s.dtype, 1}), text;
  if (scalar == "float" || scalar == "double") {
    double value = std::isnan(v.f) ? std::nan("") : v.f;
    text = fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(value));
  } else if (scalar == "half") {
    text = fmt::format("0xH{:04X}", to_bits(f16, v));
  } else if (s.dtype == DType::Bool) {
    text = v.i & 1 ? "true" : "false";
  } else if (is_float(s.dtype)) {
    text = std::to_string(static_cast<std::int16_t>(to_bits(s.dtype, v)));
  } else {
    text = std::to_string(v.i);
  }
  return s.lanes == 1 ? text : fmt::format("splat ({} {})", scalar, text);
}

std::string Writer::select(Shape s, std::string_view condition, std::string_view yes, std::string_view no) {
  return emit("select {} {}, {} {}, {} {}", type({boolean, s.lanes}), condition, type(s), yes, type(s), no);
}

std::string Writer::splat(Shape s, std::string_view scalar) {
  if (s.lanes == 1) return std::string(scalar);
  std::string t = type(s);
  std::string first = emit("insertelement {} poison, {} {}, i64 0", t, type({s.dtype, 1}), scalar);
  return emit("shufflevector {} {}, {} poison, <{} x i32> zeroinitializer", t, first, t, s.lanes);
}

std::string Writer::slice(Shape v, std::string_view value, int first, int lanes) {
  std::string t = type(v);
  if (lanes == 1) return emit("extractelement {} {}, i64 {}", t, value, first);
  std::string mask;
  for (int i = 0; i < lanes; ++i) mask += fmt::format("{}i32 {}", i ? ", " : "", first + i);
  return emit("shufflevector {} {}, {} poison, <{} x i32> <{}>", t, value, t, lanes, mask);
}

std::string Writer::intrinsic(std::string_view name, Shape s, std::initializer_list<std::string_view> args) {
  std::string list, t = type(s);
  for (std::string_view a : args) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", t, a);
  return emit("call {} @llvm.{}.{}({})", t, name, mangled(s), list);
}

std::string Writer::alu(Op op, Shape to, DType from, const std::vector<Operand>& s, Ref node) {
  if (op == Op::Cast) return cast(to, from, s[0].text);
  if (op == Op::Where) return select(to, s[0].text, s[1].text, s[2].text);
  if (op == Op::Bitcast) {
    if (itemsize(from) != itemsize(to.dtype)) throw InternalError("[llvm] Bitcast between sizes");
    if (from == DType::Bool) return resize(to, from, s[0].text, false);
    std::string x = type({from, to.lanes}) == type(to) ? s[0].text
                                                       : emit("bitcast {} {} to {}", type({from, to.lanes}), s[0].text, type(to, true));
    return to.dtype == DType::Bool ? emit("icmp ne {} {}, {}", type({u8, to.lanes}), x, integer({u8, to.lanes}, 0)) : x;
  }
  if (!target_.computes.has(from))
    throw InternalError(fmt::format("[llvm] {} on {}, which the target only stores", info(op).name, name(from)));
  if (!target_.has(op)) throw InternalError(fmt::format("[llvm] {} should have been decomposed", info(op).name));
  const std::string& a = s[0].text;
  const std::string& b = s.size() > 1 ? s[1].text : a;
  if (info(op).flags & kComparison) return compare(op, {from, to.lanes}, a, b);
  if (from == DType::Bool) return bool_alu(op, to, s);

  if (is_float(from)) switch (op) {
      case Op::Neg: return emit("fneg {} {}", type(to), a);
      case Op::Trunc: return intrinsic("trunc", to, {a});
      case Op::Sqrt: return intrinsic("sqrt", to, {a});
      case Op::Add: return binary("fadd", to, a, b);
      case Op::Sub: return binary("fsub", to, a, b);
      case Op::Mul: return binary("fmul", to, a, b);
      case Op::Div: return binary("fdiv", to, a, b);
      case Op::Max: case Op::Min: return float_max(op, to, s[0], s[1]);
      case Op::MulAcc: return intrinsic("fma", to, {a, b, s[2].text});
      default: throw InternalError(fmt::format("[llvm] {} on floats", info(op).name));
    }

  // What the bounds show not to overflow says so: address arithmetic folds only then.
  auto exact = [&](auto overflows) -> std::string_view {
    if (!node || !is_signed(to.dtype)) return "";
    std::int64_t lo = 0, hi = 0;
    Ref x = node.src(0), y = node.src(1);
    if (overflows(x.lo(), y.lo(), &lo) || overflows(x.hi(), y.hi(), &hi)) return "";
    return lo >= int_min(to.dtype) && hi <= int_max(to.dtype) ? " nsw" : "";
  };
  switch (op) {
    case Op::Neg: return binary("sub", to, integer(to, 0), a);
    case Op::Trunc: return a;
    case Op::Add: return binary(fmt::format("add{}", exact([](auto x, auto y, auto* r) { return __builtin_add_overflow(x, y, r); })), to, a, b);
    case Op::Sub: return binary("sub", to, a, b);
    case Op::Mul: {
      // Exact if both corners are, of numbers that are not negative.
      bool plain = s[0].nonnegative() && s[1].nonnegative();
      return binary(plain ? fmt::format("mul{}", exact([](auto x, auto y, auto* r) { return __builtin_mul_overflow(x, y, r); })) : "mul", to, a, b);
    }
    case Op::MulAcc: return binary("add", to, binary("mul", to, a, b), s[2].text);
    case Op::CDiv: case Op::CMod: case Op::FloorDiv: case Op::FloorMod: return divide(op, to, s[0], s[1]);
    case Op::Max: return intrinsic(is_unsigned(from) ? "umax" : "smax", to, {a, b});
    case Op::Min: return intrinsic(is_unsigned(from) ? "umin" : "smin", to, {a, b});
    case Op::And: return binary("and", to, a, b);
    case Op::Or: return binary("or", to, a, b);
    case Op::Xor: return binary("xor", to, a, b);
    case Op::Shl: case Op::Shr: return shift(op, to, a, s[1]);
    default: throw InternalError(fmt::format("[llvm] {} on integers", info(op).name));
  }
}

std::string Writer::compare(Op op, Shape s, const std::string& a, const std::string& b) {
  std::string_view how;
  if (is_float(s.dtype)) how = op == Op::CmpLt ? "fcmp olt" : op == Op::CmpEq ? "fcmp oeq" : "fcmp une";
  else if (op == Op::CmpLt) how = is_signed(s.dtype) ? "icmp slt" : "icmp ult";
  else how = op == Op::CmpEq ? "icmp eq" : "icmp ne";
  return binary(how, s, a, b);
}

// Bools are integers modulo 2, but that a sum of them is true if any is.
std::string Writer::bool_alu(Op op, Shape s, const std::vector<Operand>& x) {
  const std::string& a = x[0].text;
  const std::string& b = x.size() > 1 ? x[1].text : a;
  std::string yes = integer(s, 1);
  switch (op) {
    case Op::Neg: case Op::Trunc: return a;
    case Op::Add: case Op::Or: case Op::Max: return binary("or", s, a, b);
    case Op::Mul: case Op::And: case Op::Min: case Op::CDiv: case Op::FloorDiv: return binary("and", s, a, b);
    case Op::Sub: case Op::Xor: return binary("xor", s, a, b);
    case Op::MulAcc: return binary("xor", s, binary("and", s, a, b), x[2].text);
    case Op::CMod: case Op::FloorMod: return integer(s, 0);
    case Op::Shl: case Op::Shr: return binary("and", s, a, binary("xor", s, b, yes));  // by one or more gives 0
    default: throw InternalError(fmt::format("[llvm] {} on bools", info(op).name));
  }
}

std::string Writer::divide(Op op, Shape s, const Operand& a, const Operand& b) {
  bool modulo = op == Op::CMod || op == Op::FloorMod, floor = op == Op::FloorDiv || op == Op::FloorMod;
  bool wide_unsigned = s.dtype == u64;  // its bounds say nothing
  std::string zero = integer(s, 0), one = integer(s, 1);
  Scalar divisor{};
  bool fixed = is_constant(b, divisor);
  if (fixed && divisor.i == 0) return zero;
  bool never_zero = fixed || (b.node && !wide_unsigned && (b.node.lo() > 0 || b.node.hi() < 0));
  std::string d = b.text;
  std::string is_zero = never_zero ? "" : binary("icmp eq", s, d, zero);

  std::string result;
  if (is_unsigned(s.dtype) || (a.nonnegative() && b.nonnegative())) {
    if (!never_zero) d = select(s, is_zero, one, d);
    result = binary(modulo ? "urem" : "udiv", s, a.text, d);
  } else {
    if (fixed && divisor.i == -1) return modulo ? zero : binary("sub", s, zero, a.text);
    // Dividing by 1 instead gives what a wrapping division of the smallest by -1 would.
    bool traps = !fixed && !(b.node && (b.node.lo() > -1 || b.node.hi() < -1)) && !(a.node && a.node.lo() > int_min(s.dtype));
    std::string bad = is_zero;
    if (traps) {
      std::string smallest = binary("icmp eq", s, a.text, integer(s, int_min(s.dtype)));
      std::string minus = binary("icmp eq", s, d, integer(s, -1));
      std::string overflow = binary("and", {boolean, s.lanes}, smallest, minus);
      bad = never_zero ? overflow : binary("or", {boolean, s.lanes}, is_zero, overflow);
    }
    if (!bad.empty()) d = select(s, bad, one, d);
    result = binary(modulo ? "srem" : "sdiv", s, a.text, d);
    if (floor) {
      // The remainder has the sign of the dividend; where that is not the divisor's, one step down.
      std::string rest = modulo ? result : binary("sub", s, a.text, binary("mul", s, result, d));
      std::string crossed = binary("icmp slt", s, binary("xor", s, rest, d), zero);
      std::string down = binary("and", {boolean, s.lanes}, binary("icmp ne", s, rest, zero), crossed);
      result = select(s, down, modulo ? binary("add", s, rest, d) : binary("sub", s, result, one), result);
    }
  }
  return never_zero ? result : select(s, is_zero, zero, result);
}

std::string Writer::shift(Op op, Shape s, const std::string& a, const Operand& b) {
  int bits = bits_of(s.dtype);
  Scalar by{};
  bool fixed = is_constant(b, by);
  bool far = fixed && (by.i < 0 || by.i >= bits);
  bool near = fixed ? !far : b.node && s.dtype != u64 && b.node.lo() >= 0 && b.node.hi() < bits;
  if (op == Op::Shr && is_signed(s.dtype)) {
    // By the width less one nothing but the sign is left.
    std::string last = integer(s, bits - 1);
    return binary("ashr", s, a, near ? b.text : far ? last : intrinsic("umin", s, {b.text, last}));
  }
  if (far) return integer(s, 0);
  std::string shifted = binary(op == Op::Shl ? "shl" : "lshr", s, a, b.text);
  return near ? shifted : select(s, binary("icmp ult", s, b.text, integer(s, bits)), shifted, integer(s, 0));
}

// NaN if either is, and +0 is above -0. The machine's instruction gives its second operand where the two are equal or not
// comparable; a constant in its first place leaves little to repair.
std::string Writer::float_max(Op op, Shape s, const Operand& a, const Operand& b) {
  std::string_view above = op == Op::Max ? "fcmp ogt" : "fcmp olt";
  auto machine = [&](const std::string& x, const std::string& y) { return select(s, binary(above, s, x, y), x, y); };
  for (bool first : {true, false}) {
    const Operand& c = first ? a : b;
    const std::string& x = first ? b.text : a.text;
    Scalar value{};
    if (!is_constant(c, value) || std::isnan(value.f)) continue;
    bool decided = value.f != 0 || std::signbit(value.f) == (op == Op::Max);  // between zeros x itself is right
    if (decided) return machine(c.text, x);
    // Max(x, +0): adding +0 turns -0 into it.
    if (op == Op::Max) return binary("fadd", s, machine(c.text, x), c.text);
  }
  // Either order of the operands gives the same but between zeros and where there is a NaN, so the bits may be joined: both
  // signs for Max, and otherwise any bit, which keeps a NaN one.
  Shape bits{bits_dtype(s.dtype), s.lanes};
  auto raw = [&](const std::string& x) { return emit("bitcast {} {} to {}", type(s), x, type(bits)); };
  std::string x = raw(machine(a.text, b.text)), y = raw(machine(b.text, a.text));
  std::string joined = binary("or", bits, x, y);
  if (op == Op::Max) {
    std::string magnitude = integer(bits, static_cast<std::int64_t>((std::uint64_t{1} << (bits_of(s.dtype) - 1)) - 1));
    joined = binary("or", bits, binary("and", bits, joined, magnitude), binary("and", bits, x, y));
  }
  return emit("bitcast {} {} to {}", type(bits), joined, type(s));
}

// --- casts -----------------------------------------------------------------------------------------------------------

std::string Writer::resize(Shape to, DType from, const std::string& x, bool sign) {
  Shape s{from, to.lanes};
  int now = bits_of(from), then = bits_of(to.dtype);
  if (now == then) return x;
  return emit("{} {} {} to {}", then < now ? "trunc" : sign ? "sext" : "zext", type(s), x, type(to));
}

std::string Writer::cast(Shape to, DType from, const std::string& x) {
  Shape s{from, to.lanes};
  if (from == to.dtype) return x;
  if (is_float(from)) {
    if (!is_float(to.dtype)) return float_to_int(to, from, x);
    if (to.dtype == f32 || to.dtype == f64) return widen(to, from, x);
    if (from == f64) {
      if (to.dtype == f16 && target_.computes.has(f16)) return emit("fptrunc {} {} to {}", type(s), x, type(to));
      std::string odd = f64_to_odd_f32(to.lanes, x);
      return to.dtype == f16 ? f32_to_f16(to.lanes, odd) : f32_to_bf16(to.lanes, odd);
    }
    std::string wide = widen({f32, to.lanes}, from, x);
    return to.dtype == f16 ? f32_to_f16(to.lanes, wide) : f32_to_bf16(to.lanes, wide);
  }
  if (is_float(to.dtype)) return int_to_float(to, from, x);
  if (to.dtype == DType::Bool) return binary("icmp ne", s, x, integer(s, 0));
  return resize(to, from, x, is_signed(from));
}

std::string Writer::int_to_float(Shape to, DType from, const std::string& x) {
  Shape s{from, to.lanes};
  std::string_view how = is_signed(from) ? "sitofp" : "uitofp";
  if (to.dtype == f32 || to.dtype == f64) return emit("{} {} {} to {}", how, type(s), x, type(to));
  // To f16 by way of f32: integers that f32 rounds are beyond the largest f16.
  if (to.dtype == f16 || bits_of(from) <= 16)
    return cast(to, f32, emit("{} {} {} to {}", how, type(s), x, type({f32, to.lanes})));
  std::string exact = x;
  if (bits_of(from) == 64) {
    // What f64 cannot hold is joined into one bit, far below those that bf16 keeps, so that rounding sees it.
    std::string low = binary("and", s, x, integer(s, 4095)), rest = binary("and", s, x, integer(s, -4096));
    std::string any = select(s, binary("icmp ne", s, low, integer(s, 0)), integer(s, 4096), integer(s, 0));
    std::string joined = binary("or", s, rest, any);
    std::string size = is_signed(from) ? emit("call {0} @llvm.abs.{1}({0} {2}, i1 false)", type(s), mangled(s), x) : x;
    exact = select(s, binary("icmp ugt", s, size, integer(s, std::int64_t{1} << 52)), joined, x);
  }
  return cast(to, f64, emit("{} {} {} to {}", how, type(s), exact, type({f64, to.lanes})));
}

// Saturating, NaN to 0, without an instruction that is undefined out of range (LLVM's own for vectors works lane by lane).
std::string Writer::float_to_int(Shape to, DType from, const std::string& x) {
  DType wide = from == f64 ? f64 : f32;
  Shape s{wide, to.lanes};
  std::string v = widen(s, from, x);
  auto number = [&](double d) { return constant(s, float_scalar(d)); };
  if (to.dtype == DType::Bool) return binary("fcmp une", s, v, number(0));
  int bits = bits_of(to.dtype);
  bool sign = is_signed(to.dtype);
  double lowest = sign ? -std::ldexp(1.0, bits - 1) : 0, limit = std::ldexp(1.0, sign ? bits - 1 : bits);
  // Narrow results pass through i32, which vectors convert to in one step.
  Shape step{bits >= 32 ? to.dtype : i32, to.lanes};
  std::string_view how = sign || bits < 32 ? "fptosi" : "fptoui";
  // NaN compares false, so it becomes the lowest.
  std::string y = select(s, binary("fcmp ogt", s, v, number(lowest)), v, number(lowest));
  bool fits = bits < 32 || (bits == 32 && wide == f64);
  std::string result;
  if (fits) {
    y = select(s, binary("fcmp olt", s, y, number(limit - 1)), y, number(limit - 1));
    result = resize(to, step.dtype, emit("{} {} {} to {}", how, type(s), y, type(step)), true);
  } else {  // the largest is not a float
    std::string over = binary("fcmp oge", s, y, number(limit));
    y = select(s, over, number(0), y);
    result = emit("{} {} {} to {}", how, type(s), y, type(step));
    result = select(to, over, integer(to, sign ? int_max(to.dtype) : -1), result);
  }
  return sign ? select(to, binary("fcmp uno", s, v, v), integer(to, 0), result) : result;
}

std::string Writer::widen(Shape to, DType from, const std::string& x) {
  if (from == to.dtype) return x;
  if (from == f64) return emit("fptrunc {} {} to {}", type({f64, to.lanes}), x, type(to));
  std::string single = x;
  if (from == f16) single = f16_to_f32(to.lanes, x);
  if (from == bf16) {
    std::string wide = emit("zext {} {} to {}", type({u16, to.lanes}), x, type({u32, to.lanes}));
    single = emit("bitcast {} {} to {}", type({u32, to.lanes}), binary("shl", {u32, to.lanes}, wide, integer({u32, to.lanes}, 16)), type({f32, to.lanes}));
  }
  return to.dtype == f32 ? single : emit("fpext {} {} to {}", type({f32, to.lanes}), single, type(to));
}

std::string Writer::f16_to_f32(int lanes, const std::string& x) {
  Shape h{f16, lanes}, raw{u16, lanes}, u{u32, lanes}, f{f32, lanes};
  std::string half = lanes == 1 ? "half" : fmt::format("<{} x half>", lanes);
  if (target_.computes.has(f16)) return emit("fpext {} {} to {}", type(h), x, type(f));
  if (target_.converts.has(f16))
    return emit("fpext {} {} to {}", half, emit("bitcast {} {} to {}", type(raw), x, half), type(f));
  // Mantissa and exponent in place, then scaled: exact for subnormal numbers too.
  std::string w = emit("zext {} {} to {}", type(raw), x, type(u));
  std::string shifted = binary("shl", u, binary("and", u, w, integer(u, 0x7fff)), integer(u, 13));
  std::string scaled = binary("fmul", f, emit("bitcast {} {} to {}", type(u), shifted, type(f)), constant(f, float_scalar(0x1p112)));
  std::string body = emit("bitcast {} {} to {}", type(f), scaled, type(u));
  std::string special = binary("icmp uge", u, shifted, integer(u, 0x7c00 << 13));
  body = select(u, special, binary("or", u, shifted, integer(u, 0x7f800000)), body);
  std::string sign = binary("shl", u, binary("and", u, w, integer(u, 0x8000)), integer(u, 16));
  return emit("bitcast {} {} to {}", type(u), binary("or", u, body, sign), type(f));
}

std::string Writer::f32_to_f16(int lanes, const std::string& x) {
  Shape h{f16, lanes}, raw{u16, lanes}, u{u32, lanes}, f{f32, lanes};
  std::string half = lanes == 1 ? "half" : fmt::format("<{} x half>", lanes);
  if (target_.computes.has(f16)) return emit("fptrunc {} {} to {}", type(f), x, type(h));
  if (target_.converts.has(f16))
    return emit("bitcast {} {} to {}", half, emit("fptrunc {} {} to {}", type(f), x, half), type(raw));
  std::string all = emit("bitcast {} {} to {}", type(f), x, type(u));
  std::string a = binary("and", u, all, integer(u, 0x7fffffff));
  std::string sign = binary("lshr", u, binary("xor", u, all, a), integer(u, 16));
  // Normal numbers: the exponent rebiased, the half added that rounds ties to even.
  std::string odd = binary("and", u, binary("lshr", u, a, integer(u, 13)), integer(u, 1));
  std::string normal = binary("lshr", u, binary("add", u, binary("add", u, a, integer(u, 0xc8000fff)), odd), integer(u, 13));
  // Subnormal ones: adding one half lets the float unit round at their last bit.
  std::string sum = binary("fadd", f, emit("bitcast {} {} to {}", type(u), a, type(f)), constant(f, float_scalar(0.5)));
  std::string small = binary("sub", u, emit("bitcast {} {} to {}", type(f), sum, type(u)), integer(u, 0x3f000000));
  std::string r = select(u, binary("icmp ult", u, a, integer(u, 0x38800000)), small, normal);
  r = select(u, binary("icmp uge", u, a, integer(u, 0x47800000)), integer(u, 0x7c00), r);
  r = select(u, binary("icmp ugt", u, a, integer(u, 0x7f800000)), integer(u, 0x7e00), r);
  return emit("trunc {} {} to {}", type(u), binary("or", u, r, sign), type(raw));
}

// By integer arithmetic: the instruction there is flushes subnormal numbers.
std::string Writer::f32_to_bf16(int lanes, const std::string& x) {
  Shape raw{u16, lanes}, u{u32, lanes}, f{f32, lanes};
  std::string all = emit("bitcast {} {} to {}", type(f), x, type(u));
  std::string odd = binary("and", u, binary("lshr", u, all, integer(u, 16)), integer(u, 1));
  std::string rounded = binary("lshr", u, binary("add", u, binary("add", u, all, integer(u, 0x7fff)), odd), integer(u, 16));
  std::string r = select(u, binary("fcmp uno", f, x, x), integer(u, 0x7fc0), rounded);
  return emit("trunc {} {} to {}", type(u), r, type(raw));
}

// f64 to the f32 whose last bit is odd wherever it is not exact: rounding that to fewer bits rounds as once (Boldo and
// Melquiond, "When double rounding is odd", 2005).
std::string Writer::f64_to_odd_f32(int lanes, const std::string& x) {
  Shape u{i32, lanes}, f{f32, lanes}, d{f64, lanes}, b{boolean, lanes};
  std::string y = emit("fptrunc {} {} to {}", type(d), x, type(f));
  std::string back = emit("fpext {} {} to {}", type(f), y, type(d));
  std::string bits = emit("bitcast {} {} to {}", type(f), y, type(u));
  std::string even = binary("icmp eq", u, binary("and", u, bits, integer(u, 1)), integer(u, 0));
  std::string move = binary("and", b, even, binary("fcmp one", d, back, x));
  std::string above = binary("fcmp ogt", d, intrinsic("fabs", d, {back}), intrinsic("fabs", d, {x}));
  std::string step = select(u, above, integer(u, -1), integer(u, 1));
  std::string odd = binary("add", u, bits, select(u, move, step, integer(u, 0)));
  return emit("bitcast {} {} to {}", type(u), odd, type(f));
}

}  // namespace pg::llvm
