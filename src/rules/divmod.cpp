#include "rules/divmod.h"

#include <algorithm>

#include "rules/compare.h"
#include "rules/symbolic.h"

namespace pg::rules {
namespace {

using Candidates = absl::InlinedVector<std::int64_t, 8>;

// The one value of floor(b / g) over all of b's range, if it has one.
bool one_block(Bounds b, std::int64_t g, Wide& block) {
  block = floor_quotient(b.lo, g);
  return block == floor_quotient(b.hi, g);
}

// Numbers that divide c and some of the coefficients, largest first.
Candidates common_factors(const Sum& s, std::int64_t c) {
  Candidates out;
  for (const Term& t : s.terms)
    if (std::int64_t g = gcd(t.coef, c); g > 1 && g < c && std::find(out.begin(), out.end(), g) == out.end())
      out.push_back(g);
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

std::int64_t common_factor(const Sum& s, std::int64_t c) {
  for (const Term& t : s.terms) c = gcd(c, t.coef);
  return c;
}

// s as g * multiple + rest.
void split(const Sum& s, std::int64_t g, Sum& multiple, Sum& rest) {
  for (const Term& t : s.terms)
    t.coef % g ? rest.add_term(t.base, t.coef) : multiple.add_term(t.base, t.coef / g);
  rest.add_constant(s.constant);
}

Sum scaled(const Sum& s, std::int64_t k) {
  Sum out(s.like(), s.mode());
  out.add(s, k);
  return out;
}

bool all_negative(const Sum& s) {
  return std::all_of(s.terms.begin(), s.terms.end(), [](const Term& t) { return t.coef < 0; });
}

// s - c * whole, if that leaves a remainder that stays in one block of c for some choice of coefficients:
// then whole plus that block is s / c.
bool congruent(const Sum& s, std::int64_t c, Sum& quotient) {
  auto nearest = [c](std::int64_t r) { return r > c - r ? r - c : r; };
  auto least = [](std::int64_t r) { return r; };
  auto attempt = [&](auto choose) {
    Sum rest(s.like(), Sum::Exact), whole(s.like(), Sum::Exact);
    for (const Term& t : s.terms) {
      std::int64_t r = choose(floor_residue(t.coef, c));
      rest.add_term(t.base, r);
      whole.add_term(t.base, static_cast<std::int64_t>((Wide{t.coef} - r) / c));
    }
    rest.add_constant(s.constant);
    Wide block;
    if (!one_block(rest.bounds(), c, block)) return false;
    whole.add_constant(block);
    quotient = whole;
    return !quotient.failed();
  };
  return attempt(nearest) || attempt(least);
}

// The value of f at both ends of a term that takes only two values, as a linear function of the term.
template <class F>
bool two_valued(const Sum& s, F f, Sum& out) {
  if (s.terms.size() != 1) return false;
  auto [base, k] = s.terms[0];
  if (Wide{base.hi()} - base.lo() != 1) return false;
  Wide low = f(Wide{k} * base.lo() + s.constant), high = f(Wide{k} * base.hi() + s.constant);
  out.add_term(base, static_cast<std::int64_t>(high - low));
  out.add_constant(low - (high - low) * base.lo());
  return !out.failed();
}

bool has_division(const Sum& s) {
  return std::any_of(s.terms.begin(), s.terms.end(),
                     [](const Term& t) { return t.base.is(Op::FloorDiv) || t.base.is(Op::FloorMod); });
}

// A divisor that is a positive constant; 0 if it is not.
std::int64_t divisor(Ref node) {
  Ref c = constant(node.src(1));
  return c && c.i() > 0 ? c.i() : 0;
}

Ref built(Sum s) { return s.fits() ? s.build() : nullptr; }

}  // namespace

Ref quotient(Sum s, std::int64_t c) {
  if (s.failed()) return nullptr;
  if (c == 1) return built(s);
  Sum whole(s.like(), Sum::Exact), rest(s.like(), Sum::Exact);
  if (congruent(s, c, whole)) return built(whole);
  // floor((c*w + r) / c) = w + floor(r / c).
  for (const Term& t : s.terms)
    t.coef % c ? rest.add_term(t.base, t.coef) : whole.add_term(t.base, t.coef / c);
  whole.add_constant(floor_quotient(s.constant, c));
  rest.add_constant(floor_residue(s.constant, c));
  if (!whole.terms.empty() || whole.constant) {
    Ref q = quotient(rest, c);
    if (!q) return nullptr;
    whole.add(q);
    return built(whole);
  }
  // floor((g*a + k) / (g*d)) = floor((a + floor(k / g)) / d).
  if (std::int64_t g = common_factor(rest, c); g > 1) {
    Sum less(s.like(), Sum::Exact);
    for (const Term& t : rest.terms) less.add_term(t.base, t.coef / g);
    less.add_constant(floor_quotient(rest.constant, g));
    return quotient(less, c / g);
  }
  // floor((k - x) / c) = -floor((x - k + c-1) / c): flipped axes look like the others.
  if (all_negative(rest)) {
    Sum flipped = scaled(rest, -1);
    flipped.add_constant(c - 1);
    Ref q = quotient(flipped, c);
    return q ? built(scaled(Sum::of(q, Sum::Exact), -1)) : nullptr;
  }
  if (rest.terms.size() == 1 && rest.terms[0].coef == 1) {
    Ref x = rest.terms[0].base;
    std::int64_t m = x.is(Op::FloorDiv) || x.is(Op::FloorMod) ? divisor(x) : 0;
    if (m && x.is(Op::FloorDiv)) {  // (y/m + k) / c = (y + k*m) / (m*c)
      Wide product = Wide{m} * c;
      Sum inner = Sum::of(x.src(0), Sum::Exact);
      inner.add_constant(Wide{rest.constant} * m);
      if (product <= int_max(s.dtype()))
        if (Ref q = quotient(inner, static_cast<std::int64_t>(product))) return q;
    } else if (m && m % c == 0 && rest.constant == 0) {  // (y % m) / c = (y/c) % (m/c)
      Ref q = quotient(Sum::of(x.src(0), Sum::Exact), c);
      if (q)
        if (Ref r = residue(Sum::of(q, Sum::Exact), m / c)) return r;
    }
    Sum line(s.like(), Sum::Exact);
    if (two_valued(rest, [c](Wide v) { return floor_quotient(v, c); }, line)) return built(line);
  }
  // floor((g*a + b) / (g*d)) = floor((a + floor(b/g)) / d): where b/g is a number, or at least no division.
  for (std::int64_t g : common_factors(rest, c)) {
    Sum a(s.like(), Sum::Exact), b(s.like(), Sum::Exact);
    split(rest, g, a, b);
    Wide block;
    if (one_block(b.bounds(), g, block)) {
      a.add_constant(block);
      return quotient(a, c / g);
    }
  }
  for (std::int64_t g : common_factors(rest, c)) {
    Sum a(s.like(), Sum::Exact), b(s.like(), Sum::Exact), line(s.like(), Sum::Exact);
    split(rest, g, a, b);
    if (congruent(b, g, line) && !has_division(line)) {
      a.add(line);
      return quotient(a, c / g);
    }
  }
  Ref numerator = built(rest);
  return numerator ? numerator / c : nullptr;
}

Ref residue(Sum s, std::int64_t c) {
  if (s.failed()) return nullptr;
  if (c == 1) return int_const_like(s.like(), 0);
  Sum whole(s.like(), Sum::Exact), rest(s.like(), Sum::Exact);
  if (congruent(s, c, whole)) {
    s.add(whole, -c);
    return built(s);
  }
  for (const Term& t : s.terms) {
    // (k * (y % m)) % c = (k * y) % c where c divides k * m.
    std::int64_t m = t.base.is(Op::FloorMod) ? divisor(t.base) : 0;
    if (m && Wide{t.coef} * m % c == 0)
      rest.add(t.base.src(0), t.coef % c);
    else
      rest.add_term(t.base, t.coef);
  }
  if (rest.failed()) return nullptr;
  bool settled = true;
  for (std::size_t i = rest.terms.size(); i-- > 0;) {
    rest.terms[i].coef %= c;
    if (rest.terms[i].coef == 0) {
      rest.remove(i);
    } else if (rest.terms[i].base.is(Op::FloorMod)) {
      std::int64_t m = divisor(rest.terms[i].base);
      settled &= !(m && Wide{rest.terms[i].coef} * m % c == 0);
    }
  }
  rest.constant = floor_residue(Wide{rest.constant} + s.constant, c);
  if (!settled || congruent(rest, c, whole)) return residue(rest, c);
  // (g*a + g*q + k) % (g*d) = g * ((a + q) % d) + k, where k < g.
  if (std::int64_t g = common_factor(rest, c); g > 1) {
    Sum less(s.like(), Sum::Exact), out(s.like(), Sum::Exact);
    for (const Term& t : rest.terms) less.add_term(t.base, t.coef / g);
    less.add_constant(rest.constant / g);
    Ref r = residue(less, c / g);
    if (!r) return nullptr;
    out.add(r, g);
    out.add_constant(rest.constant % g);
    return built(out);
  }
  // (k - x) % c = c-1 - (x - k - 1) % c.
  if (all_negative(rest)) {
    Sum flipped = scaled(rest, -1);
    flipped.add_constant(-1);
    Ref r = residue(flipped, c);
    if (!r) return nullptr;
    Sum out(s.like(), Sum::Exact);
    out.add(r, -1);
    out.add_constant(c - 1);
    return built(out);
  }
  Sum line(s.like(), Sum::Exact);
  if (two_valued(rest, [c](Wide v) { return floor_residue(v, c); }, line)) return built(line);
  // (g*a + b) % (g*d) = g * ((a + q) % d) + b - q*g, where q = floor(b/g).
  for (std::int64_t g : common_factors(rest, c)) {
    Sum a(s.like(), Sum::Exact), b(s.like(), Sum::Exact), q(s.like(), Sum::Exact);
    split(rest, g, a, b);
    if (!congruent(b, g, q) || has_division(q)) continue;
    a.add(q);
    Ref r = residue(a, c / g);
    if (!r) return nullptr;
    Sum out(s.like(), Sum::Exact);
    out.add(r, g);
    out.add(b);
    out.add(q, -g);
    return built(out);
  }
  Ref numerator = built(rest);
  return numerator ? numerator % c : nullptr;
}

namespace {

// a - b is a multiple of m, coefficient by coefficient.
bool alike(Ref a, Ref b, std::int64_t m) {
  if (same(a, b)) return true;
  Sum d = Sum::of(a, Sum::Exact);
  d.add(b, -1);
  auto divides = [m](const Term& t) { return t.coef % m == 0; };
  return !d.failed() && d.constant % m == 0 && std::all_of(d.terms.begin(), d.terms.end(), divides);
}

// y where `part` is y/m for a y that leaves the same remainder as x, else null. Nested and rewritten
// divisions count: z/(a*m) is (z/a)/m.
Ref numerator(Ref part, Ref x, std::int64_t m) {
  if (part.is(Op::FloorDiv) && divisor(part) == m && alike(part.src(0), x, m)) return part.src(0);
  Ref q = quotient(Sum::of(x, Sum::Exact), m);
  return q && same(q, part) ? x : nullptr;
}

// As numerator, where one term of a sum is such a part: z + y/m is (z*m + y)/m.
Ref numerator_in(Ref sum, Ref x, std::int64_t m) {
  if (Ref y = numerator(sum, x, m)) return y;
  if (!sum.is(Op::Add)) return nullptr;
  Sum s = Sum::of(sum, Sum::Exact);
  for (std::size_t i = 0; i < s.terms.size(); ++i) {
    if (s.terms[i].coef != 1 || !s.terms[i].base.is(Op::FloorDiv)) continue;
    Ref y = numerator(s.terms[i].base, x, m);
    if (!y) continue;
    s.remove(i);
    Sum joined = scaled(s, m);
    joined.add(y);
    return built(joined);
  }
  return nullptr;
}

}  // namespace

bool recombine(Sum& s) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < s.terms.size() && !again; ++i) {
      auto [base, k] = s.terms[i];
      std::int64_t m = base.is(Op::FloorMod) && base.dtype() != u64 ? divisor(base) : 0;
      Wide km = Wide{k} * m;
      if (!m || km != static_cast<std::int64_t>(km)) continue;
      Ref x = base.src(0);
      for (std::size_t j = 0; j < s.terms.size() && !again; ++j) {
        auto [other, kj] = s.terms[j];
        if (j == i || kj != km) continue;
        Ref joined;
        if (Ref y = numerator(other, x, m)) {  // k * (x%m) + k*m * (y/m) = k * y
          joined = y;
        } else if (std::int64_t n = other.is(Op::FloorMod) ? divisor(other) : 0;
                   n && Wide{m} * n <= int_max(s.dtype())) {
          // k * (x%m) + k*m * ((y/m) % n) = k * (y % (m*n))
          y = numerator_in(other.src(0), x, m);
          if (y) joined = residue(Sum::of(y, Sum::Exact), m * n);
        }
        if (!joined) continue;
        s.remove(std::max(i, j));
        s.remove(std::min(i, j));
        s.add(joined, k);
        any = again = true;
      }
    }
  }
  return any;
}

