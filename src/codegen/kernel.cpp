#include "codegen/kernel.h"

#include <algorithm>

#include "rules/spec_loops.h"

namespace pg::codegen {
namespace {

// Coefficient of every loop in an offset: one walk down its sums and constant products; below anything else
// every loop that occurs is irregular.
void collect(Ref n, std::int64_t factor, const Kernel& kernel,
             const absl::flat_hash_map<Node*, std::uint64_t>& masks, std::vector<Stride>& out) {
  if (n.is(Op::Range)) {
    int i = kernel.loop_of(n);
    if (i >= 0) out[static_cast<std::size_t>(i)].value += factor;
    return;
  }
  if (n.is(Op::Add) || n.is(Op::Sub)) {
    collect(n.src(0), factor, kernel, masks, out);
    return collect(n.src(1), n.is(Op::Sub) ? -factor : factor, kernel, masks, out);
  }
  if (n.is(Op::Mul) && n.src(1).is_const())
    return collect(n.src(0), factor * n.src(1).i(), kernel, masks, out);
  if (n.is(Op::Neg)) return collect(n.src(0), -factor, kernel, masks, out);
  auto it = masks.find(n.node());
  for (std::uint64_t m = it == masks.end() ? 0 : it->second; m; m &= m - 1)
    out[static_cast<std::size_t>(std::countr_zero(m))].regular = false;
}

}  // namespace

void collect_strides(Ref offset, std::int64_t factor, const Kernel& kernel,
                     const absl::flat_hash_map<Node*, std::uint64_t>& masks, std::vector<Stride>& out) {
  collect(offset, factor, kernel, masks, out);
}

Ref panel_value(Ref load, std::span<const Ref> order,
                const absl::flat_hash_map<Node*, std::uint64_t>& masks) {
  std::uint64_t loops = masks.at(load.node());
  std::size_t at = 0;
  while (!same(order[at], load)) ++at;
  for (Ref top = load;;) {
    std::size_t user = 0;
    for (std::size_t i = at + 1; i < order.size(); ++i)
      for (Node* s : order[i].srcs())
        if (s == top.node()) user = user ? order.size() : i;
    if (user == 0 || user == order.size()) return top;
    Ref n = order[user];
    if (!n.has(kElementwise) || n.dtype() == DType::Bool || masks.at(n.node()) & ~loops) return top;
    // The result of a reduction is not there yet when the panel is filled.
    if (n.nsrc() > 1)
      for (Ref m : toposort(n))
        if (m.is(Op::Reduce) || m.is(Op::Stage)) return top;
    top = n, at = user;
  }
}

bool same_loops(Ref a, Ref b) {
  auto of_a = a.srcs().subspan(static_cast<std::size_t>(rules::first_range(a))),
       of_b = b.srcs().subspan(static_cast<std::size_t>(rules::first_range(b)));
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

int Kernel::loop_of(Ref range) const {
  for (std::size_t i = 0; i < loops.size(); ++i)
    if (same(loops[i], range)) return static_cast<int>(i);
  return -1;
}

absl::flat_hash_map<Node*, std::uint64_t> dependences(const Kernel& kernel) {
  absl::flat_hash_map<Node*, std::uint64_t> masks;
  for (Ref n : toposort(kernel.sink)) {
    std::uint64_t mask = 0;
    for (Node* s : n.srcs()) mask |= masks[s];
    if (n.is(Op::Range)) {
      int i = kernel.loop_of(n);
      if (i >= 0) mask |= std::uint64_t{1} << i;
    } else if (n.is(Op::Reduce) || n.is(Op::End)) {
      for (Node* s : n.srcs())
        if (s->op == Op::Range)
          if (int i = kernel.loop_of(s); i >= 0) mask &= ~(std::uint64_t{1} << i);
    }
    masks[n.node()] = mask;
  }
  return masks;
}

Kernel::Kernel(Ref root) : sink(root) {
  auto order = toposort(root);
  auto close = [&](Ref n) {
    for (Node* s : n.srcs())
      if (s->op == Op::Range && loop_of(s) < 0) loops.push_back(s);
  };
  for (Node* end : root.srcs()) close(end);
  outputs = loops.size();
  // Users before what they use: loops from outside to inside.
  for (std::size_t i = order.size(); i-- > 0;)
    if (order[i].is(Op::Reduce)) {
      reduces.push_back(order[i]);
      close(order[i]);
    }
  body = loops.size();
  for (Ref n : order)
    if (n.is(Op::End)) close(n);
  if (loops.size() > 64) throw InternalError("[codegen] a kernel of more than 64 loops");
  for (std::size_t i = 0; i < outputs; ++i)
    if (std::all_of(root.srcs().begin(), root.srcs().end(), [&](Node* end) {
          return std::find(Ref(end).srcs().begin(), Ref(end).srcs().end(), loops[i].node()) !=
                 Ref(end).srcs().end();
        }))
      shared |= std::uint64_t{1} << i;
  auto masks = dependences(*this);
  in_values.resize(loops.size(), false);
  for (Ref n : order)
    if (n.is(Op::After)) pinned |= masks[n.node()];
  for (Ref n : order) {
    if ((n.is(Op::Load) || n.is(Op::Store)) && (body == 64 || !(masks[n.node()] >> body))) {
      Ref index = n.src(0);
      Access a{index, n.is(Op::Load) ? n.dtype() : n.src(1).dtype(), n.is(Op::Store),
               std::vector<Stride>(loops.size()), std::vector<bool>(loops.size())};
      collect(index.src(1), 1, *this, masks, a.strides);
      if (index.nsrc() > 2)
        for (std::size_t i = 0; i < loops.size(); ++i) a.gated[i] = masks[index.src(2).node()] >> i & 1;
      accesses.push_back(std::move(a));
    }
    // A loop variable that becomes a number of another dtype is data, not an index.
    if (n.is(Op::Cast) && n.src(0).dtype() == DType::WeakInt)
      for (std::size_t i = 0; i < loops.size(); ++i)
        if (masks[n.node()] >> i & 1) in_values[i] = true;
  }
}

}  // namespace pg::codegen
