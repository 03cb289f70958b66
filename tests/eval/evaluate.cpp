#include "eval/evaluate.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace pg::eval {
namespace {

using Index = std::int64_t;
using Map = std::vector<Index>;  // for each element of a result, the element of the source; -1 for none

[[noreturn]] void fail(Ref node, const std::string& what) {
  throw InternalError("[eval] " + std::string(info(node.op()).name) + ": " + what);
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Calls f(position, coordinates) for each element in row-major order.
template <class F>
void each(const Dims& dims, F f) {
  Index n = count(dims);
  Dims at_axis(dims.size(), 0);
  for (Index i = 0; i < n; ++i) {
    f(i, at_axis);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++at_axis[axis] < dims[axis]) break;
      at_axis[axis] = 0;
    }
  }
}

Index flat(const Dims& dims, const Dims& coordinates) {
  Index r = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) r = r * dims[i] + coordinates[i];
  return r;
}

// Axes align at the right; an axis of 1, or a missing one, repeats.
Map broadcast_map(Ref node, const Dims& from, const Dims& to) {
  if (from.size() > to.size()) fail(node, text(from) + " does not broadcast to " + text(to));
  std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[lead + i])
      fail(node, text(from) + " does not broadcast to " + text(to));
  Map map(at(count(to)));
  Dims inner(from.size());
  each(to, [&](Index i, const Dims& c) {
    for (std::size_t k = 0; k < from.size(); ++k) inner[k] = from[k] == 1 ? 0 : c[lead + k];
    map[at(i)] = flat(from, inner);
  });
  return map;
}

Dims broadcast_dims(Ref node, const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (std::size_t i = 1; i <= out.size(); ++i) {
    Index x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) fail(node, "sources of shape " + text(a) + " and " + text(b));
    out[out.size() - i] = x == 1 ? y : x;
  }
  return out;
}

class Evaluator {
 public:
  explicit Evaluator(const Leaves& leaves) : leaves_(leaves) {}

  std::vector<Array> run(std::span<const Ref> roots) {
    std::vector<Ref> order = toposort(roots);
    for (Ref n : order)
      for (Node* s : n.srcs()) ++uses_[s];
    for (Ref r : roots) ++uses_[r.node()];
    for (Ref n : order) {
      visit(n);
      if (n.is(Op::Store)) continue;  // its After reads the parts
      for (Node* s : n.srcs()) release(s);
    }
    std::vector<Array> out;
    for (Ref r : roots) out.push_back(value(r));
    return out;
  }

 private:
  // What nobody needs any more goes; but for shapes, which are small and read again when a view is written.
  void release(Node* n) {
    if (--uses_[n]) return;
    if (n->op == Op::Store) {
      for (Node* s : Ref(n).srcs()) release(s);
    } else if (n->op != Op::Shape) {
      values_.erase(n);
    }
  }

  // A Shape's value is a list; a Store has none.
  void visit(Ref n) {
    switch (n.op()) {
      case Op::Shape:
        values_[n.node()] = shape_value(n);
        return;
      case Op::Var:
        return;  // asked for when used
      case Op::Store:
      case Op::Device:
        return;
      default:
        break;
    }
    Array v = compute(n);
    if (v.dtype != n.dtype())
      fail(n, "has dtype " + std::string(name(n.dtype())) + ", not " + std::string(name(v.dtype)));
    check_shape(n, v);
    values_[n.node()] = std::move(v);
  }

  // The library's rule for the shape must say the same, where it gives numbers.
  void check_shape(Ref n, const Array& v) {
    Ref shape = shape_of(n);
    if (shape->nsrc) return;
    auto said = shape.ints();
    if (!std::equal(said.begin(), said.end(), v.dims.begin(), v.dims.end()))
      fail(n, "has shape " + text(Dims(said.begin(), said.end())) + ", not " + text(v.dims));
  }

  const Array& value(Ref n) {
    auto it = values_.find(n.node());
    if (it == values_.end() && n.is(Op::Var)) it = values_.emplace(n.node(), leaf(n, Dims{})).first;
    if (it == values_.end()) fail(n, "has no value here");
    return it->second;
  }

  Array shape_value(Ref n) {
    std::vector<Index> dims;
    if (n.nsrc()) {
      for (Node* s : n.srcs()) dims.push_back(value(s).data.at(0).i);
    } else if (n.has_object()) {
      dims.assign(n.ints().begin(), n.ints().end());
    }
    Dims shape{static_cast<Index>(dims.size())};
    return Array(i64, shape, dims);
  }

  Dims dims_of(Ref shape) {
    const Array& a = value(shape);
    Dims out;
    for (Scalar s : a.data) out.push_back(s.i);
    return out;
  }

