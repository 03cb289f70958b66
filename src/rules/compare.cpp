#include "rules/compare.h"

#include <algorithm>

#include "rules/sum.h"

namespace pg::rules {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                       kMax = std::numeric_limits<std::int64_t>::max();

Ref truth(Ref like, bool v) { return int_const_like(like, v); }

// Data may be compared as a sum of terms only where no step wraps.
bool representable(const Sum& s) {
  return s.fits() && s.constant >= int_min(s.dtype()) && s.constant <= int_max(s.dtype());
}

// The terms with positive coefficients, and the others negated.
void sides(const Sum& s, Sum& left, Sum& right) {
  for (const Term& t : s.terms) t.coef > 0 ? left.add_term(t.base, t.coef) : right.add_term(t.base, -t.coef);
}

// Divides the coefficients of g*a + k < 0 by what they share: a + floor(k/g) < 0. Then, as long as it works,
// drops terms that cannot matter: g*a + b < 0 is a + q < 0 where floor(b/g) is always q.
void reduce_less(Sum& s) {
  for (bool again = true; again;) {
    again = false;
    std::int64_t g = 0;
    for (const Term& t : s.terms) g = gcd(g, t.coef);
    if (g > 1) {
      for (Term& t : s.terms) t.coef /= g;
      s.constant = static_cast<std::int64_t>(floor_quotient(s.constant, g));
    }
    absl::InlinedVector<std::int64_t, 8> sizes;
    for (const Term& t : s.terms) {
      std::int64_t size = t.coef < 0 ? -t.coef : t.coef;
      if (size > 1 && std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    }
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    for (std::int64_t size : sizes) {
      Sum a(s.like(), Sum::Exact), b(s.like(), Sum::Exact);
      for (const Term& t : s.terms)
        t.coef % size ? b.add_term(t.base, t.coef) : a.add_term(t.base, t.coef / size);
      b.add_constant(s.constant);
      Bounds r = b.bounds();
      Wide q = floor_quotient(r.lo, size);
      if (q != floor_quotient(r.hi, size)) continue;
      a.add_constant(q);
      if (a.failed()) continue;
      s = a;
      again = true;
      break;
    }
    // x/m + k < 0 is x + k*m < 0, and its mirror image.
    if (s.terms.size() == 1 && (s.terms[0].coef == 1 || s.terms[0].coef == -1) &&
        s.terms[0].base.is(Op::FloorDiv)) {
      Ref m = constant(s.terms[0].base.src(1));
      if (!m || m.i() <= 0) return;
      Sum x(s.like(), Sum::Exact);
      x.add(s.terms[0].base.src(0), s.terms[0].coef);
      x.add_constant(s.terms[0].coef == 1 ? Wide{s.constant} * m.i() : (Wide{s.constant} + 1) * m.i() - 1);
      if (x.failed()) return;
      s = x;
      again = true;
    }
  }
}

// The sum with loop variables of symbolic size at their last value, where their coefficient has that sign: no
// loop makes it greater (or, for the other sign, less).
Sum at_ends(const Sum& s, bool positive) {
  Sum out = s;
  for (const Term& t : s.terms) {
    if (!t.base.is(Op::Range) || t.base.src(0).is_const() || (t.coef > 0) != positive) continue;
    out.add_term(t.base, -t.coef);
    out.add(t.base.src(0), t.coef);
    out.add_constant(-Wide{t.coef});
  }
  return out;
}

}  // namespace

Ref less_rule(const Match& m) {
  Ref root = m.root, a = root.src(0), b = root.src(1);
  DType t = a.dtype();
  if (t == u64) return nullptr;
  Sum s = Sum::of(a, Sum::Exact);
  s.add(b, -1);
  if (s.failed()) return nullptr;
  Bounds r = s.bounds();
  if (r.hi < 0 || r.lo >= 0) return truth(root, r.hi < 0);
  if (Sum most = at_ends(s, true); !most.failed() && most.bounds().hi < 0) return truth(root, true);
  if (Sum least = at_ends(s, false); !least.failed() && least.bounds().lo >= 0) return truth(root, false);
  reduce_less(s);
  // L - R + k < 0, with one constant: at the right, or alone at the left.
  Sum left(a, Sum::Exact), right(a, Sum::Exact);
  sides(s, left, right);
  if (left.terms.empty()) {
    left.add_constant(s.constant);
  } else {
    right.add_constant(-Wide{s.constant});
  }
  if (left.failed() || right.failed() || !representable(left) || !representable(right)) return nullptr;
  if (left.terms.empty() && right.terms.empty()) return truth(root, left.constant < right.constant);
  return left.build() < right.build();
}

Ref equal_rule(const Match& m) {
  Ref root = m.root, a = root.src(0), b = root.src(1);
  bool eq = root.is(Op::CmpEq);
  DType t = a.dtype();
  if (t != u64) {
    // a == b in the mathematical integers.
    Sum s = Sum::of(a, Sum::Exact);
    s.add(b, -1);
    Bounds r = s.bounds();
    if (!s.failed()) {
      if (r.lo > 0 || r.hi < 0) return truth(root, !eq);
      std::int64_t g = 0;
      for (const Term& term : s.terms) g = gcd(g, term.coef);
      if (s.terms.empty()) return truth(root, (s.constant == 0) == eq);
      if (s.constant % g) return truth(root, !eq);
      if (g > 1) {
        for (Term& term : s.terms) term.coef /= g;
        s.constant /= g;
      }
      std::size_t first = 0;
      for (std::size_t i = 1; i < s.terms.size(); ++i)
        if (goes_left(s.terms[i].base, s.terms[first].base)) first = i;
      Sum left(a, Sum::Exact), right(a, Sum::Exact), d(a, Sum::Exact);
      d.add(s, s.terms[first].coef > 0 ? 1 : -1);
      sides(d, left, right);
      right.add_constant(-Wide{d.constant});
      if (representable(left) && representable(right) && !d.failed()) {
        Ref normal = alu(root.op(), {left.build(), right.build()});
        if (t == DType::WeakInt || !same(normal, root)) return normal;
      }
    }
  }
  // In the ring: x + c0 == c1 is x == c1 - c0, equal terms on both sides go.
  Sum s = Sum::of(a, Sum::Ring), of_b = Sum::of(b, Sum::Ring);
  std::size_t before = s.terms.size() + of_b.terms.size();
  bool constants = s.constant != 0 && of_b.terms.empty();
  s.add(of_b, -1);
  if (s.terms.empty()) return truth(root, (s.constant == 0) == eq);
  if (!constants && s.terms.size() == before) return nullptr;
  Sum left(a, Sum::Ring), right(a, Sum::Ring);
  for (const Term& term : s.terms) {
    std::int64_t minus = wrap(t, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(term.coef)));
    bool positive = is_unsigned(t) && t != u64 ? term.coef <= minus : term.coef > 0;
    positive ? left.add_term(term.base, term.coef) : right.add_term(term.base, minus);
  }
  right.add_constant(-Wide{s.constant});
  if (left.terms.empty()) {
    std::swap(left.terms, right.terms);
    right.constant = s.constant;
  }
  return alu(root.op(), {left.build(), right.build()});
}

