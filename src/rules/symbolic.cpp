#include "rules/symbolic.h"

#include <cmath>

#include "rules/compare.h"
#include "rules/divmod.h"
#include "rules/sum.h"

namespace pg::rules {
namespace {

using namespace pat;

// --- any elementwise op

// An integer or bool with one possible value is that constant.
Ref fold_bounds(const Match& m) {
  Ref n = m.root;
  return n.lo() == n.hi() && n.dtype() != u64 ? int_const_like(n, n.lo()) : nullptr;
}

// What is the same in every lane is computed once.
Ref splat_last(const Match& m) {
  Ref n = m.root;
  if (n.lanes() == 1) return nullptr;
  absl::InlinedVector<Ref, 3> scalars;
  for (Ref s : n.srcs()) {
    if (!s.is(Op::Splat)) return nullptr;
    scalars.push_back(s.src(0));
  }
  return splat(make(n.op(), n.dtype(), 1, scalars, n->arg), n.lanes());
}

constexpr auto kBounds =
    each<Op::Cast, Op::Neg, Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::CDiv, Op::CMod,
         Op::Max, Op::Min, Op::And, Op::Or, Op::Shl, Op::Shr, Op::CmpLt, Op::CmpEq, Op::CmpNe, Op::Where>(
        fold_bounds, exact);
constexpr auto kSplats =
    each<Op::Cast, Op::Bitcast, Op::Neg, Op::Trunc, Op::Sqrt, Op::Exp, Op::Exp2, Op::Log, Op::Log2, Op::Sin,
         Op::Cos, Op::Tanh, Op::Erf, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv, Op::FloorMod, Op::CDiv,
         Op::CMod, Op::Max, Op::Min, Op::Pow, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::CmpLt,
         Op::CmpEq, Op::CmpNe, Op::Threefry, Op::Where, Op::MulAcc>(splat_last);

// --- floats: bit for bit, so no x + 0.0 (it turns -0.0 into 0.0), no x * 0, no reordering

// x / c is x * (1/c) where 1/c is exact: c a power of two whose inverse is a number of the dtype.
Ref exact_inverse(const Match& m) {
  Ref c = constant(m[c0]);
  int e;
  double mantissa = std::frexp(c.f(), &e), inverse = 1.0 / c.f();
  if (std::abs(mantissa) != 0.5 || !std::isfinite(inverse) || round_to(c.dtype(), inverse) != inverse)
    return nullptr;
  return m[x] * const_like(m.root, inverse);
}

// clang-format off
constexpr Rule kFloats[] = {
  rule(x * 1.0, x, floats),
  rule(x + -0.0, x, floats),
  rule(x - 0.0, x, floats),
  rule(div(x, Pat(1.0)), x, floats),
  rule(x * -1.0, neg(x), floats),
  rule(div(x, Pat(-1.0)), neg(x), floats),
  rule(neg(neg(x)), x, floats),
  rule(x + neg(y), x - y, floats),
  rule(neg(x) + y, y - x, floats),
  rule(x - neg(y), x + y, floats),
  rule(neg(x) * neg(y), x * y, floats),
  rule(div(neg(x), neg(y)), div(x, y), floats),
  rule(neg(x) * c0, x * neg(c0), floats),
  rule(div(x, c0), exact_inverse, floats),
  rule(max(x, x), x, floats),
  rule(min(x, x), x, floats),
  rule(max(max(x, c0), c1), max(x, max(c0, c1)), floats),
  rule(min(min(x, c0), c1), min(x, min(c0, c1)), floats),
  rule(x < x, Pat(0), floats),
  rule(neg(x) < neg(y), y < x, floats),
  rule(node(Op::Trunc, node(Op::Trunc, x)), node(Op::Trunc, x), floats),
};
// clang-format on

// --- integers

// The right operand of a chain whose left operand is in order may follow if it comes after the last one: then
// the chain is in order, with nothing to collect.
bool follows(Op op, Ref chain, Ref r) {
  if (r.is(op) || constant(r)) return false;
  Ref last = chain.is(op) ? chain.src(1) : chain;
  return !constant(last) && goes_left(last, r);
}

Ref term_base(Ref x) { return x.is(Op::Mul) && constant(x.src(1)) ? x.src(0) : x; }

Ref sum_rule(const Match& m) {
  Ref root = m.root, l = root.src(0), r = root.src(1);
  auto fixed = [](Ref n) { return n.lo() == n.hi() && n.dtype() != u64; };
  if (constant(r)) {
    // Most sums that come by are done: x + c.
    if (!constant(r).is_const(0) && !fixed(l) &&
        (!l.is(Op::Add) || (!constant(l.src(1)) && !fixed(l.src(1)))))
      return nullptr;
  } else if (!fixed(l) && !fixed(r)) {
    Ref base = term_base(r);
    if (!base.is(Op::FloorDiv) && !base.is(Op::FloorMod) && follows(Op::Add, l, r) &&
        !same(base, term_base(l.is(Op::Add) ? l.src(1) : l)))
      return nullptr;
  }
  Sum s = Sum::of(root, Sum::Ring);
  recombine(s);
  return s.build();
}

Ref product_rule(const Match& m) {
  Ref root = m.root, a = root.src(0), b = root.src(1);
  if (Ref c = constant(b)) {
    if (a.is(Op::Mul) && constant(a.src(1))) return a.src(0) * (a.src(1) * b);
    if (!a.is(Op::Add)) return nullptr;
    DType t = root.dtype();
    if (t == DType::WeakInt || c.i() == wrap(t, -1)) {
      Sum s(root, Sum::Ring);
      s.add(a, c.i());
      return s.build();
    }
    return constant(a.src(1)) ? a.src(0) * b + a.src(1) * b : nullptr;
  }
  if (root.dtype() == DType::WeakInt && (a.is(Op::Add) || b.is(Op::Add))) {
    // Symbolic sizes are polynomials, multiplied out while that is short.
    Sum l = Sum::of(a, Sum::Ring), r = Sum::of(b, Sum::Ring);
    if ((l.terms.size() + 1) * (r.terms.size() + 1) <= 10) return (l * r).build();
  }
  if ((!a.is(Op::Mul) && !b.is(Op::Mul)) || follows(Op::Mul, a, b)) return nullptr;
  absl::InlinedVector<Ref, 8> factors;
  Ref scale;
  for (Ref f : chain_of(Op::Mul, root)) {
    if (constant(f))
      scale = scale ? scale * f : f;
    else
      factors.push_back(f);
  }
  Ref product = product_of(factors);
  return scale ? product ? product * scale : scale : product;
}

// By bounds, of the operands or of their difference.
Ref extremum_rule(const Match& m) {
  Ref root = m.root, a = root.src(0), b = root.src(1);
  bool greatest = root.is(Op::Max);
  if (root.dtype() == u64) return nullptr;
  if (a.lo() >= b.hi()) return greatest ? a : b;
  if (b.lo() >= a.hi()) return greatest ? b : a;
  if (constant(b) || root.dtype() != DType::WeakInt) return nullptr;
  Sum d = Sum::of(a, Sum::Exact);
  d.add(b, -1);
  if (d.failed()) return nullptr;
  Bounds r = d.bounds();
  if (r.lo >= 0) return greatest ? a : b;
  if (r.hi <= 0) return greatest ? b : a;
  return nullptr;
}

Ref shift_to_product(const Match& m) {
  std::int64_t c = constant(m[c0]).i();
  return c >= 0 && c < 62 ? m[x] * int_const_like(m.root, std::int64_t{1} << c) : nullptr;
}
Ref shift_to_quotient(const Match& m) {
  std::int64_t c = constant(m[c0]).i();
  return c >= 0 && c < 62 ? m[x] / int_const_like(m.root, std::int64_t{1} << c) : nullptr;
}
// By the width or more: nothing is left, but for the sign.
Ref shifted_out(const Match& m) {
  DType t = m.root.dtype();
  bool all = static_cast<std::uint64_t>(constant(m[c0]).i()) >= itemsize(t) * 8;
  return all && (m.root.is(Op::Shl) || is_unsigned(t)) ? int_const_like(m.root, 0) : nullptr;
}
Ref all_ones(const Match& m) { return constant(m[c0]).i() == wrap(m.root.dtype(), -1) ? m[x] : nullptr; }

Ref small_power(const Match& m) {
  Ref v = m[x];
  switch (constant(m[c0]).i()) {
    case 0:
      return int_const_like(m.root, 1);
    case 1:
      return v;
    case 2:
      return v * v;
    case 3:
      return v * v * v;
    case 4:
      return (v * v) * (v * v);
    default:
      return nullptr;
  }
}

// clang-format off
constexpr Rule kInts[] = {
  rule(x * 0, Pat(0), ints),
  rule(x * 1, x, ints),
  rule(neg(x), x * -1, ints),
  rule(x - y, x + y * -1, ints),
  rule(any(Op::Mul), product_rule, ints),
  rule(any(Op::Add), sum_rule, ints),
  rule(node(Op::MulAcc, x, y, z), x * y + z, ints),
  rule(node(Op::Trunc, x), x, ints),
  rule(node(Op::CDiv, x, Pat(1)), x, ints),
  rule(node(Op::CMod, x, Pat(1)), Pat(0), ints),
  rule(node(Op::Pow, x, c0), small_power, ints),

  rule(max(x, x), x, ints),
  rule(min(x, x), x, ints),
  rule(max(max(x, y), y), max(x, y), ints),
  rule(min(min(x, y), y), min(x, y), ints),
  rule(max(max(x, c0), c1), max(x, max(c0, c1)), ints),
  rule(min(min(x, c0), c1), min(x, min(c0, c1)), ints),
  rule(max(min(x, y), y), y, ints),
  rule(min(max(x, y), y), y, ints),
  rule(any(Op::Max), extremum_rule, ints),
  rule(any(Op::Min), extremum_rule, ints),

  rule(x & x, x, ints),
  rule(x | x, x, ints),
  rule(x ^ x, Pat(0), ints),
  rule(x & 0, Pat(0), ints),
  rule(x | 0, x, ints),
  rule(x ^ 0, x, ints),
  rule(x & c0, all_ones, ints),
  rule((x & y) & y, x & y, ints),
  rule((x | y) | y, x | y, ints),
  rule((x ^ y) ^ y, x, ints),
  rule((x & c0) & c1, x & (c0 & c1), ints),
  rule((x | c0) | c1, x | (c0 | c1), ints),
  rule((x ^ c0) ^ c1, x ^ (c0 ^ c1), ints),
  rule((x | y) & y, y, ints),
  rule((x & y) | y, y, ints),
  rule(x << 0, x, ints),
  rule(x >> 0, x, ints),
  rule(x << c0, shifted_out, ints),
  rule(x >> c0, shifted_out, ints),
  rule((x << c0) << c1, x << (c0 + c1), ints, when(c0 >= 0 && c1 >= 0 && c0 < 64 && c1 < 64)),
  rule((x >> c0) >> c1, x >> (c0 + c1), ints, when(c0 >= 0 && c1 >= 0 && c0 < 64 && c1 < 64)),
  rule(x << c0, shift_to_product, indices),
  rule(x >> c0, shift_to_quotient, indices),

  rule(x < x, Pat(0), ints),
  rule(eq(x, x), Pat(1), exact),
  rule(ne(x, x), Pat(0), exact),
  // A bound on a minimum or maximum is one on its parts, where one part is a number.
  rule(max(x, c0) < c1, x < c1, ints, when(c0 < c1)),
  rule(max(x, c0) < c1, Pat(0), ints, when(c0 >= c1)),
  rule(min(x, c0) < c1, Pat(1), ints, when(c0 < c1)),
  rule(min(x, c0) < c1, x < c1, ints, when(c0 >= c1)),
  rule(c0 < max(x, c1), Pat(1), ints, when(c0 < c1)),
  rule(c0 < max(x, c1), c0 < x, ints, when(c0 >= c1)),
  rule(c0 < min(x, c1), c0 < x, ints, when(c0 < c1)),
  rule(c0 < min(x, c1), Pat(0), ints, when(c0 >= c1)),
  rule(any(Op::CmpLt), less_rule, ints),
  rule(any(Op::CmpEq), equal_rule, ints),
  rule(any(Op::CmpNe), equal_rule, ints),
};
// clang-format on

// --- bools

Ref negate_rule(const Match& m) {
  Ref p_ = m[p];
  Ref n = negated(p_);
  return same(n, m.root) ? nullptr : n;
}

// clang-format off
constexpr Rule kBools[] = {
  // The arithmetic of bools is their algebra.
  rule(x + y, x | y, bools),
  rule(x * y, x & y, bools),
  rule(x - y, x ^ y, bools),
  rule(max(x, y), x | y, bools),
  rule(min(x, y), x & y, bools),
  rule(neg(x), x, bools),
  rule(x / y, x & y, bools),
  rule(x % y, Pat(0), bools),
  rule(node(Op::CDiv, x, y), x & y, bools),
  rule(node(Op::CMod, x, y), Pat(0), bools),
  rule(x < y, logical_not(x) & y, bools),

  rule(logical_not(logical_not(p)), p, bools),
  rule(eq(p, 1), p, bools),
  rule(eq(p, 0), logical_not(p), bools),
  rule(ne(p, 0), p, bools),
  rule(p ^ 1, logical_not(p), bools),
  rule(p ^ 0, p, bools),
  rule(p ^ p, Pat(0), bools),
  rule(ne(p, q), p ^ q, bools, when(hi(p) > lo(p) && hi(q) > lo(q))),
  rule(eq(p, q), logical_not(p ^ q), bools),
  rule(logical_not(p) ^ q, logical_not(p ^ q), bools),

  rule(p & 1, p, bools),
  rule(p & 0, Pat(0), bools),
  rule(p | 0, p, bools),
  rule(p | 1, Pat(1), bools),
  rule(p & p, p, bools),
  rule(p | p, p, bools),
  rule((p | q) & q, q, bools),
  rule((p & q) | q, q, bools),
  rule((logical_not(p) | q) & p, p & q, bools),
  rule((logical_not(p) & q) | p, p | q, bools),
  // De Morgan, towards fewer negations; a negated OR is a conjunction, which is what gates are.
  rule(logical_not(logical_not(p) | q), p& logical_not(q), bools),
  rule(logical_not(p | q), logical_not(p) & logical_not(q), bools),
  rule(logical_not(logical_not(p) & q), p | logical_not(q), bools),
  rule(logical_not(p), negate_rule, bools),
  rule(any(Op::And), clauses_rule, bools),
  rule(any(Op::Or), clauses_rule, bools),
};
// clang-format on

// --- where

// An op on a choice between two constants is a choice between the results.
Ref into_branches(const Match& m) {
  Ref root = m.root;
  int at = root.src(0).is(Op::Where) ? 0 : 1;
  Ref chosen = root.src(at);
  Ref a = constant(chosen.src(1)), b = constant(chosen.src(2));
  if (!a || !b || !is_exact(root.op()) || chosen.lanes() != root.lanes()) return nullptr;
  absl::InlinedVector<Ref, 2> left(root.srcs().begin(), root.srcs().end()), right = left;
  for (int k = 0; k < root.nsrc(); ++k)
    if (k != at && !constant(root.src(k))) return nullptr;
  left[static_cast<std::size_t>(at)] = chosen.src(1);
  right[static_cast<std::size_t>(at)] = chosen.src(2);
  return where(chosen.src(0), with_srcs(root, left), with_srcs(root, right));
}

// clang-format off
constexpr Rule kWhere[] = {
  rule(where(p, x, x), x),
  rule(where(Pat(1), x, y), x),
  rule(where(Pat(0), x, y), y),
  rule(where(logical_not(p), x, y), where(p, y, x)),
  rule(where(p, where(p, x, y), z), where(p, x, z)),
  rule(where(p, x, where(p, y, z)), where(p, x, z)),
  rule(where(p, where(q, x, y), y), where(p & q, x, y)),
  rule(where(p, x, where(q, x, y)), where(p | q, x, y)),
  rule(where(p, where(q, y, x), y), where(p& logical_not(q), x, y)),
  rule(where(p, x, where(q, y, x)), where(logical_not(p) & q, y, x)),
  rule(where(p, Pat(1), Pat(0)), p, bools),
  rule(where(p, Pat(0), Pat(1)), logical_not(p), bools),
  rule(where(p, q, Pat(0)), p & q, bools),
  rule(where(p, Pat(1), q), p | q, bools),
  rule(where(p, Pat(0), q), logical_not(p) & q, bools),
  rule(where(p, q, Pat(1)), logical_not(p) | q, bools),
  rule(where(p, p, q), p | q, bools),
  rule(where(p, q, p), p & q, bools),
  rule(where(x < y, x, y), min(x, y), ints),
  rule(where(x < y, y, x), max(x, y), ints),
  rule(where(eq(x, y), x, y), y, exact),
  rule(where(ne(x, y), x, y), x, ints),
};
// clang-format on

template <Op... ops>
constexpr Rule kBranches[] = {rule(node(ops, where(p, c0, c1), c2), into_branches, exact)...,
                              rule(node(ops, c2, where(p, c0, c1)), into_branches, exact)...,
                              rule(node(Op::Cast, where(p, c0, c1)), into_branches),
                              rule(neg(where(p, c0, c1)), into_branches)};

// --- casts

// A cast of a cast is one cast where the one between loses nothing that the outer one keeps.
Ref cast_of_cast(const Match& m) {
  Ref y = m.root.src(0), v = y.src(0);
  DType from = v.dtype(), via = y.dtype(), to = m.root.dtype();
  bool ints_only = !is_float(from) && !is_float(via);
  // Integers wrap, so only the low bits matter; bool is a test instead.
  bool low_bits = is_int(from) && is_int(via) && is_int(to) && itemsize(to) <= itemsize(via);
  bool fits = ints_only && via != DType::Bool && from != u64 && via != u64 && v.lo() >= int_min(via) &&
              v.hi() <= int_max(via);
  // Out of a float, integers saturate instead of wrapping.
  bool saturates = !is_float(from) && is_float(via) && is_int(to) && !is_lossless(from, to) &&
                   (from == u64 || to == u64 || v.lo() < int_min(to) || v.hi() > int_max(to));
  return low_bits || ((fits || is_lossless(from, via)) && !saturates) ? cast(v, to) : nullptr;
}

Ref bitcast_of_bitcast(const Match& m) {
  DType from = m[x].dtype(), via = m.root.src(0).dtype(), to = m.root.dtype();
  return from == to || (itemsize(from) == itemsize(via) && itemsize(via) == itemsize(to)) ? bitcast(m[x], to)
                                                                                          : nullptr;
}

// A comparison of a bool turned into a number with a number is the bool, its negation, or decided.
Ref compared_bool(const Match& m) {
  Ref root = m.root;
  int at = root.src(0).is(Op::Cast) ? 0 : 1;
  Ref b = root.src(at).src(0), c = constant(root.src(1 - at));
  if (!c || b.dtype() != DType::Bool) return nullptr;
  bool result[2];
  for (int v = 0; v < 2; ++v) {
    Scalar s[2];
    s[at] = cast_scalar(int_scalar(v), DType::Bool, c.dtype());
    s[1 - at] = c->arg;
    result[v] = eval_scalar(root.op(), DType::Bool, c.dtype(), s).i;
  }
  if (result[0] == result[1]) return int_const_like(root, result[0]);
  return result[1] ? b : logical_not(b);
}

// clang-format off
constexpr Rule kCasts[] = {
  rule(node(Op::Cast, node(Op::Cast, x)), cast_of_cast),
  rule(node(Op::Bitcast, node(Op::Bitcast, x)), bitcast_of_bitcast),
  rule(node(Op::Cast, x) < c0, compared_bool),
  rule(c0 < node(Op::Cast, x), compared_bool),
  rule(eq(node(Op::Cast, x), c0), compared_bool),
  rule(ne(node(Op::Cast, x), c0), compared_bool),
};
// clang-format on

}  // namespace

const RuleSet& algebra() {
  static const RuleSet rules = RuleSet(kBounds) + RuleSet(kFloats) + RuleSet(kWhere) +
                               RuleSet(kBranches<Op::Add, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::Max,
                                                 Op::Min, Op::CmpLt, Op::CmpEq, Op::CmpNe, Op::And, Op::Or>) +
                               RuleSet(kCasts) + RuleSet(kBools) + RuleSet(kInts) + RuleSet(kSplats);
  return rules;
}

const RuleSet& symbolic() {
  static const RuleSet rules = algebra() + divmod();
  return rules;
}

}  // namespace pg::rules
