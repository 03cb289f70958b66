// Arithmetic on one element, for every elementwise op and dtype: what constant folding and the interpreter
// compute. Integers wrap and never trap; floats are kept as doubles that hold a value of their dtype, and
// round once per op.
#pragma once

#include "ir/node.h"

namespace pg {

/// One element: an integer or bool in i (u64 by its bits), a float in f.
using Scalar = Arg;

inline Scalar int_scalar(std::int64_t v) { return Scalar{.i = v}; }
inline Scalar float_scalar(double v) { return Scalar{.f = v}; }

/// v as a value of dtype t: integers wrap, floats round to nearest even.
std::int64_t wrap(DType t, std::int64_t v);
double round_to(DType t, double v);

/// True for the ops eval_scalar knows: elementwise, but the transcendental functions (their value is that of
/// their decomposition, so that folded and compiled code agree).
bool is_exact(Op op);

/// The op on sources of type `from` (the comparison's operands, the cast's source, a Where's branches),
/// result `to`.
Scalar eval_scalar(Op op, DType to, DType from, const Scalar* src);

/// Value conversion: float to int truncates and saturates (NaN gives 0), int to int wraps.
Scalar cast_scalar(Scalar v, DType from, DType to);
/// The bits of v in the storage format of t, and back.
std::uint64_t to_bits(DType t, Scalar v);
Scalar from_bits(DType t, std::uint64_t bits);

std::uint16_t f16_from(double v);
double f16_value(std::uint16_t bits);

/// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011); low
/// word first.
std::uint64_t threefry2x32(std::uint64_t counter, std::uint64_t key);

/// Floor division and modulo as the ops define them: by zero 0, the smallest by -1 wraps.
std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);

}  // namespace pg
