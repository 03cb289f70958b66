#include "codegen/nests.h"

#include <algorithm>
#include <utility>

#include <absl/container/inlined_vector.h>

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;
using Pairs = absl::InlinedVector<std::pair<Ref, Ref>, 4>;

// Reductions over the same loops, in turns of the same output loops.
struct Group {
  Refs reduces;
  std::uint64_t within = 0;
};

}  // namespace

Nests nests_of(const Kernel& k) {
  Nests out;
  auto masks = dependences(k);
  std::uint64_t outputs = k.outputs >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << k.outputs) - 1;
  std::vector<Group> groups;
  std::int64_t slot = 0;
  for (Ref r : k.reduces) {
    std::uint64_t within = masks.at(r.node());
    if (within & ~outputs) continue;  // inside another
    // Whatever they stand in: they run together.
    auto g = std::find_if(groups.begin(), groups.end(),
                          [&](const Group& o) { return same_loops(o.reduces[0], r); });
    if (g == groups.end()) g = groups.insert(g, Group{});
    g->within |= within;
    g->reduces.push_back(r);
  }
  // A loop has lanes once: nests that have only some loops in common are left to be one.
  std::uint64_t taken = 0;
  for (const Group& g : groups) {
    std::uint64_t own = 0;
    for (Node* s : Ref(g.reduces[0]).srcs().subspan(1)) own |= std::uint64_t{1} << k.loop_of(s);
    if (taken & own) return {};
    taken |= own;
  }
  out.shared = k.shared;
  for (const Group& g : groups) {
    out.shared &= g.within;
    out.outer |= g.within;
  }
  bool more = out.outer != outputs || k.shared != outputs;
  if (groups.empty() || groups.size() + more < 2) return {};

  // What another nest finds is a number here, and what it has filled is memory.
  Pairs found;
  for (Ref n : toposort(k.sink))
    if (n.is(Op::After)) found.emplace_back(n, n.src(0));
  for (const Group& g : groups)
    for (Ref r : g.reduces) found.emplace_back(r, scalar_param(slot++, r.dtype(), 0, 0));
  auto others = [&](Ref root) {
    Pairs map;
    for (auto& p : found)
      if (!same(p.first, root)) map.push_back(p);
    return map;
  };
  std::int64_t memory = 0;
  for (Ref n : toposort(k.sink))
    if (n.is(Op::Param)) memory = std::max(memory, n.i() + 1);
  for (const Group& g : groups) {
    Refs ends, loops;
    Ref offset = idx(0);
    std::int64_t size = 1;
    for (std::size_t i = 0; i < k.outputs; ++i)
      if (g.within >> i & 1) {
        loops.push_back(k.loops[i]);
        offset = offset * k.loops[i].src(0) + k.loops[i];
        size *= k.extent(i);
      }
    for (Ref r : g.reduces) {
      Ref to = param(memory++, r.dtype(), shape_node(Dims(&size, 1)));
      Ref store =
          make(Op::Store, DType::Void, {make(Op::Index, r.dtype(), {to, offset}), substitute(r, others(r))});
      Refs end{store};
      end.insert(end.end(), loops.begin(), loops.end());
      ends.push_back(make(Op::End, DType::Void, 1, end));
    }
    out.kernels.push_back(sink(ends));
  }
  if (more) out.kernels.push_back(substitute(k.sink, found));
  return out;
}

}  // namespace pg::codegen
