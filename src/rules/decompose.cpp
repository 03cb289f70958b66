#include "rules/decompose.h"

#include <bit>

#include <absl/container/inlined_vector.h>

#include "rules/functions.h"
#include "rules/symbolic.h"

// What rules/functions.h asks of its values, for nodes; found through Ref's namespace.
namespace pg {

static Ref constant_like(Ref v, double c) { return const_like(v, c); }
static Ref constant_like(Ref v, std::int64_t c) { return splat(int_const(v.dtype(), c), v.lanes()); }
static Ref fma(Ref a, Ref b, Ref c) { return alu(Op::MulAcc, {a, b, c}); }
static Ref trunc(Ref a) { return alu(Op::Trunc, {a}); }
static Ref lt(Ref a, Ref b) { return a < b; }
static Ref and_(Ref a, Ref b) { return a & b; }
static Ref or_(Ref a, Ref b) { return a | b; }
static Ref not_(Ref a) { return logical_not(a); }
static Ref to_u32(Ref a) { return cast(a, u32); }
static Ref to_f32(Ref a) { return cast(a, f32); }
static Ref to_f64(Ref a) { return cast(a, f64); }
static Ref mul_wide(Ref a, Ref b) { return cast(a, u64) * cast(b, u64); }
static Ref bitcast_f32(Ref a) { return bitcast(a, f32); }
static Ref bitcast_i32(Ref a) { return bitcast(a, i32); }
static Ref bitcast_u32(Ref a) { return bitcast(a, u32); }
static Ref bitcast_f64(Ref a) { return bitcast(a, f64); }
static Ref bitcast_i64(Ref a) { return bitcast(a, i64); }
static Ref bitcast_u64(Ref a) { return bitcast(a, u64); }

namespace rules {
namespace {

using namespace pg::pat;
namespace fn = functions;

const Target& target(const Match& m) { return m.ctx<const Target>(); }

// A float op on a dtype the target only stores is computed in f32 and rounded back: exact for one op, since
// f32 has more than twice the digits (Figueroa, "When is double rounding innocuous?", 1995).
Ref in_f32(const Match& m) {
  DType t = m.root.dtype();
  if ((t != f16 && t != bf16) || target(m).computes.has(t)) return nullptr;
  std::array<Ref, 3> wide;
  for (int i = 0; i < m.root.nsrc(); ++i) wide[static_cast<std::size_t>(i)] = cast(m.root.src(i), f32);
  return cast(alu(m.root.op(), std::span<const Ref>(wide.data(), static_cast<std::size_t>(m.root.nsrc()))),
              t);
}
// A multiply-add has three roundings to fear: the product is exact in a wider dtype (of bf16 in f64), the sum
// is rounded to odd, and rounding that to the narrow dtype is rounding once (Boldo and Melquiond, "Emulation
// of a FMA and correctly rounded sums", 2008).
Ref mul_acc_in_wide(const Match& m) {
  DType t = m.root.dtype();
  if ((t != f16 && t != bf16) || target(m).computes.has(t)) return nullptr;
  bool has_f64 = target(m).computes.has(f64);
  DType wide = has_f64 ? f64 : f32, word = has_f64 ? i64 : i32;
  Ref p = cast(m.root.src(0), wide) * cast(m.root.src(1), wide), c = cast(m.root.src(2), wide), sum = p + c;
  Ref v = sum - p, error = (p - (sum - v)) + (c - v), zero = const_like(sum, 0);
  Ref bits = bitcast(sum, word), one = const_like(bits, 1);
  Ref inexact = ne(error, zero) & eq(sum - sum, zero) & eq(bits & one, const_like(bits, 0));
  Ref odd = where((error < zero) ^ (sum < zero), bits - one, bits + one);
  return cast(bitcast(where(inexact, odd, bits), wide), t);
}
Ref compare_in_f32(const Match& m) {
  DType t = m.root.src(0).dtype();
  if ((t != f16 && t != bf16) || target(m).computes.has(t)) return nullptr;
  return alu(m.root.op(), {cast(m.root.src(0), f32), cast(m.root.src(1), f32)});
}

// A reduction of such values accumulates in f32.
Ref reduce_in_f32(const Match& m) {
  Ref n = m.root;
  DType t = n.dtype();
  if ((t != f16 && t != bf16) || target(m).computes.has(t)) return nullptr;
  std::size_t values = std::max<std::size_t>(1, n.reduce_axes());
  absl::InlinedVector<Ref, 8> srcs(n.srcs().begin(), n.srcs().end());
  for (std::size_t i = 0; i < values; ++i) srcs[i] = cast(srcs[i], f32);
  return cast(make(Op::Reduce, f32, n.lanes(), srcs, n->arg), t);
}

// One of a family of functions by dtype; 16-bit floats go through f32 and round once more.
template <Ref (*F32)(const Ref&), Ref (*F64)(const Ref&)>
Ref function(const Match& m) {
  Ref x = m.root.src(0);
  if (target(m).has(m.root.op())) return nullptr;
  if (x.dtype() == f32) return F32(x);
  if (x.dtype() == f64) return F64(x);
  return cast(alu(m.root.op(), {cast(x, f32)}), x.dtype());
}

Ref power(const Match& m) {
  Ref a = m.root.src(0), b = m.root.src(1);
  if (target(m).has(Op::Pow)) return nullptr;
  if (a.dtype() == f32) return fn::pow_f32(a, b);
  if (a.dtype() == f64) return fn::pow_f64(a, b);
  if (is_float(a.dtype())) return cast(alu(Op::Pow, {cast(a, f32), cast(b, f32)}), a.dtype());
  // Integers: by squaring over the bits of the exponent, wrapping; a negative exponent truncates 1/a^n.
  Ref result = const_like(a, 1), base = a, zero = const_like(a, 0), one = const_like(a, 1);
  int bits = static_cast<int>(itemsize(a.dtype())) * 8;
  for (int i = 0; i < bits; ++i) {
    Ref bit = ne((b >> const_like(b, i)) & one, zero);
    result = where(bit, result * base, result);
    base = base * base;
  }
  if (is_unsigned(a.dtype())) return result;
  Ref odd = ne(b & one, zero), minus = const_like(a, -1);
  Ref inverse = where(eq(a, one), one, where(eq(a, minus), where(odd, minus, one), zero));
  return where(b < zero, inverse, result);
}

// Twenty rounds on pairs of 32-bit words (Salmon et al. 2011), as threefry2x32 in ir/scalar.cpp.
Ref threefry(const Match& m) {
  if (target(m).has(Op::Threefry)) return nullptr;
  Ref counter = m.root.src(0), key = m.root.src(1);
  auto low = [](Ref v) { return cast(v, u32); };
  auto high = [](Ref v) { return cast(v >> const_like(v, 32), u32); };
  auto word = [&](std::uint32_t v) { return splat(int_const(u32, v), counter.lanes()); };
  Ref x0 = low(counter), x1 = high(counter), k0 = low(key), k1 = high(key);
  Ref ks[3] = {k0, k1, k0 ^ k1 ^ word(0x1BD11BDA)};
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x0 = x0 + ks[0];
  x1 = x1 + ks[1];
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (int r : kRotations[i % 2]) {
      x0 = x0 + x1;
      x1 = ((x1 << word(static_cast<std::uint32_t>(r))) | (x1 >> word(static_cast<std::uint32_t>(32 - r)))) ^
           x0;
    }
    x0 = x0 + ks[(i + 1) % 3];
    x1 = x1 + ks[(i + 2) % 3] + word(i + 1);
  }
  return (cast(x1, u64) << const_like(cast(x1, u64), 32)) | cast(x0, u64);
}

constexpr Rule kFunctions[] = {
    rule(any(Op::Exp), function<fn::exp_f32<Ref>, fn::exp_f64<Ref>>),
    rule(any(Op::Exp2), function<fn::exp2_f32<Ref>, fn::exp2_f64<Ref>>),
    rule(any(Op::Log), function<fn::log_f32<Ref>, fn::log_f64<Ref>>),
    rule(any(Op::Log2), function<fn::log2_f32<Ref>, fn::log2_f64<Ref>>),
    rule(any(Op::Sin), function<fn::sin_f32<Ref>, fn::sin_f64<Ref>>),
    rule(any(Op::Cos), function<fn::cos_f32<Ref>, fn::cos_f64<Ref>>),
    rule(any(Op::Tanh), function<fn::tanh_f32<Ref>, fn::tanh_f64<Ref>>),
    rule(any(Op::Erf), function<fn::erf_f32<Ref>, fn::erf_f64<Ref>>),
    rule(any(Op::Pow), power),
    rule(any(Op::Threefry), threefry),
};

constexpr Rule kNarrowFloats[] = {
    rule(any(Op::Reduce), reduce_in_f32),
    rule(any(Op::Neg), in_f32),
    rule(any(Op::Trunc), in_f32),
    rule(any(Op::Sqrt), in_f32),
    rule(any(Op::Add), in_f32),
    rule(any(Op::Sub), in_f32),
    rule(any(Op::Mul), in_f32),
    rule(any(Op::Div), in_f32),
    rule(any(Op::Max), in_f32),
    rule(any(Op::Min), in_f32),
    rule(any(Op::MulAcc), mul_acc_in_wide),
    rule(any(Op::CmpLt), compare_in_f32),
    rule(any(Op::CmpEq), compare_in_f32),
    rule(any(Op::CmpNe), compare_in_f32),
};

bool is_power_of_two(std::int64_t v) { return v > 0 && std::has_single_bit(static_cast<std::uint64_t>(v)); }
Ref log2_of(Ref c) {
  return const_like(c, std::countr_zero(static_cast<std::uint64_t>((c.is(Op::Splat) ? c.src(0) : c).i())));
}
std::int64_t value_of(Ref c) { return (c.is(Op::Splat) ? c.src(0) : c).i(); }

Ref div_by_shift(const Match& m) {
  return is_power_of_two(value_of(m[c0])) ? m[x] >> log2_of(m[c0]) : nullptr;
}
Ref mod_by_mask(const Match& m) {
  std::int64_t c = value_of(m[c0]);
  return is_power_of_two(c) ? m[x] & int_const_like(m[x], c - 1) : nullptr;
}

constexpr Rule kLate[] = {
    rule(x / c0, div_by_shift, ints),
    rule(x % c0, mod_by_mask, ints),
    rule(x / c0, node(Op::CDiv, x, c0), ints, when(lo(x) >= 0 && c0 > 0)),
    rule(x % c0, node(Op::CMod, x, c0), ints, when(lo(x) >= 0 && c0 > 0)),
    rule(x + y * -1, x - y, ints),
    rule(y * -1 + x, x - y, ints),
    rule(x * -1, neg(x), ints),
};

}  // namespace

const RuleSet& decompose() {
  static const RuleSet set = RuleSet(kFunctions) + RuleSet(kNarrowFloats) + symbolic();
  return set;
}

const RuleSet& late() {
  static const RuleSet set(kLate);
  return set;
}

}  // namespace rules
}  // namespace pg
