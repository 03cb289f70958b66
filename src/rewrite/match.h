// Interprets patterns: left sides, conditions, right sides. Only rule sets use it. Patterns stand in prefix
// order, so each step leaves the cursor behind what it read.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "rewrite/pattern.h"

namespace pg {

class Matcher {
 public:
  /// Numbers of conditions: products of bounds fit, and what does not fit is very large.
  __extension__ typedef __int128 Wide;

  explicit Matcher(Match& m) : m_(m) {}

  bool match(const PatNode* pattern, Ref node) { return step(pattern, node); }
  bool holds(const Pat& condition) const {
    const PatNode* at = condition.nodes;
    return value(at) != 0;
  }
  Ref build(const Pat& right, Ref like) const {
    const PatNode* at = right.nodes;
    return build(at, like);
  }

  /// Moves the cursor behind the pattern that begins there.
  static void skip(const Pat& pattern, int& at) {
    for (int open = 1; open; --open) {
      const PatNode& p = pattern.nodes[at++];
      if (p.kind == PatNode::Node) open += p.nsrc;
    }
  }

 private:
  bool step(const PatNode*& at, Ref node) {
    const PatNode& p = *at++;
    switch (p.kind) {
      case PatNode::Any:
        return capture(p.slot, node);
      case PatNode::Bool:
        return node.dtype() == DType::Bool && capture(p.slot, node);
      case PatNode::Constant:
        return constant(node) && capture(p.slot, node);
      case PatNode::Literal: {
        Ref c = constant(node);
        return c && c.is_const(p.value);
      }
      case PatNode::AnyArity:
        return node.is(p.op);
      case PatNode::Node:
        if (!node.is(p.op) || node.nsrc() != p.nsrc) return false;
        for (int k = 0; k < p.nsrc; ++k)
          if (!step(at, node.src(k))) return false;
        return true;
      default:
        return false;
    }
  }

  bool capture(int slot, Ref node) {
    Ref& at = m_.slots_[slot];
    if (at) return same(at, node);
    at = node;
    return true;
  }

  Wide value(const PatNode*& at) const {
    const PatNode& p = *at++;
    switch (p.kind) {
      case PatNode::Literal:
        return static_cast<std::int64_t>(p.value);
      case PatNode::Lo:
        return low(m_.slots_[p.slot]);
      case PatNode::Hi:
        return high(m_.slots_[p.slot]);
      case PatNode::Node: {
        Wide a = value(at), b = p.nsrc > 1 ? value(at) : 0;
        return combine(p.op, a, b);
      }
      default: {
        Ref c = constant(m_.slots_[p.slot]);
        if (!c) return 0;
        return c.dtype() == u64 ? Wide{static_cast<std::uint64_t>(c.i())} : Wide{c.i()};
      }
    }
  }

  static Wide combine(Op op, Wide a, Wide b) {
    switch (op) {
      case Op::Neg:
        return -a;
      case Op::Add:
        return a + b;
      case Op::Sub:
        return a - b;
      case Op::Mul: {
        constexpr Wide kWidest = ~(Wide{1} << 127);
        Wide r;
        return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? kWidest : -kWidest) : r;
      }
      case Op::FloorDiv:
        return b == 0 ? 0 : (a - floor_mod(a, b)) / b;
      case Op::FloorMod:
        return floor_mod(a, b);
      case Op::And:
        return a & b;
      case Op::Or:
        return a | b;
      case Op::CmpLt:
        return a < b;
      case Op::CmpEq:
        return a == b;
      case Op::CmpNe:
        return a != b;
      case Op::Max:
        return std::max(a, b);
      case Op::Min:
        return std::min(a, b);
      default:
        throw InternalError("[rule] " + std::string(info(op).name) + " in a condition");
    }
  }
  static Wide floor_mod(Wide a, Wide b) {
    if (b == 0) return 0;
    Wide r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }

  // Bounds of u64 that did not fit the node are those of the dtype.
  static bool unknown(Ref x) { return x.dtype() == u64 && x.lo() < 0; }
  static Wide low(Ref x) { return unknown(x) ? 0 : x.lo(); }
  static Wide high(Ref x) { return unknown(x) ? Wide{std::numeric_limits<std::uint64_t>::max()} : x.hi(); }

  Ref build(const PatNode*& at, Ref like) const {
    const PatNode& p = *at++;
    if (p.kind == PatNode::Literal) return const_like(like, p.value);
    if (p.kind != PatNode::Node) return m_.slots_[p.slot];
    // Literals take the dtype of a sibling, so they are made last.
    std::array<Ref, kMostSources> srcs;
    std::array<const PatNode*, kMostSources> literals{};
    Ref sibling;
    for (std::size_t k = 0; k < p.nsrc; ++k) {
      if (at->kind == PatNode::Literal) {
        literals[k] = at++;
        continue;
      }
      srcs[k] = build(at, like);
      if (p.op != Op::Where || k > 0) sibling = srcs[k];
    }
    for (std::size_t k = 0; k < p.nsrc; ++k)
      if (literals[k]) srcs[k] = const_like(sibling ? sibling : like, literals[k]->value);
    return alu(p.op, std::span<const Ref>(srcs.data(), p.nsrc));
  }

  static constexpr std::size_t kMostSources = 4;

  Match& m_;
};

}  // namespace pg
