#include "rules/spec.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "base/flags.h"
#include "ir/build.h"
#include "ir/print.h"
#include "rules/spec_loops.h"

namespace pg::rules {
namespace {

using pat::any;

struct Context {
  Stage stage;
  Ref yes;
  std::string why;
};

Ref yes(const Match& m) { return m.ctx<Context>().yes; }
Ref no(const Match& m, std::string why) {
  m.ctx<Context>().why = std::move(why);
  return nullptr;
}
Stage stage(const Match& m) { return m.ctx<Context>().stage; }
bool in_tensors(const Match& m) { return stage(m) == Stage::Tensor || stage(m) == Stage::Call; }

std::string type_text(Ref n) {
  std::string s(name(n.dtype()));
  return n.lanes() == 1 ? s : s + 'x' + std::to_string(n.lanes());
}
std::string sizes(Ref shape) { return brief(shape, 2); }
bool is_object(Ref n, Op op) { return n.is(op) && n.has_object(); }
bool is_sum_like(Op op) {
  return op == Op::Add || op == Op::Mul || op == Op::Max || op == Op::Min || op == Op::And || op == Op::Or ||
         op == Op::Xor;
}

// --- types

// What every value obeys: a type that the stage knows, lanes where there are vectors. Weak integers are sizes
// and indices.
const char* bad_type(const Match& m, Ref n) {
  if (n.dtype() == DType::Void) return "a value needs a dtype";
  if (n.dtype() == DType::WeakFloat) return "weak floats are gone before any graph";
  if (n.dtype() == DType::WeakInt && stage(m) == Stage::Program) return "a program has no weak dtypes";
  if (in_tensors(m) ? n.lanes() != 1 : !std::has_single_bit(static_cast<unsigned>(n.lanes())))
    return in_tensors(m) ? "tensor graphs have no vectors" : "lanes must be a power of two";
  return nullptr;
}
Ref value(const Match& m) {
  const char* bad = bad_type(m, m.root);
  return bad ? no(m, bad) : yes(m);
}
// A value that memory holds.
Ref strong_value(const Match& m) {
  if (m.root.dtype() == DType::WeakInt) return no(m, "a weak integer is a size or an index, never contents");
  return value(m);
}

bool is_number(DType t) { return is_int(t) || is_float(t); }
bool is_integral(DType t) { return is_int(t) || t == DType::Bool; }
bool is_any(DType t) { return t != DType::Void; }

// Elementwise: `takes` says which dtypes the operands from `first` on may have; they have one type, and in
// kernels the lanes of the result. In tensor graphs they broadcast.
Ref elementwise(const Match& m, bool (*takes)(DType), int first = 0) {
  Ref n = m.root;
  if (const char* bad = bad_type(m, n)) return no(m, bad);
  Ref a = n.src(first);
  if (!takes(a.dtype())) return no(m, "it does not take " + type_text(a));
  for (int k = 0; k < n.nsrc(); ++k) {
    Ref s = n.src(k);
    if (k >= first && s.dtype() != a.dtype())
      return no(m, "operands of type " + type_text(a) + " and " + type_text(s));
    if (s.lanes() != n.lanes())
      return no(m, "an operand of " + std::to_string(s.lanes()) + " lanes in " + type_text(n));
  }
  DType result = n.has(kComparison) ? DType::Bool : a.dtype();
  if (!n.is(Op::Cast) && !n.is(Op::Bitcast) && n.dtype() != result)
    return no(m, "its result should be " + std::string(name(result)));
  if (!in_tensors(m)) return yes(m);
  Ref shape = shape_of(n.src(0));
  for (int k = 1; k < n.nsrc(); ++k) {
    Ref both = broadcast(shape, shape_of(n.src(k)));
    if (!both)
      return no(m, "shapes " + sizes(shape) + " and " + sizes(shape_of(n.src(k))) + " do not broadcast");
    shape = both;
  }
  if (n.dtype() == DType::WeakInt && rank(shape)) return no(m, "a weak integer is a size: it has no shape");
  return yes(m);
}
Ref on_any(const Match& m) { return elementwise(m, is_any); }
Ref on_numbers(const Match& m) { return elementwise(m, is_number); }
Ref on_floats(const Match& m) { return elementwise(m, is_float); }
Ref on_ints(const Match& m) { return elementwise(m, is_int); }
Ref on_integral(const Match& m) { return elementwise(m, is_integral); }
Ref on_u64(const Match& m) {
  return elementwise(m, [](DType t) { return t == DType::U64; });
}
Ref on_i32(const Match& m) {
  return elementwise(m, [](DType t) { return t == DType::I32; });
}
Ref where_law(const Match& m) {
  if (m.root.src(0).dtype() != DType::Bool)
    return no(m, "its condition is " + type_text(m.root.src(0)) + ", not bool");
  return elementwise(m, is_any, 1);
}
Ref bitcast_law(const Match& m) {
  DType from = m.root.src(0).dtype(), to = m.root.dtype();
  bool fits = !is_weak(from) && !is_weak(to);
  if (fits && itemsize(from) != itemsize(to)) {
    // Elements of another size: those of the last axis are taken apart, or put together.
    Ref shape = shape_of(m.root.src(0));
    Ref last = rank(shape) > 0 ? dim(shape, rank(shape) - 1) : Ref();
    fits = last && (itemsize(from) > itemsize(to) ||
                    (last.is_const() && last.i() * static_cast<std::int64_t>(itemsize(from)) %
                                                static_cast<std::int64_t>(itemsize(to)) ==
                                            0));
  }
  if (!fits) return no(m, "bits of " + std::string(name(from)) + " are no " + std::string(name(to)));
  return elementwise(m, is_any);
}

constexpr Rule kElementwiseLaws[] = {
    rule(any(Op::Cast), on_any),      rule(any(Op::Bitcast), bitcast_law), rule(any(Op::Neg), on_numbers),
    rule(any(Op::Trunc), on_numbers), rule(any(Op::Sqrt), on_floats),      rule(any(Op::Exp), on_floats),
    rule(any(Op::Exp2), on_floats),   rule(any(Op::Log), on_floats),       rule(any(Op::Log2), on_floats),
    rule(any(Op::Sin), on_floats),    rule(any(Op::Cos), on_floats),       rule(any(Op::Tanh), on_floats),
    rule(any(Op::Erf), on_floats),    rule(any(Op::Add), on_any),          rule(any(Op::Sub), on_numbers),
    rule(any(Op::Mul), on_any),       rule(any(Op::Div), on_floats),       rule(any(Op::FloorDiv), on_ints),
    rule(any(Op::FloorMod), on_ints), rule(any(Op::CDiv), on_ints),        rule(any(Op::CMod), on_ints),
    rule(any(Op::Max), on_any),       rule(any(Op::Min), on_any),          rule(any(Op::Pow), on_numbers),
    rule(any(Op::And), on_integral),  rule(any(Op::Or), on_integral),      rule(any(Op::Xor), on_integral),
    rule(any(Op::Shl), on_ints),      rule(any(Op::Shr), on_ints),         rule(any(Op::CmpLt), on_any),
    rule(any(Op::CmpEq), on_any),     rule(any(Op::CmpNe), on_any),        rule(any(Op::Threefry), on_u64),
    rule(any(Op::Where), where_law),  rule(any(Op::MulAcc), on_numbers),   rule(any(Op::DotBytes), on_i32),
};

// --- leaves that every stage has

Ref const_law(const Match& m) {
  return m.root.lanes() == 1 ? value(m) : no(m, "a constant is a scalar; Splat makes vectors");
}
Ref shape_law(const Match& m) {
  Ref n = m.root;
  if (is_concrete(n)) {
    if (!n.has_object()) return no(m, "a shape without sizes");
    for (std::int64_t d : n.ints())
      if (d < 0) return no(m, "a negative size");
  }
  for (Node* s : n.srcs()) {
    if (s->lanes != 1 || !is_int(s->dtype)) return no(m, "a size is an integer");
    if (s->hi < 0) return no(m, "a negative size");
  }
  return yes(m);
}
Ref bounds_law(const Match& m) {
  Ref n = m.root;
  if (!is_int(n.dtype())) return no(m, "a symbolic scalar is an integer");
  for (Node* s : n.srcs())
    if (s->op != Op::Const || s->dtype != n.dtype()) return no(m, "its bounds are constants of its dtype");
  if (n.src(0).i() > n.src(1).i()) return no(m, "its bounds are the wrong way round");
  if (n.is(Op::Var) && (!n.has_object() || n.str().empty())) return no(m, "it has no name");
  if (n.is(Op::ScalarParam) && n.i() < 0) return no(m, "a negative slot");
  return value(m);
}

constexpr Rule kLeafLaws[] = {
    rule(any(Op::Const), const_law),
    rule(any(Op::Shape), shape_law),
};

// --- tensor graphs

Ref same_type(const Match& m) {
  if (m.root.nsrc() && m.root.src(0).dtype() != m.root.dtype())
    return no(m, "its source is " + type_text(m.root.src(0)) + ", it is " + type_text(m.root));
  return strong_value(m);
}

bool is_shape(Ref n, int axes) { return n.is(Op::Shape) && rank(n) == axes; }
// Bounds allow it: of symbolic sizes only what is surely wrong is refused.
bool may_be_equal(Ref a, Ref b) { return same(a, b) || (a.lo() <= b.hi() && b.lo() <= a.hi()); }

Ref buffer_law(const Match& m) {
  return !m.root.has_object() ? no(m, "it names no storage") : strong_value(m);
}
Ref leaf_law(const Match& m) { return !m.root.has_object() ? no(m, "it names no storage") : same_type(m); }
Ref arange_law(const Match& m) {
  if (!is_shape(m.root.src(0), 1)) return no(m, "it has one axis");
  return m.root.dtype() == DType::Bool ? no(m, "it counts, so it is no bool") : strong_value(m);
}
Ref bind_law(const Match& m) {
  Ref variable = m.root.src(0), to = m.root.src(1);
  if (!variable.is(Op::Var) || !to.is_const() || to.dtype() != variable.dtype() ||
      m.root.dtype() != variable.dtype())
    return no(m, "it gives a Var a Const of its dtype");
  if (to.i() < variable.lo() || to.i() > variable.hi())
    return no(m, "the value is outside the bounds of the Var");
  return value(m);
}
Ref call_param_law(const Match& m) {
  Ref n = m.root;
  if (n.i() < 0 || n.nsrc() != 2 || !n.src(0).is(Op::Shape) || !n.src(1).is(Op::Device))
    return no(m, "a Param of a call has a slot, a shape and a device");
  return strong_value(m);
}
Ref device_law(const Match& m) {
  return m.root.has_object() && m.root.dtype() == DType::Void ? yes(m) : no(m, "it has no name");
}

Ref reshape_law(const Match& m) {
  Ref from = shape_of(m.root.src(0)), to = m.root.src(1);
  if (!to.is(Op::Shape)) return no(m, "source 1 is a shape");
  if (is_concrete(from) && is_concrete(to) && numel(from) != numel(to))
    return no(m, std::to_string(numel(from)) + " elements become " + std::to_string(numel(to)));
  return same_type(m);
}
Ref permute_law(const Match& m) {
  if (!m.root.has_object()) return no(m, "it has no order of axes");
  Dims order = m.root.ints();
  std::uint64_t seen = 0;
  for (std::int64_t axis : order)
    if (axis >= 0 && axis < static_cast<std::int64_t>(order.size()) && axis < 64)
      seen |= std::uint64_t{1} << axis;
  if (std::popcount(seen) != static_cast<int>(order.size()) ||
      rank(shape_of(m.root.src(0))) != static_cast<int>(order.size()))
    return no(m, "its order is no permutation of the axes of " + sizes(shape_of(m.root.src(0))));
  return same_type(m);
}
Ref expand_law(const Match& m) {
  Ref from = shape_of(m.root.src(0)), to = m.root.src(1);
  if (!to.is(Op::Shape)) return no(m, "source 1 is a shape");
  Ref both = broadcast(from, to);
  if (!both || !same(both, to)) return no(m, sizes(from) + " does not expand to " + sizes(to));
  return same_type(m);
}
// Pad places x in a larger box, Shrink takes a smaller one out of it.
Ref box_law(const Match& m) {
  Ref n = m.root, x = shape_of(n.src(0)), result = n.src(1), offset = n.src(2);
  int r = rank(x);
  if (!is_shape(result, r) || !is_shape(offset, r))
    return no(m, "its shape and offset have as many axes as its source");
  Ref small = n.is(Op::Pad) ? x : result, large = n.is(Op::Pad) ? result : x;
  for (int i = 0; i < r; ++i) {
    Ref at = dim(offset, i);
    if (at.hi() < 0 || at.lo() > dim(large, i).hi() || (at + dim(small, i)).lo() > dim(large, i).hi())
      return no(m, "axis " + std::to_string(i) + " of " + sizes(small) + " at " + sizes(offset) +
                       " is outside " + sizes(large));
  }
  return same_type(m);
}
Ref flip_law(const Match& m) {
  int r = rank(shape_of(m.root.src(0)));
  if (m.root.i() < 0 || (r < 63 && m.root.i() >> r))
    return no(m, "it names axes that " + sizes(shape_of(m.root.src(0))) + " lacks");
  return same_type(m);
}
Ref reduce_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() != 1) return no(m, "it reduces one value");
  if (!is_sum_like(n.reduce_op())) return no(m, "its op cannot reduce");
  int r = rank(shape_of(n.src(0)));
  if (n.reduce_axes() >> r) return no(m, "it names axes that " + sizes(shape_of(n.src(0))) + " lacks");
  return same_type(m);
}
Ref rows_law(const Match& m) {
  if (m.root.nsrc() != 2) return no(m, "it takes a tensor and rows");
  Ref rows = m.root.src(1);
  if (!is_int(rows.dtype())) return no(m, "rows are integers, not " + type_text(rows));
  if (rank(shape_of(m.root.src(0))) == 0) return no(m, "a scalar has no rows");
  return same_type(m);
}
Ref cat_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc()) return no(m, "it joins nothing");
  Ref first = shape_of(n.src(0));
  if (n.i() < 0 || n.i() >= rank(first))
    return no(m, "it joins along an axis that " + sizes(first) + " lacks");
  for (Node* s : n.srcs()) {
    Ref shape = shape_of(s);
    bool fits = rank(shape) == rank(first) && s->dtype == n.dtype();
    for (int i = 0; fits && i < rank(first); ++i)
      fits = i == n.i() || may_be_equal(dim(shape, i), dim(first, i));
    if (!fits) return no(m, "parts " + sizes(first) + " and " + sizes(shape) + " do not join");
  }
  return same_type(m);
}
Ref copy_law(const Match& m) { return !m.root.has_object() ? no(m, "it names no device") : same_type(m); }

