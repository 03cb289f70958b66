#include "codegen/expand.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

class Expander {
 public:
  explicit Expander(Ref kernel) : order_(toposort(kernel)) {
    for (Ref n : order_)
      if (n.is(Op::Range) && (n.range_kind() == RangeKind::Upcast || n.range_kind() == RangeKind::Unroll))
        axes_.push_back(n);
    // The shortest axis changes fastest: what the others share stays in registers only while it passes.
    std::sort(axes_.begin(), axes_.end(), [](Ref a, Ref b) {
      return std::pair(-a.src(0).i(), a.range_id()) < std::pair(-b.src(0).i(), b.range_id());
    });
    if (axes_.size() > 64) throw InternalError("[expand] more than 64 unrolled loops");
  }

  Ref run() {
    for (Ref n : order_) expand(n);
    return copies_[order_.back().node()].refs[0];
  }

 private:
  // The copies of a node: one for each combination of the unrolled axes it depends on, the last axis fastest.
  struct Copies {
    std::uint64_t axes = 0;
    Refs refs;
  };

  std::int64_t extent(int axis) const { return axes_[static_cast<std::size_t>(axis)].src(0).i(); }
  std::int64_t count(std::uint64_t axes) const {
    std::int64_t n = 1;
    for (std::uint64_t m = axes; m; m &= m - 1) n *= extent(std::countr_zero(m));
    return n;
  }
  // The copy of `c` that combination `at` of `axes` sees.
  Ref pick(const Copies& c, std::uint64_t axes, std::int64_t at) const {
    std::int64_t index = 0, scale = 1;
    for (int i = static_cast<int>(axes_.size()) - 1; i >= 0; --i) {
      if (!(axes >> i & 1)) continue;
      std::int64_t digit = at % extent(i);
      at /= extent(i);
      if (c.axes >> i & 1) {
        index += digit * scale;
        scale *= extent(i);
      }
    }
    return c.refs[static_cast<std::size_t>(index)];
  }

  void expand(Ref n) {
    Copies out;
    if (n.is(Op::Range)) {
      for (std::size_t i = 0; i < axes_.size(); ++i)
        if (same(axes_[i], n)) {
          out.axes = std::uint64_t{1} << i;
          for (std::int64_t v = 0; v < extent(static_cast<int>(i)); ++v) out.refs.push_back(idx(v));
        }
      if (n.range_kind() == RangeKind::Lane)
        out.refs.push_back(make(Op::Iota, DType::WeakInt, {}, {}, static_cast<int>(n.src(0).i())));
      else if (out.refs.empty())
        out.refs.push_back(n);
      copies_[n.node()] = std::move(out);
      return;
    }
    for (Node* s : n.srcs()) out.axes |= copies_[s].axes;
    if (n.is(Op::Reduce))
      reduce(n, out);
    else if (n.is(Op::End) || n.is(Op::Sink))
      gather(n, out);
    else
      for (std::int64_t at = 0; at < count(out.axes); ++at) out.refs.push_back(copy(n, out.axes, at));
    copies_[n.node()] = std::move(out);
  }

  Ref copy(Ref n, std::uint64_t axes, std::int64_t at) const {
    Refs srcs;
    int lanes = 1;
    bool changed = false;
    for (Node* s : n.srcs()) {
      Ref c = pick(copies_.find(s)->second, axes, at);
      changed |= c.node() != s;
      lanes = std::max(lanes, c.lanes());
      srcs.push_back(c);
    }
    if (!changed) return n;
    if (n.has(kElementwise) && lanes > 1) {
      if (n.is(Op::Cast) || n.is(Op::Bitcast))
        return srcs[0].is(Op::Splat) ? splat(make(n.op(), n.dtype(), {srcs[0].src(0)}), lanes)
                                     : make(n.op(), n.dtype(), lanes, srcs);
      return alu(n.op(), srcs);
    }
    if (n.is(Op::Index) && lanes > 1)
      for (std::size_t i = 1; i < srcs.size(); ++i) srcs[i] = splat(srcs[i], lanes);
    if (n.is(Op::Load)) return load(srcs[0], n.dtype());
    if (n.is(Op::Store)) return store(srcs[0], srcs[1], n->arg);
    return make(n.op(), n.dtype(), lanes, srcs, n->arg);
  }

  // An offset that moves by `step` from lane to lane, as the offset of lane 0; null if it does not.
  static Ref lane_offset(Ref offset, std::int64_t& step) {
    step = 0;
    if (offset.is(Op::Splat)) return offset.src(0);
    if (offset.is(Op::Iota)) {
      step = 1;
      return idx(0);
    }
    if (offset.is(Op::Add) || offset.is(Op::Sub)) {
      std::int64_t a, b;
      Ref x = lane_offset(offset.src(0), a), y = lane_offset(offset.src(1), b);
      if (!x || !y) return nullptr;
      step = offset.is(Op::Sub) ? a - b : a + b;
      return alu(offset.op(), {x, y});
    }
    if (offset.is(Op::Mul) && offset.src(1).is(Op::Splat)) {
      Ref factor = offset.src(1).src(0), x = lane_offset(offset.src(0), step);
      if (!x || (step && !factor.is_const())) return nullptr;
      if (step) step *= factor.i();
      return x * factor;
    }
    return nullptr;
  }