bool is_within(Ref x, Ref y) {
  if (x.dtype() != DType::WeakInt || x.lo() < 0) return false;
  if (x.hi() < y.lo()) return true;
  Sum d = Sum::of(y, Sum::Exact);
  d.add(x, -1);
  return !d.failed() && d.bounds().lo > 0;
}

namespace {

// Factors of a product without those of y, if they are among them.
Ref divided(Ref product, Ref y) {
  auto factors = chain_of(Op::Mul, product);
  for (Ref f : chain_of(Op::Mul, y)) {
    auto at = std::find_if(factors.begin(), factors.end(), [&](Ref g) { return same(f, g); });
    if (at == factors.end()) return nullptr;
    factors.erase(at);
  }
  Ref out;
  for (Ref f : factors) out = out ? out * f : f;
  return out ? out : int_const_like(product, 1);
}

// x / y and x % y for a y that is no constant: terms with the factor y leave, what is within y goes.
Ref by_symbol(Ref root) {
  Ref x = root.src(0), y = root.src(1);
  bool div = root.is(Op::FloorDiv);
  if (root.dtype() != DType::WeakInt || (y.lo() <= 0 && y.hi() >= 0)) return nullptr;
  if (is_within(x, y)) return div ? int_const_like(x, 0) : x;
  Sum s = Sum::of(x, Sum::Exact), of_y = Sum::of(y, Sum::Exact), whole(x, Sum::Exact), rest(x, Sum::Exact);
  bool product = of_y.terms.size() == 1 && of_y.constant == 0;
  Term factor = product ? of_y.terms[0] : Term{y, 1};
  for (const Term& t : s.terms) {
    Ref q = t.coef % factor.coef ? Ref() : divided(t.base, factor.base);
    q ? whole.add(q, t.coef / factor.coef) : rest.add_term(t.base, t.coef);
  }
  rest.add_constant(s.constant);
  if (rest.failed() || whole.failed()) return nullptr;
  if (whole.terms.empty() && whole.constant == 0) {
    // (a*n + b) / (n*m) = a / m where 0 <= b < n, for the first factor n of the divisor.
    if (!div || !y.is(Op::Mul)) return nullptr;
    for (Ref n : {y.src(0), y.src(1)}) {
      if (n.lo() <= 0) continue;
      Sum a(x, Sum::Exact), b(x, Sum::Exact);
      for (const Term& t : s.terms) {
        Ref c = constant(n);
        Ref q =
            c ? (t.coef % c.i() ? Ref() : t.base * int_const_like(x, t.coef / c.i())) : divided(t.base, n);
        if (!q)
          b.add_term(t.base, t.coef);
        else
          a.add(q, c ? 1 : t.coef);
      }
      b.add_constant(s.constant);
      if (a.failed() || b.failed() || a.terms.empty()) continue;
      Ref left = b.build();
      if (left.is_const(0) || is_within(left, n))
        return a.build() / (same(n, y.src(0)) ? y.src(1) : y.src(0));
    }
    return nullptr;
  }
  Ref left = rest.build();
  if (left.is_const(0)) return div ? whole.build() : left;
  return div ? whole.build() + left / y : left % y;
}

Ref divmod_rule(const Match& m) {
  Ref root = m.root, x = root.src(0);
  Ref c = constant(root.src(1));
  if (!c) return by_symbol(root);
  bool div = root.is(Op::FloorDiv);
  if (c.i() == 0) return int_const_like(root, 0);
  if (root.dtype() == u64) return nullptr;
  Sum s = Sum::of(x, Sum::Exact);
  if (c.i() > 0) return div ? quotient(s, c.i()) : residue(s, c.i());
  // Data keeps negative divisors: negating could wrap.
  if (root.dtype() != DType::WeakInt || c.i() == std::numeric_limits<std::int64_t>::min()) return nullptr;
  s = scaled(s, -1);
  if (div) return quotient(s, -c.i());
  Ref r = residue(s, -c.i());
  return r ? r * -1 : nullptr;
}

// Truncating and rounding down agree where nothing is negative.
Ref truncating_rule(const Match& m) {
  Ref x = m.root.src(0), y = m.root.src(1);
  if (x.dtype() != u64 && !is_unsigned(x.dtype()) && (x.lo() < 0 || y.lo() < 0)) return nullptr;
  return alu(m.root.is(Op::CDiv) ? Op::FloorDiv : Op::FloorMod, {x, y});
}

using namespace pat;

// clang-format off
constexpr Rule kDivMod[] = {
  rule(x / 1, x, ints),
  rule(x % 1, Pat(0), ints),
  rule(x / x, Pat(1), ints, when(lo(x) > 0 || hi(x) < 0)),
  rule(x % x, Pat(0), ints),
  rule((x % y) % y, x % y, ints),
  rule((x / c0) / c1, x / (c0 * c1), ints, when(c0 > 0 && c1 > 0 && c0 * c1 <= hi(x))),
  rule((x % c0) % c1, x % c1, ints, when(c0 > 0 && c1 > 0 && c0 % c1 == 0)),
  rule((x / y) * y + x % y, x, ints, when(lo(y) > 0 || hi(y) < 0)),
  rule(any(Op::FloorDiv), divmod_rule, ints),
  rule(any(Op::FloorMod), divmod_rule, ints),
  rule(any(Op::CDiv), truncating_rule, ints),
  rule(any(Op::CMod), truncating_rule, ints),
};
// clang-format on

}  // namespace

const RuleSet& divmod() {
  static const RuleSet rules(kDivMod);
  return rules;
}

}  // namespace pg::rules
