#include "rules/gates.h"

#include <algorithm>
#include <string>

#include "rules/compare.h"
#include "rules/sum.h"
#include "rules/symbolic.h"

namespace pg::rules {
namespace {

using Replacements = absl::InlinedVector<std::pair<Ref, Ref>, 8>;

Ref simplified(Ref x) { return rewrite(x, symbolic(), {.name = "simplify under a gate"}); }

// What an expression costs, roughly: divisions most, then choices.
int work(Ref x) {
  int sum = 0;
  for (Ref n : toposort(x)) {
    if (n.is(Op::FloorDiv) || n.is(Op::FloorMod))
      sum += 8;
    else if (n.is(Op::Where) || n.has(kComparison))
      sum += 3;
    else if (n.has(kElementwise))
      sum += 1;
  }
  return sum;
}

// What a gate says, clause by clause: bounds of atoms, bounds of sums, bools that are known.
class Facts {
 public:
  explicit Facts(Ref gate) {
    for (Ref clause : chain_of(Op::And, gate)) learn(clause);
    // Bounds of one atom give bounds of others, a few times over.
    for (int round = 0; round < 3; ++round)
      for (const Sum& s : negative_) tighten(s);
  }

  // The gate cannot hold.
  bool absurd() const { return absurd_; }

  // Atoms by stand-ins with the bounds they have under the gate.
  Replacements atoms() const {
    Replacements out = known_;
    for (const Known& k : bounds_)
      if (k.lo > k.x.lo() || k.hi < k.x.hi())
        out.emplace_back(k.x, stand_in(k.x.dtype(), k.lo, k.hi, out.size()));
    return out;
  }

  // For sums with bounds that do not follow from those of their atoms: the atom, and what it is in terms of a
  // stand-in for the sum. Atoms are not used twice.
  Replacements sums() const {
    Replacements out;
    for (const Bounded& b : sums_) {
      Bounds free = b.sum.bounds();
      if (b.lo <= free.lo && b.hi >= free.hi) continue;
      for (const Term& t : b.sum.terms) {
        if (t.coef != 1 && t.coef != -1) continue;
        auto taken = [&](auto& r) { return same(r.first, t.base); };
        if (std::any_of(out.begin(), out.end(), taken)) continue;
        Sum rest = b.sum;
        rest.add_term(t.base, -t.coef);
        // sum = coef * base + rest, so base = coef * (sum - rest).
        Wide lo = std::max(b.lo, free.lo), hi = std::min(b.hi, free.hi);
        Sum base(t.base, Sum::Exact);
        base.add(stand_in(t.base.dtype(), static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi),
                          1000 + out.size()),
                 t.coef);
        base.add(rest, -t.coef);
        if (!base.failed()) out.emplace_back(t.base, base.build());
        break;
      }
    }
    return out;
  }

 private:
  struct Known {
    Ref x;
    std::int64_t lo, hi;
  };
  struct Bounded {
    Sum sum;
    Wide lo, hi;
  };

  static Ref stand_in(DType t, std::int64_t lo, std::int64_t hi, std::size_t number) {
    if (lo == hi) return int_const(t, lo);
    return var("given " + std::to_string(number), lo, hi, t);
  }

  void learn(Ref clause) {
    if (clause.is_const()) return;
    known_.emplace_back(clause, bool_const(true));
    Ref opposite = negated(clause);
    if (!constant(opposite)) known_.emplace_back(opposite, bool_const(false));
    if (Interval v = interval_of(clause); v.x && v.x.dtype() == DType::WeakInt) {
      Sum s = Sum::of(v.x, Sum::Exact);
      if (v.hi < v.x.hi()) below(s, v.hi);
      if (v.lo > v.x.lo()) {
        Sum minus(v.x, Sum::Exact);
        minus.add(s, -1);
        below(minus, -Wide{v.lo});
      }
      if (s.terms.size() == 1) {
        Known& k = of(v.x);
        k.lo = std::max(k.lo, v.lo);
        k.hi = std::min(k.hi, v.hi);
        absurd_ |= k.lo > k.hi;
      } else {
        note(s, v.lo, v.hi);
      }
    } else if (clause.is(Op::CmpLt) && clause.src(0).dtype() == DType::WeakInt) {
      Sum s = Sum::of(clause.src(0), Sum::Exact);
      s.add(clause.src(1), -1);
      below(s, -1);
      Sum terms = s;
      terms.constant = 0;
      note(terms, std::numeric_limits<std::int64_t>::min(), -1 - Wide{s.constant});
    }
  }

