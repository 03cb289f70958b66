// The one table of operator cases: what goes in, the expression, how exact the answer must be. It drives
// values against the evaluator on every device, values against golden data, gradients against finite
// differences, and benchmarks. Adding an operation to the library adds a case here.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/array.h"
#include <pangrad/tensor.h>

namespace pg::ops {

/// Where the values of an input come from.
enum class Fill : std::uint8_t {
  Uniform,   // anywhere in [low, high); integers likewise, bools by a coin
  Distinct,  // evenly spaced in [low, high), in random order: no ties, and no neighbours closer than the
             // spacing
  Special,   // the list specials(dtype): zeros, ends, infinities, NaN, halves
};

struct Input {
  DType dtype = f32;
  eval::Dims dims;
  double low = -2, high = 2;
  Fill fill = Fill::Uniform;
};

// Short forms for the table.
inline Input f(eval::Dims dims, double low = -2, double high = 2) {
  return {f32, std::move(dims), low, high};
}
inline Input ints(eval::Dims dims, double low, double high, DType t = i32) {
  return {t, std::move(dims), low, high};
}
inline Input bools(eval::Dims dims) { return {boolean, std::move(dims), 0, 2}; }
inline Input distinct(eval::Dims dims, double low = -2, double high = 2) {
  return {f32, std::move(dims), low, high, Fill::Distinct};
}
inline Input of(DType t, eval::Dims dims, double low, double high) { return {t, std::move(dims), low, high}; }
/// All special values, along an axis of their own: of rank 1, as a column, as a row.
Input special(DType t);
Input special_column(DType t);
Input special_row(DType t);

/// The values at the edges of a dtype; as many for every float dtype, and for every integer dtype.
std::vector<double> specials(DType t);

/// The values of input number `index` of the case called `name`. tools/make_golden.py makes the same from the
/// same words.
eval::Array make_input(std::string_view name, std::size_t index, const Input& input);
/// A number in [0, n) by the same generator.
std::int64_t class_of(std::string_view name, std::size_t index, std::int64_t n);

using Args = std::vector<Tensor>;

struct OpCase {
  std::string name;
  std::vector<Input> in;
  std::function<Tensor(const Args&)> build;
  /// Roundings by which compiled code may differ from the evaluator (0: bit for bit), and the size of what is
  /// added up on the way: an error of steps * scale * epsilon is accepted too.
  double steps = 0, scale = 0;
  /// Allowances against golden data, whose formulas may be others.
  double golden_steps = 4, golden_scale = 1;
  /// Whether the gradient is compared with finite differences, with respect to every float input.
  bool differentiable = false;

  OpCase& grad() {
    differentiable = true;
    return *this;
  }
  OpCase& tol(double step_count, double size = 0) {
    steps = step_count, scale = size;
    golden_steps = 2 * step_count + 4, golden_scale = size > 1 ? size : 1;
    return *this;
  }
  OpCase& golden(double step_count, double size = 1) {
    golden_steps = step_count, golden_scale = size;
    return *this;
  }
};

/// Collects cases; a reference that add() returns is good until the program ends.
class Table {
 public:
  OpCase& add(std::string name, std::vector<Input> in, std::function<Tensor(const Args&)> build) {
    cases_.push_back({std::move(name), std::move(in), std::move(build)});
    return cases_.back();
  }
  const std::deque<OpCase>& cases() const { return cases_; }

 private:
  std::deque<OpCase> cases_;
};

// The families, a file each.
void add_elementwise(Table& t);
void add_dtypes(Table& t);
void add_movement(Table& t);
void add_indexing(Table& t);
void add_reductions(Table& t);
void add_products(Table& t);
void add_layers(Table& t);

/// All cases.
const std::deque<OpCase>& op_table();
/// The case of that name. Throws ValueError on others.
const OpCase& op_case(std::string_view name);

}  // namespace pg::ops

/// An expression over the inputs x[0], x[1], ...
#define PG_OP(...) []([[maybe_unused]] const pg::ops::Args& x) -> pg::Tensor { return __VA_ARGS__; }
