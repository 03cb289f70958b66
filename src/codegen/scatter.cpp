#include "codegen/scatter.h"

#include <algorithm>

#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/stage.h"
#include "rules/sum.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;
using Becomes = absl::InlinedVector<std::pair<Ref, Ref>, 8>;

struct Found {
  Ref store, reduce;
  Ref begins;  // what an element is before any value joins it
  Ref loop;    // of the output, named by
  Ref name;    // the integer that its variable equals; of the reduction's loops
  Refs gates;  // what else must hold
  Ref value;
};

// Whether `cond` says that a loop of the output equals something else.
bool says_name(const Kernel& k, const absl::flat_hash_map<Node*, std::uint64_t>& masks, Ref cond,
               Found& out) {
  if (!cond.is(Op::CmpEq)) return false;
  for (int side : {0, 1}) {
    Ref at = cond.src(side), name = cond.src(1 - side);
    if (at.is(Op::Cast) && at.src(0).dtype() == DType::WeakInt) {
      DType t = at.dtype();
      at = at.src(0);
      if (at.lo() < int_min(t) || (t != u64 && at.hi() > int_max(t))) continue;
    }
    if (at.dtype() != DType::WeakInt) continue;
    std::vector<Stride> strides(k.loops.size());
    collect_strides(at, 1, k, masks, strides);
    int loop = -1;
    bool one = true;
    for (std::size_t i = 0; i < k.body; ++i) {
      if (!(masks.at(at.node()) >> i & 1) || k.loops[i].range_kind() == RangeKind::Thread) continue;
      one &= loop < 0 && i < k.outputs && k.loops[i].range_kind() == RangeKind::Loop && strides[i].regular &&
             strides[i].value == 1;
      loop = static_cast<int>(i);
    }
    std::uint64_t of_name = masks.at(name.node());
    if (!one || loop < 0 || of_name >> loop & 1 || !(of_name >> k.outputs)) continue;
    out.loop = k.loops[static_cast<std::size_t>(loop)];
    Becomes none{{out.loop, idx(0)}};
    out.name = cast(name, DType::WeakInt) - substitute(at, none);
    return true;
  }
  return false;
}

Found find(const Kernel& k) {
  Found out;
  Ref end = k.sink.src(0);
  if (k.sink.nsrc() != 1 || k.reduces.size() != 1 || k.body != k.loops.size() || !end.src(0).is(Op::Store) ||
      end.nsrc() < 2 || !end.src(1).is(Op::Range))
    return {};
  out.store = end.src(0);
  out.reduce = k.reduces[0];
  Ref stored = out.store.src(1), index = out.store.src(0);
  DType t = out.reduce.dtype();
  Ref nothing = scalar_const(t, identity_of(out.reduce.reduce_op(), t));
  for (Ref loop : k.loops)
    if (loop.range_kind() == RangeKind::Unroll) return {};
  if (!index.src(0).is(Op::Param)) return {};
  // Alone, or joined by one thing more, which the places then begin with.
  if (same(stored, out.reduce)) {
    out.begins = nothing;
  } else if (stored.is(out.reduce.reduce_op()) && stored.nsrc() == 2) {
    for (int i : {0, 1})
      if (same(stored.src(i), out.reduce) && !stands_on(stored.src(1 - i), out.reduce))
        out.begins = stored.src(1 - i);
  }
  if (!out.begins) return {};
  auto masks = dependences(k);
  for (Ref v = out.reduce.src(0);; v = v.src(1)) {
    // Nothing joins where the name is another. In a maximum that may be a constant no value is below.
    bool idle = v.is(Op::Where) && v.src(2).is_const() &&
                (same(v.src(2), nothing) ||
                 (out.reduce.reduce_op() == Op::Max && is_int(t) && v.src(1).lo() >= v.src(2).lo()));
    if (!idle) {
      out.value = v;
      // Whether any of them names it.
      if (t == DType::Bool && out.reduce.reduce_op() == Op::Max && !out.loop) {
        for (Ref cond : rules::chain_of(Op::And, v))
          if (out.loop || !says_name(k, masks, cond, out)) out.gates.push_back(cond);
        out.value = bool_const(true);
      }
      break;
    }
    for (Ref cond : rules::chain_of(Op::And, v.src(0)))
      if (out.loop || !says_name(k, masks, cond, out)) out.gates.push_back(cond);
    if (!same(v.src(2), nothing)) {
      if (!same(out.begins, nothing)) return {};
      out.begins = v.src(2);
    }
  }
  if (!out.loop) return {};
  // What is overwritten may be read at the place that begins with it, and nowhere else.
  for (const Access& a : k.accesses)
    if (!a.store && slot_of(a) == index.src(0).i() &&
        (!same(a.index, index) || !stands_on(out.begins, a.index) || stands_on(out.reduce, a.index)))
      return {};
  return out;
}

