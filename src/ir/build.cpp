#include "ir/build.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

namespace pg {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

// Sizes that no memory holds stay sizes that no memory holds.
std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}

bool is_scalar_const(Ref x) { return x.is_const() && x.lanes() == 1; }

// A splat of a constant folds like the constant.
Ref const_of(Ref x) { return x.is(Op::Splat) && x.src(0).is_const() ? x.src(0) : x; }

Ref fold(Op op, DType dtype, int lanes, std::span<const Ref> srcs) {
  if (srcs.empty() || !is_scalar_const(const_of(srcs[0])) || !is_exact(op)) return nullptr;
  std::array<Scalar, 3> values;
  for (std::size_t i = 0; i < srcs.size(); ++i) {
    Ref c = const_of(srcs[i]);
    if (!is_scalar_const(c)) return nullptr;
    values[i] = c->arg;
  }
  DType from = srcs[op == Op::Where ? 1 : 0].dtype();
  if (op == Op::Bitcast && itemsize(from) != itemsize(dtype)) return nullptr;
  Scalar v = eval_scalar(op, dtype, from, values.data());
  // All NaNs that arithmetic makes are one; a bitcast or a choice keeps the one it has.
  if (is_float(dtype) && std::isnan(v.f) && op != Op::Bitcast && op != Op::Where)
    v.f = std::numeric_limits<double>::quiet_NaN();
  return splat(scalar_const(dtype, v), lanes);
}

// x of x * constant, else the node itself.
Ref factor_of(Ref x) { return x.is(Op::Mul) && const_of(x.src(1)).is_const() ? x.src(0) : x; }

}  // namespace

bool goes_left(Ref a, Ref b) {
  bool ca = const_of(a).is_const(), cb = const_of(b).is_const();
  if (ca || cb) return !ca;
  Ref x = factor_of(a), y = factor_of(b);
  if (x.op() != y.op()) return x.op() > y.op();
  if (x.is(Op::Range) && x.i() != y.i()) return x.i() < y.i();
  if (x->hash != y->hash) return x->hash < y->hash;
  return a->hash < b->hash;
}

Ref make(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg) {
  const OpInfo& row = info(op);
  if (row.flags & kElementwise) {
    if (Ref c = fold(op, dtype, lanes, srcs)) return c;
    // Floats only give way to constants: exact, and it keeps the order a program was written in.
    if (row.flags & kCommutative) {
      bool swap;
      if (is_float(srcs[0].dtype()))
        swap = const_of(srcs[0]).is_const() && !const_of(srcs[1]).is_const();
      else if (srcs[0].is(op) != srcs[1].is(op))  // chains lean left
        swap = srcs[1].is(op);
      else
        swap = goes_left(srcs[1], srcs[0]);
      if (swap) {
        Ref swapped[2] = {srcs[1], srcs[0]};
        return intern(op, dtype, lanes, swapped, arg);
      }
    }
  }
  return intern(op, dtype, lanes, srcs, arg);
}

Ref with_srcs(Ref node, std::span<const Ref> srcs) {
  return make(node.op(), node.dtype(), node.lanes(), srcs, node->arg);
}

Ref scalar_const(DType t, Scalar v) { return intern(Op::Const, t, 1, {}, v); }
Ref int_const(DType t, std::int64_t v) { return scalar_const(t, int_scalar(wrap(t, v))); }
Ref float_const(DType t, double v) {
  return scalar_const(
      t, float_scalar(std::isnan(v) ? std::numeric_limits<double>::quiet_NaN() : round_to(t, v)));
}
Ref const_like(Ref t, double v) {
  return splat(
      is_float(t.dtype()) ? float_const(t.dtype(), v) : int_const(t.dtype(), static_cast<std::int64_t>(v)),
      t.lanes());
}
Ref int_const_like(Ref t, std::int64_t v) {
  return is_float(t.dtype()) ? const_like(t, static_cast<double>(v))
                             : splat(int_const(t.dtype(), v), t.lanes());
}

