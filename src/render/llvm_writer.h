// What the two halves of the LLVM renderer share: text of a function being written, names for its values, and the
// elementwise ops (llvm_alu.cpp). Control flow and memory are in llvm.cpp. Used nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/scalar.h"
#include "render/program.h"

namespace pg::llvm {

/// A dtype and a width: what an instruction works on.
struct Shape {
  DType dtype;
  int lanes;
};

/// An operand as text: a name or a constant, and what is known of it.
struct Operand {
  std::string text;
  Ref node;  // null for intermediate values

  bool nonnegative() const { return node && node.lo() >= 0; }
};

/// Writes instructions in static single assignment. A value is its text.
///
/// Dtypes are represented so: bools as i1 (i8 in memory), f16 as half where the target computes it, other f16 and bf16 as i16.
class Writer {
 public:
  explicit Writer(const Target& target) : target_(target) {}

  const Target& target() const { return target_; }
  /// The type of a value; `memory` as it is stored.
  std::string type(Shape s, bool memory = false) const;
  /// A constant of s, the same in every lane.
  std::string constant(Shape s, Scalar v) const;
  std::string integer(Shape s, std::int64_t v) const { return constant(s, int_scalar(v)); }

  /// An instruction, formatted as by fmt, under a new name, which it returns.
  template <class... Args>
  std::string emit(fmt::format_string<Args...> format, Args&&... args) {
    std::string name = "%v" + std::to_string(next_++);
    fmt::format_to(std::back_inserter(out()), "  {} = ", name);
    fmt::format_to(std::back_inserter(out()), format, std::forward<Args>(args)...);
    out() += '\n';
    return name;
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out()), format, std::forward<Args>(args)...);
    out() += '\n';
  }

  /// The elementwise op on operands of `from` (see eval_scalar), result `to`. `node` is the instruction, if it is one.
  std::string alu(Op op, Shape to, DType from, const std::vector<Operand>& s, Ref node = nullptr);
  std::string select(Shape s, std::string_view condition, std::string_view yes, std::string_view no);
  std::string splat(Shape s, std::string_view scalar);
  /// Lanes [0, lanes) of v from `first` on.
  std::string slice(Shape v, std::string_view value, int first, int lanes);

  std::string& out() { return in_entry ? entry : pieces.back(); }

  // The text: the entry block, and pieces of the rest, between which the ends of loops fill in what their heads left open.
  std::string entry;
  std::vector<std::string> pieces{std::string()};
  bool in_entry = false;

 private:
  // Casts between any two dtypes.
  std::string cast(Shape to, DType from, const std::string& x);
  std::string int_to_float(Shape to, DType from, const std::string& x);
  std::string float_to_int(Shape to, DType from, const std::string& x);
  std::string widen(Shape to, DType from, const std::string& x);  // to f32 or f64
  std::string f16_to_f32(int lanes, const std::string& x);
  std::string f32_to_f16(int lanes, const std::string& x);
  std::string f32_to_bf16(int lanes, const std::string& x);
  std::string f64_to_odd_f32(int lanes, const std::string& x);
  std::string resize(Shape to, DType from, const std::string& x, bool sign);

  std::string divide(Op op, Shape s, const Operand& a, const Operand& b);
  std::string shift(Op op, Shape s, const std::string& a, const Operand& b);
  std::string float_max(Op op, Shape s, const Operand& a, const Operand& b);
  std::string bool_alu(Op op, Shape s, const std::vector<Operand>& x);
  std::string compare(Op op, Shape s, const std::string& a, const std::string& b);
  std::string binary(std::string_view op, Shape s, std::string_view a, std::string_view b) {
    return emit("{} {} {}, {}", op, type(s), a, b);
  }
  std::string intrinsic(std::string_view name, Shape s, std::initializer_list<std::string_view> args);
  /// Name of a type within the name of an intrinsic: v16f32.
  std::string mangled(Shape s) const;

  const Target& target_;
  int next_ = 0;
};

}  // namespace pg::llvm
