// Sums of integers as linear combinations: what the rules for +, *, //, % and comparisons compute with. A Sum
// is exact in the ring of its dtype (wrapping) unless made `exact`, where it only looks into what cannot
// wrap, so that it may be reasoned about as a mathematical integer.
#pragma once

#include <cstdint>
#include <limits>

#include <absl/container/inlined_vector.h>

#include "ir/build.h"

namespace pg::rules {

__extension__ typedef __int128 Wide;

struct Term {
  Ref base;
  std::int64_t coef;
};

struct Bounds {
  Wide lo, hi;
};

/// terms[0].coef * terms[0].base + ... + constant. Bases are distinct, coefficients are not 0.
class Sum {
 public:
  /// Ring: of any integer dtype, modulo its width. Exact: a mathematical integer.
  enum Mode : std::uint8_t { Ring, Exact };
  /// Zero, of the dtype and lanes of `like`.
  Sum(Ref like, Mode mode) : like_(like), mode_(mode) {}
  static Sum of(Ref x, Mode mode) {
    Sum s(x, mode);
    s.add(x);
    return s;
  }

  /// Adds k * x, term by term.
  void add(Ref x, std::int64_t k = 1);
  void add(const Sum& other, std::int64_t k = 1);
  void add_constant(Wide v);
  void add_term(Ref base, std::int64_t k);
  void remove(std::size_t i) { terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i)); }
  /// Position of a base, or -1.
  int find(Ref base) const;

  /// The product, multiplied out. Of few terms, so that it stays small.
  friend Sum operator*(const Sum& a, const Sum& b);

  /// What the bounds of the bases say, and that a range ends below its extent. Only of Exact sums, and of
  /// weak ones.
  Bounds bounds() const;
  /// True if a node of this dtype holds the value without wrapping.
  bool fits() const;
  /// True once a coefficient did not fit: the sum is then worthless.
  bool failed() const { return failed_; }
  DType dtype() const { return like_.dtype(); }
  Ref like() const { return like_; }
  Mode mode() const { return mode_; }

  /// The sum as nodes, terms in canonical order, constant last.
  Ref build();

  absl::InlinedVector<Term, 8> terms;
  std::int64_t constant = 0;

 private:
  std::int64_t fit(Wide v);
  Bounds bounds_of_terms() const;
  Sum at_ends(bool greatest) const;

  Ref like_;
  Mode mode_;
  bool failed_ = false;
};

/// The operands of a chain of one associative op, from left to right.
absl::InlinedVector<Ref, 8> chain_of(Op op, Ref root);
/// Their product as a chain in canonical order. Sorts them.
Ref product_of(std::span<Ref> factors);

/// True if the sum or product of integers a, b cannot leave the dtype. Weak integers never do.
bool cannot_wrap(Op op, Ref a, Ref b);

std::int64_t gcd(std::int64_t a, std::int64_t b);
/// a / b rounded down, b > 0.
inline Wide floor_quotient(Wide a, Wide b) { return a / b - (a % b < 0); }
inline Wide floor_residue(Wide a, Wide b) { return a % b < 0 ? a % b + b : a % b; }

/// Chains longer than this are taken as they are beyond it, so that long sums cost time linear in their
/// length.
inline constexpr std::size_t kMaxTerms = 24;

}  // namespace pg::rules