Ref shape_node(Dims dims) { return intern(Op::Shape, DType::Void, 1, {}, Arg{.p = ints_payload(dims)}); }
Ref shape_node(std::span<const Ref> dims) {
  absl::InlinedVector<std::int64_t, 8> values;
  for (Ref d : dims)
    if (d.is_const()) values.push_back(d.i());
  if (values.size() == dims.size()) return shape_node(Dims(values));
  return intern(Op::Shape, DType::Void, 1, dims, Arg{.p = nullptr});
}
Ref range(std::int64_t id, RangeKind kind, Ref extent) {
  return make(Op::Range, DType::WeakInt, {extent}, Arg{.i = id << 8 | static_cast<std::int64_t>(kind)});
}
Ref var(std::string_view name, std::int64_t lo, std::int64_t hi, DType t) {
  return make(Op::Var, t, {int_const(t, lo), int_const(t, hi)}, Arg{.p = str_payload(name)});
}
Ref bind(Ref variable, std::int64_t value) {
  return make(Op::Bind, variable.dtype(), {variable, int_const(variable.dtype(), value)});
}
Ref param(std::int64_t slot, DType t, Ref shape) { return make(Op::Param, t, {shape}, Arg{.i = slot}); }
Ref scalar_param(std::int64_t slot, DType t, std::int64_t lo, std::int64_t hi) {
  return make(Op::ScalarParam, t, {int_const(t, lo), int_const(t, hi)}, Arg{.i = slot});
}

Ref alu(Op op, std::span<const Ref> srcs) {
  int lanes = 1;
  for (Ref s : srcs) lanes = std::max(lanes, s.lanes());
  DType t = info(op).flags & kComparison ? DType::Bool : srcs[op == Op::Where ? 1 : 0].dtype();
  if (lanes == 1) return make(op, t, 1, srcs);
  Refs wide(srcs.begin(), srcs.end());
  for (Ref& s : wide) s = splat(s, lanes);
  // What is the same in every lane is computed once.
  if (std::all_of(wide.begin(), wide.end(), [](Ref s) { return s.is(Op::Splat); })) {
    for (Ref& s : wide) s = s.src(0);
    return splat(make(op, t, 1, wide), lanes);
  }
  return make(op, t, lanes, wide);
}
Ref alu(Op op, std::initializer_list<Ref> srcs) {
  return alu(op, std::span<const Ref>(srcs.begin(), srcs.size()));
}
Ref cast(Ref x, DType t) { return x.dtype() == t ? x : make(Op::Cast, t, {x}, {}, x.lanes()); }
Ref bitcast(Ref x, DType t) {
  if (x.dtype() == t) return x;
  // Bytes seen as something else in between are the same bytes.
  if (x.is(Op::Bitcast) && (itemsize(x.src(0).dtype()) == itemsize(t) || itemsize(x.dtype()) == itemsize(t)))
    return bitcast(x.src(0), t);
  return make(Op::Bitcast, t, {x}, {}, x.lanes());
}
Ref where(Ref cond, Ref a, Ref b) { return alu(Op::Where, {cond, a, b}); }
Ref splat(Ref x, int lanes) { return x.lanes() == lanes ? x : make(Op::Splat, x.dtype(), {x}, {}, lanes); }

int rank(Ref shape) { return is_concrete(shape) ? static_cast<int>(shape.ints().size()) : shape.nsrc(); }
Ref dim(Ref shape, int axis) {
  return is_concrete(shape) ? idx(shape.ints()[static_cast<std::size_t>(axis)]) : shape.src(axis);
}

std::int64_t numel(Ref shape) {
  std::int64_t n = 1;
  for (std::int64_t d : dims(shape)) n = saturating_mul(n, d);
  return n;
}
std::int64_t max_numel(Ref shape) {
  if (is_concrete(shape)) return numel(shape);
  std::int64_t n = 1;
  for (Node* d : shape.srcs()) n = saturating_mul(n, d->hi);
  return n;
}

Ref broadcast(Ref a, Ref b) {
  if (same(a, b)) return a;
  int ra = rank(a), rb = rank(b), r = std::max(ra, rb);
  if (is_concrete(a) && is_concrete(b)) {
    Dims da = dims(a), db = dims(b);
    if (da.empty()) return b;
    if (db.empty()) return a;
    absl::InlinedVector<std::int64_t, 8> out(static_cast<std::size_t>(r));
    for (int i = 1; i <= r; ++i) {
      std::int64_t x = i <= ra ? da[static_cast<std::size_t>(ra - i)] : 1,
                   y = i <= rb ? db[static_cast<std::size_t>(rb - i)] : 1;
      if (x != y && x != 1 && y != 1) return nullptr;
      out[static_cast<std::size_t>(r - i)] = x == 1 ? y : x;
    }
    return shape_node(Dims(out));
  }
  Refs out(static_cast<std::size_t>(r));
  for (int i = 1; i <= r; ++i) {
    Ref x = i <= ra ? dim(a, ra - i) : idx(1), y = i <= rb ? dim(b, rb - i) : idx(1);
    if (!same(x, y) && !x.is_const(1) && !y.is_const(1)) return nullptr;
    out[static_cast<std::size_t>(r - i)] = x.is_const(1) ? y : x;
  }
  return shape_node(std::span<const Ref>(out));
}

