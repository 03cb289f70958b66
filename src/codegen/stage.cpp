#include "codegen/stage.h"

#include <algorithm>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

bool unrolls(Ref range) {
  RangeKind kind = range.range_kind();
  return kind == RangeKind::Upcast || kind == RangeKind::Unroll || kind == RangeKind::Lane;
}
// Work-items of a group, each at its own value of the range.
bool spans_items(Ref range) {
  RangeKind kind = range.range_kind();
  return kind == RangeKind::Local || kind == RangeKind::Warp || kind == RangeKind::GroupReduce;
}

Ref local(DType t, std::int64_t size, Fresh& fresh) {
  return make(Op::Local, t, {shape_node(Dims(&size, 1))}, Arg{.i = fresh.slot++});
}

// Of the element at a place: row by row, rows of `row` elements.
Ref offset(std::span<const Ref> dims, std::span<const Ref> at, std::int64_t row) {
  Ref sum = idx(0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    sum = sum * (i + 1 == dims.size() ? row : dims[i].src(0).hi()) + at[i];
  return sum;
}
std::int64_t size_of(std::span<const Ref> dims, std::int64_t row) {
  for (Ref d : dims.first(dims.size() - 1)) row *= d.src(0).hi();
  return row;
}

class Stager {
 public:
  Stager(Ref kernel, const Target& target)
      : target_(target),
        kernel_(kernel),
        fresh_(kernel),
        order_(toposort(kernel)),
        masks_(dependences(kernel_)) {
    for (Ref n : order_)
      if (is_group(n)) group_.push_back(n);
  }

  Ref run() {
    Refs srcs;
    for (Ref n : order_) {
      srcs.clear();
      bool changed = false;
      for (Node* s : n.srcs()) {
        srcs.push_back(now(s));
        changed |= srcs.back().node() != s;
      }
      if (n.is(Op::Stage))
        becomes_[n.node()] =
            panel(srcs[0], std::span(srcs).subspan(1), std::span(srcs).subspan(1), fresh_, target_);
      else if (n.is(Op::Reduce) && std::any_of(srcs.begin() + 1, srcs.end(), is_group))
        becomes_[n.node()] = shared(n, srcs);
      else if (n.is(Op::Store) && !group_.empty())
        becomes_[n.node()] = make(Op::Store, DType::Void, 1, Refs{by_first_item(srcs[0]), srcs[1]}, n->arg);
      else if (changed)
        becomes_[n.node()] = make(n.op(), n.dtype(), n.lanes(), srcs, n->arg);
    }
    return now(kernel_.sink);
  }

 private:
  static bool is_group(Ref n) { return n.is(Op::Range) && n.range_kind() == RangeKind::GroupReduce; }

  Ref now(Ref n) const {
    auto it = becomes_.find(n.node());
    return it == becomes_.end() ? n : it->second;
  }

  // Every item reduces its part and shares the result; then all of them add up all parts.
  Ref shared(Ref reduce, const Refs& srcs) {
    Refs part{srcs[0]}, items, fresh;
    for (std::size_t i = 1; i < srcs.size(); ++i) (is_group(srcs[i]) ? items : part).push_back(srcs[i]);
    Ref found = part.size() > 1 ? make(Op::Reduce, reduce.dtype(), 1, part, reduce->arg) : srcs[0];
    Refs dims(items), closes, read;
    for (bool unrolled : {false, true})
      for (Ref r : kernel_.loops)
        if (masks_.at(reduce.node()) >> kernel_.loop_of(r) & 1 && unrolls(r) == unrolled &&
            (unrolled || spans_items(r)))
          dims.push_back(r);
    for (Ref r : dims) {
      if (unrolls(r)) closes.push_back(r);
      read.push_back(is_group(r) ? range(fresh_.range++, RangeKind::Reduce, r.src(0)) : r);
      if (is_group(r)) fresh.push_back(read.back());
    }
    std::int64_t row = dims.back().src(0).hi();
    Ref memory = local(reduce.dtype(), size_of(dims, row), fresh_);
    Ref stored = make(Op::Store, DType::Void,
                      {make(Op::Index, reduce.dtype(), {memory, offset(dims, dims, row)}), found});
    if (!closes.empty()) {
      closes.insert(closes.begin(), stored);
      stored = make(Op::End, DType::Void, 1, closes);
    }
    Ref all = make(Op::After, reduce.dtype(), {memory, make(Op::Barrier, DType::Void, {stored})});
    Refs sum{
        make(Op::Load, reduce.dtype(), {make(Op::Index, reduce.dtype(), {all, offset(dims, read, row)})})};
    sum.insert(sum.end(), fresh.begin(), fresh.end());
    return make(Op::Reduce, reduce.dtype(), 1, sum, reduce->arg);
  }

  // Every item of the group has the result; one of them writes it.
  Ref by_first_item(Ref index) {
    Refs srcs(index.srcs().begin(), index.srcs().end());
    for (Ref r : group_) {
      Ref first = eq(r, idx(0));
      if (srcs.size() > 2)
        srcs[2] = srcs[2] & first;
      else
        srcs.push_back(first);
    }
    return make(Op::Index, index.dtype(), 1, srcs);
  }

  const Target& target_;
  Kernel kernel_;
  Fresh fresh_;
  std::vector<Ref> order_;
  absl::flat_hash_map<Node*, std::uint64_t> masks_;
  absl::flat_hash_map<Node*, Ref> becomes_;
  std::vector<Ref> group_;
};

}  // namespace

