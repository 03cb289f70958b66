#include "ops/op_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pg::ops {
namespace {

// The generator both sides share: FNV-1a of the words seeds Knuth's linear congruential generator, of which
// the upper bits count.
class Lcg {
 public:
  Lcg(std::string_view name, std::size_t index) : state_(0xcbf29ce484222325) {
    for (char c : std::string(name) + "/" + std::to_string(index)) {
      state_ ^= static_cast<unsigned char>(c);
      state_ *= 0x100000001b3;
    }
  }
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 40;
  }
  /// In [0, 1), a multiple of 2^-24.
  double unit() { return static_cast<double>(next()) * 0x1p-24; }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<double> specials(DType t) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (t == boolean) return {0, 1};
  if (is_float(t)) {
    double greatest = t == f16    ? 65504
                      : t == bf16 ? 0x1.fep127
                      : t == f32  ? 0x1.fffffep127
                                  : 0x1.fffffffffffffp1023;
    double normal = t == f16 ? 0x1p-14 : t == f64 ? 0x1p-1022 : 0x1p-126;
    double least = t == f16 ? 0x1p-24 : t == bf16 ? 0x1p-133 : t == f32 ? 0x1p-149 : 0x1p-1074;
    return {0.0, -0.0, 1,    -1,     0.5,  -0.5,  1.5,          -1.5,     2.5,       -2.5,   3,       -7,
            0.1, 100,  -100, 1000.5, kInf, -kInf, std::nan(""), greatest, -greatest, normal, -normal, least};
  }
  // Beyond an end saturates to it, so that a double may stand for the greatest 64-bit integers.
  double low = static_cast<double>(int_min(t)), high = t == u64 ? 0x1p64 : static_cast<double>(int_max(t));
  std::vector<double> out = {0, 1, 2, 3, 5, 7, 8, 31, 100, low, low + 1, high};
  const double narrow[] = {-1, -2, -3, -7}, wide[] = {-1, -7, 0x1p32, -0x1p40},
               wide_unsigned[] = {0x1p63, 0x1.8p63, 0x1p32, 0x1p40};
  for (int i = 0; i < 4; ++i)
    out.push_back(t == u64         ? wide_unsigned[i]
                  : t == i64       ? wide[i]
                  : is_unsigned(t) ? high + narrow[i]
                                   : narrow[i]);
  return out;
}

namespace {
Input special_of(DType t, bool column, bool row) {
  auto n = static_cast<std::int64_t>(specials(t).size());
  eval::Dims dims = column ? eval::Dims{n, 1} : row ? eval::Dims{1, n} : eval::Dims{n};
  return {t, dims, 0, 0, Fill::Special};
}
}  // namespace
Input special(DType t) { return special_of(t, false, false); }
Input special_column(DType t) { return special_of(t, true, false); }
Input special_row(DType t) { return special_of(t, false, true); }

eval::Array make_input(std::string_view name, std::size_t index, const Input& input) {
  std::int64_t n = eval::count(input.dims);
  std::vector<double> values;
  Lcg random(name, index);
  switch (input.fill) {
    case Fill::Special:
      values = specials(input.dtype);
      break;
    case Fill::Uniform:
      for (std::int64_t i = 0; i < n; ++i) {
        double v = input.low + (input.high - input.low) * random.unit();
        values.push_back(is_float(input.dtype) ? v : std::floor(v));
      }
      break;
    case Fill::Distinct: {
      for (std::int64_t i = 0; i < n; ++i)
        values.push_back(input.low +
                         (input.high - input.low) * (static_cast<double>(i) + 0.5) / static_cast<double>(n));
      for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.next() % i]);
      break;
    }
  }
  return eval::Array(input.dtype, input.dims, values);
}

std::int64_t class_of(std::string_view name, std::size_t index, std::int64_t n) {
  return static_cast<std::int64_t>(Lcg(name, index).next() % static_cast<std::uint64_t>(n));
}

const std::deque<OpCase>& op_table() {
  static const Table table = [] {
    Table t;
    add_elementwise(t);
    add_dtypes(t);
    add_movement(t);
    add_indexing(t);
    add_reductions(t);
    add_products(t);
    add_layers(t);
    return t;
  }();
  return table.cases();
}

const OpCase& op_case(std::string_view name) {
  for (const OpCase& c : op_table())
    if (c.name == name) return c;
  throw ValueError("[op_case] the table has no case \"" + std::string(name) + "\"");
}

}  // namespace pg::ops
