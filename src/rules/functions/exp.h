// exp, exp2 and tanh.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite, "Software Manual for the Elementary Functions", 1980;
// fma makes the first product exact), then e^r = 1 + r q(r) with q a minimax polynomial. n is found by adding
// a large constant, after which it also stands in the low bits of the sum, where powers of two are made from
// it without a conversion.
#pragma once

#include "rules/functions/coefficients.h"
#include "rules/functions/values.h"

namespace pg::rules::functions {

/// The low bits of `shifted` hold n + bias; x = n ln 2 + r.
template <class V>
struct Exponent {
  V shifted, r;
};

// Adding 1.5 * 2^23 (2^52) rounds to an integer, kept in the low bits.
inline constexpr double kRound_32 = 0x1.8p23, kRound_64 = 0x1.8p52;
// What to add to n: for power_*, and for scale_*.
inline constexpr double kBias_32 = 127, kBias_64 = 1023, kTwoBias_32 = 254, kTwoBias_64 = 2046;

template <class V>
Exponent<V> reduce_exp_f32(const V& x, double bias) {
  V magic = real(x, kRound_32 + bias);
  V shifted = fma(x, real(x, kLog2e_32Hi), magic);
  V n = shifted - magic;
  return {shifted, fma(n, real(x, -kLn2_32Lo), fma(n, real(x, -kLn2_32Hi), x))};
}

template <class V>
Exponent<V> reduce_exp_f64(const V& x, double bias) {
  V magic = real(x, kRound_64 + bias);
  V shifted = fma(x, real(x, kLog2e_64Hi), magic);
  V n = shifted - magic;
  return {shifted, fma(n, real(x, -kLn2_64Lo), fma(n, real(x, -kLn2_64Hi), x))};
}

/// 2^n, a normal number, from bias kBias.
template <class V>
V power_f32(const V& shifted) {
  auto n = bitcast_i32(shifted);
  return bitcast_f32(n << whole(n, 23));
}

template <class V>
V power_f64(const V& shifted) {
  auto n = bitcast_i64(shifted);
  return bitcast_f64(n << whole(n, 52));
}

/// p * 2^n from bias kTwoBias, into the subnormals and to infinity: of the two products only the second
/// rounds.
template <class V>
V scale_f32(const V& p, const V& shifted) {
  auto n = bitcast_i32(shifted);
  auto half = (n << whole(n, 22)) & whole(n, 0xff800000);  // 2^floor(n/2)
  auto rest = (n << whole(n, 23)) - half;
  return p * bitcast_f32(half) * bitcast_f32(rest);
}

template <class V>
V scale_f64(const V& p, const V& shifted) {
  auto n = bitcast_i64(shifted);
  auto half = (n << whole(n, 51)) & whole(n, -(std::int64_t{1} << 52));
  auto rest = (n << whole(n, 52)) - half;
  return p * bitcast_f64(half) * bitcast_f64(rest);
}

/// e^x.
template <class V>
V exp_f32(const V& x) {
  auto [shifted, r] = reduce_exp_f32(clamp(x, -104, 89), kTwoBias_32);
  return scale_f32(fma(horner(r, kExp_32), r, real(x, 1)), shifted);
}

template <class V>
V exp_f64(const V& x) {
  auto [shifted, r] = reduce_exp_f64(clamp(x, -746, 710), kTwoBias_64);
  return scale_f64(fma(horner(r, kExp_64), r, real(x, 1)), shifted);
}

/// 2^x.
template <class V>
V exp2_f32(const V& x) {
  V v = clamp(x, -151, 128);
  V magic = real(x, kRound_32 + kTwoBias_32);
  V shifted = v + magic;
  V r = v - (shifted - magic);
  return scale_f32(fma(horner(r, kExp2_32), r, real(x, 1)), shifted);
}

template <class V>
V exp2_f64(const V& x) {
  V v = clamp(x, -1076, 1024);
  V magic = real(x, kRound_64 + kTwoBias_64);
  V shifted = v + magic;
  V r = v - (shifted - magic);
  return scale_f64(fma(horner(r, kExp2_64), r, real(x, 1)), shifted);
}

/// tanh x = x + x^3 p(x^2) near zero, else 1 - 2 / (e^2|x| + 1).
template <class V>
V tanh_f32(const V& x) {
  V a = abs_f32(x);
  V s = a * a;
  V near = fma(a * s, horner(s, kTanh_32), a);
  auto [shifted, r] = reduce_exp_f32(at_most(a + a, 20), kBias_32);
  V one = real(x, 1);
  V far = one - real(x, 2) / fma(fma(horner(r, kExp_32), r, one), power_f32(shifted), one);
  return with_sign_f32(where(lt(a, real(x, kTanhSplit_32)), near, far), x);
}

/// tanh x = E / (E + 2) with E = e^2|x| - 1 = 2^n (e^r - 1) + (2^n - 1), relatively accurate down to zero.
template <class V>
V tanh_f64(const V& x) {
  V a = abs_f64(x);
  auto [shifted, r] = reduce_exp_f64(at_most(a + a, 40), kBias_64);
  V power = power_f64(shifted);
  V small = fma(r, r * horner<1>(r, kExp_64), r);  // e^r - 1, as q(0) = 1
  V e = fma(power, small, power - real(x, 1));
  return with_sign_f64(e / (e + real(x, 2)), x);
}

}  // namespace pg::rules::functions