// Which part of `old` a store writes: a chain of views in which every element occurs once.
Ref base_of_view(Ref view) {
  for (;;) {
    switch (view.op()) {
      case Op::Reshape:
      case Op::Permute:
      case Op::Shrink:
      case Op::Pad:  // a strided slice: what it adds is shrunk away again
      case Op::Flip:
      case Op::Bitcast:
      case Op::Detach:
        break;
      case Op::Expand:
        if (max_numel(shape_of(view)) != max_numel(shape_of(view.src(0)))) return view;
        break;
      default:
        return view;
    }
    view = view.src(0);
  }
}
Ref write_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() != 2 || !n.src(1).is(Op::Store)) return no(m, "it is After(old, Store(view, x))");
  Ref old = n.src(0);
  // Views of a view: both lead to the same node.
  for (Ref at = n.src(1).src(0), base = base_of_view(at);; at = at.src(0)) {
    if (same(at, old)) return same_type(m);
    if (same(at, base))
      return no(m, "what is stored to is no view of " + brief(old, 2) + " with every element once");
  }
}
Ref store_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() != 2 || n.dtype() != DType::Void) return no(m, "it is Store(view, x)");
  Ref view = n.src(0), x = n.src(1);
  if (view.dtype() != x.dtype()) return no(m, "stores " + type_text(x) + " to " + type_text(view));
  if (!same(shape_of(view), shape_of(x)))
    return no(m, "stores " + sizes(shape_of(x)) + " to " + sizes(shape_of(view)));
  return yes(m);
}
Ref roots_law(const Match& m) {
  for (Node* s : m.root.srcs())
    if (s->dtype == DType::Void) return no(m, "its sources are values");
  return yes(m);
}

