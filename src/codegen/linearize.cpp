#include "codegen/linearize.h"

#include <algorithm>
#include <span>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "rules/spec_loops.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

bool fits_i32(Ref n) { return n.lo() >= int_min(i32) && n.hi() <= int_max(i32); }

class Linearizer {
 public:
  Linearizer(Ref root, const Target& target) : kernel_(root), target_(target), masks_(dependences(kernel_)) {}

  Ref run() {
    find_scopes();
    for (Node* end : kernel_.sink.srcs())
      for (Node* s : Ref(end).srcs()) visit(s);
    emit_scope(0);
    return make(Op::Linear, DType::Void, 1, out_);
  }

 private:
  // A loop and what happens in each of its iterations, in order. Scope 0 is the kernel itself.
  struct Scope {
    Ref loop;
    int parent = -1, depth = 0;
    struct Item {
      Ref node;        // an instruction, or
      int group = -1;  // loops of their own
    };
    std::vector<Item> items;
  };
  // Reductions over the same loops, run together, and stores to scratch memory in them; or the loops that
  // fill a panel alone.
  struct Group {
    std::vector<Ref> members;
    std::vector<int> scopes;  // of its loops, outermost first
  };

  static int values_of(Ref n) { return rules::first_range(n); }

  int scope_of_mask(std::uint64_t mask) const {
    int best = 0;
    for (; mask; mask &= mask - 1) {
      int s = scope_of_loop_[static_cast<std::size_t>(std::countr_zero(mask))];
      if (scopes_[static_cast<std::size_t>(s)].depth > scopes_[static_cast<std::size_t>(best)].depth)
        best = s;
    }
    return best;
  }

  int open(Ref loop, int parent) {
    int s = static_cast<int>(scopes_.size());
    scopes_.push_back({loop, parent, scopes_[static_cast<std::size_t>(parent)].depth + 1, {}});
    scope_of_loop_[static_cast<std::size_t>(kernel_.loop_of(loop))] = s;
    return s;
  }

  void find_scopes() {
    scopes_.push_back({});
    scope_of_loop_.resize(kernel_.loops.size(), 0);
    int at = 0;
    for (std::size_t i = 0; i < kernel_.outputs; ++i)
      if (kernel_.loops[i].range_kind() == RangeKind::Loop) at = open(kernel_.loops[i], at);
    // The stores of an End stand in the innermost of its loops, whatever they depend on.
    for (Node* end : kernel_.sink.srcs()) {
      placed_.insert(end);
      std::uint64_t mask = 0;
      for (Node* s : Ref(end).srcs()) mask |= s->op == Op::Range ? masks_[s] : 0;
      for (Node* s : Ref(end).srcs())
        if (s->op == Op::Store) masks_[s] |= mask;
    }
    // Users before what they use, so that the loops around a reduction inside another are there already.
    auto order = toposort(kernel_.sink);
    for (std::size_t k = order.size(); k-- > 0;) {
      Ref n = order[k];
      if ((!n.is(Op::Reduce) && !n.is(Op::End)) || placed_.contains(n.node()) || values_of(n) == n.nsrc())
        continue;
      int g = -1;
      for (std::size_t i = 0; i < groups_.size(); ++i)
        if (same_loops(n, groups_[i].members[0])) g = static_cast<int>(i);
      if (g < 0) {
        g = static_cast<int>(groups_.size());
        groups_.emplace_back();
      }
      groups_[static_cast<std::size_t>(g)].members.push_back(n);
      group_of_[n.node()] = g;
    }
    share_masks(order);
    for (Group& g : groups_) {
      int parent = scope_of_mask(masks_[g.members[0].node()]);
      Ref first = g.members[0];
      for (int i = values_of(first); i < first.nsrc(); ++i) {
        parent = open(first.src(i), parent);
        g.scopes.push_back(parent);
      }
      std::reverse(g.members.begin(), g.members.end());
    }
  }

