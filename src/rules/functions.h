// Exponentials, logarithms, trigonometric functions, tanh, erf and pow as dataflow over primitive ops, written once as
// templates over a value type V: rules build graph nodes with them (V a node handle), tests run them on host numbers.
//
// V is dynamically typed, or a family of static types, one per dtype: the templates never mix the two views. They want,
// by argument dependent lookup, and never use anything else:
//
//   constant_like(v, double), constant_like(v, std::int64_t)     a constant of v's dtype (and shape, and lanes)
//   f32, f64    a + b, a - b, a * b, a / b, -a, fma(a, b, c), trunc(a)
//               lt(a, b), eq(a, b), ne(a, b)                     ordered, but ne is true for NaN
//   bool        and_(a, b), or_(a, b), not_(a), where(c, a, b)   a and b of any one dtype
//   integers    a + b, a - b, a * b, a & b, a | b, a ^ b         32 and 64 bits, wrapping
//               a << b, a >> b                                   >> is logical on unsigned; the width or more gives 0 or the sign
//               lt(a, b), eq(a, b), ne(a, b)
//   mul_wide(a, b)                                               u32 * u32, the whole product, u64
//   to_u32(u64) the low half; to_f32(i32); to_f64(i64)
//   bitcast_f32, bitcast_i32, bitcast_u32, bitcast_f64, bitcast_i64, bitcast_u64   between dtypes of one width
//
// The law they rely on: each float op rounds once, to nearest even, in its own dtype, subnormals included; fma too.
// Magic constants and error terms are everywhere here, so a renderer or a rule set that reassociates, contracts or
// assumes the absence of NaN or infinity breaks these functions, not just their last bits.
//
// All are pure dataflow: no branch, no loop, no table; every lane does the same. f16 and bf16 go through f32.
// Accuracy (largest error seen, in units in the last place) and op counts are in the comment above each function and
// asserted in tests/rules/functions_test.cpp.
#pragma once

#include "rules/functions/erf.h"
#include "rules/functions/exp.h"
#include "rules/functions/log.h"
#include "rules/functions/pow.h"
#include "rules/functions/trig.h"