Ref reshape(Ref x, Ref shape) {
  if (x.is(Op::Reshape)) x = x.src(0);
  return same(shape_of(x), shape) ? x : make(Op::Reshape, x.dtype(), {x, shape});
}
Ref permute(Ref x, Dims order) {
  absl::InlinedVector<std::int64_t, 8> composed(order.begin(), order.end());
  if (x.is(Op::Permute)) {
    Dims inner = x.ints();
    for (auto& o : composed) o = inner[static_cast<std::size_t>(o)];
    x = x.src(0);
  }
  bool trivial = true;
  for (std::size_t i = 0; i < composed.size(); ++i) trivial &= composed[i] == static_cast<std::int64_t>(i);
  return trivial ? x : make(Op::Permute, x.dtype(), {x}, Arg{.p = ints_payload(composed)});
}
Ref expand(Ref x, Ref shape) {
  if (x.is(Op::Expand)) x = x.src(0);
  return same(shape_of(x), shape) ? x : make(Op::Expand, x.dtype(), {x, shape});
}
Ref pad(Ref x, Ref shape, Ref offset) {
  return same(shape_of(x), shape) ? x : make(Op::Pad, x.dtype(), {x, shape, offset});
}
Ref shrink(Ref x, Ref shape, Ref offset) {
  return same(shape_of(x), shape) ? x : make(Op::Shrink, x.dtype(), {x, shape, offset});
}
Ref flip(Ref x, std::uint64_t axes) {
  if (x.is(Op::Flip)) {
    axes ^= static_cast<std::uint64_t>(x.i());
    x = x.src(0);
  }
  return axes ? make(Op::Flip, x.dtype(), {x}, Arg{.i = static_cast<std::int64_t>(axes)}) : x;
}
Ref reduce(Ref x, Op op, std::uint64_t axes) {
  return axes ? make(Op::Reduce, x.dtype(), {x}, reduce_arg(op, axes)) : x;
}
Ref cat(std::span<const Ref> parts, int axis) {
  return parts.size() == 1 ? parts[0] : make(Op::Cat, parts[0].dtype(), 1, parts, Arg{.i = axis});
}
Ref index_rows(Ref x, Ref rows) { return make(Op::Index, x.dtype(), {x, rows}); }
Ref store(Ref target, Ref value) { return make(Op::Store, DType::Void, {target, value}); }
Ref after(Ref value, Ref effect) { return make(Op::After, value.dtype(), {value, effect}); }
Ref sink(std::span<const Ref> roots, Payload* info) {
  return intern(Op::Sink, DType::Void, 1, roots, Arg{.p = info});
}

Scalar identity_of(Op op, DType t) {
  bool f = is_float(t);
  double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::Xor:
      return f ? float_scalar(0) : int_scalar(0);
    case Op::Mul:
      return f ? float_scalar(1) : int_scalar(1);
    case Op::And:
      return int_scalar(-1);
    case Op::Max:
      return f ? float_scalar(-inf) : int_scalar(int_min(t));
    case Op::Min:
      return f ? float_scalar(inf) : int_scalar(t == u64 ? -1 : int_max(t));
    default:
      throw InternalError("[reduce] " + std::string(info(op).name) + " has no identity");
  }
}

bool stands_on(Ref root, Ref what) {
  auto order = toposort(root);
  return std::any_of(order.begin(), order.end(), [&](Ref n) { return same(n, what); });
}

Ref substitute(Ref root, std::span<const std::pair<Ref, Ref>> map) {
  absl::flat_hash_map<Node*, Ref> becomes;
  for (auto& [from, to] : map) becomes[from.node()] = to;
  Refs srcs;
  for (Ref n : toposort(root)) {
    if (becomes.contains(n.node())) continue;
    bool changed = false;
    srcs.clear();
    for (Node* s : n.srcs()) {
      auto it = becomes.find(s);
      Ref now = it == becomes.end() ? Ref(s) : it->second;
      changed |= now.node() != s;
      srcs.push_back(now);
    }
    if (changed) becomes[n.node()] = with_srcs(n, srcs);
  }
  auto it = becomes.find(root.node());
  return it == becomes.end() ? root : it->second;
}

}  // namespace pg