  // A reduction has its result where the loops of its group end, though it may depend on fewer of the loops
  // around them than another member (a copy that adds up constants); and so has all that uses it.
  void share_masks(std::span<const Ref> order) {
    for (bool again = true; again;) {
      again = false;
      for (const Group& g : groups_) {
        std::uint64_t mask = 0;
        for (Ref n : g.members) mask |= masks_[n.node()];
        for (Ref n : g.members) again |= std::exchange(masks_[n.node()], mask) != mask;
      }
      if (!again) return;
      for (Ref n : order) {
        std::uint64_t mask = masks_[n.node()];
        for (Node* s : n.srcs()) mask |= masks_[s];
        if (n.is(Op::Reduce) || n.is(Op::End))
          for (Node* s : n.srcs())
            if (s->op == Op::Range) mask &= ~masks_[s];
        masks_[n.node()] = mask;
      }
    }
  }

  // Appends a node and all it needs to the items of their scopes; sources first, without recursion.
  void visit(Ref root) {
    std::vector<std::pair<Node*, bool>> stack{{root.node(), false}};
    while (!stack.empty()) {
      auto [raw, ready] = stack.back();
      stack.pop_back();
      Ref n = raw;
      if (placed_.contains(raw)) continue;
      if (n.is(Op::Range)) continue;
      auto group = group_of_.find(raw);
      if (!ready) {
        stack.push_back({raw, true});
        if (group != group_of_.end())
          for (Ref r : groups_[static_cast<std::size_t>(group->second)].members) push_sources(r, stack);
        else
          push_sources(n, stack);
        continue;
      }
      int scope = scope_of_mask(masks_[raw]);
      if (group != group_of_.end()) {
        Group& g = groups_[static_cast<std::size_t>(group->second)];
        scopes_[static_cast<std::size_t>(scopes_[static_cast<std::size_t>(g.scopes[0])].parent)]
            .items.push_back({nullptr, group->second});
        for (Ref r : g.members) placed_.insert(r.node());
        continue;
      }
      placed_.insert(raw);
      if (n.is(Op::End) || n.is(Op::After)) continue;  // order alone; their sources stand already
      scopes_[static_cast<std::size_t>(scope)].items.push_back({n, -1});
    }
  }
  static void push_sources(Ref n, std::vector<std::pair<Node*, bool>>& stack) {
    for (int i = n.nsrc(); i-- > 0;) stack.push_back({n.src(i).node(), false});
  }

  // What stands in the list for a node.
  Ref now(Ref n) const {
    while (n.is(Op::After)) n = n.src(0);
    auto it = becomes_.find(n.node());
    return it == becomes_.end() ? n : it->second;
  }

  void put(Ref n) { out_.push_back(n); }

  void emit_scope(int s) {
    for (std::size_t i = 0; i < scopes_[static_cast<std::size_t>(s)].items.size(); ++i) {
      Scope::Item item = scopes_[static_cast<std::size_t>(s)].items[i];
      if (item.group >= 0) {
        emit_group(groups_[static_cast<std::size_t>(item.group)]);
        continue;
      }
      Ref n = rebuild(item.node);
      becomes_[item.node.node()] = n;
      put(n);
    }
    // The next loop of the output, if this is one of its nest.
    for (std::size_t i = 0; i < kernel_.outputs; ++i) {
      int inner = scope_of_loop_[i];
      if (kernel_.loops[i].range_kind() == RangeKind::Loop &&
          scopes_[static_cast<std::size_t>(inner)].parent == s) {
        put_loop(inner);
        emit_scope(inner);
        put(make(Op::End, DType::Void, {kernel_.loops[i]}));
      }
    }
  }

  bool flat(int s) const {
    const auto& items = scopes_[static_cast<std::size_t>(s)].items;
    return std::all_of(items.begin(), items.end(),
                       [](const Scope::Item& item) { return item.group < 0 && !item.node.is(Op::Store); });
  }
  // Of a scope without loops inside: what a node stands on and the node itself, unless it is there.
  void emit_needed(Ref root, int s) {
    std::vector<std::pair<Node*, bool>> stack{{root.node(), false}};
    while (!stack.empty()) {
      auto [n, ready] = stack.back();
      stack.pop_back();
      if (becomes_.contains(n) || scope_of_mask(masks_.at(n)) != s || !placed_.contains(n)) continue;
      if (ready) {
        put(becomes_[n] = rebuild(n));
        continue;
      }
      stack.push_back({n, true});
      push_sources(n, stack);
    }
  }

  void put_loop(int scope) {
    Ref loop = scopes_[static_cast<std::size_t>(scope)].loop;
    for (Ref n : toposort(loop.src(0))) put(n);
    put(loop);
  }