constexpr Rule kTensorLaws[] = {
    rule(any(Op::Arange), arange_law),    rule(any(Op::Reshape), reshape_law),
    rule(any(Op::Permute), permute_law),  rule(any(Op::Expand), expand_law),
    rule(any(Op::Pad), box_law),          rule(any(Op::Shrink), box_law),
    rule(any(Op::Flip), flip_law),        rule(any(Op::Reduce), reduce_law),
    rule(any(Op::Index), rows_law),       rule(any(Op::Cat), cat_law),
    rule(any(Op::Contiguous), same_type), rule(any(Op::ContiguousBackward), same_type),
    rule(any(Op::Detach), same_type),     rule(any(Op::Copy), copy_law),
    rule(any(Op::After), write_law),      rule(any(Op::Store), store_law),
    rule(any(Op::Sink), roots_law),
};
constexpr Rule kStorageLaws[] = {
    rule(any(Op::Buffer), buffer_law),
    rule(any(Op::Leaf), leaf_law),
    rule(any(Op::Var), bounds_law),
    rule(any(Op::Bind), bind_law),
};
constexpr Rule kCallLaws[] = {
    rule(any(Op::Param), call_param_law),
    rule(any(Op::Device), device_law),
    rule(any(Op::ScalarParam), bounds_law),
};

