// Runs a hand-built program through every renderer and the interpreter, on memory that ends at a page nobody may touch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "render/program.h"

namespace pg::test {

/// Elements by their bits, and where they lie for a run: the last one against a guard page.
struct Array {
  DType dtype = f32;
  std::vector<std::uint64_t> bits;

  Array(DType t, std::size_t n) : dtype(t), bits(n) {}
  Array(DType t, std::vector<std::uint64_t> b) : dtype(t), bits(std::move(b)) {}
  /// The numbers in dtype t.
  static Array of(DType t, const std::vector<double>& values);
  Scalar operator[](std::size_t i) const { return from_bits(dtype, bits[i]); }
  void set(std::size_t i, Scalar v) { bits[i] = to_bits(dtype, v); }
  std::size_t size() const { return bits.size(); }
  /// Equal bit for bit, but that one NaN is as good as another.
  bool same(std::size_t i, const Array& other) const;
};

struct Backend {
  std::string name;
  std::function<void(Ref linear, const ProgramInfo& info, std::vector<Array>& buffers, std::span<const std::int64_t> scalars)> run;
};
/// LLVM, C and the interpreter, where they are there.
const std::vector<Backend>& backends();

/// What each backend makes of the program must be `expected`, buffer by buffer.
void expect_all(Ref linear, const std::vector<Array>& buffers, const std::vector<Array>& expected,
                std::vector<std::int64_t> scalars = {}, const Target& target = Target::host_cpu());

/// Numbers worth trying in dtype t: the extremes, what lies around powers of two, and a few at random.
std::vector<std::uint64_t> interesting(DType t, std::size_t random = 24);

}  // namespace pg::test