  Ref rebuild(Ref n) {
    Refs srcs;
    if (n.is(Op::Barrier)) {  // waits for stores
      for (Node* s : n.srcs())
        for (Node* store : s->op == Op::End ? Ref(s).srcs() : std::span<Node* const>(&s, 1))
          srcs.push_back(now(store));
      return make(Op::Barrier, DType::Void, 1, srcs);
    }
    bool changed = false;
    for (Node* s : n.srcs()) {
      Ref to = now(s);
      changed |= to.node() != s;
      srcs.push_back(to);
    }
    return changed ? make(n.op(), n.dtype(), n.lanes(), srcs, n->arg) : n;
  }

  void emit_group(Group& g) {
    std::vector<Ref> reduces;
    for (Ref n : g.members)
      if (n.is(Op::Reduce)) reduces.push_back(n);
    std::vector<Refs> accs(reduces.size());
    // Values of one turn wait for each other in one accumulator: each gets its own where there are few.
    constexpr int kMostAccs = 16;
    int values = 0;
    for (Ref r : reduces) values += values_of(r);
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      Ref r = reduces[i];
      Ref initial = splat(scalar_const(r.dtype(), identity_of(r.reduce_op(), r.dtype())), r.lanes());
      if (initial.is(Op::Splat)) put(initial.src(0));
      put(initial);
      for (int k = 0; k < (values <= kMostAccs ? values_of(r) : 1); ++k) {
        accs[i].push_back(
            make(Op::Acc, r.dtype(), {initial}, reduce_arg(r.reduce_op(), next_acc_++), r.lanes()));
        put(accs[i].back());
      }
    }
    for (int s : g.scopes) {
      put_loop(s);
      if (s != g.scopes.back() || reduces.empty() || !flat(s)) emit_scope(s);
    }
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      // Operands just before they are needed, so that few of them are in registers at a time.
      if (flat(g.scopes.back()))
        for (int k = 0; k < values_of(reduces[i]); ++k) emit_needed(reduces[i].src(k), g.scopes.back());
      Ref r = reduces[i], inner = scopes_[static_cast<std::size_t>(g.scopes.back())].loop;
      int each = values_of(r) / static_cast<int>(accs[i].size());
      for (int k = 0; k < values_of(r);) {
        Ref acc = accs[i][static_cast<std::size_t>(k / each)];
        Ref value = make(Op::Load, r.dtype(), {acc, inner}, {}, r.lanes());
        put(value);
        for (int end = k + each; k < end; ++k) {
          value = joined(r, value, now(r.src(k)), target_);
          if (value.is(Op::Where)) put(value.src(1));
          put(value);
        }
        put(make(Op::Store, DType::Void, {acc, value}));
      }
    }
    for (std::size_t i = g.scopes.size(); i-- > 0;)
      put(make(Op::End, DType::Void, {scopes_[static_cast<std::size_t>(g.scopes[i])].loop}));
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      Refs parts;
      for (Ref acc : accs[i]) {
        parts.push_back(make(Op::Load, reduces[i].dtype(), {acc}, {}, reduces[i].lanes()));
        put(parts.back());
      }
      for (std::size_t n = parts.size(); n > 1; n = (n + 1) / 2)
        for (std::size_t k = 0; k + (n + 1) / 2 < n; ++k) {
          parts[k] = alu(reduces[i].reduce_op(), {parts[k], parts[k + (n + 1) / 2]});
          put(parts[k]);
        }
      becomes_[reduces[i].node()] = parts[0];
    }
  }

  Kernel kernel_;
  const Target& target_;
  absl::flat_hash_map<Node*, std::uint64_t> masks_;
  std::vector<Scope> scopes_;
  std::vector<int> scope_of_loop_;
  std::vector<Group> groups_;
  absl::flat_hash_map<Node*, int> group_of_;
  absl::flat_hash_map<Node*, Ref> becomes_;
  absl::flat_hash_set<Node*> placed_;
  std::vector<Ref> out_;
  std::uint64_t next_acc_ = 0;
};