// --- kernels and programs

Ref flat_param_law(const Match& m) {
  Ref n = m.root;
  if (n.i() < 0 || n.nsrc() != 1 || !is_shape(n.src(0), 1))
    return no(m, "a Param of a kernel has a slot and a flat shape");
  return n.lanes() == 1 ? strong_value(m) : no(m, "a buffer has no lanes");
}
Ref local_law(const Match& m) {
  Ref size = m.root.src(0);
  if (!is_shape(size, 1) && !(size.is_const() && is_int(size.dtype())))
    return no(m, "its source is its size");
  return strong_value(m);
}
Ref range_law(const Match& m) {
  Ref n = m.root, extent = n.src(0);
  if (!is_int(n.dtype()) || extent.dtype() != n.dtype() || n.lanes() != 1)
    return no(m, "it counts in the integer dtype of its extent");
  if (n.range_kind() > RangeKind::Lane) return no(m, "it has no kind");
  if (stage(m) == Stage::Kernel && n.dtype() != DType::WeakInt)
    return no(m, "loops of kernel graphs count in weak integers");
  return value(m);
}
Ref special_law(const Match& m) {
  if (!m.root.has_object() || m.root.str().empty()) return no(m, "it has no name");
  return is_int(m.root.dtype()) && m.root.src(0).dtype() == m.root.dtype()
             ? value(m)
             : no(m, "it counts in the integer dtype of its extent");
}
Ref iota_law(const Match& m) { return is_int(m.root.dtype()) ? value(m) : no(m, "it counts in integers"); }
Ref splat_law(const Match& m) {
  Ref s = m.root.src(0);
  if (s.lanes() != 1 || s.dtype() != m.root.dtype())
    return no(m, "it repeats a scalar of its dtype, not " + type_text(s));
  return value(m);
}
Ref extract_law(const Match& m) {
  Ref n = m.root, s = n.src(0);
  if (n.lanes() != 1 || s.dtype() != n.dtype() || n.i() < 0 || n.i() >= s.lanes())
    return no(m, "lane " + std::to_string(n.i()) + " of " + type_text(s));
  return value(m);
}

