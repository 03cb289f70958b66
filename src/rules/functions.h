// Exponentials, logarithms, trigonometric functions, tanh, erf and pow as dataflow over primitive ops,
// written once as templates over a value type V: rules build graph nodes with them (V a node handle), tests
// run them on host numbers.
//
// V is dynamically typed, or a family of static types, one per dtype: the templates fit both. They find by
// argument dependent lookup, and need nothing else:
//
// clang-format off
//   constant_like(v, double)           a constant of v's dtype (and shape, and lanes)
//   constant_like(v, std::int64_t)     the same of an integer, modulo 2^width
//   f32, f64    + - * /  -a  fma(a, b, c)  trunc(a)
//               lt(a, b)  eq(a, b)  ne(a, b)       ne is true of NaN, the others false
//   bool        and_(a, b)  or_(a, b)  not_(a)  where(c, a, b) with a and b of any one dtype
//   i32 u32     + - * & | ^ << >>                  wrapping; >> is logical on unsigned; no shift is by the width
//   i64 u64     ne(a, b), lt(a, b) of unsigned
//   mul_wide(a, b)                                 u32 * u32, the whole product as u64
//   to_u32(u64), the low half;  to_f32(i32);  to_f64(i64)
//   bitcast_f32 bitcast_i32 bitcast_u32, bitcast_f64 bitcast_i64 bitcast_u64: between dtypes of one width
// clang-format on
//
// The law they rely on: each float op rounds once, to nearest even, in its own dtype, subnormals included;
// fma too. Magic constants and error terms are everywhere here, so a renderer or a rule set that
// reassociates, contracts or assumes the absence of NaN or infinity breaks these functions, not just their
// last bits.
//
// All are pure dataflow: no branch, no loop, no table; every lane does the same. f16 and bf16 go through f32.
// Special values are those of C99 Annex F. Largest errors and op counts stand in
// tests/rules/functions_test.cpp, which asserts them.
#pragma once

#include "rules/functions/erf.h"
#include "rules/functions/exp.h"
#include "rules/functions/log.h"
#include "rules/functions/pow.h"
#include "rules/functions/trig.h"
