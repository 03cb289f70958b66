#include "rules/sum.h"

#include <algorithm>
#include <numeric>

namespace pg::rules {

std::int64_t gcd(std::int64_t a, std::int64_t b) {
  auto abs = [](std::int64_t v) {
    return v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  };
  return static_cast<std::int64_t>(std::gcd(abs(a), abs(b)));
}

absl::InlinedVector<Ref, 8> chain_of(Op op, Ref root) {
  absl::InlinedVector<Ref, 8> out, todo{root};
  while (!todo.empty()) {
    Ref n = todo.back();
    todo.pop_back();
    if (n.is(op) && out.size() + todo.size() < kMaxTerms) {
      todo.push_back(n.src(1));
      todo.push_back(n.src(0));
    } else {
      out.push_back(n);
    }
  }
  return out;
}

Ref product_of(std::span<Ref> factors) {
  for (std::size_t i = 1; i < factors.size(); ++i)
    for (std::size_t k = i; k > 0 && goes_left(factors[k], factors[k - 1]); --k)
      std::swap(factors[k], factors[k - 1]);
  Ref product;
  for (Ref f : factors) product = product ? product * f : f;
  return product;
}

bool cannot_wrap(Op op, Ref a, Ref b) {
  DType t = a.dtype();
  if (t == DType::WeakInt) return true;
  if (t == u64) return false;
  Wide lo, hi;
  if (op == Op::Add) {
    lo = Wide{a.lo()} + b.lo();
    hi = Wide{a.hi()} + b.hi();
  } else {
    Wide corners[4] = {Wide{a.lo()} * b.lo(), Wide{a.lo()} * b.hi(), Wide{a.hi()} * b.lo(),
                       Wide{a.hi()} * b.hi()};
    lo = *std::min_element(corners, corners + 4);
    hi = *std::max_element(corners, corners + 4);
  }
  return lo >= int_min(t) && hi <= int_max(t);
}

std::int64_t Sum::fit(Wide v) {
  auto low = static_cast<std::int64_t>(v);
  if (mode_ == Ring) return wrap(dtype(), low);  // weak too: its values are held modulo 2^64
  failed_ |= low != v;
  return low;
}

void Sum::add_constant(Wide v) { constant = fit(constant + v); }

int Sum::find(Ref base) const {
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (same(terms[i].base, base)) return static_cast<int>(i);
  return -1;
}

void Sum::add_term(Ref base, std::int64_t k) {
  if (k == 0) return;
  int at = find(base);
  if (at < 0) {
    terms.push_back({base, k});
    return;
  }
  auto i = static_cast<std::size_t>(at);
  terms[i].coef = fit(Wide{terms[i].coef} + k);
  if (terms[i].coef == 0) remove(i);
}

void Sum::add(Ref x, std::int64_t k) {
  absl::InlinedVector<Term, 8> todo{{x, k}};
  while (!todo.empty()) {
    auto [n, c] = todo.back();
    todo.pop_back();
    if (Ref v = pg::constant(n)) {
      add_constant(Wide{c} * v.i());
      continue;
    }
    if (n.lo() == n.hi() && n.dtype() != u64) {
      add_constant(Wide{c} * n.lo());
      continue;
    }
    bool open = terms.size() + todo.size() < kMaxTerms;
    switch (open ? n.op() : Op::Const) {
      case Op::Add:
        if (mode_ == Exact && !cannot_wrap(Op::Add, n.src(0), n.src(1))) break;
        todo.push_back({n.src(1), c});
        todo.push_back({n.src(0), c});
        continue;
      case Op::Mul: {
        Ref v = pg::constant(n.src(1));
        if (!v || (mode_ == Exact && !cannot_wrap(Op::Mul, n.src(0), n.src(1)))) break;
        // Data does not pay for more multiplications; -1 is what a subtraction looks like.
        if (dtype() != DType::WeakInt && mode_ == Ring && n.src(0).is(Op::Add) && fit(Wide{c} * v.i()) != 1 &&
            fit(Wide{c} * v.i()) != wrap(dtype(), -1)) {
          add_term(n.src(0), fit(Wide{c} * v.i()));
          continue;
        }
        todo.push_back({n.src(0), fit(Wide{c} * v.i())});
        continue;
      }
      default:
        break;
    }
    add_term(n, c);
  }
}

void Sum::add(const Sum& other, std::int64_t k) {
  failed_ |= other.failed_;
  for (const Term& t : other.terms) add_term(t.base, fit(Wide{t.coef} * k));
  add_constant(Wide{other.constant} * k);
}

namespace {

// What x is below whatever the values: the symbolic extent of a range, the symbolic divisor of a remainder.
Ref end_of(Ref x) {
  Ref end = x.is(Op::Range) ? x.src(0) : x.is(Op::FloorMod) && x.src(1).lo() > 0 ? x.src(1) : nullptr;
  return end && x.dtype() == DType::WeakInt && !pg::constant(end) ? end : nullptr;
}

bool has_end(Ref base) {
  while (base.is(Op::Mul)) {
    if (end_of(base.src(1))) return true;
    base = base.src(0);
  }
  return static_cast<bool>(end_of(base));
}

}  // namespace

// The sum with ranges of symbolic extent at the end that makes it greatest, or least.
Sum Sum::at_ends(bool greatest) const {
  Sum out(like_, Exact);
  out.add_constant(constant);
  for (const Term& t : terms) {
    absl::InlinedVector<Ref, 8> factors = chain_of(Op::Mul, t.base);
    bool negative = std::any_of(factors.begin(), factors.end(), [](Ref f) { return f.lo() < 0; });
    if (negative) {
      out.add_term(t.base, t.coef);
      continue;
    }
    bool high = (t.coef > 0) == greatest;
    Sum product(like_, Exact);
    product.add_constant(1);
    for (Ref f : factors) {
      Ref end = end_of(f);
      Sum factor(like_, Exact);
      if (!end) {
        factor.add_term(f, 1);
      } else if (high) {
        factor.add(end);
        factor.add_constant(-1);
      }
      product = product * factor;
    }
    out.add(product, t.coef);
  }
  return out;
}

Bounds Sum::bounds() const {
  Bounds r = bounds_of_terms();
  if (std::none_of(terms.begin(), terms.end(), [](const Term& t) { return has_end(t.base); })) return r;
  Sum greatest = at_ends(true), least = at_ends(false);
  if (!greatest.failed()) r.hi = std::min(r.hi, greatest.bounds_of_terms().hi);
  if (!least.failed()) r.lo = std::max(r.lo, least.bounds_of_terms().lo);
  return r;
}

Bounds Sum::bounds_of_terms() const {
  Bounds r{constant, constant};
  for (const Term& t : terms) {
    // Bounds of a weak integer at the ends of int64 mean that nothing is known: keep them out of reach of
    // constants.
    constexpr Wide kFar = Wide{1} << 100;
    Wide lo = t.base.lo() == std::numeric_limits<std::int64_t>::min() ? -kFar : Wide{t.base.lo()};
    Wide hi = t.base.hi() == std::numeric_limits<std::int64_t>::max() ? kFar : Wide{t.base.hi()};
    Wide k = t.coef;
    auto times = [k, kFar](Wide v) {
      if (v == kFar || v == -kFar) return (k > 0) == (v > 0) ? kFar : -kFar;
      return std::clamp(k * v, -kFar, kFar);
    };
    r.lo += k > 0 ? times(lo) : times(hi);
    r.hi += k > 0 ? times(hi) : times(lo);
  }
  return r;
}

Sum operator*(const Sum& a, const Sum& b) {
  Sum out(a.like_, a.mode_);
  out.failed_ = a.failed_ || b.failed_;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      absl::InlinedVector<Ref, 8> factors = chain_of(Op::Mul, x.base);
      for (Ref f : chain_of(Op::Mul, y.base)) factors.push_back(f);
      out.add_term(product_of(factors), out.fit(Wide{x.coef} * y.coef));
    }
    out.add_term(x.base, out.fit(Wide{x.coef} * b.constant));
  }
  for (const Term& y : b.terms) out.add_term(y.base, out.fit(Wide{y.coef} * a.constant));
  out.add_constant(Wide{a.constant} * b.constant);
  return out;
}

bool Sum::fits() const {
  if (failed_) return false;
  if (dtype() == DType::WeakInt) return true;
  Bounds b = bounds();
  return b.lo >= int_min(dtype()) && b.hi <= int_max(dtype());
}

Ref Sum::build() {
  // Insertion sort: stable, and the terms are nearly in order.
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Term t = terms[i];
    std::size_t k = i;
    for (; k > 0 && goes_left(t.base, terms[k - 1].base); --k) terms[k] = terms[k - 1];
    terms[k] = t;
  }
  Ref sum;
  for (const Term& t : terms) {
    Ref product = t.coef == 1 ? t.base : t.base * int_const_like(like_, t.coef);
    sum = sum ? sum + product : product;
  }
  if (!sum) return int_const_like(like_, constant);
  return constant ? sum + int_const_like(like_, constant) : sum;
}

}  // namespace pg::rules
