#include "codegen/options.h"

#include <array>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "rewrite/rewrite.h"
#include "rules/symbolic.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

Ref find_loop(Ref kernel, std::int64_t id) {
  for (Ref n : toposort(kernel))
    if (n.is(Op::Range) && n.range_id() == id) return n;
  throw ValueError("[option] the kernel has no loop " + std::to_string(id));
}

std::int64_t fresh_id(Ref kernel) {
  std::int64_t id = 0;
  for (Ref n : toposort(kernel))
    if (n.is(Op::Range)) id = std::max(id, n.range_id() + 1);
  return id;
}

Ref simplify(Ref kernel) { return rewrite(kernel, rules::symbolic(), {.name = "simplify options"}); }

// Puts `value` in the place of a loop variable and `loops` in the place of the loop. With a guard, iterations
// where it is false touch no memory and add nothing to a reduction.
Ref replace_loop(Ref kernel, Ref loop, Ref value, std::span<const Ref> loops, Ref guard) {
  absl::flat_hash_map<Node*, Ref> becomes{{loop.node(), value}};
  absl::flat_hash_set<Node*> inside{loop.node()};  // what depends on the loop's variable
  Refs srcs;
  for (Ref n : toposort(kernel)) {
    if (same(n, loop)) continue;
    bool changed = false, within = false, closed = false;
    srcs.clear();
    for (Node* s : n.srcs()) {
      within |= inside.contains(s);
      auto it = becomes.find(s);
      changed |= it != becomes.end();
      if (s == loop.node() && (n.is(Op::Reduce) || n.is(Op::End))) {
        srcs.insert(srcs.end(), loops.begin(), loops.end());
        closed = true;
      } else {
        srcs.push_back(it == becomes.end() ? Ref(s) : it->second);
      }
    }
    if (!changed) continue;
    if (within && !closed) inside.insert(n.node());
    if (guard && within && n.is(Op::Index)) {
      if (srcs.size() > 2)
        srcs[2] = srcs[2] & guard;
      else
        srcs.push_back(guard);
    }
    if (guard && closed && n.is(Op::Reduce))
      srcs[0] = where(guard, srcs[0], scalar_const(n.dtype(), identity_of(n.reduce_op(), n.dtype())));
    becomes[n.node()] = make(n.op(), n.dtype(), n.lanes(), srcs, n->arg);
  }
  return becomes[kernel.node()];
}

// loop -> outer * amount + inner, where the inner loop has the given kind; or, outermost first, amount
// chunks.
Ref split(Ref kernel, Ref loop, std::int64_t amount, RangeKind outer_kind, RangeKind inner_kind,
          bool chunks) {
  Ref extent = loop.src(0);
  if (!extent.is_const()) throw ValueError("[option] a loop of symbolic size cannot be split");
  std::int64_t n = extent.i(), other = (n + amount - 1) / amount;
  std::int64_t outer_size = chunks ? amount : other, inner_size = chunks ? other : amount;
  // The part that stays a loop keeps the name.
  std::int64_t fresh = fresh_id(kernel), id = loop.range_id();
  Refs loops;
  Ref value = idx(0);
  if (outer_size > 1) {
    loops.push_back(range(chunks && inner_size > 1 ? fresh : id, outer_kind, idx(outer_size)));
    value = loops.back() * inner_size;
  }
  if (inner_size > 1) {
    loops.push_back(range(chunks || outer_size == 1 ? id : fresh, inner_kind, idx(inner_size)));
    value = value + loops.back();
  }
  bool exact = outer_size * inner_size == n;
  return simplify(replace_loop(kernel, loop, value, loops, exact ? Ref() : value < n));
}

}  // namespace

std::string to_string(const Opt& opt) {
  constexpr const char* kNames[] = {"split", "upcast", "unroll", "lane", "thread", "padto", "reorder"};
  return std::string(kNames[static_cast<int>(opt.kind)]) + "(" + std::to_string(opt.loop) + ", " +
         std::to_string(opt.amount) + ")";
}