// What an Index may point into, past the effects it waits for.
Ref memory_of(Ref n) {
  while (n.is(Op::After) && n.nsrc()) n = n.src(0);
  return n;
}
bool is_memory(Ref n) {
  n = memory_of(n);
  return n.is(Op::Param) || n.is(Op::Local) || n.is(Op::Stage);
}
// Lanes that an Index asks for: its own, or those of its offset or gate. With none of them it serves any
// access.
int lanes_of(Ref index) {
  int lanes = index.lanes();
  for (int k = 1; k < index.nsrc(); ++k) lanes = std::max(lanes, index.src(k).lanes());
  return lanes;
}
Ref address_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() < 2 || n.nsrc() > 3 || !is_memory(n.src(0)))
    return no(m, "it is Index(buffer, offset[, gate])");
  Ref offset = n.src(1);
  if (n.dtype() != n.src(0).dtype())
    return no(m, "an element of " + type_text(n.src(0)) + " is no " + type_text(n));
  bool kernel = stage(m) == Stage::Kernel;
  if (kernel ? offset.dtype() != DType::WeakInt : !is_int(offset.dtype()))
    return no(m, kernel ? "offsets of kernel graphs are weak integers, not " + type_text(offset)
                        : "an offset is an integer, not " + type_text(offset));
  if (n.nsrc() == 3 && n.src(2).dtype() != DType::Bool)
    return no(m, "the gate is " + type_text(n.src(2)) + ", not bool");
  int lanes = lanes_of(n);
  for (int k = 0; k < n.nsrc(); ++k)
    if (n.src(k).lanes() != 1 && n.src(k).lanes() != lanes)
      return no(m, "an access of " + std::to_string(lanes) + " lanes by " + type_text(n.src(k)));
  return value(m);
}
// An access of a value: one element, or as many as the value has.
bool reaches(Ref index, Ref value) {
  return index.is(Op::Index) && index.dtype() == value.dtype() &&
         (lanes_of(index) == 1 || lanes_of(index) == value.lanes());
}
bool is_register(const Match& m, Ref n) { return stage(m) == Stage::Program && memory_of(n).is(Op::Acc); }