Interval interval_of(Ref p) {
  if (!p.has(kComparison) || p.is(Op::CmpNe)) return {nullptr, 0, 0};
  Ref a = p.src(0), b = p.src(1);
  if (!is_int(a.dtype()) || a.dtype() == u64) return {nullptr, 0, 0};
  if (Ref c = constant(b)) {
    if (p.is(Op::CmpEq)) return {a, c.i(), c.i()};
    if (c.i() == kMin) return {nullptr, 0, 0};
    return {a, a.lo(), std::min(a.hi(), c.i() - 1)};
  }
  Ref c = constant(a);
  if (!c || !p.is(Op::CmpLt) || c.i() == kMax) return {nullptr, 0, 0};
  return {b, std::max(b.lo(), c.i() + 1), b.hi()};
}

Ref negated(Ref p) {
  if (p.is(Op::CmpEq)) return alu(Op::CmpNe, {p.src(0), p.src(1)});
  if (p.is(Op::CmpNe)) {
    Ref c = constant(p.src(1));
    if (c && p.src(0).dtype() == DType::Bool) return c.i() ? p.src(0) : logical_not(p.src(0));
    return eq(p.src(0), p.src(1));
  }
  if (p.is(Op::CmpLt) && is_int(p.src(0).dtype()) && p.src(0).dtype() != u64) {
    Ref a = p.src(0), b = p.src(1);
    DType t = a.dtype();
    Ref ca = constant(a), cb = constant(b);
    if (cb && cb.i() > int_min(t)) return int_const_like(a, cb.i() - 1) < a;  // not a < c: c-1 < a
    if (ca && ca.i() < int_max(t)) return b < int_const_like(b, ca.i() + 1);  // not c < b: b < c+1
    if (!ca && !cb && t == DType::WeakInt) return b < a + 1;
  }
  return logical_not(p);
}

