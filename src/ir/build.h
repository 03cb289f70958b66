// Making nodes: constants, arithmetic with operators, shapes and movement. Everything here checks nothing a
// user could get wrong (the tensor room does) and folds what is constant. Inside a GraphScope.
#pragma once

#include <initializer_list>

#include "ir/node.h"
#include "ir/scalar.h"

namespace pg {

using Dims = std::span<const std::int64_t>;

// --- constants and leaves
// ------------------------------------------------------------------------------------------

/// A constant of dtype t; v is wrapped or rounded to it.
Ref int_const(DType t, std::int64_t v);
Ref float_const(DType t, double v);
/// A constant of either kind, given as the kind's scalar.
Ref scalar_const(DType t, Scalar v);
/// The number v in the dtype of t, whatever its kind (as a vector if t is one).
Ref const_like(Ref t, double v);
/// The same of a 64-bit integer, of which a double would lose bits.
Ref int_const_like(Ref t, std::int64_t v);
/// The constant a node is or splats, else null.
inline Ref constant(Ref x) {
  if (x.is(Op::Splat)) x = x.src(0);
  return x.is_const() ? x : nullptr;
}
/// Order of the operands of commutative integer ops: constants last, else by rank of the op, ranges by
/// number, then by structure; x and x * constant are neighbours. Stable between runs. In chains of one op the
/// chain is the left operand.
bool goes_left(Ref a, Ref b);
/// A weak integer: what indices and sizes are made of.
inline Ref idx(std::int64_t v) { return int_const(DType::WeakInt, v); }
inline Ref bool_const(bool v) { return int_const(DType::Bool, v); }

Ref shape_node(Dims dims);
/// Symbolic when any dimension is not a constant.
Ref shape_node(std::span<const Ref> dims);
Ref range(std::int64_t id, RangeKind kind, Ref extent);
Ref var(std::string_view name, std::int64_t lo, std::int64_t hi, DType t = DType::WeakInt);
Ref bind(Ref variable, std::int64_t value);
Ref param(std::int64_t slot, DType t, Ref shape);
Ref scalar_param(std::int64_t slot, DType t, std::int64_t lo, std::int64_t hi);

// --- elementwise
// ---------------------------------------------------------------------------------------------------

/// An elementwise op; the result's dtype and lanes follow from the sources.
Ref alu(Op op, std::initializer_list<Ref> srcs);
Ref alu(Op op, std::span<const Ref> srcs);
Ref cast(Ref x, DType t);
Ref bitcast(Ref x, DType t);
Ref where(Ref cond, Ref a, Ref b);
Ref splat(Ref x, int lanes);

inline Ref operator+(Ref a, Ref b) { return alu(Op::Add, {a, b}); }
inline Ref operator-(Ref a, Ref b) { return alu(Op::Sub, {a, b}); }
inline Ref operator*(Ref a, Ref b) { return alu(Op::Mul, {a, b}); }
/// Division of floats; of integers it rounds down.
inline Ref operator/(Ref a, Ref b) { return alu(is_float(a.dtype()) ? Op::Div : Op::FloorDiv, {a, b}); }
inline Ref operator%(Ref a, Ref b) { return alu(Op::FloorMod, {a, b}); }
inline Ref operator-(Ref a) { return alu(Op::Neg, {a}); }
inline Ref operator&(Ref a, Ref b) { return alu(Op::And, {a, b}); }
inline Ref operator|(Ref a, Ref b) { return alu(Op::Or, {a, b}); }
inline Ref operator^(Ref a, Ref b) { return alu(Op::Xor, {a, b}); }
inline Ref operator<<(Ref a, Ref b) { return alu(Op::Shl, {a, b}); }
inline Ref operator>>(Ref a, Ref b) { return alu(Op::Shr, {a, b}); }
inline Ref operator<(Ref a, Ref b) { return alu(Op::CmpLt, {a, b}); }
inline Ref operator>(Ref a, Ref b) { return alu(Op::CmpLt, {b, a}); }
inline Ref eq(Ref a, Ref b) { return alu(Op::CmpEq, {a, b}); }
inline Ref ne(Ref a, Ref b) { return alu(Op::CmpNe, {a, b}); }
inline Ref max(Ref a, Ref b) { return alu(Op::Max, {a, b}); }
inline Ref min(Ref a, Ref b) { return alu(Op::Min, {a, b}); }
/// Negation of a bool.
inline Ref logical_not(Ref a) { return ne(a, const_like(a, 1)); }
/// a >= b of integers.
inline Ref ge(Ref a, Ref b) { return logical_not(a < b); }

// Numbers beside a Ref take its dtype.
inline Ref operator+(Ref a, std::int64_t b) { return a + int_const_like(a, b); }
inline Ref operator-(Ref a, std::int64_t b) { return a - int_const_like(a, b); }
inline Ref operator*(Ref a, std::int64_t b) { return a * int_const_like(a, b); }
inline Ref operator/(Ref a, std::int64_t b) { return a / int_const_like(a, b); }
inline Ref operator%(Ref a, std::int64_t b) { return a % int_const_like(a, b); }
inline Ref operator<(Ref a, std::int64_t b) { return a < int_const_like(a, b); }

// --- shapes
// --------------------------------------------------------------------------------------------------------

/// Number of axes of a Shape node, and its dimensions.
int rank(Ref shape);
Ref dim(Ref shape, int axis);
/// True if every dimension is a number.
inline bool is_concrete(Ref shape) { return shape->nsrc == 0; }
/// The dimensions of a concrete Shape.
inline Dims dims(Ref shape) {
  assert(is_concrete(shape));
  return shape.ints();
}
/// Product of the dimensions of a concrete Shape.
std::int64_t numel(Ref shape);
/// Product of the dimensions, each at its upper bound.
std::int64_t max_numel(Ref shape);
/// The shape two broadcast to, or null if they do not fit.
Ref broadcast(Ref a, Ref b);

// --- movement, reduction, storage (tensor graphs)
// ------------------------------------------------------------------ Movements that change nothing return
// their source.

Ref reshape(Ref x, Ref shape);
Ref permute(Ref x, Dims order);
Ref expand(Ref x, Ref shape);
Ref pad(Ref x, Ref shape, Ref offset);
Ref shrink(Ref x, Ref shape, Ref offset);
Ref flip(Ref x, std::uint64_t axes);
/// Axes in the mask become 1. The accumulator has x's dtype.
Ref reduce(Ref x, Op op, std::uint64_t axes);
Ref cat(std::span<const Ref> parts, int axis);
Ref index_rows(Ref x, Ref rows);
Ref store(Ref target, Ref value);
/// The argument of a kernel's Store that is better off past the caches.
inline constexpr std::int64_t kStreams = 1;
Ref after(Ref value, Ref effect);
Ref sink(std::span<const Ref> roots, Payload* info = nullptr);

/// The neutral element of a reduction: 0 for Add, 1 for Mul, the least value for Max, the greatest for Min.
Scalar identity_of(Op op, DType t);

/// Argument of Reduce and Acc.
inline Arg reduce_arg(Op op, std::uint64_t axes = 0) {
  return Arg{.i = static_cast<std::int64_t>(axes << 8 | static_cast<std::uint64_t>(op))};
}

/// Whether `what` is the root or beneath it.
bool stands_on(Ref root, Ref what);
/// Replaces nodes: `map` gives what each key becomes; users are rebuilt, sources before users.
Ref substitute(Ref root, std::span<const std::pair<Ref, Ref>> map);

}  // namespace pg
