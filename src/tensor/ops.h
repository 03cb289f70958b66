// The primitives operations are built from: each checks, makes one node, and wraps it as a new Cell with what
// is known of history and device. They take the name of the operation the user called, for errors.
#pragma once

#include "tensor/check.h"

namespace pg::detail {

// Inside a GraphScope.

Ref number_const(DType t, Number n);
/// The value of an operand: a number in dtype t (Void: that of its kind).
Value value_of(const Operand& x, const char* op, DType t = DType::Void);
inline Value cast_value(Value v, DType t) {
  v.node = cast(v.node, t);
  return v;
}
/// Two operands in their common dtype, shapes and devices checked.
struct Operands {
  Value a, b;
  Device device;
  bool tracked() const { return a.tracked || b.tracked; }
  DType dtype() const { return a.dtype(); }
};
Operands operands(const char* op, const Operand& x, const Operand& y);
/// A constant of shape `shape`.
Ref full_node(DType t, Number n, Ref shape);
/// 0, 1, ..., n-1.
Ref arange_node(DType t, Ref n);

// Not in need of one.

Tensor unary(const char* name, Op op, const Tensor& x);
/// Of floats; integers become f32.
Tensor float_unary(const char* name, Op op, const Tensor& x);
Tensor binary(const char* name, Op op, const Operand& x, const Operand& y);
/// As f32 unless it is a float already.
Tensor as_float(const Tensor& x, const char* op);
/// The sum along axes in the mask, kept as 1, accumulated as sum() does and cast back to `out` (Void: as
/// sum()).
Tensor sum_axes(const char* op, const Tensor& x, std::uint64_t axes, DType out = DType::Void);
Tensor reduce_axes(const char* op, const Tensor& x, Op how, std::uint64_t axes);
/// 0, 1, ... n-1 shaped to lie along an axis of a tensor of that rank.
Tensor positions(DType t, const Dim& n, int axis, int ndim);
/// The value without the axes in the mask, which are 1.
Tensor drop_axes(const Tensor& x, std::uint64_t axes);
/// A view by a new shape; no checks.
Tensor reshaped(const Tensor& x, Ref shape);

/// Writes a value into the storage of x, checked.
void assign(const Tensor& x, const Operand& value, const char* op);

}  // namespace pg::detail
