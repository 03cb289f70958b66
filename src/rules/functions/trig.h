// sin, cos and tan over the whole range. |x| = r + q pi/2 with |r| <= pi/4, in integers after Payne and Hanek
// ("Radian Reduction for Trigonometric Functions", SIGNUM Newsletter, 1983): of the bits of 2/pi only a
// window matters, since those above give multiples of 4 and those below vanish. The window is cut from
// constants by a tree of WHEREs and a shift, and multiplied by the significand; the product is x 2/pi modulo
// 4 as a fixed-point number, whose fraction becomes r in two floats. Then minimax polynomials in r^2.
#pragma once

#include "rules/functions/coefficients.h"
#include "rules/functions/values.h"

namespace pg::rules::functions {

/// r = hi + lo, and q, of which only the two low bits count. lo is NaN where x is not finite.
template <class V, class I>
struct Reduced {
  V hi, lo;
  I quadrant;
};

/// a where the bit of t is set, else b.
template <class U, class W>
W choose(const U& t, std::int64_t bit, const W& a, const W& b) {
  return where(ne(t & whole(t, bit), whole(t, 0)), a, b);
}

/// Bits s to s + 31 of the 64 bits a, b, counted from the top, for s < 32; rest is 31 - s.
template <class U>
U window(const U& a, const U& b, const U& s, const U& rest) {
  return (a << s) | ((b >> whole(b, 1)) >> rest);
}

/// The high half of the product of two u32.
template <class U>
U mul_high(const U& a, const U& b) {
  auto product = mul_wide(a, b);
  return to_u32(product >> whole(product, 32));
}

template <class V>
auto reduce_f32(const V& x) {
  V a = abs_f32(x);
  auto bits = bitcast_u32(a);
  auto k = [&](std::int64_t v) { return whole(bits, v); };
  using U = decltype(bits);
  // From |x| = 1/2 up t counts exponents, 0 to 127 in its low bits; below, r is |x| and all this goes unused.
  // At the last exponent, for which t would be 128, the significand is doubled instead.
  U t = (bits >> k(23)) + k(2);
  U last = t >> k(8);
  U m = ((bits & k(0x7fffff)) | k(0x800000)) << last;
  t = t - last;
  // w0 w1 w2 = floor(2/pi 2^(t + 70)) mod 2^96.
  U u[7];
  for (int i = 0; i < 7; i++) u[i] = k(kTwoOverPi_32[i]);
  for (int i = 0; i < 5; i++) u[i] = choose(t, 64, u[i + 2], u[i]);
  for (int i = 0; i < 4; i++) u[i] = choose(t, 32, u[i + 1], u[i]);
  U s = t & k(31), rest = s ^ k(31);
  U w0 = window(u[0], u[1], s, rest), w1 = window(u[1], u[2], s, rest), w2 = window(u[2], u[3], s, rest);
  // x 2/pi mod 4 = (high + low 2^-32) 2^-30.
  U tail = mul_high(m, w2), low = m * w1 + tail;
  U high = m * w0 + mul_high(m, w1) + where(lt(low, tail), k(1), k(0));
  U quadrant = (high + k(1 << 29)) >> k(30);
  high = high - (quadrant << k(30)) + (low >> k(31));  // now signed, and low counts as signed
  U top = (high + k(16)) & k(-32);
  V head = to_f32(bitcast_i32(top));
  V fine = fma(to_f32(bitcast_i32(high - top)), real(x, 0x1p32), to_f32(bitcast_i32(low)));
  V scale = real(x, kHalfPi_32Hi * 0x1p-30);
  V hi = head * scale;
  V lo = fma(head, real(x, kHalfPi_32Lo * 0x1p-30), fma(head, scale, -hi));
  lo = fma(fine, real(x, kHalfPi_32Hi * 0x1p-62), lo);
  auto near = lt(a, real(x, kHalfPi_32Hi / 2));
  V zero = real(x, 0);
  return Reduced<V, U>{where(near, a, hi), fma(x, zero, where(near, zero, lo)), where(near, k(0), quadrant)};
}

/// The high half of the product of two u64, a < 2^54.
template <class U>
U mul_high_54(const U& a, const U& b) {
  auto a0 = to_u32(a), a1 = to_u32(a >> whole(a, 32)), b0 = to_u32(b), b1 = to_u32(b >> whole(b, 32));
  U u = mul_wide(a1, b0) + (mul_wide(a0, b0) >> whole(a, 32));
  U v = mul_wide(a0, b1) + (u & whole(a, 0xffffffff));
  return mul_wide(a1, b1) + (u >> whole(a, 32)) + (v >> whole(a, 32));
}

/// As reduce_f32, with words twice as wide.
template <class V>
auto reduce_f64(const V& x) {
  V a = abs_f64(x);
  auto bits = bitcast_u64(a);
  auto k = [&](std::int64_t v) { return whole(bits, v); };
  using U = decltype(bits);
  U t = (bits >> k(52)) + k(2);
  U last = t >> k(11);
  U m = ((bits & k((std::int64_t{1} << 52) - 1)) | k(std::int64_t{1} << 52)) << last;
  t = t - last;
  // w0 w1 w2 = floor(2/pi 2^(t + 137)) mod 2^192.
  U u[19];
  for (int i = 0; i < 19; i++) u[i] = k(static_cast<std::int64_t>(kTwoOverPi_64[i]));
  for (int i = 0; i < 11; i++) u[i] = choose(t, 512, u[i + 8], u[i]);
  for (int i = 0; i < 7; i++) u[i] = choose(t, 256, u[i + 4], u[i]);
  for (int i = 0; i < 5; i++) u[i] = choose(t, 128, u[i + 2], u[i]);
  for (int i = 0; i < 4; i++) u[i] = choose(t, 64, u[i + 1], u[i]);
  U s = t & k(63), rest = s ^ k(63);
  U w0 = window(u[0], u[1], s, rest), w1 = window(u[1], u[2], s, rest), w2 = window(u[2], u[3], s, rest);
  // x 2/pi mod 4 = (high + low 2^-64) 2^-62.
  U tail = mul_high_54(m, w2), low = m * w1 + tail;
  U high = m * w0 + mul_high_54(m, w1) + where(lt(low, tail), k(1), k(0));
  U quadrant = (high + k(std::int64_t{1} << 61)) >> k(62);
  high = high - (quadrant << k(62)) + (low >> k(63));
  U top = (high + k(128)) & k(-256);
  V head = to_f64(bitcast_i64(top));
  V fine = fma(to_f64(bitcast_i64(high - top)), real(x, 0x1p64), to_f64(bitcast_i64(low)));
  V scale = real(x, kHalfPi_64Hi * 0x1p-62);
  V hi = head * scale;
  V lo = fma(head, real(x, kHalfPi_64Lo * 0x1p-62), fma(head, scale, -hi));
  lo = fma(fine, real(x, kHalfPi_64Hi * 0x1p-126), lo);
  auto near = lt(a, real(x, kHalfPi_64Hi / 2));
  V zero = real(x, 0);
  return Reduced<V, U>{where(near, a, hi), fma(x, zero, where(near, zero, lo)), where(near, k(0), quadrant)};
}

/// r^2, with 2 hi lo, without which the cosine would lose half a unit.
template <class V, class I>
V square(const Reduced<V, I>& r) {
  return fma(r.hi, r.hi, r.hi * (r.lo + r.lo));
}

/// sin r and cos r.
template <class V, class I>
Pair<V> sin_cos_f32(const Reduced<V, I>& r) {
  V s = square(r);
  V sine = r.hi + fma(r.hi * s, horner(s, kSin_32), r.lo);
  V cosine = fma(s, horner(s, kCos_32), real(s, 1));
  return {sine, cosine};
}

template <class V, class I>
Pair<V> sin_cos_f64(const Reduced<V, I>& r) {
  V s = square(r);
  V sine = r.hi + fma(r.hi * s, horner(s, kSin_64), r.lo);
  V cosine = fma(s, horner(s, kCos_64), real(s, 1));
  return {sine, cosine};
}

/// y, negated where the top bit of `sign` is set.
template <class V, class I>
V flip_f32(const V& y, const I& sign) {
  return bitcast_f32(bitcast_u32(y) ^ (sign & whole(sign, 0x80000000)));
}

/// y, negated where the top bit of `sign` is set.
template <class V, class I>
V flip_f64(const V& y, const I& sign) {
  return bitcast_f64(bitcast_u64(y) ^ (sign & whole(sign, INT64_MIN)));
}

/// sin x.
template <class V>
V sin_f32(const V& x) {
  auto r = reduce_f32(x);
  auto [sine, cosine] = sin_cos_f32(r);
  auto sign = (r.quadrant << whole(r.quadrant, 30)) ^ bitcast_u32(x);
  return flip_f32(choose(r.quadrant, 1, cosine, sine), sign);
}

template <class V>
V sin_f64(const V& x) {
  auto r = reduce_f64(x);
  auto [sine, cosine] = sin_cos_f64(r);
  auto sign = (r.quadrant << whole(r.quadrant, 62)) ^ bitcast_u64(x);
  return flip_f64(choose(r.quadrant, 1, cosine, sine), sign);
}

/// cos x.
template <class V>
V cos_f32(const V& x) {
  auto r = reduce_f32(x);
  auto [sine, cosine] = sin_cos_f32(r);
  auto sign = (r.quadrant + whole(r.quadrant, 1)) << whole(r.quadrant, 30);
  return flip_f32(choose(r.quadrant, 1, sine, cosine), sign);
}

template <class V>
V cos_f64(const V& x) {
  auto r = reduce_f64(x);
  auto [sine, cosine] = sin_cos_f64(r);
  auto sign = (r.quadrant + whole(r.quadrant, 1)) << whole(r.quadrant, 62);
  return flip_f64(choose(r.quadrant, 1, sine, cosine), sign);
}

/// tan x: tan r, or -1 / tan r in odd quadrants.
template <class V>
V tan_f32(const V& x) {
  auto r = reduce_f32(x);
  V s = square(r);
  V w = s * horner(s, kTan_32);
  V y = r.hi + fma(r.hi, w, fma(r.lo, w, r.lo));
  V one = real(x, 1);
  auto sign = (r.quadrant << whole(r.quadrant, 31)) ^ bitcast_u32(x);
  return flip_f32(choose(r.quadrant, 1, one, y) / choose(r.quadrant, 1, y, one), sign);
}

template <class V>
V tan_f64(const V& x) {
  auto r = reduce_f64(x);
  V s = square(r);
  V w = s * horner(s, kTan_64);
  V y = r.hi + fma(r.hi, w, fma(r.lo, w, r.lo));
  V one = real(x, 1);
  auto sign = (r.quadrant << whole(r.quadrant, 63)) ^ bitcast_u64(x);
  return flip_f64(choose(r.quadrant, 1, one, y) / choose(r.quadrant, 1, y, one), sign);
}

}  // namespace pg::rules::functions
