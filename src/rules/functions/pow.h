// pow: |x|^y = e^(y log |x|) with the logarithm as a sum of two floats, since y can be as large as to bring
// its error up by the digits of the exponent; and the special cases of C99 Annex F.9.4.4.
#pragma once

#include "rules/functions/coefficients.h"
#include "rules/functions/exp.h"
#include "rules/functions/log.h"
#include "rules/functions/values.h"

namespace pg::rules::functions {

/// log a for a > 0 as a sum of two. a = 2^e m with m in [4/5, 8/5), from 9/8 up times 3/4, so |f| <= 1/5;
/// log(1+f) = f + h + h u with h = -f^2/2, the first two terms exact. Relative error about 2^-30.
template <class V>
Pair<V> log_pair_f32(const V& a) {
  auto c = [&](double v) { return real(a, v); };
  auto small = lt(a, c(0x1p-126));
  auto bits = bitcast_i32(where(small, a * c(0x1p24), a));
  auto power = (bits - whole(bits, 0x3f4ccccd)) & whole(bits, 0xff800000);  // 0x3f4ccccd: 4/5
  V m = bitcast_f32(bits - power);
  V e = to_f32(power - where(small, whole(power, 24 << 23), whole(power, 0)));
  auto upper = lt(c(1.125), m);
  V f = fma(m, where(upper, c(0.75), c(1)), c(-1));
  V g = f * c(-0.5);
  V h = f * g;
  V u = fma(g, c(kPow_32[0]), h * horner<1>(f, kPow_32));
  auto [head, tail] = fast_two_sum(f, h);
  tail = fma(h, u, tail + fma(f, g, -h));
  V whole_hi = fma(e, c(kLn2Cut_32Hi * 0x1p-23), where(upper, c(kLog4Over3_32Hi), c(0)));
  V whole_lo = fma(e, c(kLn2Cut_32Lo * 0x1p-23), where(upper, c(kLog4Over3_32Lo), c(0)));
  auto sum = fast_two_sum(whole_hi, head);
  return fast_two_sum(sum.hi, sum.lo + (tail + whole_lo));
}

/// log a for a > 0 as a sum of two, through log m = 2 atanh s, s = (m - 1) / (m + 1), also as a sum of two.
/// Relative error about 2^-64.
template <class V>
Pair<V> log_pair_f64(const V& a) {
  auto c = [&](double v) { return real(a, v); };
  auto [e, f] = split_f64(a);
  V m = f + c(1);
  V below = m + c(1);
  V below_lo = m - (below - c(1));
  V inverse = c(1) / below;
  V s = f * inverse;
  V s_lo = fma(-s, below_lo, fma(-s, below, f)) * inverse;
  V z = s * s;
  V z_lo = fma(s + s, s_lo, fma(s, s, -z));
  // t = 1/3 + z q(z); log m = 2 s + 2 s z t.
  auto t = fast_two_sum(c(kThird_64Hi), z * horner(z, kPow_64));
  t.lo = t.lo + c(kThird_64Lo);
  V w = z * t.hi;
  V w_lo = fma(z, t.hi, -w) + fma(z, t.lo, z_lo * t.hi);
  V g = s + s, g_lo = s_lo + s_lo;
  V h = g * w;
  V h_lo = fma(g, w, -h) + fma(g, w_lo, g_lo * w);
  auto head = fast_two_sum(g, h);
  auto sum = fast_two_sum(e * c(kLn2Cut_64Hi * 0x1p-52), head.hi);
  return {sum.hi, sum.lo + (head.lo + (g_lo + h_lo) + e * c(kLn2Cut_64Lo * 0x1p-52))};
}

/// y log a as a sum of two, clamped to [lo, hi], log 0 = -inf and log inf = inf included. y is clamped first,
/// to where even the a next to 1 over- and underflow, so that no inf * 0 arises.
template <class V>
Pair<V> pow_exponent(const V& a, const V& y, const Pair<V>& log, double y_max, double lo, double hi) {
  auto c = [&](double v) { return real(a, v); };
  V b = clamp(y, -y_max, y_max);
  V head = where(lt(a, c(__builtin_inf())), log.hi, a);
  head = where(eq(a, c(0)), c(-__builtin_inf()), head);
  V v = b * head;
  V tail = fma(b, log.lo, fma(b, head, -v));
  auto under = lt(v, c(lo)), over = lt(c(hi), v);
  return {where(under, c(lo), where(over, c(hi), v)), where(or_(under, over), c(0), tail)};
}

/// Whether y is an integer, and an odd one. Infinities are even; NaN is neither.
template <class V, class B>
struct Parity {
  B integer, odd;
};

template <class V>
auto parity(const V& y) {
  auto integer = eq(trunc(y), y);
  V half = y * real(y, 0.5);
  return Parity<V, decltype(integer)>{integer, and_(integer, ne(trunc(half), half))};
}

/// Where x < 0 is finite and y no integer the power is NaN; where x is 1 or y is 0 it is 1, also of NaN.
template <class V, class B>
V pow_edges(const V& x, const V& y, const B& y_integer, const V& power) {
  auto c = [&](double v) { return real(x, v); };
  auto outside = and_(and_(lt(x, c(0)), lt(c(-__builtin_inf()), x)), not_(y_integer));
  V z = where(outside, c(__builtin_nan("")), power);
  return where(or_(eq(x, c(1)), eq(y, c(0))), c(1), z);
}

/// x^y.
template <class V>
V pow_f32(const V& x, const V& y) {
  V a = abs_f32(x);
  auto [v, tail] = pow_exponent(a, y, log_pair_f32(a), 0x1p33, -104, 89);
  auto [shifted, rough] = reduce_exp_f32(v, kTwoBias_32);
  V r = rough + tail;
  V power = scale_f32(fma(horner(r, kExp_32), r, real(x, 1)), shifted);
  auto kind = parity(y);
  auto bits = bitcast_i32(x);
  auto sign = where(kind.odd, bits & whole(bits, INT32_MIN), whole(bits, 0));
  return pow_edges(x, y, kind.integer, bitcast_f32(bitcast_i32(power) | sign));
}

template <class V>
V pow_f64(const V& x, const V& y) {
  V a = abs_f64(x);
  auto [v, tail] = pow_exponent(a, y, log_pair_f64(a), 0x1p65, -746, 710);
  auto [shifted, rough] = reduce_exp_f64(v, kTwoBias_64);
  V r = rough + tail;
  V power = scale_f64(fma(horner(r, kExp_64), r, real(x, 1)), shifted);
  auto kind = parity(y);
  auto bits = bitcast_i64(x);
  auto sign = where(kind.odd, bits & whole(bits, INT64_MIN), whole(bits, 0));
  return pow_edges(x, y, kind.integer, bitcast_f64(bitcast_i64(power) | sign));
}

}  // namespace pg::rules::functions
