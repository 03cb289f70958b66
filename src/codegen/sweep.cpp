#include "codegen/sweep.h"

#include <algorithm>

#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/linearize.h"
#include "codegen/stage.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;
using Becomes = absl::InlinedVector<std::pair<Ref, Ref>, 8>;

// The output loop, its copies and lanes.
Refs dims_of(const Kernel& k) {
  Refs dims;
  for (RangeKind kind : {RangeKind::Loop, RangeKind::Upcast, RangeKind::Lane})
    for (std::size_t i = 0; i < k.outputs; ++i)
      if (k.loops[i].range_kind() == kind) dims.push_back(k.loops[i]);
  return dims;
}

std::int64_t size_of(const Refs& dims) {
  std::int64_t size = 1;
  for (Ref d : dims) size *= d.src(0).hi();
  return size;
}

Ref place(const Refs& dims) {
  Ref sum = idx(0);
  for (Ref d : dims) sum = sum * d.src(0).hi() + d;
  return sum;
}

}  // namespace

Ref sweep(Ref kernel, Ref loop, std::int64_t rows, const Target& target) {
  Kernel k(kernel);
  if (k.reduces.size() != 1 || !loop.src(0).is_const() || rows < 1 || loop.src(0).i() % rows) return nullptr;
  Ref reduce = k.reduces[0];
  Refs others;
  bool closes = false;
  for (int i = 1; i < reduce.nsrc(); ++i) {
    if (same(reduce.src(i), loop))
      closes = true;
    else
      others.push_back(reduce.src(i));
  }
  Refs dims = dims_of(k);
  bool fixed = std::all_of(dims.begin(), dims.end(), [](Ref d) { return d.src(0).is_const(); });
  // In several loops the memory would have to begin anew in each turn of the outer ones; with none left the
  // results would be read where they are summed up.
  auto loops =
      std::count_if(dims.begin(), dims.end(), [](Ref d) { return d.range_kind() == RangeKind::Loop; });
  if (!closes || loops != 1 || !fixed) return nullptr;

  Fresh fresh(kernel);
  DType t = reduce.dtype();
  std::int64_t size = size_of(dims);
  Ref memory = make(Op::Local, t, {shape_node(Dims(&size, 1))}, Arg{.i = fresh.slot++});
  // Stores a value for all of `over`, within `outer`.
  auto filled = [&](Ref into, const Refs& over, Ref value, Ref outer) {
    Refs effects{make(Op::Store, DType::Void, {make(Op::Index, t, {into, place(over)}), value})};
    if (outer) effects.push_back(outer);
    effects.insert(effects.end(), over.begin(), over.end());
    return make(Op::After, t, {into, make(Op::End, DType::Void, 1, effects)});
  };
  auto copies = [&] {
    Refs out;
    for (Ref d : dims) out.push_back(range(fresh.range++, d.range_kind(), d.src(0)));
    return out;
  };
  memory = filled(memory, copies(), scalar_const(t, identity_of(reduce.reduce_op(), t)), nullptr);

  Refs over = copies();
  Ref turn =
      loop.src(0).i() > rows ? range(fresh.range++, RangeKind::Loop, idx(loop.src(0).i() / rows)) : Ref();
  Ref sum = make(Op::Load, t, {make(Op::Index, t, {memory, place(over)})});
  for (std::int64_t row = 0; row < rows; ++row) {
    Becomes becomes{{loop, turn ? turn * rows + row : idx(row)}};
    for (std::size_t i = 0; i < dims.size(); ++i) becomes.emplace_back(dims[i], over[i]);
    Ref value = substitute(reduce.src(0), becomes);
    if (!others.empty()) {
      Refs srcs{value};
      srcs.insert(srcs.end(), others.begin(), others.end());
      value = make(Op::Reduce, t, 1, srcs, reduce->arg);
    }
    sum = joined(reduce, sum, value, target);
  }
  memory = filled(memory, over, sum, turn);
  Becomes result{{reduce, make(Op::Load, t, {make(Op::Index, t, {memory, place(dims)})})}};
  return substitute(kernel, result);
}

}  // namespace pg::codegen
