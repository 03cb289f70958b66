#include "rules/spec_loops.h"

#include <algorithm>
#include <bit>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "ir/print.h"

namespace pg::rules {
namespace {

// Sets of ranges, by number.
using Bits = absl::InlinedVector<std::uint64_t, 1>;

void add(Bits& to, const Bits& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] |= from[i];
}
void add(Bits& to, std::size_t bit) {
  if (to.size() <= bit / 64) to.resize(bit / 64 + 1);
  to[bit / 64] |= std::uint64_t{1} << bit % 64;
}
void remove(Bits& from, std::size_t bit) {
  if (bit / 64 < from.size()) from[bit / 64] &= ~(std::uint64_t{1} << bit % 64);
}
bool has(const Bits& bits, std::size_t bit) {
  return bit / 64 < bits.size() && bits[bit / 64] >> bit % 64 & 1;
}

class Loops {
 public:
  std::optional<Offence> walk(std::span<const Ref> order) {
    for (Ref n : order) {
      Sets& sets = sets_[n.node()];
      for (Node* s : n.srcs()) {
        const Sets& of = sets_.find(s)->second;
        add(sets.open, of.open);
        add(sets.closed, of.closed);
      }
      if (n.is(Op::Range)) {
        add(sets.open, ranges_.size());
        number_[n.node()] = ranges_.size();
        ranges_.push_back(n);
      }
      if (n.is(Op::End) || n.is(Op::Reduce))
        if (auto broken = close(n, sets)) return broken;
      for (std::size_t w = 0; w < std::min(sets.open.size(), sets.closed.size()); ++w)
        if (std::uint64_t both = sets.open[w] & sets.closed[w])
          return Offence{n, "it uses " +
                                brief(ranges_[w * 64 + static_cast<std::size_t>(std::countr_zero(both))], 1) +
                                ", which is closed beneath it"};
      if (n.is(Op::Sink))
        for (std::size_t r = 0; r < ranges_.size(); ++r)
          if (has(sets.open, r)) return Offence{ranges_[r], "the range is never closed"};
    }
    return {};
  }

 private:
  struct Sets {
    Bits open, closed;
  };

  std::optional<Offence> close(Ref n, Sets& sets) {
    for (int k = first_range(n); k < n.nsrc(); ++k) {
      Ref range = n.src(k);
      std::size_t r = number_.find(range.node())->second;
      if (has(sets.closed, r))
        return Offence{n, "it closes " + brief(range, 1) + ", which is closed beneath it"};
      if (!has(sets.open, r)) return Offence{n, "it closes " + brief(range, 1) + " twice"};
      if (n.is(Op::End))
        if (auto [other, fresh] = ended_.emplace(range.node(), n); !fresh && !leads(n, other->second))
          return Offence{n, "it closes " + brief(range, 1) + ", which another End closes"};
      remove(sets.open, r);
    }
    for (int k = first_range(n); k < n.nsrc(); ++k) add(sets.closed, number_.find(n.src(k).node())->second);
    return {};
  }

  // Several stores may stand in one nest of loops: the loops of one are then the outermost of the other.
  static bool leads(Ref a, Ref b) {
    int i = first_range(a), j = first_range(b);
    for (; i < a.nsrc() && j < b.nsrc(); ++i, ++j)
      if (!same(a.src(i), b.src(j))) return false;
    return true;
  }

  absl::flat_hash_map<Node*, Sets> sets_;
  absl::flat_hash_map<Node*, std::size_t> number_;
  absl::flat_hash_map<Node*, Ref> ended_;
  std::vector<Ref> ranges_;
};

// What need not be listed: numbers and sizes are written where they are used.
bool stands_anywhere(Ref n) { return n.is(Op::Const) || n.is(Op::Shape); }

}  // namespace

int first_range(Ref n) {
  if (n.is(Op::Stage)) return 1;
  if (n.is(Op::Reduce))
    return static_cast<int>(
        std::clamp<std::uint64_t>(n.reduce_axes(), 1, static_cast<std::uint64_t>(n.nsrc())));
  int k = 0;
  while (k < n.nsrc() && n.src(k).dtype() == DType::Void) ++k;
  return k;
}

std::optional<Offence> broken_loop(std::span<const Ref> order) { return Loops().walk(order); }

std::optional<Offence> broken_order(Ref linear) {
  struct Block {
    Ref opener;
    bool open = true;
  };
  std::vector<Block> blocks{{linear}};
  std::vector<std::size_t> nest{0};
  absl::flat_hash_map<Node*, std::size_t> block_of;
  for (Node* raw : linear.srcs()) {
    Ref n = raw;
    for (Node* s : n.srcs()) {
      auto it = block_of.find(s);
      if (it == block_of.end()) {
        if (stands_anywhere(s)) continue;
        return Offence{n, "its source " + brief(s, 2) + " does not stand before it"};
      }
      if (!blocks[it->second].open)
        return Offence{n, "its source " + brief(s, 2) + " was made in " +
                              brief(blocks[it->second].opener, 1) + ", which has ended"};
    }
    if (n.is(Op::End) || n.is(Op::EndIf)) {
      Ref opener = n.src(n.nsrc() - 1), inner = blocks[nest.back()].opener;
      if (nest.size() == 1 || !same(opener, inner))
        return Offence{n, "it ends " + brief(opener, 1) + ", but innermost is " +
                              (nest.size() == 1 ? "no loop" : brief(inner, 1))};
      blocks[nest.back()].open = false;
      nest.pop_back();
    }
    if (n.is(Op::Range) || n.is(Op::If)) {
      nest.push_back(blocks.size());
      blocks.push_back({n});
    }
    // A Store may be repeated, as a reset of a register is.
    if (!block_of.emplace(raw, nest.back()).second && !n.is(Op::Store))
      return Offence{n, "it stands in the list twice"};
  }
  if (nest.size() > 1) return Offence{blocks[nest.back()].opener, "nothing ends it"};
  return {};
}

}  // namespace pg::rules
