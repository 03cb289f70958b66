// Long reductions in two steps. The parts run side by side, keep what they read in the caches, and add
// numbers of like size: the error of a sum grows with the length of a part, not of the whole.
#include <algorithm>

#include <absl/container/inlined_vector.h>

#include "rules/sum.h"
#include "schedule/plan.h"

namespace pg::schedule {
namespace {

using namespace pat;

constexpr std::int64_t kLong = 32768, kPart = 16384;  // elements that one result is made of

// The part of `axis` that makes a step of at most kPart elements, as many as divide it; 0 if there is none.
std::int64_t part_of(std::int64_t axis, std::int64_t others) {
  for (std::int64_t part = std::min(axis / 2, kPart / others); part > 0 && part * others >= kPart / 16;
       --part)
    if (axis % part == 0) return part;
  return 0;
}

Ref in_two_steps(const Match& m) {
  Ref n = m.root, x = n.src(0), shape = shape_of(x);
  if (!is_concrete(shape)) return nullptr;
  Dims d = dims(shape);
  std::int64_t all = 1;
  for (std::size_t a = 0; a < d.size(); ++a)
    if (n.reduce_axes() >> a & 1) all *= d[a];
  if (all < kLong || names_elements(n)) return nullptr;
  for (std::size_t a = 0; a < d.size(); ++a) {
    if (!(n.reduce_axes() >> a & 1)) continue;
    std::int64_t part = part_of(d[a], all / d[a]);
    if (!part) continue;
    absl::InlinedVector<std::int64_t, 8> split(d.begin(), d.end()), joined(d.begin(), d.end());
    split[a] = part;
    split.insert(split.begin() + static_cast<std::ptrdiff_t>(a), d[a] / part);
    std::uint64_t below = (std::uint64_t{1} << a) - 1, axes = n.reduce_axes();
    Ref parts = reduce(reshape(x, shape_node(split)), n.reduce_op(), (axes & below) | (axes & ~below) << 1);
    for (std::size_t i = 0; i < d.size(); ++i)
      if (axes >> i & 1) joined[i] = i == a ? d[a] / part : 1;
    parts = make(Op::Contiguous, n.dtype(), {reshape(parts, shape_node(joined))});
    return reduce(parts, n.reduce_op(), std::uint64_t{1} << a);
  }
  return nullptr;
}

constexpr Rule kLongReductions[] = {rule(any(Op::Reduce), in_two_steps)};

// The axis, from the right, along which x is an arange (or the like); -1 if it is none.
int axis_of_arange(Ref x) {
  Ref n = x;
  while (n.is(Op::Cast) || n.is(Op::Reshape) || n.is(Op::Expand)) n = n.src(0);
  if (!n.is(Op::Arange)) return -1;
  int found = -1, axes = rank(shape_of(x));
  for (Ref s = x; !s.is(Op::Arange); s = s.src(0))
    if (s.is(Op::Expand)) return -1;
  for (int i = 0; i < axes; ++i)
    if (!dim(shape_of(x), i).is_const(1)) found = found < 0 ? axes - 1 - i : axes;
  return found < axes ? found : -1;
}

}  // namespace

bool names_elements(Ref reduce) {
  if (!reduce.is(Op::Reduce)) return false;
  // Where each axis of the reduced value is, from the right, further in.
  Ref x = reduce.src(0);
  int axes = rank(shape_of(x));
  absl::InlinedVector<int, 8> at;
  for (int i = 0; i < axes; ++i) at.push_back(axes - 1 - i);
  for (; x.is(Op::Permute) || x.is(Op::Cast); x = x.src(0))
    if (x.is(Op::Permute)) {
      auto outer = at;
      for (std::size_t i = 0; i < at.size(); ++i)
        for (std::size_t j = 0; j < at.size(); ++j)
          if (outer[i] == axes - 1 - static_cast<int>(j)) at[i] = axes - 1 - static_cast<int>(x.ints()[j]);
    }
  Ref cond = x.is(Op::Where) ? x.src(0) : x.dtype() == DType::Bool ? x : Ref();
  if (!cond) return false;
  for (Ref c : rules::chain_of(Op::And, cond)) {
    while (c.is(Op::Reshape) || c.is(Op::Cast)) c = c.src(0);
    if (!c.is(Op::CmpEq)) continue;
    for (int side : {0, 1}) {
      int axis = axis_of_arange(c.src(side));
      for (int i = 0; i < axes && axis >= 0; ++i)
        if (at[static_cast<std::size_t>(i)] == axis && !(reduce.reduce_axes() >> i & 1)) return true;
    }
  }
  return false;
}

const RuleSet& long_reductions() {
  static const RuleSet& rules = *new RuleSet(kLongReductions);
  return rules;
}

}  // namespace pg::schedule