  // s <= limit, kept as s - limit - 1 < 0.
  void below(Sum s, Wide limit) {
    s.add_constant(-limit - 1);
    if (!s.failed()) negative_.push_back(s);
  }

  void note(const Sum& s, Wide lo, Wide hi) {
    if (s.failed()) return;
    for (Bounded& b : sums_)
      if (b.sum.terms.size() == s.terms.size() && b.sum.constant == s.constant &&
          std::equal(s.terms.begin(), s.terms.end(), b.sum.terms.begin(),
                     [](const Term& x, const Term& y) { return same(x.base, y.base) && x.coef == y.coef; })) {
        b.lo = std::max(b.lo, lo);
        b.hi = std::min(b.hi, hi);
        return;
      }
    sums_.push_back({s, lo, hi});
  }

  Known& of(Ref x) {
    for (Known& k : bounds_)
      if (same(k.x, x)) return k;
    bounds_.push_back({x, x.lo(), x.hi()});
    return bounds_.back();
  }

  // Each term's bound, from s < 0 and the least that the other terms can be.
  void tighten(const Sum& s) {
    for (std::size_t i = 0; i < s.terms.size(); ++i) {
      Wide others = s.constant;
      bool open = false;
      for (std::size_t j = 0; j < s.terms.size(); ++j) {
        if (j == i) continue;
        const Known& k = of(s.terms[j].base);
        Wide coef = s.terms[j].coef;
        open |= coef > 0 ? k.lo == std::numeric_limits<std::int64_t>::min()
                         : k.hi == std::numeric_limits<std::int64_t>::max();
        others += std::min(coef * k.lo, coef * k.hi);
      }
      if (open) continue;
      // coef * x <= -1 - others
      Known& k = of(s.terms[i].base);
      Wide limit = -1 - others;
      std::int64_t coef = s.terms[i].coef;
      if (coef == std::numeric_limits<std::int64_t>::min()) continue;
      if (coef > 0)
        k.hi = static_cast<std::int64_t>(std::clamp<Wide>(floor_quotient(limit, coef), k.lo - Wide{1}, k.hi));
      else
        k.lo =
            static_cast<std::int64_t>(std::clamp<Wide>(-floor_quotient(limit, -coef), k.lo, k.hi + Wide{1}));
      absurd_ |= k.lo > k.hi;
      if (absurd_) return;
    }
  }

  absl::InlinedVector<Sum, 8> negative_;
  std::vector<Known> bounds_;
  std::vector<Bounded> sums_;
  Replacements known_;
  bool absurd_ = false;
};

// x with stand-ins, simplified, and the stand-ins taken back. `back` undoes the replacements.
Ref tried(Ref x, const Replacements& there, const Replacements& back) {
  Ref y = substitute(x, there);
  if (same(y, x)) return x;
  return simplified(substitute(simplified(y), back));
}

Replacements inverse(const Replacements& there) {
  Replacements back;
  for (auto& [from, to] : there)
    if (to.is(Op::Var)) back.emplace_back(to, from);
  return back;
}

// For sums: the stand-in becomes the sum again.
Replacements inverse_of_sums(const Replacements& there) {
  Replacements back;
  for (auto& [atom, value] : there) {
    Sum s = Sum::of(value, Sum::Exact);
    for (const Term& t : s.terms) {
      if (!t.base.is(Op::Var) || t.base.str().rfind("given ", 0) != 0) continue;
      // value = coef * stand_in + rest is the atom, so stand_in = coef * (atom - rest).
      Sum rest = s, sum(atom, Sum::Exact);
      rest.add_term(t.base, -t.coef);
      sum.add(atom, t.coef);
      sum.add(rest, -t.coef);
      back.emplace_back(t.base, sum.build());
      break;
    }
  }
  return back;
}

bool reaches(Ref root, Op op) {
  for (Ref n : toposort(root))
    if (n.is(op)) return true;
  return false;
}

}  // namespace

