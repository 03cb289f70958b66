// Sums of which a gate lets only every s-th term count, as gradients of strided windows are: which terms
// those are depends on the place modulo s, so a kernel for each remainder sums up just them. Nothing is
// multiplied that does not count, and no kernel divides.
#include <algorithm>
#include <array>

#include "rules/gates.h"
#include "rules/sum.h"
#include "rules/symbolic.h"
#include "schedule/plan.h"

namespace pg::schedule {
namespace {

Ref simplify(Ref x) {
  static const RuleSet& rules = *new RuleSet(rules::symbolic() + rules::gates());
  return rewrite(x, rules, {.name = "simplify phase", .optional = true});
}

// A clause (factor*term + place + ...) % step == rest, where only `term`, a range of the sum, and `place`, a
// range of the output, are no multiples of the step. One of them may be absent.
struct Congruence {
  Ref term, place;
  std::int64_t factor = 0, step = 0, rest = 0;
};

bool is_range(Ref n, RangeKind kind) {
  return n.is(Op::Range) && n.range_kind() == kind && n.src(0).is_const();
}

// Only sums whose terms are nothing where the gate is false.
Ref gate_of(Ref n) {
  if (!n.is(Op::Reduce) || n.reduce_op() != Op::Add) return nullptr;
  Ref value = n.src(0);
  return value.is(Op::Where) && value.src(2).is_const(0) ? value.src(0) : nullptr;
}

Congruence congruence_of(Ref clause, Ref sum) {
  if (!clause.is(Op::CmpEq) || !clause.src(1).is_const()) return {};
  auto in_sum = [&](Ref n) {
    return is_range(n, RangeKind::Reduce) &&
           std::any_of(sum.srcs().begin() + 1, sum.srcs().end(), [&](Node* s) { return s == n.node(); });
  };
  // One term alone.
  if (Ref only = clause.src(0); in_sum(only)) return {only, nullptr, 1, only.src(0).i(), clause.src(1).i()};
  if (!clause.src(0).is(Op::FloorMod)) return {};
  Ref step = clause.src(0).src(1);
  if (!step.is_const() || step.i() < 2 || step.dtype() != DType::WeakInt) return {};
  Congruence c{nullptr, nullptr, 0, step.i(), clause.src(1).i()};
  rules::Sum e = rules::Sum::of(clause.src(0).src(0), rules::Sum::Exact);
  if (e.failed()) return {};
  c.rest = rules::floor_residue(rules::Wide{c.rest} - e.constant, c.step);
  for (const rules::Term& t : e.terms) {
    if (t.coef % c.step == 0) continue;
    if (in_sum(t.base) && !c.term && rules::gcd(t.coef, c.step) == 1)
      c.term = t.base, c.factor = rules::floor_residue(t.coef, c.step);
    else if (is_range(t.base, RangeKind::Loop) && !c.place)
      c.place = t.base;
    else
      return {};
  }
  return c;
}

template <class F>
void each_congruence(Ref sum, F&& f) {
  if (Ref gate = gate_of(sum))
    for (Ref clause : rules::chain_of(Op::And, gate))
      if (Congruence c = congruence_of(clause, sum); c.term || c.place) f(c);
}

// A sum with only the terms at which every congruence without a place holds.
Ref thinned(Ref sum) {
  for (;;) {
    if (sum.is(Op::Reduce) && sum.reduce_op() == Op::Add && sum.src(0).is_const(0)) return sum.src(0);
    Congruence found;
    each_congruence(sum, [&](const Congruence& c) {
      if (!c.place) found = c;
    });
    if (!found.term) return sum;
    std::int64_t first = 0, n = found.term.src(0).i();
    while (found.factor * first % found.step != found.rest) ++first;
    std::int64_t count = n > first ? (n - first + found.step - 1) / found.step : 0;
    if (!count) return const_like(sum, 0);
    Ref loop = count > 1 ? range(found.term.range_id(), RangeKind::Reduce, idx(count)) : Ref(),
        at = loop ? loop * found.step + first : idx(first);
    std::pair<Ref, Ref> one{found.term, at};
    absl::InlinedVector<Ref, 8> srcs{simplify(substitute(sum.src(0), std::span(&one, 1)))};
    for (Node* s : sum.srcs().subspan(1)) {
      if (s != found.term.node())
        srcs.push_back(s);
      else if (loop)
        srcs.push_back(loop);
    }
    if (srcs.size() == 1) return srcs[0];
    sum = make(Op::Reduce, sum.dtype(), 1, srcs, sum->arg);
  }
}

Ref with_thin_sums(Ref root) {
  absl::InlinedVector<std::pair<Ref, Ref>, 2> thin;
  for (Ref n : toposort(root))
    if (Ref t = thinned(n); !same(t, n)) thin.emplace_back(n, t);
  return thin.empty() ? root : simplify(substitute(root, thin));
}

// The part of the kernel at places step*i + first.
Ref phase(Ref root, Ref place, std::int64_t step, std::int64_t first) {
  std::int64_t count = (place.src(0).i() - first + step - 1) / step;
  Ref loop = count > 1 ? range(place.range_id(), RangeKind::Loop, idx(count)) : Ref();
  std::pair<Ref, Ref> one{place, loop ? loop * step + first : idx(first)};
  Ref end = root.src(0);
  absl::InlinedVector<Ref, 8> srcs{substitute(end.src(0), std::span(&one, 1))};
  for (Node* s : end.srcs().subspan(1)) {
    if (s != place.node())
      srcs.push_back(s);
    else if (loop)
      srcs.push_back(loop);
  }
  return simplify(sink(std::array{make(Op::End, DType::Void, 1, srcs)}));
}

}  // namespace

absl::InlinedVector<Ref, 4> in_phases(Ref root) {
  constexpr std::int64_t kMostPhases = 64;
  constexpr double kLaunch = 4000, kWorth = 8;  // in terms of a sum
  absl::InlinedVector<std::pair<Ref, std::int64_t>, 2> places;
  double terms = 0, shrinks = 1;
  std::int64_t phases = 1;
  for (Ref n : toposort(root)) {
    bool thins = false;
    each_congruence(n, [&](const Congruence& c) {
      thins = true;
      shrinks *= static_cast<double>(c.step);
      if (!c.place || c.place.src(0).i() < c.step || phases * c.step > kMostPhases) return;
      if (std::any_of(places.begin(), places.end(), [&](auto& p) { return same(p.first, c.place); })) return;
      places.emplace_back(c.place, c.step);
      phases *= c.step;
    });
    if (!thins) continue;
    double all = 1;
    for (Node* s : n.srcs().subspan(1)) all *= static_cast<double>(Ref(s).src(0).hi());
    terms = std::max(terms, all);
  }
  if (shrinks == 1) return {root};
  // Each stores with gaps between its elements, so that there must be something to sum up.
  double outputs = 1;
  for (Node* s : root.src(0).srcs().subspan(1)) outputs *= static_cast<double>(Ref(s).src(0).hi());
  if (terms / shrinks < kWorth || outputs * terms * (1 - 1 / shrinks) < kLaunch * static_cast<double>(phases))
    places.clear();
  absl::InlinedVector<Ref, 4> parts{root};
  for (auto [place, step] : places) {
    absl::InlinedVector<Ref, 4> finer;
    for (Ref part : parts)
      for (std::int64_t first = 0; first < step; ++first) finer.push_back(phase(part, place, step, first));
    parts = finer;
  }
  for (Ref& part : parts) part = with_thin_sums(part);
  return parts;
}

}  // namespace pg::schedule
