// Arithmetic on one element, written apart from ir/scalar.cpp so that each checks the other: integers in 128
// bits cut to their dtype, floats in their own width, functions in extended precision and rounded once.
#pragma once

#include <cstdint>

#include "ir/scalar.h"

namespace pg::eval {

/// v rounded to the nearest value of a float dtype, ties to even, as a double.
double rounded(DType t, long double v);

/// A cast: integers wrap, float to integer truncates and saturates (NaN gives 0), to bool is "not zero".
Scalar convert(Scalar v, DType from, DType to);

/// Storage format of an element and back.
std::uint64_t encode(DType t, Scalar v);
Scalar decode(DType t, std::uint64_t bits);

/// Any elementwise op but Bitcast; `from` is the dtype of the operands (of a Where: of its branches), `to`
/// the result's.
Scalar apply(Op op, DType to, DType from, const Scalar* src);

}  // namespace pg::eval