  Array leaf(Ref n, const Dims& dims) {
    Array a = leaves_(n);
    if (a.dtype != n.dtype())
      fail(n, "the leaf given has dtype " + std::string(name(a.dtype)) + ", the node " +
                  std::string(name(n.dtype())));
    if (a.dims != dims) fail(n, "the leaf given has shape " + text(a.dims) + ", the node " + text(dims));
    return a;
  }

  Array compute(Ref n) {
    switch (n.op()) {
      case Op::Const: {
        Array a(n.dtype(), {});
        a.data[0] = n->arg;
        return a;
      }
      case Op::Buffer:
      case Op::Param:
        return leaf(n, dims_of(n.src(0)));
      case Op::ScalarParam:
        return leaf(n, Dims{});
      case Op::Arange:
        return arange(n);
      case Op::Bind:
        return value(n.src(1));
      case Op::Leaf:
      case Op::Contiguous:
      case Op::ContiguousBackward:
      case Op::Detach:
      case Op::Copy:
        return value(n.src(0));
      case Op::Bitcast:
        return bitcast(n);
      case Op::Reduce:
        return reduce(n);
      case Op::Cat:
        return cat(n);
      case Op::Index:
        return index(n);
      case Op::After:
        return after(n);
      default:
        break;
    }
    if (n.has(kMovement)) return move(n);
    if (n.has(kElementwise)) return elementwise(n);
    fail(n, "has no meaning in a tensor graph");
  }

  Array arange(Ref n) {
    Array out(n.dtype(), dims_of(n.src(0)));
    if (out.dims.size() != 1) fail(n, "of shape " + text(out.dims));
    for (Index i = 0; i < out.size(); ++i) out.data[at(i)] = convert(int_scalar(i), i64, n.dtype());
    return out;
  }

  Array elementwise(Ref n) {
    int nsrc = n.nsrc();
    Dims dims;
    for (Node* s : n.srcs()) dims = broadcast_dims(n, dims, value(s).dims);
    Ref typed = n.src(n.is(Op::Where) ? 1 : 0);
    for (int i = n.is(Op::Where) ? 1 : 0; i < nsrc; ++i)
      if (n.src(i).dtype() != typed.dtype())
        fail(n, "mixes " + std::string(name(typed.dtype())) + " and " + std::string(name(n.src(i).dtype())));
    if (n.is(Op::Where) && n.src(0).dtype() != DType::Bool) fail(n, "condition is not bool");
    Array out(n.dtype(), dims);
    std::vector<const Array*> in;
    std::vector<Map> maps;
    for (Node* s : n.srcs()) {
      in.push_back(&value(s));
      maps.push_back(in.back()->dims == dims ? Map{} : broadcast_map(n, in.back()->dims, dims));
    }
    Scalar args[3];
    for (Index i = 0; i < out.size(); ++i) {
      for (std::size_t k = 0; k < in.size(); ++k)
        args[k] = in[k]->data[at(maps[k].empty() ? i : maps[k][at(i)])];
      out.data[at(i)] = apply(n.op(), n.dtype(), typed.dtype(), args);
    }
    return out;
  }

  // Bytes keep their order; the last axis takes up a change of element size.
  static Dims bitcast_dims(Ref n, Dims dims, DType from, DType to) {
    auto a = static_cast<Index>(itemsize(from)), b = static_cast<Index>(itemsize(to));
    if (a == b) return dims;
    if (dims.empty() || dims.back() * a % b) fail(n, "the last axis of " + text(dims) + " does not divide");
    dims.back() = dims.back() * a / b;
    return dims;
  }
  Array bitcast(Ref n) {
    const Array& x = value(n.src(0));
    return Array::from_bytes(n.dtype(), bitcast_dims(n, x.dims, x.dtype, n.dtype()), x.bytes().data());
  }

