#include "codegen/share.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/stage.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;
using Pairs = absl::InlinedVector<std::pair<Ref, Ref>, 4>;
using Nodes = absl::flat_hash_set<Node*>;

Nodes beneath(Ref root) {
  Nodes found;
  for (Ref n : toposort(root)) found.insert(n.node());
  return found;
}

std::span<Node* const> loops_of(Ref reduce) { return reduce.srcs().subspan(1); }

// The loops of one in the place of the other's; none if their sizes differ.
Pairs renamed(std::span<Node* const> from, std::span<Node* const> to) {
  Pairs map;
  if (from.size() != to.size()) return {};
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i]->src[0] != to[i]->src[0]) return {};
    map.emplace_back(from[i], to[i]);
  }
  return map;
}

// Reductions that stand in output loops only: sums of a row, not within another sum.
Refs outer_reductions(const Kernel& k, const absl::flat_hash_map<Node*, std::uint64_t>& masks) {
  Refs out;
  for (Ref r : k.reduces)
    if (k.outputs >= 64 || !(masks.at(r.node()) >> k.outputs)) out.push_back(r);
  return out;
}

// Many instructions, where reading it again is one.
bool is_costly(Ref n) { return n.has(kElementwise) && is_float(n.dtype()) && !is_exact(n.op()); }

// The largest values that move with all of the loops and stand on something costly: from the root down.
void costly_values(Ref root, std::uint64_t loops, const absl::flat_hash_map<Node*, std::uint64_t>& masks,
                   Refs& out) {
  Nodes seen;
  std::vector<Node*> stack{root.node()};
  while (!stack.empty()) {
    Ref n = stack.back();
    stack.pop_back();
    if (!seen.insert(n.node()).second || n.is(Op::Index)) continue;
    auto mask = masks.find(n.node());
    if (mask == masks.end() || (mask->second & loops) != loops) continue;
    if (is_costly(n)) {
      out.push_back(n);
      continue;
    }
    for (Node* s : n.srcs()) stack.push_back(s);
  }
}

}  // namespace

Ref share_loops(Ref kernel) {
  for (bool again = true; again;) {
    again = false;
    Kernel k(kernel);
    if (k.reduces.size() < 2) return kernel;
    auto masks = dependences(k);
    Refs sums = outer_reductions(k, masks);
    for (std::size_t i = 0; i < sums.size() && !again; ++i)
      for (std::size_t j = 0; j < sums.size() && !again; ++j) {
        Ref a = sums[i], b = sums[j];
        if (i == j || same_loops(b, a) || masks.at(a.node()) != masks.at(b.node())) continue;
        Pairs map = renamed(loops_of(b), loops_of(a));
        if (map.empty()) continue;
        // All sums over either's loops become one nest: none may need another.
        Refs all;
        for (Ref r : k.reduces)
          if (same_loops(r, a) || same_loops(r, b)) all.push_back(r);
        bool apart = std::all_of(all.begin(), all.end(), [&](Ref r) {
          Nodes under = beneath(r);
          return std::none_of(all.begin(), all.end(),
                              [&](Ref o) { return !same(o, r) && under.contains(o.node()); });
        });
        if (!apart) continue;
        Nodes reads;
        for (Ref n : toposort(a.src(0)))
          if (n.is(Op::Load)) reads.insert(n.node());
        bool common = false;
        for (Ref n : toposort(substitute(b.src(0), map)))
          common |=
              n.is(Op::Load) && reads.contains(n.node()) && masks.at(n.node()) >> k.loop_of(a.src(1)) & 1;
        if (!common) continue;
        kernel = substitute(kernel, map);
        again = true;
      }
  }
  return kernel;
}

Ref share_rows(Ref kernel) {
  for (bool again = true; again;) {
    again = false;
    Kernel k(kernel);
    if (k.reduces.empty() || k.loops.size() > 60) return kernel;
    auto masks = dependences(k);
    Refs sums = outer_reductions(k, masks);
    auto order = toposort(kernel);
    Nodes all;
    for (Ref n : order) all.insert(n.node());
    // Uses come before what they use in `sums`: the earliest nest last.
    for (std::size_t i = sums.size(); i-- > 0 && !again;) {
      Ref sum = sums[i];
      std::uint64_t loops = 0;
      for (Node* r : loops_of(sum)) loops |= std::uint64_t{1} << k.loop_of(r);
      bool fixed = std::all_of(loops_of(sum).begin(), loops_of(sum).end(),
                               [](Node* r) { return Ref(r).src(0).is_const(); });
      Refs values;
      if (fixed) costly_values(sum.src(0), loops, masks, values);
      // Where else: other sums over loops of these sizes, and the loops of the output that the sum stands
      // outside of.
      std::vector<std::vector<Node*>> elsewhere;
      for (Ref other : sums)
        if (!same_loops(other, sum) && masks.at(other.node()) == masks.at(sum.node()))
          elsewhere.emplace_back(loops_of(other).begin(), loops_of(other).end());
      std::vector<Node*> inner;
      for (std::size_t l = 0; l < k.outputs; ++l)
        if (!(masks.at(sum.node()) >> l & 1)) inner.push_back(k.loops[l].node());
      elsewhere.push_back(inner);
      for (Ref value : values) {
        if (masks.at(value.node()) & ~(masks.at(sum.node()) | loops)) continue;
        Pairs becomes;
        Ref filled;
        Fresh fresh(kernel);
        Refs dims;
        for (Node* r : loops_of(sum)) dims.emplace_back(r);
        for (auto& there : elsewhere) {
          Pairs map = renamed(loops_of(sum), there);
          if (map.empty()) continue;
          Ref again_there = substitute(value, map);
          if (!all.contains(again_there.node())) continue;
          if (!filled) filled = fill_row(value, dims, fresh);
          Refs at;
          for (Node* r : there) at.emplace_back(r);
          becomes.emplace_back(again_there, read_row(filled, value.dtype(), dims, at));
        }
        if (becomes.empty()) continue;
        kernel = substitute(kernel, becomes);
        again = true;
        break;
      }
    }
  }
  return kernel;
}

}  // namespace pg::codegen
