// The rule language. A rule is data: a pattern on the left, a pattern or a function on the right, a condition
// if need be. Both sides are written with the operators of the graph:
//
//   constexpr Rule kTerms[] = {
//     rule((x + c0) + c1,   x + (c0 + c1)),
//     rule(x % c0,          x,              ints, when(lo(x) >= 0 && hi(x) < c0)),
//     rule(node(Op::Cast, x), fold_cast),                    // Ref fold_cast(const Match&), null for "no"
//   };
//
// x y z w match anything, c0 c1 c2 constants, p q bools; a repeated name must be the same node. Constants
// fold when nodes are made, so c0 + c1 on the right is a constant. Operands of commutative ops match in
// either order. Literals on the left match constants of that value, on the right they take the dtype of what
// stands beside them.
#pragma once

#include <array>
#include <cstdint>
#include <source_location>

#include "ir/build.h"

namespace pg {

struct PatNode {
  enum Kind : std::uint8_t { Any, Bool, Constant, Literal, Node, AnyArity, Lo, Hi } kind = Any;
  Op op = Op::Const;
  std::uint8_t slot = 0;  // Any, Bool, Constant, Lo, Hi: which capture
  std::uint8_t nsrc = 0;  // Node
  double value = 0;       // Literal
};

/// A pattern: its nodes in prefix order.
struct Pat {
  static constexpr int kMax = 24;
  PatNode nodes[kMax];
  int n = 0;

  constexpr Pat() = default;
  constexpr Pat(PatNode one) : n(1) { nodes[0] = one; }
  constexpr Pat(int literal)
      : Pat(PatNode{.kind = PatNode::Literal, .value = static_cast<double>(literal)}) {}
  constexpr Pat(double literal) : Pat(PatNode{.kind = PatNode::Literal, .value = literal}) {}
  constexpr bool empty() const { return n == 0; }
};

/// A capture: one of the named wildcards.
struct Capture : Pat {
  constexpr Capture(PatNode::Kind kind, std::uint8_t slot) : Pat(PatNode{.kind = kind, .slot = slot}) {}
  constexpr std::uint8_t slot() const { return nodes[0].slot; }
};

namespace pat {

inline constexpr Capture x{PatNode::Any, 0}, y{PatNode::Any, 1}, z{PatNode::Any, 2}, w{PatNode::Any, 3},
    p{PatNode::Bool, 4}, q{PatNode::Bool, 5};
inline constexpr Capture c0{PatNode::Constant, 6}, c1{PatNode::Constant, 7}, c2{PatNode::Constant, 8};
inline constexpr int kSlots = 9;

consteval Pat compose(PatNode root, std::initializer_list<Pat> kids) {
  Pat out(root);
  out.nodes[0].nsrc = static_cast<std::uint8_t>(kids.size());
  for (const Pat& kid : kids)
    for (int i = 0; i < kid.n; ++i) out.nodes[out.n++] = kid.nodes[i];
  return out;
}
/// The op with exactly these sources.
template <class... Kids>
consteval Pat node(Op op, const Kids&... kids) {
  return compose(PatNode{.kind = PatNode::Node, .op = op}, {Pat(kids)...});
}
/// The op, whatever its sources.
consteval Pat any(Op op) { return Pat(PatNode{.kind = PatNode::AnyArity, .op = op}); }
/// Bounds of a capture, in conditions.
consteval Pat lo(Capture of) { return Pat(PatNode{.kind = PatNode::Lo, .slot = of.slot()}); }
consteval Pat hi(Capture of) { return Pat(PatNode{.kind = PatNode::Hi, .slot = of.slot()}); }

consteval Pat where(Pat a, Pat b, Pat c) { return node(Op::Where, a, b, c); }
consteval Pat max(Pat a, Pat b) { return node(Op::Max, a, b); }
consteval Pat min(Pat a, Pat b) { return node(Op::Min, a, b); }
consteval Pat eq(Pat a, Pat b) { return node(Op::CmpEq, a, b); }
consteval Pat ne(Pat a, Pat b) { return node(Op::CmpNe, a, b); }
/// Division of floats; `/` on patterns is that of integers (FloorDiv).
consteval Pat div(Pat a, Pat b) { return node(Op::Div, a, b); }
consteval Pat neg(Pat a) { return node(Op::Neg, a); }
consteval Pat logical_not(Pat a) { return node(Op::CmpNe, a, Pat(1)); }

}  // namespace pat

// The operators of patterns live beside Pat, so that they are found wherever a pattern is.
consteval Pat operator+(Pat a, Pat b) { return pat::node(Op::Add, a, b); }
consteval Pat operator-(Pat a, Pat b) { return pat::node(Op::Sub, a, b); }
consteval Pat operator*(Pat a, Pat b) { return pat::node(Op::Mul, a, b); }
consteval Pat operator/(Pat a, Pat b) { return pat::node(Op::FloorDiv, a, b); }
consteval Pat operator%(Pat a, Pat b) { return pat::node(Op::FloorMod, a, b); }
consteval Pat operator&(Pat a, Pat b) { return pat::node(Op::And, a, b); }
consteval Pat operator|(Pat a, Pat b) { return pat::node(Op::Or, a, b); }
consteval Pat operator^(Pat a, Pat b) { return pat::node(Op::Xor, a, b); }
consteval Pat operator<<(Pat a, Pat b) { return pat::node(Op::Shl, a, b); }
consteval Pat operator>>(Pat a, Pat b) { return pat::node(Op::Shr, a, b); }
consteval Pat operator<(Pat a, Pat b) { return pat::node(Op::CmpLt, a, b); }
consteval Pat operator>(Pat a, Pat b) { return pat::node(Op::CmpLt, b, a); }
// Only in conditions, which are numbers: a >= b is not (a < b), && and || are And and Or of bools.
consteval Pat operator>=(Pat a, Pat b) { return pat::node(Op::CmpNe, pat::node(Op::CmpLt, a, b), Pat(1)); }
consteval Pat operator<=(Pat a, Pat b) { return pat::node(Op::CmpNe, pat::node(Op::CmpLt, b, a), Pat(1)); }
consteval Pat operator==(Pat a, Pat b) { return pat::node(Op::CmpEq, a, b); }
consteval Pat operator!=(Pat a, Pat b) { return pat::node(Op::CmpNe, a, b); }
consteval Pat operator&&(Pat a, Pat b) { return pat::node(Op::And, a, b); }
consteval Pat operator||(Pat a, Pat b) { return pat::node(Op::Or, a, b); }

/// What a rule's function sees.
class Match {
 public:
  Ref root;
  /// What the caller of rewrite passed along.
  template <class T>
  T& ctx() const {
    return *static_cast<T*>(ctx_);
  }
  Ref operator[](const Capture& c) const { return slots_[c.slot()]; }

