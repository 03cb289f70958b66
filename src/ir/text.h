// What the printer and the parser of graphs agree on: types that need not be written, operators, the
// grammar's words. Only they include it.
#pragma once

#include "ir/node.h"

namespace pg::text {

struct Type {
  DType dtype = DType::Void;
  int lanes = 1;
  friend bool operator==(Type, Type) = default;
};
inline Type type_of(Ref n) { return {n.dtype(), n.lanes()}; }

/// The type a node has where the text names none, from its op and sources. False if the text must say it.
bool implied_type(Op op, std::span<const Ref> srcs, Type& type);

/// An infix operator. `a / b` is Div of floats and FloorDiv of integers: both have a row.
struct Operator {
  std::string_view symbol;
  Op op;
  int binds;  // the higher, the tighter; those of C++
};
inline constexpr int kAndBinds = 5, kShiftBinds = 8, kUnaryBinds = 11, kPrimaryBinds = 12;
inline constexpr Operator kOperators[] = {
    {"*", Op::Mul, 10},  {"/", Op::FloorDiv, 10}, {"/", Op::Div, 10},           {"%", Op::FloorMod, 10},
    {"+", Op::Add, 9},   {"-", Op::Sub, 9},       {"<<", Op::Shl, kShiftBinds}, {">>", Op::Shr, kShiftBinds},
    {"<", Op::CmpLt, 7}, {"==", Op::CmpEq, 6},    {"!=", Op::CmpNe, 6},         {"&", Op::And, kAndBinds},
    {"^", Op::Xor, 4},   {"|", Op::Or, 3},
};

/// Sources [first, end) of these ops have one type, so a bare number among them takes that of the others.
inline bool literals_take_type(Op op) { return (info(op).flags & kElementwise) && info(op).nsrc > 1; }
inline int first_value(Op op) { return op == Op::Where ? 1 : 0; }

/// "f32", "i32x8".
std::string name(Type type);

/// Length of the text of an Object at the start of s, which ends before a `]` that it did not open; npos if
/// brackets or quotes in it do not close.
std::size_t object_length(std::string_view s);

/// Words that mean a constant, so they cannot be names.
inline bool is_reserved(std::string_view word) {
  return word == "true" || word == "false" || word == "inf" || word == "nan";
}

}  // namespace pg::text