Ref copy_of(Ref loop, RangeKind kind, Fresh& fresh) { return range(fresh.range++, kind, loop.src(0)); }

// What every element begins with, stored: by vectors if the kernel has none.
Ref begin(const Kernel& k, const Found& f, Fresh& fresh, const Target& target) {
  Refs closes;
  Becomes becomes;
  Ref guard, index = f.store.src(0);
  DType t = f.reduce.dtype();
  double bytes = static_cast<double>(itemsize(t));
  bool has_lanes = false;
  std::size_t last = k.outputs;
  for (std::size_t i = 0; i < k.outputs; ++i) {
    bytes *= static_cast<double>(k.extent(i));
    has_lanes |= k.loops[i].range_kind() == RangeKind::Lane;
    if (k.loops[i].range_kind() == RangeKind::Loop) last = i;
  }
  std::vector<Stride> strides(k.loops.size());
  collect_strides(index.src(1), 1, k, dependences(k), strides);
  for (std::size_t i = 0; i < k.outputs; ++i) {
    Ref loop = k.loops[i];
    if (loop.range_kind() == RangeKind::Thread) continue;
    std::int64_t lanes = target.lanes_of(t);
    if (i == last && !has_lanes && loop.src(0).is_const() && k.extent(i) >= lanes && lanes > 1 &&
        strides[i].regular && strides[i].value == 1) {
      std::int64_t n = k.extent(i);
      closes.push_back(range(fresh.range++, RangeKind::Loop, idx((n + lanes - 1) / lanes)));
      closes.push_back(range(fresh.range++, RangeKind::Lane, idx(lanes)));
      Ref at = closes[closes.size() - 2] * lanes + closes.back();
      if (n % lanes) guard = at < n;
      becomes.emplace_back(loop, at);
    } else {
      closes.push_back(copy_of(loop, loop.range_kind(), fresh));
      becomes.emplace_back(loop, closes.back());
    }
  }
  bool read = std::any_of(k.accesses.begin(), k.accesses.end(),
                          [&](const Access& a) { return !a.store && same(a.index, index); });
  Ref value = substitute(f.begins, becomes), to = substitute(index, becomes);
  if (guard) {
    to = make(Op::Index, to.dtype(), {to.src(0), to.src(1), to.nsrc() > 2 ? to.src(2) & guard : guard});
    value = guarded(value, guard);
  }
  bool streams = target.stream_bytes && bytes >= static_cast<double>(target.stream_bytes) && !read;
  Refs effects{make(Op::Store, DType::Void, {to, value}, Arg{.i = streams ? kStreams : 0})};
  effects.insert(effects.end(), closes.begin(), closes.end());
  return make(Op::End, DType::Void, 1, effects);
}

}  // namespace

Ref named_loop(Ref kernel) { return find(Kernel(kernel)).loop; }

Ref scatter(Ref kernel, Ref loop, const Target& target) {
  Kernel k(kernel);
  Found f = find(k);
  if (!f.loop || !same(f.loop, loop)) return nullptr;
  Fresh fresh(kernel);
  Ref index = f.store.src(0),
      begun = make(Op::After, index.dtype(), {index.src(0), begin(k, f, fresh, target)});
  // The loops before the one that is named, those of the reduction in order, and the rest.
  Refs closes;
  Becomes becomes;
  for (std::size_t i = 0; i < k.outputs; ++i) {
    if (!same(k.loops[i], loop)) {
      closes.push_back(k.loops[i]);
      continue;
    }
    for (int r = 1; r < f.reduce.nsrc(); ++r) {
      closes.push_back(copy_of(f.reduce.src(r), RangeKind::Loop, fresh));
      becomes.emplace_back(f.reduce.src(r), closes.back());
    }
  }
  Ref name = substitute(f.name, becomes);
  Ref there = ge(name, idx(0)) & (name < loop.src(0));
  becomes.emplace_back(loop, name);
  for (Ref g : f.gates) there = there & substitute(g, becomes);
  if (index.nsrc() > 2) there = there & substitute(index.src(2), becomes);
  Ref at = make(Op::Index, index.dtype(), {begun, substitute(index.src(1), becomes), there});
  Ref joined = alu(f.reduce.reduce_op(), {make(Op::Load, index.dtype(), {at}), substitute(f.value, becomes)});
  closes.insert(closes.begin(), make(Op::Store, DType::Void, {at, joined}));
  Ref ends[] = {make(Op::End, DType::Void, 1, closes)};
  return make(Op::Sink, DType::Void, 1, ends, k.sink->arg);
}

}  // namespace pg::codegen
