#include <algorithm>

#include <absl/container/inlined_vector.h>

#include "rules/symbolic.h"

namespace pg::rules {
namespace {

using namespace pat;
using Refs = absl::InlinedVector<Ref, 8>;

bool is_one(Ref d) { return d.is_const(1); }

Ref as_shape(const Refs& dims) { return shape_node(std::span<const Ref>(dims)); }

// The scalar that fills x, if the movements above it only repeat one.
Ref uniform(Ref x) {
  for (; x.has(kMovement); x = x.src(0))
    if (x.is(Op::Pad)) return nullptr;
  return x.is_const() ? x : nullptr;
}

// A movement of a uniform value is that value in the shape.
Ref of_uniform(const Match& m) {
  Ref c = uniform(m.root.src(0));
  return c && !(m.root.is(Op::Expand) && same(c, m.root.src(0))) ? expand(c, shape_of(m.root)) : nullptr;
}

// Nothing moves, or the movement below is the same kind: the builders merge.
Ref merged_reshape(const Match& m) { return reshape(m.root.src(0), m.root.src(1)); }
Ref merged_permute(const Match& m) { return permute(m.root.src(0), m.root.ints()); }
Ref merged_expand(const Match& m) { return expand(m.root.src(0), m.root.src(1)); }
Ref merged_flip(const Match& m) { return flip(m.root.src(0), static_cast<std::uint64_t>(m.root.i())); }
Ref unmoved(const Match& m) { return same(shape_of(m.root.src(0)), m.root.src(1)) ? m.root.src(0) : nullptr; }

// If only axes of one element change places, the order in memory stays.
Ref permute_as_reshape(const Match& m) {
  Ref x = m.root.src(0), shape = shape_of(x);
  std::int64_t last = -1;
  for (std::int64_t axis : m.root.ints()) {
    if (is_one(dim(shape, static_cast<int>(axis)))) continue;
    if (axis < last) return nullptr;
    last = axis;
  }
  return reshape(x, shape_of(m.root));
}

Ref flip_of_ones(const Match& m) {
  Ref x = m.root.src(0), shape = shape_of(x);
  auto axes = static_cast<std::uint64_t>(m.root.i());
  for (int i = 0; i < rank(shape); ++i)
    if (is_one(dim(shape, i))) axes &= ~(std::uint64_t{1} << i);
  return axes == static_cast<std::uint64_t>(m.root.i()) ? Ref() : flip(x, axes);
}

// x below a reshape that only puts axes of one element in front: what broadcasting does by itself.
Ref without_leading_ones(Ref x) {
  if (!x.is(Op::Reshape)) return nullptr;
  Ref from = shape_of(x.src(0)), to = x.src(1);
  int extra = rank(to) - rank(from);
  if (extra <= 0) return nullptr;
  for (int i = 0; i < rank(to); ++i)
    if (!(i < extra ? is_one(dim(to, i)) : same(dim(to, i), dim(from, i - extra)))) return nullptr;
  return x.src(0);
}

Ref expand_of_reshape(const Match& m) {
  Ref x = without_leading_ones(m.root.src(0));
  return x ? expand(x, m.root.src(1)) : nullptr;
}

// --- pads and shrinks

Ref sum_of_offsets(Ref a, Ref b) {
  Refs out;
  for (int i = 0; i < rank(a); ++i) out.push_back(dim(a, i) + dim(b, i));
  return as_shape(out);
}

Ref shrink_of_shrink(const Match& m) {
  Ref inner = m.root.src(0);
  return shrink(inner.src(0), m.root.src(1), sum_of_offsets(inner.src(2), m.root.src(2)));
}
Ref pad_of_pad(const Match& m) {
  Ref inner = m.root.src(0);
  return pad(inner.src(0), m.root.src(1), sum_of_offsets(inner.src(2), m.root.src(2)));
}

// What a box cuts from a padded value: a smaller box, padded less; zeros where they do not meet.
Ref shrink_of_pad(const Match& m) {
  Ref padded = m.root.src(0), x = padded.src(0);
  Ref inner = shape_of(x), at = padded.src(2), outer = m.root.src(1), from = m.root.src(2);
  if (!is_concrete(inner) || !is_concrete(at) || !is_concrete(outer) || !is_concrete(from)) return nullptr;
  absl::InlinedVector<std::int64_t, 8> size, offset, before;
  for (std::size_t i = 0; i < dims(inner).size(); ++i) {
    // The value stands at [low, high) as seen from the box.
    std::int64_t low = dims(at)[i] - dims(from)[i], high = low + dims(inner)[i], box = dims(outer)[i];
    std::int64_t first = std::clamp<std::int64_t>(low, 0, box), last = std::clamp<std::int64_t>(high, 0, box);
    if (first >= last && box > 0) return expand(const_like(x, 0), outer);
    size.push_back(last - first);
    offset.push_back(first - low);
    before.push_back(first);
  }
  return pad(shrink(x, shape_node(Dims(size)), shape_node(Dims(offset))), outer, shape_node(Dims(before)));
}

// Repeated axes are repeated less; of the others the box is cut below.
Ref shrink_of_expand(const Match& m) {
  Ref x = m.root.src(0).src(0), inner = shape_of(x), outer = m.root.src(1), from = m.root.src(2);
  int extra = rank(outer) - rank(inner);
  Refs size, offset;
  for (int i = 0; i < rank(inner); ++i) {
    bool repeated = is_one(dim(inner, i));
    // A box of no elements has none to repeat.
    if (repeated && !(dim(outer, i + extra).lo() > 0)) return nullptr;
    size.push_back(repeated ? idx(1) : dim(outer, i + extra));
    offset.push_back(repeated ? idx(0) : dim(from, i + extra));
  }
  return expand(shrink(x, as_shape(size), as_shape(offset)), outer);
}

Ref pad_of_zero(const Match& m) {
  Ref c = uniform(m.root.src(0));
  return c && c->arg.i == 0 ? expand(c, m.root.src(1))
                            : nullptr;  // for floats the zero of pads, which is positive
}

// --- where movements end

// Operands that their user broadcasts to the same shape without help.
Ref broadcast_operands(const Match& m) {
  Ref root = m.root, shape = shape_of(root);
  Refs srcs(root.srcs().begin(), root.srcs().end());
  bool any = false;
  for (Ref& s : srcs) {
    Ref shorter = s.is(Op::Expand) ? s.src(0) : uniform(s);
    if (!shorter) shorter = without_leading_ones(s);
    if (!shorter || same(shorter, s)) continue;
    Ref joined = shape_of(shorter);
    for (Ref& other : srcs)
      if (&other != &s) joined = joined ? broadcast(joined, shape_of(other)) : joined;
    if (!joined || !same(joined, shape)) continue;
    s = shorter;
    any = true;
  }
  return any ? with_srcs(root, srcs) : nullptr;
}

// Axes of one element need no reduction.
Ref reduce_of_ones(const Match& m) {
  Ref x = m.root.src(0), shape = shape_of(x);
  std::uint64_t axes = m.root.reduce_axes();
  for (int i = 0; i < rank(shape); ++i)
    if (is_one(dim(shape, i))) axes &= ~(std::uint64_t{1} << i);
  if (axes == m.root.reduce_axes() || (!axes && (x.has(kMovement) || x.is_const() || x.is(Op::Bitcast))))
    return nullptr;
  return reduce(x, m.root.reduce_op(), axes);
}

// Each element of a Cat chooses among its parts, and a kernel has an argument for each, so that many are
// joined a few at a time. The parts of a row of a table are alike, and so are the kernels that join them.
Ref cat_of_cats(const Match& m) {
  constexpr std::size_t kTogether = 32;
  Ref root = m.root;
  auto parts = root.srcs();
  if (parts.size() <= kTogether) return nullptr;
  Refs joined;
  for (std::size_t i = 0; i < parts.size(); i += kTogether) {
    Refs some;
    for (Node* part : parts.subspan(i, std::min(kTogether, parts.size() - i))) some.push_back(part);
    Ref one = some.size() == 1 ? some[0] : cat(some, static_cast<int>(root.i()));
    joined.push_back(make(Op::Contiguous, root.dtype(), {one}));
  }
  return cat(joined, static_cast<int>(root.i()));
}

Ref contiguous_twice(const Match& m) { return m.root.src(0); }

// clang-format off
constexpr Rule kMovement[] = {
  rule(any(Op::Reshape), merged_reshape),
  rule(any(Op::Reshape), of_uniform),
  rule(any(Op::Permute), merged_permute),
  rule(any(Op::Permute), of_uniform),
  rule(any(Op::Permute), permute_as_reshape),
  rule(any(Op::Expand), merged_expand),
  rule(any(Op::Expand), of_uniform),
  rule(node(Op::Expand, any(Op::Reshape), x), expand_of_reshape),
  rule(any(Op::Flip), merged_flip),
  rule(any(Op::Flip), of_uniform),
  rule(any(Op::Flip), flip_of_ones),
  rule(any(Op::Shrink), unmoved),
  rule(any(Op::Shrink), of_uniform),
  rule(node(Op::Shrink, any(Op::Shrink), x, y), shrink_of_shrink),
  rule(node(Op::Shrink, any(Op::Pad), x, y), shrink_of_pad),
  rule(node(Op::Shrink, any(Op::Expand), x, y), shrink_of_expand),
  rule(any(Op::Pad), unmoved),
  rule(any(Op::Pad), pad_of_zero),
  rule(node(Op::Pad, any(Op::Pad), x, y), pad_of_pad),
  rule(any(Op::Reduce), reduce_of_ones),
  rule(any(Op::Cat), cat_of_cats),
  rule(node(Op::Contiguous, any(Op::Contiguous)), contiguous_twice),
};
// clang-format on

constexpr auto kBroadcast =
    each<Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv, Op::FloorMod, Op::CDiv, Op::CMod, Op::Max, Op::Min,
         Op::Pow, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Threefry, Op::CmpLt, Op::CmpEq, Op::CmpNe,
         Op::Where, Op::MulAcc>(broadcast_operands);

}  // namespace

const RuleSet& movement() {
  static const RuleSet rules = RuleSet(kMovement) + RuleSet(kBroadcast);
  return rules;
}

}  // namespace pg::rules
