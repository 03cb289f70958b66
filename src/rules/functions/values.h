// Small words shared by the functions of this folder, on any V as described in rules/functions.h: constants,
// clamping, polynomials, signs, and sums of two values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pg::rules::functions {

template <class V>
V real(const V& like, double value) {
  return constant_like(like, value);
}

template <class V>
V whole(const V& like, std::int64_t value) {
  return constant_like(like, value);
}

/// min(x, hi); NaN stays NaN. Written so that x86 selects one MINPS.
template <class V>
V at_most(const V& x, double hi) {
  V b = real(x, hi);
  return where(lt(b, x), b, x);
}

template <class V>
V clamp(const V& x, double lo, double hi) {
  V a = real(x, lo);
  return at_most(V(where(lt(x, a), a, x)), hi);
}

/// c[From] + x c[From + 1] + x^2 c[From + 2] + ..., by Horner's rule.
template <std::size_t From = 0, class V, std::size_t N>
V horner(const V& x, const double (&c)[N]) {
  V sum = real(x, c[N - 1]);
  for (std::size_t i = N - 1; i-- > From;) sum = fma(sum, x, real(x, c[i]));
  return sum;
}

template <class V>
V abs_f32(const V& x) {
  auto bits = bitcast_i32(x);
  return bitcast_f32(bits & whole(bits, 0x7fffffff));
}

template <class V>
V abs_f64(const V& x) {
  auto bits = bitcast_i64(x);
  return bitcast_f64(bits & whole(bits, INT64_MAX));
}

/// x >= 0 (or +0) with the sign of s.
template <class V>
V with_sign_f32(const V& x, const V& s) {
  auto bits = bitcast_i32(s);
  return bitcast_f32(bitcast_i32(x) | (bits & whole(bits, INT32_MIN)));
}

template <class V>
V with_sign_f64(const V& x, const V& s) {
  auto bits = bitcast_i64(s);
  return bitcast_f64(bitcast_i64(x) | (bits & whole(bits, INT64_MIN)));
}

/// An unevaluated sum, |lo| small against |hi|.
template <class V>
struct Pair {
  V hi, lo;
};

/// a + b without loss, if |a| >= |b| or a = 0 (Dekker 1971).
template <class V>
Pair<V> fast_two_sum(const V& a, const V& b) {
  V sum = a + b;
  return {sum, b - (sum - a)};
}

}  // namespace pg::rules::functions