Ref load_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc()) return no(m, "it is Load(Index[, alternative])");
  Ref from = n.src(0);
  if (is_register(m, from)) {
    for (int k = 1; k < n.nsrc(); ++k)
      if (!n.src(k).is(Op::Range) && n.src(k).dtype() != DType::Void)
        return no(m, "after a register stand the loops it is read in");
    return from.dtype() == n.dtype() && from.lanes() == n.lanes()
               ? value(m)
               : no(m, "it reads " + type_text(n) + " from " + type_text(from));
  }
  if (n.nsrc() > 2 || !reaches(from, n))
    return no(m, "it is Load(Index[, alternative]) of the type of the buffer");
  if (n.nsrc() == 2) {
    Ref other = n.src(1);
    if (from.nsrc() < 3) return no(m, "an alternative without a gate");
    if (other.dtype() != n.dtype() || other.lanes() != n.lanes())
      return no(m, "its alternative is " + type_text(other));
  }
  return strong_value(m);
}
Ref put_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() != 2 || n.dtype() != DType::Void) return no(m, "it is Store(Index, value)");
  Ref to = n.src(0), x = n.src(1);
  if (is_register(m, to))
    return to.dtype() == x.dtype() && to.lanes() == x.lanes()
               ? yes(m)
               : no(m, "it sets " + type_text(to) + " to " + type_text(x));
  return reaches(to, x) ? yes(m) : no(m, "it is Store(Index, value) of the type of the buffer");
}
Ref register_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc() || n.src(0).dtype() != n.dtype() || n.src(0).lanes() != n.lanes())
    return no(m, "it starts from a value of its type");
  for (int k = 1; k < n.nsrc(); ++k)
    if (!n.src(k).is(Op::Range)) return no(m, "after the value stand loops");
  return strong_value(m);
}
// After(x, effects...) is x.
Ref ordered_law(const Match& m) {
  Ref n = m.root;
  if (n.nsrc() < 2 || n.src(0).dtype() != n.dtype() || n.src(0).lanes() != n.lanes())
    return no(m, "it is After(x, effects...) of the type of x");
  for (int k = 1; k < n.nsrc(); ++k)
    if (n.src(k).dtype() != DType::Void) return no(m, "after x stand effects");
  return yes(m);
}
// A vector to a scalar, or values over loops.
Ref fold_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc() || !is_sum_like(n.reduce_op())) return no(m, "its op cannot reduce");
  if (n.nsrc() == 1 && n.reduce_axes() == 0 && n.src(0).lanes() > 1)
    return n.lanes() == 1 && n.src(0).dtype() == n.dtype() ? value(m)
                                                           : no(m, "a vector folds to a scalar of its dtype");
  if (stage(m) == Stage::Program) return no(m, "in a program only vectors are folded");
  int values = first_range(n);
  if (n.reduce_axes() > static_cast<std::uint64_t>(values)) return no(m, "it has fewer values than it says");
  for (int k = 0; k < n.nsrc(); ++k) {
    Ref s = n.src(k);
    if (k < values && (s.dtype() != n.dtype() || s.lanes() != n.lanes()))
      return no(m, "it reduces " + type_text(s) + " to " + type_text(n));
    if (k >= values && !s.is(Op::Range)) return no(m, "after its values stand ranges");
  }
  return strong_value(m);
}
Ref stage_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc() || n.i() < 0 || n.i() > static_cast<int>(Place::Scratch))
    return no(m, "it is Stage(value, ranges...) at a place");
  for (int k = 1; k < n.nsrc(); ++k)
    if (!n.src(k).is(Op::Range)) return no(m, "after its value stand ranges");
  return same_type(m);
}
Ref end_law(const Match& m) {
  Ref n = m.root;
  int first = first_range(n);
  for (int k = first; k < n.nsrc(); ++k)
    if (!n.src(k).is(Op::Range)) return no(m, "after its effects stand the ranges it closes");
  if (n.dtype() != DType::Void) return no(m, "it has no value");
  if (stage(m) == Stage::Program)
    return first == n.nsrc() - 1 ? yes(m) : no(m, "it ends one loop: End(effects..., range)");
  return first ? yes(m) : no(m, "it closes no effect");
}
Ref wmma_law(const Match& m) {
  return is_object(m.root, Op::Wmma) && m.root.src(2).dtype() == m.root.dtype()
             ? value(m)
             : no(m, "it has the type of its accumulator");
}
Ref effects_law(const Match& m) {
  for (Node* s : m.root.srcs())
    if (s->dtype != DType::Void) return no(m, "its sources are effects");
  return m.root.dtype() == DType::Void ? yes(m) : no(m, "it has no value");
}
Ref kernel_roots_law(const Match& m) {
  for (Node* s : m.root.srcs())
    if (s->op != Op::End) return no(m, "its sources are Ends");
  return m.root.nsrc() ? yes(m) : no(m, "it does nothing");
}
Ref if_law(const Match& m) {
  return m.root.src(0).dtype() == DType::Bool && m.root.src(0).lanes() == 1
             ? yes(m)
             : no(m, "its condition is a bool");
}
Ref endif_law(const Match& m) { return m.root.src(0).is(Op::If) ? yes(m) : no(m, "it ends an If"); }
Ref allowed(const Match& m) { return yes(m); }