Ref simplify_given(Ref x, Ref gate) {
  if (gate.is_const() || x->nsrc == 0) return x;
  Facts facts(gate);
  if (facts.absurd()) return x;
  Replacements atoms = facts.atoms();
  Ref best = tried(x, atoms, inverse(atoms));
  if (!same(best, x) && work(best) > work(x)) best = x;
  // Sums all at once, since a division may need them all; then one by one.
  Replacements sums = facts.sums();
  if (sums.empty()) return best;
  auto attempt = [&](const Replacements& there) {
    Ref y = substitute(best, there);
    if (same(y, best)) return;
    // Other atoms keep what is known of them. An atom that was replaced is gone by now.
    Ref z = simplified(substitute(y, atoms));
    z = simplified(substitute(substitute(z, inverse_of_sums(there)), inverse(atoms)));
    if (work(z) < work(best)) best = z;
  };
  attempt(sums);
  if (sums.size() > 1)
    for (auto& one : sums) attempt({one});
  return best;
}

Ref simplify_gate(Ref gate) {
  gate = simplified(gate);
  if (!gate.is(Op::And)) return gate;
  auto clauses = chain_of(Op::And, gate);
  if (Facts(gate).absurd()) return bool_const(false);
  // The most work first, so that it goes if either of two implies the other.
  for (std::size_t i = 1; i < clauses.size(); ++i)
    for (std::size_t k = i; k > 0 && work(clauses[k]) > work(clauses[k - 1]); --k)
      std::swap(clauses[k], clauses[k - 1]);
  for (std::size_t i = 0; i < clauses.size();) {
    Ref others;
    for (std::size_t k = 0; k < clauses.size(); ++k)
      if (k != i) others = others ? others & clauses[k] : clauses[k];
    if (!others) break;
    Ref c = simplify_given(clauses[i], others);
    if (c.is_const(0)) return c;
    if (c.is_const())
      clauses.erase(clauses.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  Ref out;
  for (Ref c : clauses) out = out ? out & c : c;
  return simplified(out);
}

namespace {

Ref gated_index(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() != 3 || n.lanes() != 1) return nullptr;
  Ref buffer = n.src(0), offset = n.src(1), gate = n.src(2);
  if (gate.is_const(1)) return make(Op::Index, n.dtype(), {buffer, offset});
  if (gate.is_const()) return nullptr;
  Ref less = simplify_gate(gate), at = simplify_given(offset, less);
  Ref result[3] = {buffer, at, less};
  return with_srcs(n, result);
}

// Nothing is read where the gate is false.
Ref load_of_nothing(const Match& m) {
  Ref n = m.root, index = n.src(0);
  if (!index.is(Op::Index) || index.nsrc() != 3 || !index.src(2).is_const(0)) return nullptr;
  return n.nsrc() > 1 ? n.src(1) : const_like(n, 0);
}

// where(p, load, 0) of a load that is gated anyway: p joins the gate.
Ref choice_of_load(const Match& m) {
  Ref p = m.root.src(0), load = m.root.src(1), zero = constant(m.root.src(2)), index = load.src(0);
  if (!zero || zero->arg.i != 0 || load.nsrc() != 1 || !index.is(Op::Index) || index.nsrc() != 3)
    return nullptr;
  if (p.lanes() != index.src(2).lanes() || reaches(p, Op::Load)) return nullptr;
  Ref at[3] = {index.src(0), index.src(1), index.src(2) & p}, source = with_srcs(index, at);
  return with_srcs(load, std::span<const Ref>(&source, 1));
}

// Each branch of a choice between indices under what chose it.
Ref choice_of_index(const Match& m) {
  Ref n = m.root, p = n.src(0), a = n.src(1), b = n.src(2);
  if (n.lanes() != 1 || reaches(a, Op::Load) || reaches(b, Op::Load)) return nullptr;
  Ref yes = simplify_given(a, p), no = p.is(Op::And) ? b : simplify_given(b, negated(p));
  return same(yes, a) && same(no, b) ? nullptr : where(p, yes, no);
}

// A sum of which one term counts, the one whose number is v: Sum[k] where(k == v, f(k), 0) = f(v), if there
// is such a k.
Ref one_term(const Match& m) {
  Ref n = m.root, value = n.src(0);
  if (n.reduce_op() != Op::Add || n.reduce_axes() > 1) return nullptr;
  bool negative = value.is(Op::Neg);
  if (negative) value = value.src(0);
  if (!value.is(Op::Where) || !value.src(2).is_const(0)) return nullptr;
  auto clauses = chain_of(Op::And, value.src(0));
  for (std::size_t c = 0; c < clauses.size(); ++c)
    for (int side : {0, 1}) {
      if (!clauses[c].is(Op::CmpEq)) continue;
      Ref k = clauses[c].src(side), v = clauses[c].src(1 - side);
      if (k.is(Op::Cast) && is_int(k.dtype()) && k.src(0).is(Op::Range) &&
          k.src(0).hi() <= int_max(k.dtype()))
        k = k.src(0);
      if (!k.is(Op::Range) || !is_int(v.dtype()) || stands_on(v, k)) continue;
      int at = 1;
      while (at < n.nsrc() && !same(n.src(at), k)) ++at;
      if (at == n.nsrc()) continue;
      Ref term = cast(v, DType::WeakInt), there = ge(term, idx(0)) & (term < k.src(0));
      Replacements becomes{{k, term}};
      Ref gate = there;
      for (std::size_t o = 0; o < clauses.size(); ++o)
        if (o != c) gate = gate & substitute(clauses[o], becomes);
      // What is read at the place of the term is read only if there is one.
      Replacements gated;
      for (Ref i : toposort(value.src(1)))
        if (i.is(Op::Index) && stands_on(i, k))
          gated.emplace_back(
              i, make(Op::Index, i.dtype(), {i.src(0), i.src(1), i.nsrc() > 2 ? i.src(2) & there : there}));
      Ref f = substitute(substitute(value.src(1), gated), becomes);
      Ref out = where(gate, negative ? -f : f, const_like(n, 0));
      absl::InlinedVector<Ref, 5> rest{out};
      for (int i = 1; i < n.nsrc(); ++i)
        if (i != at) rest.push_back(n.src(i));
      return rest.size() > 1 ? make(Op::Reduce, n.dtype(), 1, rest, n->arg) : out;
    }
  return nullptr;
}

using namespace pat;

// clang-format off
constexpr Rule kGates[] = {
  rule(any(Op::Index), gated_index),
  rule(any(Op::Load), load_of_nothing),
  rule(where(p, any(Op::Load), c0), choice_of_load),
  rule(any(Op::Where), choice_of_index, indices),
};
// clang-format on
constexpr Rule kKernels[] = {rule(any(Op::Reduce), one_term)};

}  // namespace

const RuleSet& kernels() {
  static const RuleSet& rules = *new RuleSet(symbolic() + kKernels);
  return rules;
}

const RuleSet& gates() {
  static const RuleSet rules(kGates);
  return rules;
}

}  // namespace pg::rules