Ref apply(Ref kernel, const Opt& opt) {
  Ref loop = find_loop(kernel, opt.loop);
  RangeKind kind = loop.range_kind();
  bool output = kind == RangeKind::Loop, reduction = kind == RangeKind::Reduce;
  auto need = [&](bool fits) {
    if (!fits)
      throw ValueError("[option] " + to_string(opt) + " does not fit a " + std::string(name(kind)) +
                       " loop of " + std::to_string(loop.hi() + 1));
  };
  need(opt.kind == OptKind::Reorder || opt.amount > 0);
  switch (opt.kind) {
    case OptKind::Split:
      need(output || reduction);
      return split(kernel, loop, opt.amount, kind, kind, false);
    case OptKind::Upcast:
      need(output);
      return split(kernel, loop, opt.amount, kind, RangeKind::Upcast, false);
    case OptKind::Unroll:
      need(reduction);
      return split(kernel, loop, opt.amount, kind, RangeKind::Unroll, false);
    case OptKind::Lane:
      need(output || reduction);
      return split(kernel, loop, opt.amount, kind, RangeKind::Lane, false);
    case OptKind::Thread:
      need(output);
      return split(kernel, loop, opt.amount, RangeKind::Thread, kind, true);
    case OptKind::PadTo: {
      need((output || reduction) && loop.src(0).is_const());
      std::int64_t n = loop.src(0).i(), padded = (n + opt.amount - 1) / opt.amount * opt.amount;
      if (padded == n) return kernel;
      Ref wider = range(loop.range_id(), kind, idx(padded));
      return simplify(replace_loop(kernel, loop, wider, std::array<Ref, 1>{wider}, wider < n));
    }
    case OptKind::Reorder: {
      Refs srcs;
      absl::InlinedVector<std::pair<Ref, Ref>, 2> changed;
      for (Ref n : toposort(kernel)) {
        if (!n.is(Op::End) && !n.is(Op::Reduce)) continue;
        srcs.assign(n.srcs().begin(), n.srcs().end());
        std::size_t at = 0;
        while (at < srcs.size() && !same(srcs[at], loop)) ++at;
        if (at == srcs.size()) continue;
        srcs.erase(srcs.begin() + static_cast<std::ptrdiff_t>(at));
        srcs.insert(srcs.begin() + 1, loop);
        changed.emplace_back(n, make(n.op(), n.dtype(), n.lanes(), srcs, n->arg));
      }
      return substitute(kernel, changed);
    }
  }
  return kernel;
}

Ref merge_loops(Ref kernel) {
  for (bool again = true; again;) {
    again = false;
    Kernel k(kernel);
    auto mergeable = [&](std::size_t i, std::size_t j) {
      if (!k.loops[i].src(0).is_const() || !k.loops[j].src(0).is_const() || k.in_values[i] || k.in_values[j])
        return false;
      for (const Access& a : k.accesses) {
        const Stride &si = a.strides[i], &sj = a.strides[j];
        if (!si.regular || !sj.regular || a.gated[i] || a.gated[j]) return false;
        if (si.value != sj.value * k.extent(j)) return false;
      }
      return true;
    };
    for (std::size_t j = 1; j < k.loops.size() && !again; ++j) {
      std::size_t i = j - 1;
      if (j == k.outputs || k.is_reduce(i) != k.is_reduce(j)) continue;
      // Loops of a reduction must belong to the same one.
      if (k.is_reduce(j)) {
        bool together = true;
        for (Ref r : k.reduces) {
          int has = 0;
          for (Node* s : r.srcs()) has += s == k.loops[i].node() || s == k.loops[j].node();
          together &= has != 1;
        }
        if (!together) continue;
      }
      if (!mergeable(i, j)) continue;
      std::int64_t inner = k.extent(j);
      Ref merged = range(k.loops[i].range_id(), k.loops[i].range_kind(), idx(k.extent(i) * inner));
      kernel = replace_loop(kernel, k.loops[j], merged % inner, {}, nullptr);
      kernel = replace_loop(kernel, k.loops[i], merged / inner, std::array<Ref, 1>{merged}, nullptr);
      kernel = simplify(kernel);
      again = true;
    }
  }
  return kernel;
}

}  // namespace pg::codegen