  // Where each element of a movement's result comes from.
  Map movement(Ref n, const Dims& from, Dims& to) {
    switch (n.op()) {
      case Op::Reshape: {
        to = dims_of(n.src(1));
        if (count(to) != count(from)) fail(n, text(from) + " to " + text(to));
        Map map(at(count(to)));
        for (Index i = 0; i < count(to); ++i) map[at(i)] = i;
        return map;
      }
      case Op::Expand:
        to = dims_of(n.src(1));
        return broadcast_map(n, from, to);
      case Op::Permute: {
        to.clear();
        for (Index axis : n.ints()) to.push_back(from.at(at(axis)));
        if (to.size() != from.size()) fail(n, "axes for shape " + text(from));
        Map map(at(count(to)));
        Dims inner(from.size());
        each(to, [&](Index i, const Dims& c) {
          for (std::size_t k = 0; k < c.size(); ++k) inner[at(n.ints()[k])] = c[k];
          map[at(i)] = flat(from, inner);
        });
        return map;
      }
      case Op::Pad:
      case Op::Shrink: {
        to = dims_of(n.src(1));
        Dims offset = dims_of(n.src(2));
        if (to.size() != from.size() || offset.size() != from.size()) fail(n, text(from) + " to " + text(to));
        Map map(at(count(to)));
        Dims inner(from.size());
        each(to, [&](Index i, const Dims& c) {
          bool inside = true;
          for (std::size_t k = 0; k < c.size(); ++k) {
            inner[k] = n.is(Op::Pad) ? c[k] - offset[k] : c[k] + offset[k];
            inside &= inner[k] >= 0 && inner[k] < from[k];
          }
          if (!inside && n.is(Op::Shrink))
            fail(n, text(to) + " at " + text(offset) + " leaves " + text(from));
          map[at(i)] = inside ? flat(from, inner) : -1;
        });
        return map;
      }
      case Op::Flip: {
        to = from;
        Map map(at(count(to)));
        Dims inner(from.size());
        each(to, [&](Index i, const Dims& c) {
          for (std::size_t k = 0; k < c.size(); ++k) inner[k] = n.i() >> k & 1 ? from[k] - 1 - c[k] : c[k];
          map[at(i)] = flat(from, inner);
        });
        return map;
      }
      default:
        fail(n, "is no movement");
    }
  }

  Array move(Ref n) {
    const Array& x = value(n.src(0));
    Dims dims;
    Map map = movement(n, x.dims, dims);
    Array out(x.dtype, dims);
    for (Index i = 0; i < out.size(); ++i)
      if (map[at(i)] >= 0) out.data[at(i)] = x.data[at(map[at(i)])];
    return out;
  }

  Array reduce(Ref n) {
    const Array& x = value(n.src(0));
    DType t = n.dtype();
    Op op = n.reduce_op();
    Dims dims = x.dims;
    for (std::size_t k = 0; k < dims.size(); ++k)
      if (n.reduce_axes() >> k & 1) dims[k] = 1;
    Array out(t, dims);
    // Sums and products of floats in extended precision, rounded at the end.
    bool wide = is_float(t) && (op == Op::Add || op == Op::Mul);
    std::vector<long double> sums(wide ? at(out.size()) : 0, op == Op::Mul ? 1.0L : 0.0L);
    for (Scalar& s : out.data) s = neutral(n, op, t);
    Dims outer(dims.size());
    each(x.dims, [&](Index i, const Dims& c) {
      for (std::size_t k = 0; k < c.size(); ++k) outer[k] = dims[k] == 1 ? 0 : c[k];
      std::size_t o = at(flat(dims, outer));
      if (wide) {
        auto v = static_cast<long double>(x.data[at(i)].f);
        sums[o] = op == Op::Mul ? sums[o] * v : sums[o] + v;
      } else {
        Scalar pair[2] = {out.data[o], x.data[at(i)]};
        out.data[o] = apply(op, t, t, pair);
      }
    });
    for (std::size_t o = 0; o < sums.size(); ++o) out.data[o] = float_scalar(rounded(t, sums[o]));
    return out;
  }

  // What an empty reduction gives.
  static Scalar neutral(Ref n, Op op, DType t) {
    double inf = std::numeric_limits<double>::infinity();
    auto number = [t](double v) { return convert(float_scalar(v), f64, t); };
    switch (op) {
      case Op::Add:
      case Op::Or:
      case Op::Xor:
        return number(0);
      case Op::Mul:
        return number(1);
      case Op::And:
        return t == DType::Bool ? int_scalar(1) : convert(int_scalar(-1), i64, t);
      // Infinities saturate to the ends of an integer type.
      case Op::Max:
        return t == DType::Bool ? int_scalar(0) : number(-inf);
      case Op::Min:
        return t == DType::Bool ? int_scalar(1) : number(inf);
      default:
        fail(n, "by " + std::string(info(op).name));
    }
  }

  Array cat(Ref n) {
    auto axis = at(n.i());
    Dims dims = value(n.src(0)).dims;
    if (axis >= dims.size()) fail(n, "axis " + std::to_string(axis) + " of " + text(dims));
    Index joined = 0;
    for (Node* s : n.srcs()) {
      Dims d = value(s).dims;
      if (d.size() != dims.size()) fail(n, text(dims) + " and " + text(d));
      joined += d[axis];
      d[axis] = dims[axis];
      if (d != dims) fail(n, text(dims) + " and " + text(d));
    }
    dims[axis] = joined;
    Array out(n.dtype(), dims);
    Index start = 0;
    for (Node* s : n.srcs()) {
      const Array& part = value(s);
      if (part.dtype != out.dtype) fail(n, "mixes dtypes");
      Dims outer;
      each(part.dims, [&](Index i, const Dims& c) {
        outer = c;
        outer[axis] += start;
        out.data[at(flat(dims, outer))] = part.data[at(i)];
      });
      start += part.dims[axis];
    }
    return out;
  }

