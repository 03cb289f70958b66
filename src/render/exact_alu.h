// The elementwise ops in terms of what machines and languages have: instructions that are only defined in
// part, and round or wrap as they like, become the values of ir/scalar.h to the last bit. A renderer derives
// from ExactAlu and writes the primitives; scalars and vectors are alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/scalar.h"
#include "ir/target.h"

namespace pg::render {

/// A dtype and a width: what an instruction works on.
struct Shape {
  DType dtype;
  int lanes;
};

/// An operand as text, a name or a constant, and the node it is the value of; null for intermediate values.
struct Operand {
  std::string text;
  Ref node;

  bool nonnegative() const { return node && node.lo() >= 0; }
};

/// What a renderer writes. On integers unless the name begins with F; S and U tell signed from unsigned.
enum class Prim : std::uint8_t {
  // Two operands of one shape. Integers wrap; divisors are not 0 and do not overflow; AShr is by less than
  // the width, and
  // Shl and LShr by the width or more give anything.
  Add,
  Sub,
  Mul,
  UDiv,
  SDiv,
  URem,
  SRem,
  And,
  Or,
  Xor,
  Shl,
  LShr,
  AShr,
  UMin,
  UMax,
  SMin,
  SMax,
  FAdd,
  FSub,
  FMul,
  FDiv,
  // Comparisons: a bool for each lane. Of floats all but FNe and FUno are false where one is NaN; FUno is
  // true only there.
  Eq,
  Ne,
  SLt,
  ULt,
  FEq,
  FNe,
  FLt,
  FGt,
  FGe,
  FUno,
  // One operand.
  FNeg,
  FTrunc,
  FSqrt,
  FAbs,
  // Conversions. FToS and FToU of values that are in range; FNarrow rounds; Bits keeps them, between equal
  // sizes; HalfToF32
  // and F32ToHalf where the target converts f16.
  Trunc,
  SExt,
  ZExt,
  SToF,
  UToF,
  FToS,
  FToU,
  FExt,
  FNarrow,
  Bits,
  HalfToF32,
  F32ToHalf,
};

/// Bools are integers of one bit; f16 that the target does not compute, and bf16, exist only as their bits.
class ExactAlu {
 public:
  explicit ExactAlu(const Target& target) : target_(target) {}
  virtual ~ExactAlu() = default;

  /// The op on operands of `from` (see eval_scalar), result `to`. `node` is the instruction, if it is one.
  std::string alu(Op op, Shape to, DType from, const std::vector<Operand>& s, Ref node = nullptr);
  const Target& target() const { return target_; }
  /// Bits of the vector that vpdpbusd would take for the shape; 0 without it.
  int vnni_bits(Shape s) const;

  /// A constant of s, the same in every lane.
  virtual std::string constant(Shape s, Scalar v) const = 0;
  virtual std::string select(Shape s, const std::string& condition, const std::string& yes,
                             const std::string& no) = 0;
  std::string integer(Shape s, std::int64_t v) const { return constant(s, int_scalar(v)); }

 protected:
  /// `exact`: known not to overflow as a signed number.
  virtual std::string binary(Prim op, Shape s, const std::string& a, const std::string& b,
                             bool exact = false) = 0;
  virtual std::string unary(Prim op, Shape to, DType from, const std::string& x) = 0;
  virtual std::string fma(Shape s, const std::string& a, const std::string& b, const std::string& c) = 0;
  /// DotBytes by an instruction of the target; empty where there is none for the shape.
  virtual std::string dot_bytes(Shape s, const std::string& a, const std::string& b,
                                const std::string& c) = 0;

 private:
  std::string unary(Prim op, Shape s, const std::string& x) { return unary(op, s, s.dtype, x); }

  std::string int_alu(Op op, Shape s, const std::vector<Operand>& x, Ref node);
  std::string float_alu(Op op, Shape s, const std::vector<Operand>& x);
  std::string bool_alu(Op op, Shape s, const std::string& a, const std::string& b);
  std::string compare(Op op, Shape s, const std::string& a, const std::string& b);
  std::string divide(Op op, Shape s, const Operand& a, const Operand& b);
  std::string shift(Op op, Shape s, const std::string& a, const Operand& b);
  std::string float_max(Op op, Shape s, const Operand& a, const Operand& b);

  std::string bitcast(Shape to, DType from, const std::string& x);
  std::string cast(Shape to, DType from, const std::string& x);
  std::string int_to_float(Shape to, DType from, const std::string& x);
  std::string float_to_int(Shape to, DType from, const std::string& x);
  std::string widen(Shape to, DType from, const std::string& x);  // to f32 or f64
  std::string f16_to_f32(int lanes, const std::string& x);
  std::string f32_to_f16(int lanes, const std::string& x);
  std::string f32_to_bf16(int lanes, const std::string& x);
  std::string f64_to_odd_f32(int lanes, const std::string& x);
  std::string resize(Shape to, DType from, const std::string& x, bool sign);

  const Target& target_;
};

/// Bits of a value of t: 1 for bool.
int bits_of(DType t);

}  // namespace pg::render