constexpr Rule kMemoryLaws[] = {
    rule(any(Op::Param), flat_param_law), rule(any(Op::ScalarParam), bounds_law),
    rule(any(Op::Local), local_law),      rule(any(Op::Range), range_law),
    rule(any(Op::Iota), iota_law),        rule(any(Op::Splat), splat_law),
    rule(any(Op::Extract), extract_law),  rule(any(Op::Index), address_law),
    rule(any(Op::Load), load_law),        rule(any(Op::Store), put_law),
    rule(any(Op::After), ordered_law),    rule(any(Op::Reduce), fold_law),
    rule(any(Op::End), end_law),          rule(any(Op::Barrier), effects_law),
    rule(any(Op::Wmma), wmma_law),
};
constexpr Rule kKernelLaws[] = {
    rule(any(Op::Stage), stage_law),
    rule(any(Op::Sink), kernel_roots_law),
};
constexpr Rule kProgramLaws[] = {
    rule(any(Op::Special), special_law), rule(any(Op::Acc), register_law), rule(any(Op::If), if_law),
    rule(any(Op::EndIf), endif_law),     rule(any(Op::Linear), allowed),
};

// --- schedules

bool is_scalar_argument(Ref n) { return n.is(Op::ScalarParam) || n.is(Op::Bind) || n.is(Op::Var); }

// The kernel's Params by slot are the call's arguments: buffers first, then scalars.
Ref run_law(const Match& m) {
  Ref n = m.root;
  if (!n.nsrc()) return no(m, "it calls nothing");
  int buffers = 1;
  while (buffers < n.nsrc() && n.src(buffers).is(Op::Param)) ++buffers;
  for (int k = buffers; k < n.nsrc(); ++k)
    if (!is_scalar_argument(n.src(k))) return no(m, "arguments are Params, then scalars");
  Ref kernel = n.src(0);
  if (kernel.is(Op::Copy))
    return buffers == 3 && n.nsrc() == 3 ? yes(m) : no(m, "a Copy takes its target and its source");
  if (!kernel.is(Op::Sink)) return no(m, "it calls a kernel or a Copy");
  for (Ref s : toposort(kernel)) {
    std::int64_t last = s.is(Op::Param) ? buffers - 1 : s.is(Op::ScalarParam) ? n.nsrc() - buffers : -1;
    if (last < 0) continue;
    if (s.i() >= last) return no(m, "no argument for " + brief(s, 1));
    Ref argument = n.src(static_cast<int>(s.i()) + (s.is(Op::Param) ? 1 : buffers));
    if (argument.dtype() != s.dtype() || (s.is(Op::Param) && !same(argument.src(0), s.src(0))))
      return no(m, brief(argument, 1) + " is given for " + brief(s, 1));
  }
  return yes(m);
}
Ref calls_law(const Match& m) {
  for (Node* s : m.root.srcs())
    if (s->op != Op::Call) return no(m, "its sources are Calls");
  return yes(m);
}
constexpr Rule kScheduleLaws[] = {
    rule(any(Op::Linear), calls_law),       rule(any(Op::Call), run_law),   rule(any(Op::Copy), copy_law),
    rule(any(Op::Param), flat_param_law),   rule(any(Op::Var), bounds_law), rule(any(Op::Bind), bind_law),
    rule(any(Op::ScalarParam), bounds_law),
};

// --- the whole

constexpr std::string_view kNames[] = {"tensor", "call", "schedule", "kernel", "program"};