Ref clauses_rule(const Match& m) {
  Ref root = m.root;
  bool all = root.is(Op::And);
  absl::InlinedVector<Ref, 8> clauses = chain_of(root.op(), root), out;
  // What decides the whole: false in an And, true in an Or.
  Ref decided = truth(root, !all);
  absl::InlinedVector<Interval, 8> known;
  absl::InlinedVector<int, 8> uses;
  for (Ref p : clauses) {
    if (Ref c = constant(p)) {
      if ((c.i() != 0) == all) continue;
      return decided;
    }
    // An Or of intervals is the negation of an And of their complements.
    Interval v = interval_of(all ? p : negated(p));
    if (!v.x) {
      bool there = false;
      for (Ref o : out) {
        there |= same(o, p);
        if (same(o, negated(p)) || same(negated(o), p)) return decided;
      }
      if (!there) out.push_back(p);
      continue;
    }
    std::size_t i = 0;
    while (i < known.size() && !same(known[i].x, v.x)) ++i;
    if (i == known.size()) {
      known.push_back(v);
      uses.push_back(0);
    }
    known[i].lo = std::max(known[i].lo, v.lo);
    known[i].hi = std::min(known[i].hi, v.hi);
    ++uses[i];
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    auto [x, lo, hi] = known[i];
    if (lo > hi) return decided;
    // x != c shaves an end off, or is implied.
    for (std::size_t k = out.size(); k-- > 0;) {
      Ref c = out[k].is(all ? Op::CmpNe : Op::CmpEq) && same(out[k].src(0), x) ? constant(out[k].src(1))
                                                                               : nullptr;
      if (!c) continue;
      if (lo == hi && c.i() == lo) return decided;
      if (c.i() > lo && c.i() < hi) continue;
      if (c.i() == lo) ++lo;
      if (c.i() == hi) --hi;
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(k));
      k = out.size();
    }
    if (lo > hi) return decided;
    auto put = [&](Ref p) { out.push_back(all ? p : negated(p)); };
    if (lo == hi) {
      put(eq(x, int_const_like(x, lo)));
      continue;
    }
    if (lo > x.lo()) put(int_const_like(x, lo - 1) < x);
    if (hi < x.hi()) put(x < int_const_like(x, hi + 1));
  }
  for (std::size_t i = 1; i < out.size(); ++i)
    for (std::size_t k = i; k > 0 && goes_left(out[k], out[k - 1]); --k) std::swap(out[k], out[k - 1]);
  if (out.empty()) return truth(root, all);
  Ref joined = out[0];
  for (std::size_t i = 1; i < out.size(); ++i) joined = alu(root.op(), {joined, out[i]});
  return joined;
}

}  // namespace pg::rules
