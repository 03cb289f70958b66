// Index rules against a solver: not at points, but for all values within bounds. Built where Z3 is found.
#include <gtest/gtest.h>
#include <z3++.h>

#include "rewrite/fuzz.h"
#include "rules/symbolic.h"

namespace pg {
namespace {

// Expressions of weak integers and bools over ranges and variables, as formulas over mathematical integers.
class Formulas {
 public:
  explicit Formulas(z3::context& z) : z_(z), solver_(z) {}

  z3::expr of(Ref root) {
    for (Ref n : toposort(root)) {
      if (known_.contains(n.node())) continue;
      known_.emplace(n.node(), one(n));
    }
    return known_.at(root.node());
  }

  enum class Verdict { Equal, Different, Unknown };
  Verdict compare(Ref a, Ref b) {
    z3::params params(z_);
    params.set("timeout", 150u);
    solver_.set(params);
    solver_.add(of(a) != of(b));
    switch (solver_.check()) {
      case z3::unsat:
        return Verdict::Equal;
      case z3::sat:
        return Verdict::Different;
      default:
        return Verdict::Unknown;
    }
  }
  std::string model() const { return Z3_model_to_string(z_, solver_.get_model()); }

 private:
  z3::expr number(std::int64_t v) { return z_.int_val(v); }

  // Round down, and give 0 for a divisor of 0. Z3 rounds down where the divisor is positive.
  z3::expr divided(const z3::expr& a, const z3::expr& b, Ref divisor) {
    if (divisor.lo() > 0) return a / b;
    if (divisor.hi() < 0) return (-a) / (-b);
    return z3::ite(b > 0, a / b, z3::ite(b < 0, (-a) / (-b), number(0)));
  }
  z3::expr residue(const z3::expr& a, const z3::expr& b, Ref divisor) {
    if (divisor.lo() > 0) return z3::mod(a, b);
    if (divisor.hi() < 0) return -z3::mod(-a, -b);
    return z3::ite(b > 0, z3::mod(a, b), z3::ite(b < 0, -z3::mod(-a, -b), number(0)));
  }

  z3::expr one(Ref n) {
    auto s = [&](int k) { return known_.at(n.src(k).node()); };
    bool truth = n.nsrc() > 0 && n.src(n.nsrc() - 1).dtype() == DType::Bool;
    switch (n.op()) {
      case Op::Const:
        return n.dtype() == DType::Bool ? z_.bool_val(n.i() != 0) : number(n.i());
      case Op::Range: {
        z3::expr r = z_.int_const(("r" + std::to_string(n.range_id())).c_str());
        solver_.add(r >= 0 && r < s(0));
        return r;
      }
      case Op::Var: {
        z3::expr v = z_.int_const(n.str().c_str());
        solver_.add(v >= number(n.lo()) && v <= number(n.hi()));
        return v;
      }
      case Op::Add:
        return s(0) + s(1);
      case Op::Sub:
        return s(0) - s(1);
      case Op::Mul:
        return s(0) * s(1);
      case Op::Neg:
        return -s(0);
      case Op::FloorDiv:
        return divided(s(0), s(1), n.src(1));
      case Op::FloorMod:
        return residue(s(0), s(1), n.src(1));
      case Op::Max:
        return z3::ite(s(0) > s(1), s(0), s(1));
      case Op::Min:
        return z3::ite(s(0) < s(1), s(0), s(1));
      case Op::Where:
        return z3::ite(s(0), s(1), s(2));
      case Op::CmpLt:
        return truth ? !s(0) && s(1) : s(0) < s(1);
      case Op::CmpEq:
        return s(0) == s(1);
      case Op::CmpNe:
      case Op::Xor:
        return s(0) != s(1);
      case Op::And:
        return s(0) && s(1);
      case Op::Or:
        return s(0) || s(1);
      default:
        throw InternalError("[z3] " + std::string(info(n.op()).name));
    }
  }

  z3::context& z_;
  z3::solver solver_;
  absl::flat_hash_map<Node*, z3::expr> known_;
};

// Most must be decided, or the test would say nothing.
void prove(FuzzKind kind, const FuzzOptions& options, double at_least) {
  GraphScope scope;
  int equal = 0, all = 0;
  for (Ref before : random_expressions(kind, options)) {
    Ref after = rewrite(before, rules::symbolic(), {.name = "test"});
    if (same(before, after)) continue;
    z3::context z;
    Formulas formulas(z);
    Formulas::Verdict verdict = formulas.compare(before, after);
    ASSERT_NE(verdict, Formulas::Verdict::Different)
        << expression_text(before) << " became " << expression_text(after) << " but " << formulas.model();
    equal += verdict == Formulas::Verdict::Equal;
    ++all;
  }
  EXPECT_GE(equal, at_least * all) << "of " << all;
}

TEST(SymbolicZ3, IndicesAreEqualForAllValues) {
  prove(FuzzKind::Indices, {.seed = 31, .rounds = 150, .depth = 3}, 0.8);
}
TEST(SymbolicZ3, ReshapedIndicesAreEqualForAllValues) {
  prove(FuzzKind::Reshapes, {.seed = 32, .rounds = 100}, 0.3);
}

}  // namespace
}  // namespace pg
