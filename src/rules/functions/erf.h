// The error function: x + x p(x^2) near zero; beyond, 1 - erfc |x| with erfc^(1/4) a polynomial in f32, whose
// rounding errors erfc makes small again, and log erfc a polynomial in f64.
#pragma once

#include "rules/functions/coefficients.h"
#include "rules/functions/exp.h"
#include "rules/functions/values.h"

namespace pg::rules::functions {

/// erf x.
template <class V>
V erf_f32(const V& x) {
  V a = abs_f32(x);
  V near = fma(horner(x * x, kErf_32), x, x);
  V c = horner(at_most(a, kErfcTop_32), kErfc_32);
  c = c * c;
  return where(lt(a, real(x, kErfSplit_32)), near, with_sign_f32(fma(-c, c, real(x, 1)), x));
}

template <class V>
V erf_f64(const V& x) {
  V a = abs_f64(x);
  V near = fma(horner(x * x, kErf_64), x, x);
  auto [shifted, r] = reduce_exp_f64(horner(at_most(a, kErfcTop_64), kErfc_64), kBias_64);
  V c = fma(horner(r, kExp_64), r, real(x, 1));
  V far = fma(-c, power_f64(shifted), real(x, 1));
  return where(lt(a, real(x, kErfSplit_64)), near, with_sign_f64(far, x));
}

}  // namespace pg::rules::functions