  // One contiguous access where the lanes are neighbours.
  static Ref contiguous(Ref index) {
    std::int64_t step;
    Ref base = index.lanes() > 1 ? lane_offset(index.src(1), step) : nullptr;
    if (!base || step != 1) return index;
    Refs srcs{index.src(0), base};
    if (index.nsrc() > 2) srcs.push_back(index.src(2));
    return make(Op::Index, index.dtype(), index.lanes(), srcs);
  }
  static Ref load(Ref index, DType t) {
    if (index.lanes() > 1 && index.src(1).is(Op::Splat)) {
      Ref offset = index.src(1).src(0), buffer = index.src(0);
      if (index.nsrc() == 2)
        return splat(make(Op::Load, t, {make(Op::Index, t, {buffer, offset})}), index.lanes());
      if (Ref gate = index.src(2); gate.is(Op::Splat))
        return splat(make(Op::Load, t, {make(Op::Index, t, {buffer, offset, gate.src(0)})}), index.lanes());
    }
    return make(Op::Load, t, {contiguous(index)}, {}, index.lanes());
  }
  static Ref store(Ref index, Ref value, Arg how) {
    int lanes = std::max(index.lanes(), value.lanes());
    Ref srcs[] = {index.lanes() > 1 ? contiguous(index) : index, splat(value, lanes)};
    return make(Op::Store, DType::Void, 1, srcs, how);
  }

  // Effects: all copies together. The unrolled ranges they closed are gone.
  void gather(Ref n, Copies& out) const {
    Refs srcs;
    for (Node* s : n.srcs()) {
      if (s->op == Op::Range) {
        RangeKind kind = Ref(s).range_kind();
        if (kind == RangeKind::Upcast || kind == RangeKind::Unroll || kind == RangeKind::Lane) continue;
      }
      const Copies& c = copies_.find(s)->second;
      srcs.insert(srcs.end(), c.refs.begin(), c.refs.end());
    }
    out.axes = 0;
    out.refs.push_back(make(n.op(), n.dtype(), 1, srcs, n->arg));
  }

  void reduce(Ref n, Copies& out) const {
    std::uint64_t closed = 0;
    Refs loops;
    int lanes = 0;
    for (Node* s : n.srcs()) {
      if (s->op != Op::Range || same(s, n.src(0))) continue;
      Ref r = s;
      if (r.range_kind() == RangeKind::Unroll)
        closed |= copies_.find(s)->second.axes;
      else if (r.range_kind() == RangeKind::Lane)
        lanes = static_cast<int>(r.src(0).i());
      else
        loops.push_back(r);
    }
    const Copies& value = copies_.find(n.srcs()[0])->second;
    out.axes = value.axes & ~closed;
    std::uint64_t inner = closed;
    for (std::int64_t at = 0; at < count(out.axes); ++at) {
      Refs srcs;
      for (std::int64_t k = 0; k < count(inner); ++k)
        srcs.push_back(pick_both(value, out.axes, at, inner, k));
      if (lanes)
        for (Ref& s : srcs) s = splat(s, lanes);
      int width = srcs[0].lanes();
      auto values = srcs.size();
      Ref r = srcs[0];
      if (loops.empty()) {
        for (std::size_t k = 1; k < values; ++k) r = alu(n.reduce_op(), {r, srcs[k]});
      } else {
        srcs.insert(srcs.end(), loops.begin(), loops.end());
        r = make(Op::Reduce, n.dtype(), width, srcs, reduce_arg(n.reduce_op(), values));
      }
      if (lanes) r = make(Op::Reduce, n.dtype(), {r}, reduce_arg(n.reduce_op()));
      out.refs.push_back(r);
    }
  }
  Ref pick_both(const Copies& c, std::uint64_t outer, std::int64_t at, std::uint64_t inner,
                std::int64_t k) const {
    // Interleave the two combinations into one over both sets.
    std::uint64_t both = outer | inner;
    std::int64_t index = 0, scale = 1;
    for (int i = static_cast<int>(axes_.size()) - 1; i >= 0; --i) {
      if (!(both >> i & 1)) continue;
      std::int64_t& from = outer >> i & 1 ? at : k;
      index += from % extent(i) * scale;
      from /= extent(i);
      scale *= extent(i);
    }
    return pick(c, both, index);
  }

  std::vector<Ref> order_;
  std::vector<Ref> axes_;
  absl::flat_hash_map<Node*, Copies> copies_;
};

}  // namespace

Ref expand(Ref kernel) { return Expander(kernel).run(); }

}  // namespace pg::codegen