  Array index(Ref n) {
    if (n.nsrc() != 2) fail(n, "takes a value and rows");
    const Array &x = value(n.src(0)), &rows = value(n.src(1));
    if (x.dims.empty() || is_float(rows.dtype))
      fail(n, "of " + text(x.dims) + " at " + std::string(name(rows.dtype)));
    Dims dims = rows.dims;
    dims.insert(dims.end(), x.dims.begin() + 1, x.dims.end());
    Array out(x.dtype, dims);
    Index row_size = 1;
    for (std::size_t k = 1; k < x.dims.size(); ++k) row_size *= x.dims[k];
    for (Index r = 0; r < rows.size(); ++r) {
      Index row = rows.data[at(r)]
                      .i;  // a u64 beyond the range of i64 is negative here, so out of range as it should be
      if (row < 0 || row >= x.dims[0]) continue;
      for (Index k = 0; k < row_size; ++k) out.data[at(r * row_size + k)] = x.data[at(row * row_size + k)];
    }
    return out;
  }

  Array after(Ref n) {
    Array out = value(n.src(0));
    for (int i = 1; i < n.nsrc(); ++i) {
      Ref effect = n.src(i);
      if (!effect.is(Op::Store))
        fail(n, "an effect is a " + std::string(info(effect.op()).name) + ", not a Store");
      write(out, n.src(0), effect);
    }
    return out;
  }

  // Follows the view from the base up on an array of positions: of elements, or of bytes if a bitcast is on
  // the way.
  void write(Array& base, Ref old, Ref store) {
    std::vector<Ref> chain;
    for (Ref v = store.src(0); !same(v, old); v = v.src(0)) {
      bool view = v.has(kMovement) || v.is(Op::Bitcast) || v.is(Op::Detach) || v.is(Op::Leaf);
      if (!view)
        fail(store, "the target is no view of the value it follows: " + std::string(info(v.op()).name));
      chain.push_back(v);
    }
    std::reverse(chain.begin(), chain.end());
    bool bytewise = std::any_of(chain.begin(), chain.end(), [](Ref v) { return v.is(Op::Bitcast); });
    Dims dims = base.dims;
    DType t = base.dtype;
    auto unit = [&] { return bytewise ? static_cast<Index>(itemsize(t)) : Index{1}; };
    Map place(at(count(dims) * unit()));
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<Index>(i);
    for (Ref v : chain) {
      if (v.is(Op::Bitcast)) {
        dims = bitcast_dims(v, dims, t, v.dtype());
        t = v.dtype();
      } else if (v.has(kMovement)) {
        Dims next;
        Map step = movement(v, dims, next);
        Map moved(step.size() * at(unit()), -1);
        for (std::size_t i = 0; i < step.size(); ++i)
          for (Index k = 0; k < unit() && step[i] >= 0; ++k)
            moved[i * at(unit()) + at(k)] = place[at(step[i] * unit() + k)];
        place = std::move(moved);
        dims = std::move(next);
      }
    }
    const Array& x = value(store.src(1));
    if (x.dtype != t)
      fail(store,
           "a value of dtype " + std::string(name(x.dtype)) + " into a view of " + std::string(name(t)));
    Map from = broadcast_map(store, x.dims, dims);
    std::unordered_set<Index> seen;
    std::vector<std::uint8_t> raw = bytewise ? base.bytes() : std::vector<std::uint8_t>{};
    std::vector<std::uint8_t> written = bytewise ? x.bytes() : std::vector<std::uint8_t>{};
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (place[i] < 0) fail(store, "the view has elements outside its base");
      if (!seen.insert(place[i]).second) fail(store, "an element occurs twice in the view");
      Index u = unit(), element = static_cast<Index>(i) / u, k = static_cast<Index>(i) % u;
      if (bytewise)
        raw[at(place[i])] = written[at(from[at(element)] * u + k)];
      else
        base.data[at(place[i])] = x.data[at(from[i])];
    }
    if (bytewise) base = Array::from_bytes(base.dtype, base.dims, raw.data());
  }

  const Leaves& leaves_;
  std::unordered_map<Node*, Array> values_;
  std::unordered_map<Node*, std::size_t> uses_;
};

}  // namespace

std::vector<Array> evaluate(std::span<const Ref> nodes, const Leaves& leaves) {
  GraphScope scope;
  return Evaluator(leaves).run(nodes);
}

Array evaluate(Ref node, const Leaves& leaves) { return evaluate(std::span<const Ref>(&node, 1), leaves)[0]; }

Array evaluate(Ref node) {
  return evaluate(node, [](Ref leaf) -> Array { fail(leaf, "no leaves were given"); });
}

}  // namespace pg::eval
