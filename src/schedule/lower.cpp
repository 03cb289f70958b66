// From plans to kernel graphs: every entry becomes a scalar expression of its kernel's ranges; every kernel a
// Sink with Params and ranges numbered by first use, so that equal kernels are equal nodes.
#include <algorithm>
#include <array>

#include "rewrite/rewrite.h"
#include "rules/gates.h"
#include "schedule/plan.h"

namespace pg::schedule {
namespace {

Ref flat_param(int slot, const BufferInfo& buffer) {
  std::int64_t size[1] = {buffer.size};
  return param(slot, buffer.dtype, shape_node(Dims(size)));
}

Ref address(Ref buffer, Ref offset, Ref valid) {
  return valid.is_const(1) ? make(Op::Index, buffer.dtype(), {buffer, offset})
                           : make(Op::Index, buffer.dtype(), {buffer, offset, valid});
}

bool is_scalar_argument(Ref n) { return n.is(Op::Bind) || n.is(Op::ScalarParam) || n.is(Op::Var); }

// A call of the kernel: its arguments in order of first use, what it writes first; ranges are numbered by
// use, too.
Ref call_of(Ref root) {
  std::vector<std::pair<Ref, Ref>> renamed;
  absl::InlinedVector<Ref, 8> buffers, scalars;
  auto rename_buffer = [&](Ref p) {
    renamed.emplace_back(p, param(static_cast<std::int64_t>(buffers.size()), p.dtype(), p.src(0)));
    buffers.push_back(p);
  };
  auto named = [&](Ref p) {
    return std::any_of(renamed.begin(), renamed.end(), [&](auto& r) { return same(r.first, p); });
  };
  for (Node* end : root.srcs())
    if (Ref out = Ref(end).src(0).src(0).src(0); !named(out)) rename_buffer(out);
  std::int64_t next_range = 0;
  for (Ref n : toposort(root)) {
    if (n.is(Op::Param) && !named(n)) rename_buffer(n);
    if (is_scalar_argument(n)) {
      renamed.emplace_back(
          n, scalar_param(static_cast<std::int64_t>(scalars.size()), n.dtype(), n.lo(), n.hi()));
      scalars.push_back(n);
    }
  }
  for (Ref n : toposort(root))
    if (n.is(Op::Range)) {
      Ref extent = substitute(n.src(0), renamed);
      renamed.emplace_back(n, range(next_range++, n.range_kind(), extent));
    }
  absl::InlinedVector<Ref, 12> call{substitute(root, renamed)};
  call.insert(call.end(), buffers.begin(), buffers.end());
  call.insert(call.end(), scalars.begin(), scalars.end());
  return make(Op::Call, DType::Void, 1, call);
}

}  // namespace

Ref Planner::load(const Entry& e) {
  int slot = buffer_.at(e.node.node());
  Ref at = address(flat_param(slot, buffers_[static_cast<std::size_t>(slot)]),
                   flatten(shape_of(e.node), e.index), e.index.valid);
  return make(Op::Load, e.node.dtype(), {at});
}

Ref Planner::lower(const Entry& e) {
  if (e.load) return load(e);
  Ref n = e.node;
  auto value = [&](std::size_t i) { return entries_[static_cast<std::size_t>(e.children[i])].value; };
  auto zero = [&] { return const_like(n, 0); };
  if (n.is(Op::Bitcast) && itemsize(n.dtype()) != itemsize(n.src(0).dtype())) return regroup(e);
  if (n.has(kElementwise)) {
    absl::InlinedVector<Ref, 3> srcs;
    for (std::size_t i = 0; i < e.children.size(); ++i) srcs.push_back(value(i));
    return make(n.op(), n.dtype(), 1, srcs, n->arg);
  }
  switch (n.op()) {
    case Op::Const:
    case Op::Bind:
    case Op::ScalarParam:
      return n;
    case Op::Arange:
      return cast(e.index.at[0], n.dtype());
    case Op::Pad:
      return where(entries_[static_cast<std::size_t>(e.children[0])].index.valid, value(0), zero());
    case Op::Reduce: {
      if (e.ranges.empty()) return value(0);
      for (Ref r : e.ranges)
        if (r.src(0).is_const(0)) return scalar_const(n.dtype(), identity_of(n.reduce_op(), n.dtype()));
      absl::InlinedVector<Ref, 5> srcs{value(0)};
      srcs.insert(srcs.end(), e.ranges.begin(), e.ranges.end());
      return make(Op::Reduce, n.dtype(), 1, srcs, reduce_arg(n.reduce_op()));
    }
    case Op::Index: {
      // Now that the row is known, it takes the place of what stood for it.
      const Entry& x = entries_[static_cast<std::size_t>(e.children[1])];
      std::pair<Ref, Ref> row[1] = {{e.row, cast(value(0), DType::WeakInt)}};
      return where(substitute(x.index.valid, row), substitute(value(1), row), zero());
    }
    case Op::Cat: {
      Ref out = zero();
      for (std::size_t i = e.children.size(); i-- > 0;)
        out = where(entries_[static_cast<std::size_t>(e.children[i])].index.valid, value(i), out);
      return out;
    }
    default:
      return value(0);
  }
}

// A bitcast between element sizes, in integers: a part of the wide element, or the narrow ones side by side
// (little endian).
Ref Planner::regroup(const Entry& e) {
  auto bits = [](DType t) {
    return itemsize(t) == 1 ? u8 : itemsize(t) == 2 ? u16 : itemsize(t) == 4 ? u32 : u64;
  };
  auto as_bits = [&](Ref v) { return v.dtype() == DType::Bool ? cast(v, u8) : bitcast(v, bits(v.dtype())); };
  DType to = e.node.dtype(), from = e.node.src(0).dtype(),
        wide = itemsize(to) < itemsize(from) ? bits(from) : bits(to);
  auto unit = static_cast<std::int64_t>(std::min(itemsize(to), itemsize(from))) * 8;
  auto value = [&](std::size_t k) {
    return as_bits(entries_[static_cast<std::size_t>(e.children[k])].value);
  };
  Ref out;
  if (itemsize(to) < itemsize(from)) {
    Ref part = e.index.at.back() % static_cast<std::int64_t>(itemsize(from) / itemsize(to));
    out = cast(value(0) >> (cast(part, wide) * int_const(wide, unit)), bits(to));
  } else {
    for (std::size_t k = 0; k < e.children.size(); ++k) {
      Ref piece = cast(value(k), wide) << int_const(wide, unit * static_cast<std::int64_t>(k));
      out = out ? out | piece : piece;
    }
  }
  return to == DType::Bool ? ne(out, int_const(u8, 0)) : bitcast(out, to);
}

Work Planner::work_of(const KernelPlan& kernel) {
  auto as_argument = [&](int slot) {
    const BufferInfo& b = buffers_[static_cast<std::size_t>(slot)];
    return flat_param(slot, b);
  };
  if (kernel.copy_of) {
    int from = buffer_.at(kernel.copy_of.node());
    Ref copy = make(Op::Copy, kernel.node.dtype(), {as_argument(from)}, kernel.node->arg);
    return {.root = make(Op::Call, DType::Void, {copy, as_argument(kernel.buffer), as_argument(from)}),
            .device = kernel.device,
            .reads = {from},
            .writes = {kernel.buffer}};
  }
  Ref out = flat_param(kernel.buffer, buffers_[static_cast<std::size_t>(kernel.buffer)]);
  Ref value = entries_[static_cast<std::size_t>(kernel.value)].value;
  Ref offset = flatten(kernel.target_shape, kernel.target);
  if (kernel.store_dtype != DType::Void) {
    const BufferInfo& b = buffers_[static_cast<std::size_t>(kernel.buffer)];
    auto had = static_cast<std::int64_t>(itemsize(b.dtype)),
         has = static_cast<std::int64_t>(itemsize(kernel.store_dtype));
    out = flat_param(kernel.buffer, {kernel.store_dtype, b.size * had / has, b.device});
    offset = has <= had ? offset * (had / has) + kernel.part : offset / (has / had);
  }
  Ref store = make(Op::Store, DType::Void, {address(out, offset, kernel.target.valid), value});
  absl::InlinedVector<Ref, 8> end{store};
  end.insert(end.end(), kernel.ranges.begin(), kernel.ranges.end());
  Ref root = sink(std::array<Ref, 1>{make(Op::End, DType::Void, 1, end)});
  root = rewrite(root, rules::kernels(), {.name = "simplify kernel", .optional = true});
  Work work{.root = root, .device = kernel.device, .next_range = kernel.next_range};
  collect(work);
  work.own_loops |= kernel.scatters;
  return work;
}

Schedule Planner::finish(const std::vector<int>& order) {
  for (std::size_t i = entries_.size(); i-- > 0;) {
    // Entries of a lower number use those of higher ones, save where one was shared; those are done on
    // demand.
    if (entries_[i].value) continue;
    std::vector<std::size_t> stack{i};
    while (!stack.empty()) {
      std::size_t at = stack.back();
      bool ready = true;
      if (!entries_[at].load)
        for (int c : entries_[at].children)
          if (!entries_[static_cast<std::size_t>(c)].value) {
            stack.push_back(static_cast<std::size_t>(c));
            ready = false;
          }
      if (!ready) continue;
      stack.pop_back();
      if (!entries_[at].value) entries_[at].value = lower(entries_[at]);
    }
  }
  Schedule out;
  std::vector<Work> works;
  for (int k : order) {
    const KernelPlan& kernel = kernels_[static_cast<std::size_t>(k)];
    // A write of no elements is no work.
    bool nothing =
        std::any_of(kernel.ranges.begin(), kernel.ranges.end(), [](Ref r) { return r.src(0).is_const(0); });
    if (!nothing) works.push_back(work_of(kernel));
  }
  if (targets_) merge_kernels(works, targets_);
  absl::flat_hash_set<std::int64_t> kept;
  for (std::size_t i = 0; i < params_; ++i) kept.insert(static_cast<std::int64_t>(i));
  for (Ref r : roots_)
    if (auto it = buffer_.find(r.node()); it != buffer_.end()) kept.insert(it->second);
  drop_dead_stores(works, std::move(kept));
  absl::InlinedVector<Ref, 16> calls;
  for (const Work& w : works) {
    if (!w.root.is(Op::Sink))
      calls.push_back(w.root);
    else if (w.root.nsrc() > 1)
      calls.push_back(call_of(w.root));
    else
      for (Ref part : in_phases(w.root)) calls.push_back(call_of(part));
  }
  out.linear = make(Op::Linear, DType::Void, 1, calls);
  out.buffers = buffers_;
  out.params = params_;
  for (Ref r : roots_) {
    auto it = buffer_.find(r.node());
    out.outputs.push_back(it == buffer_.end() ? -1 : it->second);
  }
  plan_memory(out);
  return out;
}

}  // namespace pg::schedule