  explicit Match(void* ctx = nullptr) : ctx_(ctx) {}

 private:
  friend class Matcher;
  Ref slots_[pat::kSlots];
  void* ctx_;
};

/// Dtypes of the root for which a rule holds. For comparisons, of the operands. Ints include the weak one;
/// Indices is the weak integer alone, which does not wrap.
enum class Domain : std::uint8_t { Any, Ints, Floats, Bools, IntsAndBools, Indices };
inline constexpr Domain ints = Domain::Ints, floats = Domain::Floats, bools = Domain::Bools,
                        exact = Domain::IntsAndBools, indices = Domain::Indices;

struct When {
  Pat condition;
};
consteval When when(Pat condition) { return {condition}; }

struct Rule {
  using Function = Ref (*)(const Match&);
  Pat left, right;
  Function function = nullptr;
  Domain domain = Domain::Any;
  Pat condition;
  const char* file = "";
  std::uint32_t line = 0;
};

namespace detail {
consteval bool bound(const Pat& left, const Pat& right) {
  for (int i = 0; i < right.n; ++i) {
    const PatNode& r = right.nodes[i];
    if (r.kind == PatNode::Literal || r.kind == PatNode::Node) continue;
    bool found = false;
    for (int k = 0; k < left.n; ++k)
      found |= left.nodes[k].kind <= PatNode::Constant && left.nodes[k].slot == r.slot;
    if (!found) return false;
  }
  return true;
}
}  // namespace detail

/// left => right. A name that the left side does not bind does not compile.
consteval Rule rule(Pat left, Pat right, Domain domain = Domain::Any, When condition = {},
                    std::source_location at = std::source_location::current()) {
  if (!detail::bound(left, right) || !detail::bound(left, condition.condition))
    throw "a name is not bound by the left side";
  return {left, right, nullptr, domain, condition.condition, at.file_name(), at.line()};
}
consteval Rule rule(Pat left, Pat right, When condition,
                    std::source_location at = std::source_location::current()) {
  return rule(left, right, Domain::Any, condition, at);
}
/// left => function(match), where null means that the rule does not apply.
consteval Rule rule(Pat left, Rule::Function function, Domain domain = Domain::Any, When condition = {},
                    std::source_location at = std::source_location::current()) {
  return {left, Pat(), function, domain, condition.condition, at.file_name(), at.line()};
}
/// The same function for several ops, whatever their sources.
template <Op... ops>
consteval std::array<Rule, sizeof...(ops)> each(Rule::Function function, Domain domain = Domain::Any,
                                                std::source_location at = std::source_location::current()) {
  return {rule(pat::any(ops), function, domain, {}, at)...};
}

}  // namespace pg
