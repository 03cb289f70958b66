#include "text/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <unordered_map>

#include "ir/build.h"
#include "ir/print.h"

namespace pg::text_test {
namespace {

bool is_input(Ref n) {
  return n.is(Op::Range) || n.is(Op::Var) || n.is(Op::ScalarParam) || n.is(Op::Special) ||
         (n.is(Op::Param) && rank(n.src(0)) == 0);
}
bool is_transparent(Ref n) {
  return n.is_const() || n.is(Op::Shape) || is_input(n) || (n.has(kElementwise) && is_exact(n.op()));
}

class Inputs {
 public:
  explicit Inputs(unsigned seed) : engine_(seed) {}

  Scalar any(DType t, std::int64_t lo, std::int64_t hi) {
    if (is_float(t)) return float_scalar(round_to(t, a_float()));
    // Small numbers, the ends of the range, and anything between.
    std::uint64_t span = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo);
    std::uint64_t offset = 0;
    switch (engine_() % 4) {
      case 0:
        offset = engine_() % 9;
        break;
      case 1:
        offset = span - engine_() % 9;
        break;
      case 2:
        offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(engine_() % 19) - 9) -
                 static_cast<std::uint64_t>(lo);
        break;
      default:
        offset = engine_();
        break;
    }
    if (offset > span) offset = span == UINT64_MAX ? offset : offset % (span + 1);
    return int_scalar(wrap(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + offset)));
  }

 private:
  double a_float() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kSpecial[] = {0.0,   -0.0, 1,     -1,     0.5,    2,       3,        -7,    kInf,
                                   -kInf, NAN,  1e-45, -1e-45, 3.4e38, -3.4e38, 16777217, 1e-30, 1e30};
    if (engine_() % 2) return kSpecial[engine_() % std::size(kSpecial)];
    return std::ldexp(static_cast<double>(static_cast<std::int64_t>(engine_() >> 11)) - 0x1p52,
                      static_cast<int>(engine_() % 120) - 110);
  }
  std::mt19937_64 engine_;
};

using Values = std::unordered_map<Node*, Scalar>;

// Values of everything under the roots; none if a loop turned out to be empty.
std::optional<Values> evaluate(std::span<const Ref> roots, Inputs& inputs) {
  Values values;
  for (Ref n : toposort(roots)) {
    Scalar v{};
    if (n.is_const()) {
      v = n->arg;
    } else if (n.is(Op::Range) || n.is(Op::Special)) {
      std::int64_t extent = values[n.src(0).node()].i;
      if (extent <= 0) return {};
      v = inputs.any(n.dtype(), 0, extent - 1);
    } else if (is_input(n)) {
      bool whole = n.is(Op::Param);
      DType t = n.dtype();
      std::int64_t lo = whole ? (is_float(t) ? 0 : int_min(t)) : n.lo(), hi = whole
                                                                                  ? (is_float(t) ? 0
                                                                                     : t == u64  ? -1
                                                                                                 : int_max(t))
                                                                                  : n.hi();
      v = inputs.any(t, lo, hi);
    } else if (n.has(kElementwise)) {
      Scalar srcs[3];
      for (int k = 0; k < n.nsrc(); ++k) srcs[k] = values[n.src(k).node()];
      v = eval_scalar(n.op(), n.dtype(), n.src(n.is(Op::Where) ? 1 : 0).dtype(), srcs);
    }
    values[n.node()] = v;
  }
  return values;
}

bool agree(DType t, Scalar a, Scalar b) {
  if (is_float(t) && std::isnan(a.f) && std::isnan(b.f)) return true;
  return a.i == b.i;
}

std::string show(DType t, Scalar v) { return brief(scalar_const(t, v)); }

}  // namespace

bool is_scalar_arithmetic(Ref root) {
  if (root.dtype() == DType::Void) return false;
  for (Ref n : toposort(root))
    if (!is_transparent(n) || n.lanes() != 1 || (n.dtype() == DType::Void && !n.is(Op::Shape))) return false;
  return true;
}

std::string difference(Ref a, Ref b) {
  if (!is_scalar_arithmetic(a) || !is_scalar_arithmetic(b)) return {};
  if (a.dtype() != b.dtype()) return "the dtypes differ";
  constexpr int kTries = 3000;
  Inputs inputs(1);
  Ref roots[] = {a, b};
  for (int k = 0; k < kTries; ++k) {
    auto values = evaluate(roots, inputs);
    if (!values) continue;
    Scalar x = (*values)[a.node()], y = (*values)[b.node()];
    if (agree(a.dtype(), x, y)) continue;
    std::string s = show(a.dtype(), x) + " against " + show(a.dtype(), y) + " where";
    for (Ref n : toposort(roots))
      if (is_input(n)) s += "\n  " + brief(n, 1) + " is " + show(n.dtype(), (*values)[n.node()]);
    return s;
  }
  return {};
}

}  // namespace pg::text_test