// The offender, what it stands on, and who uses it.
[[noreturn]] void fail(std::span<const Ref> order, Ref node, Stage of, std::string_view where,
                       std::string_view why) {
  constexpr int kMostLines = 24, kMostUsers = 3;
  std::string s = "[spec] " + std::string(where) + ": a " + std::string(name(of)) +
                  " graph may not hold this " + std::string(info(node.op()).name) + ": " + std::string(why) +
                  "\n";
  std::string text = print(node);
  std::size_t start = text.size();
  for (int lines = 0; start && (text[start - 1] != '\n' || lines++ < kMostLines);) --start;
  (s += start ? "...\n" : "") += std::string_view(text).substr(start);
  int users = 0;
  for (Ref n : order) {
    bool uses = false;
    for (Node* source : n.srcs()) uses |= source == node.node();
    if (uses && ++users <= kMostUsers) s += "used by " + brief(n, 2) + '\n';
  }
  s.pop_back();
  throw InternalError(s);
}

Op root_of(Stage of) { return of == Stage::Schedule || of == Stage::Program ? Op::Linear : Op::Sink; }

// Nodes beneath the kernels of a schedule belong to the kernels.
std::vector<Ref> outside_kernels(Ref root) {
  std::vector<Ref> out;
  std::vector<Ref> calls;
  for (Node* call : root.srcs()) {
    Ref c = call;
    if (!c.is(Op::Call) || !c.nsrc() || !c.src(0).is(Op::Sink)) {
      calls.push_back(c);
      continue;
    }
    for (int k = 1; k < c.nsrc(); ++k) calls.push_back(c.src(k));
  }
  out = toposort(calls);
  for (Node* call : root.srcs())
    if (call->op == Op::Call && call->nsrc && call->src[0]->op == Op::Sink) out.emplace_back(call);
  out.push_back(root);
  return out;
}

std::atomic<bool> g_always{false};

}  // namespace

std::string_view name(Stage of) { return kNames[static_cast<int>(of)]; }
Stage parse_stage(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text) return static_cast<Stage>(i);
  throw ValueError("[spec] there is no stage named \"" + std::string(text) + '"');
}

const RuleSet& spec(Stage of) {
  static const RuleSet& values = *new RuleSet(RuleSet(kLeafLaws) + RuleSet(kElementwiseLaws));
  static const RuleSet* const kSpecs[] = {
      new RuleSet(values + kStorageLaws + kTensorLaws),
      new RuleSet(values + kCallLaws + kTensorLaws),
      new RuleSet(values + kScheduleLaws),
      new RuleSet(values + kMemoryLaws + kKernelLaws),
      new RuleSet(values + kMemoryLaws + kProgramLaws),
  };
  return *kSpecs[static_cast<int>(of)];
}

void verify(std::span<const Ref> roots, Stage of, std::string_view where) {
  Context context{of, intern(Op::Tuple, DType::Void, 1, {}), {}};
  Ref root = roots[0];
  std::vector<Ref> order =
      of == Stage::Schedule && root.is(Op::Linear) ? outside_kernels(root) : toposort(roots);
  auto fail_at = [&](Ref n, std::string_view why) { fail(order, n, of, where, why); };
  for (Ref n : order) {
    // What laws may count on.
    if (int wants = info(n.op()).nsrc; wants >= 0 && n.nsrc() != wants)
      fail_at(n, "it takes " + std::to_string(wants) + " sources, not " + std::to_string(n.nsrc()));
    context.why = "no rule of the spec knows the op";
    if (!spec(of).apply(n, &context)) fail_at(n, context.why);
    if (n.is(root_of(of)) && !same(n, root)) fail_at(n, "it is a root only");
  }
  if (of == Stage::Tensor) return;
  if (!root.is(root_of(of))) fail_at(root, "the root is a " + std::string(info(root_of(of)).name));
  if (of == Stage::Schedule) {
    for (Node* call : root.srcs())
      if (call->src[0]->op == Op::Sink) verify(Ref(call->src[0]), Stage::Kernel, where);
    return;
  }
  if (auto offence = of == Stage::Kernel    ? broken_loop(order)
                     : of == Stage::Program ? broken_order(root)
                                            : std::nullopt)
    fail_at(offence->node, offence->why);
  // A slot is one argument; above its low half stand marks.
  absl::flat_hash_map<std::pair<Op, std::int64_t>, Ref> slots;
  for (Ref n : order)
    if (n.is(Op::Param) || n.is(Op::ScalarParam)) {
      auto [it, fresh] = slots.emplace(std::pair(n.op(), n.i() & 0xffffffff), n);
      if (!fresh) fail_at(n, "its slot is also " + brief(it->second, 1));
    }
}

bool checking() { return g_always.load(std::memory_order_relaxed) || flags::spec() > 0; }
void set_always_check(bool on) { g_always.store(on, std::memory_order_relaxed); }

}  // namespace pg::rules
