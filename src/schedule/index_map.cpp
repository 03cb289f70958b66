#include "schedule/index_map.h"

#include "rewrite/rewrite.h"
#include "rules/symbolic.h"

namespace pg::schedule {
namespace {

Ref simplify(Ref x) { return rewrite(x, rules::symbolic(), {.name = "simplify index"}); }

// Reshape by groups: axes on both sides are paired up from the left until their products agree, so that only
// axes that really mix are divided. Where a group is one axis on either side, nothing or one side of the
// arithmetic remains.
Index reshape_index(Ref from, Ref to, const Index& index) {
  int nf = rank(from), nt = rank(to);
  Index out;
  out.valid = index.valid;
  out.at.resize(static_cast<std::size_t>(nf));
  int f = 0, t = 0;
  while (f < nf || t < nt) {
    int f0 = f, t0 = t;
    Ref pf = idx(1), pt = idx(1);
    if (f < nf) pf = dim(from, f++);
    if (t < nt) pt = dim(to, t++);
    while (!same(pf, pt)) {
      bool take_from =
          pf.is_const() && pt.is_const() ? pf.i() < pt.i() : f < nf && (t == nt || !pf.is_const());
      if (take_from && f < nf)
        pf = simplify(pf * dim(from, f++));
      else if (t < nt)
        pt = simplify(pt * dim(to, t++));
      else if (f < nf)
        pf = simplify(pf * dim(from, f++));
      else
        break;  // symbolic sizes that only their values make equal
    }
    // Trailing axes of one element belong to the group before.
    if (t0 == t) {
      for (int k = f0; k < f; ++k) out.at[static_cast<std::size_t>(k)] = idx(0);
      continue;
    }
    Ref flat = index.at[static_cast<std::size_t>(t0)];
    for (int k = t0 + 1; k < t; ++k) flat = flat * dim(to, k) + index.at[static_cast<std::size_t>(k)];
    for (int k = f - 1; k > f0; --k) {
      Ref d = dim(from, k);
      out.at[static_cast<std::size_t>(k)] = simplify(flat % d);
      flat = flat / d;
    }
    if (f > f0) out.at[static_cast<std::size_t>(f0)] = f - f0 > 1 || t - t0 > 1 ? simplify(flat) : flat;
  }
  return out;
}

}  // namespace

Ref Index::node() const {
  absl::InlinedVector<Ref, 9> parts(at.begin(), at.end());
  parts.push_back(valid);
  return make(Op::Tuple, DType::Void, 1, parts);
}

Index source_index(Ref n, const Index& index) {
  Index out = index;
  Ref from = shape_of(n.src(0));
  auto size = static_cast<std::size_t>(rank(from));
  switch (n.op()) {
    case Op::Reshape:
      return reshape_index(from, n.src(1), index);
    case Op::Permute: {
      Dims order = n.ints();
      for (std::size_t i = 0; i < order.size(); ++i) out.at[static_cast<std::size_t>(order[i])] = index.at[i];
      return out;
    }
    case Op::Expand:
      return broadcast_index(n.src(1), from, index);
    case Op::Shrink:
      for (std::size_t i = 0; i < size; ++i) out.at[i] = index.at[i] + dim(n.src(2), static_cast<int>(i));
      return out;
    case Op::Flip:
      for (std::size_t i = 0; i < size; ++i)
        if (n.i() >> i & 1) out.at[i] = dim(from, static_cast<int>(i)) - idx(1) - index.at[i];
      return out;
    case Op::Pad: {
      for (std::size_t i = 0; i < size; ++i) {
        int axis = static_cast<int>(i);
        Ref offset = dim(n.src(2), axis), extent = dim(from, axis);
        if (same(extent, dim(n.src(1), axis))) continue;
        out.at[i] = simplify(index.at[i] - offset);
        out.valid = out.valid & ge(index.at[i], offset) & (index.at[i] < offset + extent);
      }
      out.valid = simplify(out.valid);
      return out;
    }
    default:
      throw InternalError("[schedule] " + std::string(info(n.op()).name) + " is no movement");
  }
}

Index broadcast_index(Ref shape, Ref source_shape, const Index& index) {
  if (same(shape, source_shape)) return index;
  int r = rank(shape), rs = rank(source_shape);
  Index out;
  out.valid = index.valid;
  for (int i = 0; i < rs; ++i) {
    Ref d = dim(source_shape, i);
    int k = r - rs + i;
    bool repeats = d.is_const(1) && !dim(shape, k).is_const(1);
    out.at.push_back(repeats ? idx(0) : index.at[static_cast<std::size_t>(k)]);
  }
  return out;
}

Ref flatten(Ref shape, const Index& index) {
  Ref flat = idx(0);
  for (int i = 0; i < rank(shape); ++i) flat = flat * dim(shape, i) + index.at[static_cast<std::size_t>(i)];
  return simplify(flat);
}

}  // namespace pg::schedule