// Instructions nobody reads: products that became part of a MulAcc, and what only they used.
Ref drop_unused(Ref linear) {
  absl::flat_hash_set<Node*> used;
  auto order = linear.srcs();
  std::vector<Ref> kept;
  absl::flat_hash_set<Node*> seen;
  for (std::size_t i = order.size(); i-- > 0;) {
    Ref n = order[i];
    bool effect = n.is(Op::Store) || n.is(Op::End) || n.is(Op::Range) || n.is(Op::Barrier) || n.is(Op::If) ||
                  n.is(Op::EndIf);
    if (!effect && !used.contains(n.node())) continue;
    for (Node* s : n.srcs()) used.insert(s);
    kept.push_back(n);
  }
  std::reverse(kept.begin(), kept.end());
  // Arguments and constants lead; equal nodes that were put twice stand once, at their first place.
  auto leads = [](Ref n) {
    return (n.has(kLeaf) && !n.is(Op::Range)) || (n.is(Op::Splat) && n.src(0).is_const());
  };
  std::vector<Ref> once;
  for (bool leading : {true, false})
    for (Ref n : kept)
      if (leads(n) == leading && (n.is(Op::End) || n.is(Op::Store) || seen.insert(n.node()).second))
        once.push_back(n);
  return make(Op::Linear, DType::Void, 1, once);
}

Ref splat_of(Ref n) { return n.is(Op::Splat) ? n.src(0) : n; }

}  // namespace

Ref joined(Ref reduce, Ref acc, Ref value, const Target& target) {
  // A masked value that would add nothing leaves the accumulator as it is: one masked instruction on many
  // machines.
  if (value.is(Op::Where)) {
    Ref nothing = constant(value.src(2));
    Scalar identity = identity_of(reduce.reduce_op(), reduce.dtype());
    if (nothing && same(nothing, scalar_const(reduce.dtype(), identity)))
      return where(value.src(0), joined(reduce, acc, value.src(1), target), acc);
  }
  if (reduce.reduce_op() == Op::Add && value.is(Op::Wmma) && splat_of(value.src(2)).is_const(0))
    return make(Op::Wmma, value.dtype(), {value.src(0), value.src(1), acc}, value->arg, value.lanes());
  if (reduce.reduce_op() == Op::Add && value.is(Op::DotBytes) && splat_of(value.src(2)).is_const(0))
    return alu(Op::DotBytes, {value.src(0), value.src(1), acc});
  bool fuses = is_float(value.dtype()) && target.computes.has(value.dtype()) && target.has(Op::MulAcc);
  if (reduce.reduce_op() == Op::Add && value.is(Op::Mul) && fuses)
    return alu(Op::MulAcc, {value.src(0), value.src(1), acc});
  return alu(reduce.reduce_op(), {acc, value});
}

Ref lower_indices(Ref kernel, const Target& target) {
  absl::flat_hash_map<Node*, Ref> becomes;
  Refs srcs;
  auto width = [&](Ref n) { return fits_i32(n) && (n.lanes() > 1 || target.index == i32) ? i32 : i64; };
  for (Ref n : toposort(kernel)) {
    srcs.clear();
    DType t = n.dtype(), operands = DType::Void;
    if (t == DType::WeakInt) t = width(n);
    if (n.has(kElementwise) && !n.is(Op::Cast) && n.nsrc() &&
        (n.dtype() == DType::WeakInt || n.src(n.nsrc() - 1).dtype() == DType::WeakInt)) {
      // Operands meet in the widest of them, so that no step of the arithmetic wraps.
      operands = n.dtype() == DType::WeakInt ? t : i32;
      for (Node* s : n.srcs())
        if (s->dtype == DType::WeakInt && width(s) == i64) operands = i64;
    }
    bool changed = t != n.dtype();
    for (Node* s : n.srcs()) {
      Ref to = becomes[s];
      if (s->dtype == DType::WeakInt && operands != DType::Void && to.dtype() != operands)
        to = cast(to, operands);
      changed |= to.node() != s;
      srcs.push_back(to);
    }
    if (n.dtype() == DType::WeakInt && operands != DType::Void) t = operands;
    if (n.is(Op::Splat) && t != srcs[0].dtype()) srcs[0] = cast(srcs[0], t);
    Ref made = !changed         ? n
               : n.is_const()   ? int_const(t, n.i())
               : n.is(Op::Cast) ? cast(srcs[0], t)
                                : make(n.op(), t, n.lanes(), srcs, n->arg);
    becomes[n.node()] = made;
  }
  return becomes[kernel.node()];
}

Ref linearize(Ref kernel, const Target& target) { return drop_unused(Linearizer(kernel, target).run()); }

}  // namespace pg::codegen
