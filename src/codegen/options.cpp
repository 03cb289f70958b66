#include "codegen/options.h"

#include <algorithm>
#include <array>
#include <bit>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/scatter.h"
#include "codegen/sweep.h"
#include "codegen/window.h"
#include "ir/wmma.h"
#include "rewrite/rewrite.h"
#include "rules/symbolic.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

// Of the output or of a reduction; not those that fill panels.
Ref find_loop(Ref kernel, std::int64_t id) {
  auto closed_by = [id](Ref n) -> Ref {
    for (Node* s : n.srcs())
      if (s->op == Op::Range && Ref(s).range_id() == id) return s;
    return nullptr;
  };
  for (Node* end : kernel.srcs())
    if (Ref loop = closed_by(end)) return loop;
  for (Ref n : toposort(kernel))
    if (n.is(Op::Reduce))
      if (Ref loop = closed_by(n)) return loop;
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
      if (s == loop.node() && (n.is(Op::Reduce) || n.is(Op::End)) && !srcs.empty()) {
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

[[noreturn]] void refuse(const Opt& opt, const std::string& why) {
  throw ValueError("[option] " + to_string(opt) + ": " + why);
}

// loop -> outer * amount + inner, the inner part shared by the items of a group. Several reductions of a
// kernel share one range of items.
Ref group(Ref kernel, Ref loop, const Opt& opt) {
  Kernel k(kernel);
  auto mine = static_cast<std::size_t>(k.loop_of(loop));
  auto masks = dependences(k);
  Ref items;
  for (Ref n : toposort(kernel)) {
    if (n.is(Op::Range) && n.range_kind() == RangeKind::GroupReduce) items = n;
    if (!n.is(Op::Reduce)) continue;
    bool has = std::any_of(n.srcs().begin(), n.srcs().end(), [&](Node* s) { return s == loop.node(); });
    if (has && masks.at(n.node()) >> k.outputs) refuse(opt, "the reduction stands inside another");
    if (!has && masks.at(n.node()) >> mine & 1) refuse(opt, "there is a reduction inside");
  }
  if (items && items.src(0).i() != opt.amount) refuse(opt, "groups of another size are in use");
  Ref wide = split(kernel, loop, opt.amount, RangeKind::Reduce, RangeKind::GroupReduce, false);
  if (!items) return wide;
  Ref fresh;
  for (Ref n : toposort(wide))
    if (n.is(Op::Range) && n.range_kind() == RangeKind::GroupReduce && !same(n, items)) fresh = n;
  absl::InlinedVector<std::pair<Ref, Ref>, 1> one{{fresh, items}};
  return fresh ? substitute(wide, one) : wide;
}

// --- matrix units

// A sum of products of two factors of dtype `in`, computed in `out`; under a guard both factors are 0 where
// it is false.
bool factors(Ref reduce, const TensorCore& core, Ref& a, Ref& b) {
  if (reduce.reduce_op() != Op::Add || reduce.dtype() != core.out) return false;
  Ref value = reduce.src(0), guard;
  if (value.is(Op::Where) && value.src(2).is_const(0)) guard = value.src(0), value = value.src(1);
  if (!value.is(Op::Mul)) return false;
  a = value.src(0), b = value.src(1);
  for (Ref* f : {&a, &b}) {
    if (!f->is(Op::Cast) || f->src(0).dtype() != core.in) return false;
    *f = f->src(0);
    if (guard) *f = where(guard, *f, scalar_const(core.in, float_scalar(0)));
  }
  return true;
}

// The loop along which the output lies in memory.
int stored_along(const Kernel& k) {
  for (const Access& a : k.accesses)
    if (a.store)
      for (std::size_t i = k.outputs; i-- > 0;)
        if (a.strides[i].regular && a.strides[i].value == 1) return static_cast<int>(i);
  return -1;
}

Ref tensor_core(Ref kernel, Ref loop, const Opt& opt, const Target& target) {
  const TensorCore& core = target.tensor_cores[static_cast<std::size_t>(opt.amount)];
  MatrixLoops m = matrix_loops(kernel, loop, core);
  if (!m.reduce) refuse(opt, "no product of two matrices over the loop");
  for (auto [r, size] : {std::pair(m.m, core.m), std::pair(m.n, core.n), std::pair(m.k, core.k)})
    if (!r.src(0).is_const() || r.src(0).i() % size) refuse(opt, "sizes that the unit's do not divide");
  std::int64_t warp = target.warp, lanes = static_cast<std::int64_t>(core.m) * core.n / warp,
               fresh = fresh_id(kernel);
  if (core.m * core.k != lanes * warp || core.k * core.n != lanes * warp)
    refuse(opt, "a unit whose matrices differ in size");
  Ref item = range(fresh, RangeKind::Warp, idx(warp)), lane = range(fresh + 1, RangeKind::Lane, idx(lanes));
  Ref at = item * lanes + lane;  // in a matrix, row by row
  auto tiles = [&](Ref r, int size) { return range(r.range_id(), r.range_kind(), idx(r.src(0).i() / size)); };
  Ref mo = tiles(m.m, core.m), no = tiles(m.n, core.n), ko = tiles(m.k, core.k);
  auto put = [&](Ref x, Ref row, Ref row_tile, int rows, Ref column, Ref column_tile, int columns) {
    absl::InlinedVector<std::pair<Ref, Ref>, 2> to{{row, row_tile * rows + at / columns},
                                                   {column, column_tile * columns + at % columns}};
    return substitute(x, to);
  };
  Ref a = put(m.a, m.m, mo, core.m, m.k, ko, core.k), b = put(m.b, m.k, ko, core.k, m.n, no, core.n);
  Refs sum{wmma(a, b, scalar_const(core.out, float_scalar(0)), core)};
  for (int i = 1; i < m.reduce.nsrc(); ++i) sum.push_back(same(m.reduce.src(i), m.k) ? ko : m.reduce.src(i));
  Ref product = make(Op::Reduce, core.out, 1, sum, m.reduce->arg);
  // The rest of the kernel with the product in place, in tiles.
  Ref mark = make(Op::Local, core.out, {idx(1)}, Arg{.i = fresh});
  absl::InlinedVector<std::pair<Ref, Ref>, 1> out{{m.reduce, mark}}, in{{mark, product}};
  Ref rest = substitute(kernel, out);
  rest = replace_loop(rest, m.m, mo * core.m + at / core.n, std::array<Ref, 2>{mo, item}, nullptr);
  rest = replace_loop(rest, m.n, no * core.n + at % core.n, std::array<Ref, 2>{no, lane}, nullptr);
  return simplify(substitute(rest, in));
}

// --- panels

// What is computed from one load alone, step by step up from it.
Ref alone(Ref load, std::span<const Ref> order) {
  absl::flat_hash_set<Node*> others;
  Ref top = load;
  absl::flat_hash_map<Node*, int> users;
  for (Ref n : order)
    for (Node* s : n.srcs()) ++users[s];
  for (Ref n : order) {
    if (!same(n, load) && (n.is(Op::Load) || n.is(Op::Reduce))) others.insert(n.node());
    bool mixes = false, stands_on = false;
    for (Node* s : n.srcs()) {
      mixes |= others.contains(s);
      stands_on |= s == top.node();
    }
    if (mixes) others.insert(n.node());
    if (stands_on && !mixes && n.has(kElementwise) && n.dtype() != DType::Bool && users[top.node()] == 1)
      top = n;
  }
  return top;
}

Ref stage(Ref kernel, const Opt& opt) {
  Kernel k(kernel);
  auto order = toposort(kernel);
  auto masks = dependences(k);
  std::size_t scope = 0;  // loops before this one stand outside
  if (opt.loop != kWholeKernel) {
    while (scope < k.outputs && k.loops[scope].range_id() != opt.loop) ++scope;
    if (scope == k.outputs) refuse(opt, "the kernel has no such output loop");
    ++scope;
  }
  absl::InlinedVector<std::pair<Ref, Ref>, 2> staged;
  for (Ref n : order) {
    if (!n.is(Op::Load) || !n.src(0).src(0).is(Op::Param) || n.src(0).src(0).i() != opt.amount) continue;
    Ref value = alone(n, order);
    Refs srcs{value};
    auto add = [&](std::initializer_list<RangeKind> kinds) {
      for (std::size_t i = 0; i < k.loops.size(); ++i) {
        RangeKind kind = k.loops[i].range_kind();
        if (masks.at(value.node()) >> i & 1 && std::find(kinds.begin(), kinds.end(), kind) != kinds.end() &&
            (kind != RangeKind::Loop || i >= scope))
          srcs.push_back(k.loops[i]);
      }
    };
    add({RangeKind::Loop});
    add({RangeKind::Reduce, RangeKind::Unroll});
    add({RangeKind::Upcast});
    add({RangeKind::Lane});
    if (srcs.size() == 1) refuse(opt, "nothing there is read twice");
    // Without lanes the panel lies as its source does, so that it is filled by whole vectors.
    if (srcs.back().range_kind() != RangeKind::Lane) {
      auto access = std::find_if(k.accesses.begin(), k.accesses.end(),
                                 [&](const Access& a) { return !a.store && same(a.index, n.src(0)); });
      for (std::size_t i = 1; i + 1 < srcs.size(); ++i) {
        const Stride& stride = access->strides[static_cast<std::size_t>(k.loop_of(srcs[i]))];
        if (stride.regular && stride.value == 1) {
          std::rotate(srcs.begin() + static_cast<std::ptrdiff_t>(i),
                      srcs.begin() + static_cast<std::ptrdiff_t>(i) + 1, srcs.end());
          break;
        }
      }
    }
    staged.emplace_back(value,
                        make(Op::Stage, value.dtype(), 1, srcs, Arg{.i = static_cast<int>(Place::Scratch)}));
  }
  if (staged.empty()) refuse(opt, "no buffer in that slot is read");
  return substitute(kernel, staged);
}

Ref stream(Ref kernel, const Opt& opt) {
  absl::InlinedVector<std::pair<Ref, Ref>, 2> stores;
  for (Ref n : toposort(kernel)) {
    if (!n.is(Op::Load) && !n.is(Op::Store)) continue;
    Ref buffer = n.src(0).src(0);
    if (!buffer.is(Op::Param) || buffer.i() != opt.amount) continue;
    if (n.is(Op::Load)) refuse(opt, "the buffer is read as well");
    stores.emplace_back(n, make(Op::Store, DType::Void, {n.src(0), n.src(1)}, Arg{.i = kStreams}));
  }
  if (stores.empty()) refuse(opt, "no buffer in that slot is written");
  return substitute(kernel, stores);
}

// Offsets that lie in the buffer whatever the gate says.
bool always_there(Ref index) {
  Ref buffer = index.src(0);
  return buffer.is(Op::Param) && is_concrete(buffer.src(0)) && index.src(1).lo() >= 0 &&
         index.src(1).hi() < numel(buffer.src(0));
}

}  // namespace

MatrixLoops matrix_loops(Ref kernel, Ref k_loop, const TensorCore& core) {
  Kernel k(kernel);
  MatrixLoops out;
  int along = stored_along(k);
  if (along < 0) return {};
  for (Ref r : k.reduces) {
    if (std::none_of(r.srcs().begin() + 1, r.srcs().end(), [&](Node* s) { return s == k_loop.node(); }))
      continue;
    Ref a, b;
    if (out.reduce || !factors(r, core, a, b)) return {};
    auto mask_of = [&](Ref x) {
      std::uint64_t mask = 0;
      for (Ref n : toposort(x))
        if (n.is(Op::Range))
          if (int i = k.loop_of(n); i >= 0) mask |= std::uint64_t{1} << i;
      return mask & ((std::uint64_t{1} << k.outputs) - 1);
    };
    std::uint64_t in_a = mask_of(a), in_b = mask_of(b);
    if (in_a >> along & 1) std::swap(a, b), std::swap(in_a, in_b);
    if (in_a >> along & 1 || !(in_b >> along & 1)) return {};
    std::uint64_t only_a = in_a & ~in_b;
    if (!only_a) return {};
    auto m = static_cast<std::size_t>(std::bit_width(only_a) - 1);
    if (k.loops[m].range_kind() != RangeKind::Loop ||
        k.loops[static_cast<std::size_t>(along)].range_kind() != RangeKind::Loop)
      return {};
    out = {r, a, b, k.loops[m], k.loops[static_cast<std::size_t>(along)], k_loop};
  }
  return out;
}

std::string to_string(const Opt& opt) {
  constexpr const char* kNames[] = {"split", "upcast",  "unroll", "lane",    "thread",
                                    "padto", "reorder", "local",  "group",   "tensor core",
                                    "stage", "window",  "sweep",  "scatter", "stream"};
  return std::string(kNames[static_cast<int>(opt.kind)]) + "(" + std::to_string(opt.loop) + ", " +
         std::to_string(opt.amount) + ")";
}

Ref apply(Ref kernel, const Opt& opt, const Target& target) {
  if (opt.kind == OptKind::Stage) return stage(kernel, opt);
  if (opt.kind == OptKind::Stream) return stream(kernel, opt);
  if (opt.kind == OptKind::Window) {
    Window w = window(kernel, opt.amount, target);
    if (!w.kernel) refuse(opt, "no box is read step by step behind gates");
    return w.kernel;
  }
  Ref loop = find_loop(kernel, opt.loop);
  RangeKind kind = loop.range_kind();
  bool output = kind == RangeKind::Loop, reduction = kind == RangeKind::Reduce;
  auto need = [&](bool fits) {
    if (!fits)
      throw ValueError("[option] " + to_string(opt) + " does not fit a " + std::string(name(kind)) +
                       " loop of " + std::to_string(loop.hi() + 1));
  };
  if (opt.kind == OptKind::Upcast || opt.kind == OptKind::Lane || opt.kind == OptKind::Local) {
    Kernel k(kernel);
    if (k.pinned >> k.loop_of(loop) & 1) refuse(opt, "a panel is filled in each turn of the loop");
    auto body = std::span(k.loops).first(k.body);
    if (opt.kind == OptKind::Lane &&
        std::any_of(body.begin(), body.end(), [](Ref r) { return r.range_kind() == RangeKind::Lane; }))
      for (auto masks = dependences(k); auto& [node, mask] : masks) {
        if (!(mask >> k.loop_of(loop) & 1)) continue;
        for (std::size_t i = 0; i < k.body; ++i)
          if (mask >> i & 1 && k.loops[i].range_kind() == RangeKind::Lane)
            refuse(opt, "what moves with the loop has its lanes");
      }
  }
  need(opt.kind == OptKind::Reorder || opt.kind == OptKind::TensorCore || opt.kind == OptKind::Scatter ||
       opt.amount > 0);
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
    case OptKind::Local:
      need(output && target.has_groups);
      return split(kernel, loop, opt.amount, kind, RangeKind::Local, false);
    case OptKind::Group:
      need(reduction && target.has_groups);
      return group(kernel, loop, opt);
    case OptKind::TensorCore:
      need(reduction && static_cast<std::size_t>(opt.amount) < target.tensor_cores.size());
      return tensor_core(kernel, loop, opt, target);
    case OptKind::Sweep: {
      need(reduction);
      Ref swept = sweep(kernel, loop, opt.amount, target);
      if (!swept) refuse(opt, "the loop is of no such reduction");
      return simplify(swept);
    }
    case OptKind::Scatter: {
      need(output);
      Ref scattered = scatter(kernel, loop, target);
      if (!scattered || target.has_groups) refuse(opt, "no value names an element along the loop");
      return simplify(scattered);
    }
    case OptKind::Stage:
    case OptKind::Window:
    case OptKind::Stream:
      break;
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

Ref hoist_gates(Ref kernel) {
  constexpr double kWorth = 8;  // turns of the inner sum that pay for an accumulator more
  Kernel k(kernel);
  absl::flat_hash_map<Node*, std::uint64_t> masks;
  absl::InlinedVector<std::pair<Ref, Ref>, 2> hoisted;
  for (Ref r : k.reduces) {
    Ref value = r.src(0);
    if (r.reduce_op() != Op::Add || !value.is(Op::Where) || !value.src(2).is_const(0) ||
        !value.src(1).is(Op::Mul))
      continue;
    if (masks.empty()) masks = dependences(k);
    Ref gate = value.src(0), x = value.src(1);
    Refs inner{x}, outer;
    double turns = 1;
    for (int i = 1; i < r.nsrc(); ++i) {
      bool gates = masks.at(gate.node()) >> k.loop_of(r.src(i)) & 1;
      (gates ? outer : inner).push_back(r.src(i));
      if (!gates) turns *= static_cast<double>(r.src(i).hi() + 1);
    }
    if (inner.size() == 1 || turns < kWorth) continue;
    absl::InlinedVector<std::pair<Ref, Ref>, 4> open;
    for (Ref n : toposort(x))
      if (n.is(Op::Load) && n.nsrc() == 1 && n.src(0).nsrc() > 2 && same(n.src(0).src(2), gate) &&
          always_there(n.src(0)))
        open.emplace_back(n.src(0), make(Op::Index, n.dtype(), {n.src(0).src(0), n.src(0).src(1)}));
    inner[0] = substitute(x, open);
    Ref sum = where(gate, make(Op::Reduce, r.dtype(), 1, inner, reduce_arg(Op::Add)), value.src(2));
    outer.insert(outer.begin(), sum);
    hoisted.emplace_back(r,
                         outer.size() > 1 ? make(Op::Reduce, r.dtype(), 1, outer, reduce_arg(Op::Add)) : sum);
  }
  return hoisted.empty() ? kernel : substitute(kernel, hoisted);
}

}  // namespace pg::codegen
