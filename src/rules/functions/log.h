// log and log2. x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), subnormals scaled up first; then
// log x = e ln 2 + f + f^2 q(f) with q a minimax polynomial. The classic s = f / (2 + f) needs fewer terms
// but a division, which on vectors costs more than they do.
#pragma once

#include "rules/functions/coefficients.h"
#include "rules/functions/values.h"

namespace pg::rules::functions {

/// x = 2^e (1 + f); e is returned times 2^23 (2^52), as the exponent stands in the bits, which saves a shift.
/// Undone where x is not positive and finite.
template <class V>
struct Split {
  V e, f;
};

template <class V>
Split<V> split_f32(const V& x) {
  auto small = lt(x, real(x, 0x1p-126));
  auto bits = bitcast_i32(where(small, x * real(x, 0x1p24), x));
  auto e = (bits - whole(bits, 0x3f3504f3)) & whole(bits, 0xff800000);  // 0x3f3504f3: sqrt(1/2)
  V f = bitcast_f32(bits - e) - real(x, 1);
  return {to_f32(e - where(small, whole(e, 24 << 23), whole(e, 0))), f};
}

template <class V>
Split<V> split_f64(const V& x) {
  auto small = lt(x, real(x, 0x1p-1022));
  auto bits = bitcast_i64(where(small, x * real(x, 0x1p54), x));
  auto e = (bits - whole(bits, 0x3fe6a09e667f3bcd)) & whole(bits, -(std::int64_t{1} << 52));
  V f = bitcast_f64(bits - e) - real(x, 1);
  return {to_f64(e - where(small, whole(e, std::int64_t{54} << 52), whole(e, 0))), f};
}

/// The logarithm y of x where x is positive and finite, else what IEEE 754 asks for: -inf, NaN, inf, NaN.
template <class V>
V log_edges(const V& x, const V& y) {
  V zero = real(x, 0), inf = real(x, __builtin_inf()), nan = real(x, __builtin_nan(""));
  return where(lt(zero, x), where(lt(x, inf), y, x), where(eq(x, zero), real(x, -__builtin_inf()), nan));
}

/// log x.
template <class V>
V log_f32(const V& x) {
  auto [e, f] = split_f32(x);
  V y = fma(f * f, horner(f, kLog_32), f);
  return log_edges(x, fma(e, real(x, kLn2_32Hi * 0x1p-23), y));
}

template <class V>
V log_f64(const V& x) {
  auto [e, f] = split_f64(x);
  V y = fma(f * f, horner(f, kLog_64), f);
  return log_edges(x, fma(e, real(x, kLn2_64Hi * 0x1p-52), y));
}

/// log2 x; f / ln 2 is added in two parts.
template <class V>
V log2_f32(const V& x) {
  auto [e, f] = split_f32(x);
  V y = fma(f, f * horner(f, kLog2_32), f * real(x, kLog2e_32Lo));
  return log_edges(x, fma(e, real(x, 0x1p-23), fma(f, real(x, kLog2e_32Hi), y)));
}

template <class V>
V log2_f64(const V& x) {
  auto [e, f] = split_f64(x);
  V y = fma(f, f * horner(f, kLog2_64), f * real(x, kLog2e_64Lo));
  return log_edges(x, fma(e, real(x, 0x1p-52), fma(f, real(x, kLog2e_64Hi), y)));
}

}  // namespace pg::rules::functions
