// Long reductions in two steps. The parts run side by side, keep what they read in the caches, and add
// numbers of like size: the error of a sum grows with the length of a part, not of the whole.
#include <algorithm>

#include <absl/container/inlined_vector.h>

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
  if (all < kLong) return nullptr;
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

}  // namespace

const RuleSet& long_reductions() {
  static const RuleSet& rules = *new RuleSet(kLongReductions);
  return rules;
}

}  // namespace pg::schedule
