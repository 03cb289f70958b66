#include "ir/facts.h"

#include <algorithm>
#include <limits>

#include <absl/container/inlined_vector.h>

#include "ir/build.h"

namespace pg {
namespace {

using I = std::int64_t;
struct Bounds {
  I lo, hi;
};

bool add(I a, I b, I& r) { return __builtin_add_overflow(a, b, &r); }
bool mul(I a, I b, I& r) { return __builtin_mul_overflow(a, b, &r); }

Bounds corners(I (*f)(I, I), Bounds a, Bounds b) {
  I v[4] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

// Bounds of an integer op, or false where nothing better than the dtype's range is known. u64 is left alone:
// its upper half does not fit the bounds.
bool bounds_of(const Node* n, Bounds& r) {
  auto s = [n](std::uint32_t i) { return Bounds{n->src[i]->lo, n->src[i]->hi}; };
  Bounds a = n->nsrc > 0 ? s(0) : Bounds{0, 0}, b = n->nsrc > 1 ? s(1) : Bounds{0, 0};
  if (n->nsrc > 0 && n->op != Op::Where && n->op != Op::Cast && n->src[0]->dtype == u64) return false;
  if (n->nsrc > 0 && n->op != Op::Cast && is_float(n->src[0]->dtype) && n->op != Op::Where) return false;
  switch (n->op) {
    case Op::Const:
      r = {n->arg.i, n->arg.i};
      return n->dtype != u64 || n->arg.i >= 0;
    case Op::Range:
      r = {0, std::max<I>(1, a.hi) - 1};
      return true;
    case Op::Arange:
      r = {0, std::max<I>(1, max_numel(n->src[0])) - 1};
      return true;
    case Op::Special:
      r = {0, std::max<I>(1, a.hi) - 1};
      return true;
    case Op::Iota:
      r = {0, n->lanes - 1};
      return true;
    case Op::Var:
    case Op::ScalarParam:
      r = {a.lo, b.hi};
      return true;
    case Op::Bind:
    case Op::Splat:
    case Op::Extract:
      r = a;
      return true;
    case Op::After:
    case Op::Reshape:
    case Op::Permute:
    case Op::Expand:
    case Op::Shrink:
    case Op::Flip:
    case Op::Trunc:
    case Op::Contiguous:
    case Op::Detach:
    case Op::ContiguousBackward:
    case Op::Copy:
      r = a;
      return true;
    case Op::Pad:
      r = {std::min<I>(a.lo, 0), std::max<I>(a.hi, 0)};
      return true;
    case Op::Add:
      if (n->dtype == DType::Bool) {
        r = {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
        return true;
      }
      return !add(a.lo, b.lo, r.lo) && !add(a.hi, b.hi, r.hi);
    case Op::Sub:
      return !__builtin_sub_overflow(a.lo, b.hi, &r.lo) && !__builtin_sub_overflow(a.hi, b.lo, &r.hi);
    case Op::Neg:
      return !__builtin_sub_overflow(I{0}, a.hi, &r.lo) && !__builtin_sub_overflow(I{0}, a.lo, &r.hi);
    case Op::Mul: {
      I v[4];
      if (mul(a.lo, b.lo, v[0]) || mul(a.lo, b.hi, v[1]) || mul(a.hi, b.lo, v[2]) || mul(a.hi, b.hi, v[3]))
        return false;
      r = {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
      return true;
    }
    case Op::FloorDiv:
      if (b.lo <= 0) return false;
      r = corners(floor_div, a, b);
      return true;
    case Op::CDiv:
      if (b.lo <= 0) return false;
      r = corners([](I x, I y) { return x / y; }, a, b);
      return true;
    case Op::FloorMod:
      if (b.lo <= 0) return false;
      if (b.lo == b.hi && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
        r = {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
        return true;
      }
      r = {0, b.hi - 1};
      if (a.lo >= 0) r.hi = std::min(r.hi, a.hi);
      return true;
    case Op::CMod:
      if (b.lo <= 0) return false;
      r = {a.lo >= 0 ? 0 : std::max(a.lo, -(b.hi - 1)), a.hi <= 0 ? 0 : std::min(a.hi, b.hi - 1)};
      return true;
    case Op::Max:
      r = {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      return true;
    case Op::Min:
      r = {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      return true;
    case Op::And:
      if (n->dtype == DType::Bool) {
        r = {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
        return true;
      }
      if (a.lo >= 0 && b.lo >= 0) {
        r = {0, std::min(a.hi, b.hi)};
        return true;
      }
      if (b.lo >= 0 || a.lo >= 0) {
        r = {0, b.lo >= 0 ? b.hi : a.hi};
        return true;
      }
      return false;
    case Op::Or:
      if (n->dtype == DType::Bool) {
        r = {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
        return true;
      }
      return false;
    case Op::Shl:
      if (b.lo != b.hi || b.lo < 0 || b.lo > 62) return false;
      return !mul(a.lo, I{1} << b.lo, r.lo) && !mul(a.hi, I{1} << b.lo, r.hi);
    case Op::Shr:
      if (b.lo != b.hi || b.lo < 0 || b.lo > 63) return false;
      r = {a.lo >> b.lo, a.hi >> b.lo};
      return true;
    case Op::Where:
      r = {std::min(s(1).lo, s(2).lo), std::max(s(1).hi, s(2).hi)};
      return n->dtype != u64;
    case Op::Reduce:
      r = a;
      return static_cast<Op>(n->arg.i & 255) == Op::Max || static_cast<Op>(n->arg.i & 255) == Op::Min;
    case Op::Cast:
      if (is_float(n->src[0]->dtype) || n->src[0]->dtype == u64) return false;
      if (n->dtype == DType::Bool) {
        r = {a.lo > 0 || a.hi < 0, a.lo != 0 || a.hi != 0};
        return true;
      }
      r = a;
      return true;
    case Op::CmpLt:
      r = {a.hi < b.lo, a.lo < b.hi};
      return true;
    case Op::CmpEq:
      r = {a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, a.lo <= b.hi && b.lo <= a.hi};
      return true;
    case Op::CmpNe:
      r = {a.hi < b.lo || b.hi < a.lo, !(a.lo == a.hi && b.lo == b.hi && a.lo == b.lo)};
      return true;
    default:
      return false;
  }
}

Ref shape_rule(Ref n) {
  switch (n.op()) {
    case Op::Buffer:
    case Op::Param:
    case Op::Local:
    case Op::Arange:
      return n.src(0);
    case Op::Reshape:
    case Op::Expand:
    case Op::Pad:
    case Op::Shrink:
      return n.src(1);
    case Op::Leaf:
    case Op::Flip:
    case Op::After:
    case Op::Contiguous:
    case Op::ContiguousBackward:
    case Op::Detach:
    case Op::Copy:
    case Op::Stage:
      return shape_of(n.src(0));
    case Op::Permute: {
      Ref s = shape_of(n.src(0));
      absl::InlinedVector<Ref, 8> out;
      for (I axis : n.ints()) out.push_back(dim(s, static_cast<int>(axis)));
      return shape_node(std::span<const Ref>(out));
    }
    case Op::Reduce: {
      Ref s = shape_of(n.src(0));
      absl::InlinedVector<Ref, 8> out;
      for (int i = 0; i < rank(s); ++i) out.push_back(n.reduce_axes() >> i & 1 ? idx(1) : dim(s, i));
      return shape_node(std::span<const Ref>(out));
    }
    case Op::Index: {
      Ref x = shape_of(n.src(0)), rows = shape_of(n.src(1));
      absl::InlinedVector<Ref, 8> out;
      for (int i = 0; i < rank(rows); ++i) out.push_back(dim(rows, i));
      for (int i = 1; i < rank(x); ++i) out.push_back(dim(x, i));
      return shape_node(std::span<const Ref>(out));
    }
    case Op::Cat: {
      int axis = static_cast<int>(n.i());
      Ref s = shape_of(n.src(0));
      absl::InlinedVector<Ref, 8> out;
      for (int i = 0; i < rank(s); ++i) out.push_back(dim(s, i));
      auto& joined = out[static_cast<std::size_t>(axis)];
      for (int k = 1; k < n.nsrc(); ++k) joined = joined + dim(shape_of(n.src(k)), axis);
      return shape_node(std::span<const Ref>(out));
    }
    case Op::Bitcast: {
      // The last axis takes up a change of element size.
      Ref s = shape_of(n.src(0));
      auto from = static_cast<I>(itemsize(n.src(0).dtype())), to = static_cast<I>(itemsize(n.dtype()));
      if (from == to || rank(s) == 0) return s;
      absl::InlinedVector<Ref, 8> out;
      for (int i = 0; i < rank(s); ++i) out.push_back(dim(s, i));
      out.back() = out.back() * from / to;
      return shape_node(std::span<const Ref>(out));
    }
    default:
      break;
  }
  if (!n.has(kElementwise)) return shape_node(Dims{});
  Ref s = shape_of(n.src(0));
  for (int i = 1; i < n.nsrc(); ++i) {
    s = broadcast(s, shape_of(n.src(i)));
    if (!s) throw InternalError("[shape] sources of " + std::string(info(n.op()).name) + " do not broadcast");
  }
  return s;
}

void remember_shape(Ref n, Ref shape) {
  shape->refs.fetch_add(1, std::memory_order_relaxed);
  n->shape = shape.node();
}

}  // namespace

void set_bounds(Node* n) {
  if (is_float(n->dtype) || n->dtype == DType::Void) return;
  I lo = int_min(n->dtype), hi = int_max(n->dtype);
  Bounds r{};
  bool known = bounds_of(n, r);
  // Wrapping: bounds outside the dtype say nothing.
  if (!known || r.lo < lo || r.hi > hi) {
    n->lo = n->dtype == u64 ? std::numeric_limits<I>::min() : lo;
    n->hi = hi;
  } else {
    n->lo = r.lo;
    n->hi = r.hi;
  }
}

Ref shape_of(Ref node) {
  if (node->shape) return node->shape;
  // Sources first, on an explicit stack: the rule then recurses one level at most.
  absl::InlinedVector<Node*, 32> stack{node.node()};
  while (!stack.empty()) {
    Node* n = stack.back();
    bool ready = true;
    if (!n->shape && n->op != Op::Shape && !(info(n->op).flags & kLeaf && n->op != Op::Leaf))
      for (std::uint32_t i = 0; i < n->nsrc; ++i) {
        Node* s = n->src[i];
        if (s->shape || s->op == Op::Shape || s->dtype == DType::Void) continue;
        stack.push_back(s);
        ready = false;
      }
    if (!ready) continue;
    stack.pop_back();
    if (!n->shape) remember_shape(n, shape_rule(n));
  }
  return node->shape;
}

}  // namespace pg
