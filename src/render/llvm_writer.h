// Text of an LLVM function in the making: names for values, types, and the primitives of elementwise ops.
// Control flow and memory are in llvm.cpp, which alone uses this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "render/exact_alu.h"

namespace pg::render {

/// Writes instructions in static single assignment. A value is its text. Bools are i1 (i8 in memory), f16 is
/// half where the target computes it, other f16 and bf16 are i16. No flag lets LLVM reorder or fuse floats.
class LlvmWriter final : public ExactAlu {
 public:
  using ExactAlu::ExactAlu;

  /// The type of a value; `memory` as it is stored. `intrinsic` is how names of intrinsics spell it: v16f32.
  std::string type(Shape s, bool memory = false) const;
  std::string intrinsic_type(Shape s, bool memory = false) const;

  std::string constant(Shape s, Scalar v) const override;
  std::string select(Shape s, const std::string& condition, const std::string& yes,
                     const std::string& no) override;
  std::string splat(Shape s, const std::string& scalar);
  /// Lanes [first, first + lanes) of v; a scalar if it is one.
  std::string slice(Shape v, const std::string& value, int first, int lanes);

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
  std::string& out() { return in_entry ? entry : pieces.back(); }

  // The text: the entry block, and pieces of the rest, between which the ends of loops fill in what their
  // heads left open.
  std::string entry;
  std::vector<std::string> pieces{std::string()};
  bool in_entry = false;

 protected:
  std::string binary(Prim op, Shape s, const std::string& a, const std::string& b, bool exact) override;
  std::string unary(Prim op, Shape to, DType from, const std::string& x) override;
  std::string fma(Shape s, const std::string& a, const std::string& b, const std::string& c) override;
  std::string dot_bytes(Shape s, const std::string& a, const std::string& b, const std::string& c) override;

 private:
  int next_ = 0;
};

}  // namespace pg::render