Fresh::Fresh(Ref kernel) {
  for (Ref n : toposort(kernel)) {
    if (n.is(Op::Range)) range = std::max(range, n.range_id() + 1);
    if (n.is(Op::Local)) slot = std::max(slot, n.i() + 1);
  }
}

Ref guarded(Ref value, Ref guard) {
  absl::InlinedVector<std::pair<Ref, Ref>, 2> loads;
  for (Ref n : toposort(value))
    if (n.is(Op::Load) && n.src(0).src(0).is(Op::Param)) {
      Ref index = n.src(0);
      Ref gate = index.nsrc() > 2 ? index.src(2) & guard : guard;
      Ref gated = make(Op::Index, index.dtype(), {index.src(0), index.src(1), gate});
      loads.emplace_back(index, gated);
    }
  return substitute(value, loads);
}

Ref panel(Ref value, std::span<const Ref> dims, std::span<const Ref> read, Fresh& fresh,
          const Target& target) {
  DType t = value.dtype();
  std::int64_t line = 64 / static_cast<std::int64_t>(itemsize(t)), row = dims.back().src(0).hi();
  // Rows that are a multiple of a page's fraction apart would share the sets of a cache.
  if (dims.size() > 1 && row % (4 * line) == 0) row += line;
  Refs closes, places;
  absl::InlinedVector<std::pair<Ref, Ref>, 8> at;
  Ref guard;
  for (Ref r : dims) {
    RangeKind kind = r.range_kind() == RangeKind::Unroll ? RangeKind::Upcast
                     : unrolls(r)                        ? r.range_kind()
                                                         : RangeKind::Loop;
    std::int64_t lanes = target.lanes_of(t), n = r.src(0).hi();
    if (same(r, dims.back()) && kind == RangeKind::Loop && r.src(0).is_const() && lanes > 1 && n >= lanes) {
      // By vectors.
      closes.push_back(range(fresh.range++, RangeKind::Loop, idx((n + lanes - 1) / lanes)));
      closes.push_back(range(fresh.range++, RangeKind::Lane, idx(lanes)));
      places.push_back(closes[closes.size() - 2] * lanes + closes.back());
      if (n % lanes) guard = places.back() < n;
    } else {
      closes.push_back(range(fresh.range++, kind, r.src(0)));
      places.push_back(closes.back());
    }
    at.emplace_back(r, places.back());
  }
  Ref memory = local(t, size_of(dims, row), fresh);
  Refs index{memory, offset(dims, places, row)};
  if (guard) index.push_back(guard);
  Ref filling = substitute(value, at);
  if (guard) filling = guarded(filling, guard);
  Refs effects{make(Op::Store, DType::Void, {make(Op::Index, t, 1, index), filling})};
  effects.insert(effects.end(), closes.begin(), closes.end());
  Ref filled = make(Op::After, t, {memory, make(Op::End, DType::Void, 1, effects)});
  return make(Op::Load, t, {make(Op::Index, t, {filled, offset(dims, read, row)})});
}

Ref fill_row(Ref value, std::span<const Ref> loops, Fresh& fresh) {
  std::int64_t row = loops.back().src(0).hi();
  Ref memory = local(value.dtype(), size_of(loops, row), fresh);
  Refs end{make(Op::Store, DType::Void,
                {make(Op::Index, value.dtype(), {memory, offset(loops, loops, row)}), value})};
  end.insert(end.end(), loops.begin(), loops.end());
  return make(Op::After, value.dtype(), {memory, make(Op::End, DType::Void, 1, end)});
}

Ref read_row(Ref filled, DType t, std::span<const Ref> loops, std::span<const Ref> at) {
  return make(Op::Load, t, {make(Op::Index, t, {filled, offset(loops, at, loops.back().src(0).hi())})});
}

Ref lower_stages(Ref kernel, const Target& target) {
  for (Ref n : toposort(kernel))
    if (n.is(Op::Stage) || (n.is(Op::Range) && n.range_kind() == RangeKind::GroupReduce))
      return Stager(kernel, target).run();
  return kernel;
}

}  // namespace pg::codegen
