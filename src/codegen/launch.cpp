#include "codegen/launch.h"

#include <algorithm>
#include <array>
#include <string>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;
using Becomes = absl::flat_hash_map<Node*, Ref>;

Ref special(const std::string& name, std::int64_t extent) {
  return make(Op::Special, DType::WeakInt, {idx(extent)}, Arg{.p = str_payload(name)});
}
std::int64_t extent_of(Ref range) { return range.src(0).i(); }

// One hardware index for ranges given innermost first.
void share(const Refs& ranges, const std::string& name, Becomes& becomes) {
  std::int64_t size = 1, step = 1;
  for (Ref r : ranges) size *= extent_of(r);
  for (Ref r : ranges) {
    Ref index = special(name, size), value = step == 1 ? index : index / step;
    step *= extent_of(r);
    becomes[r.node()] = step == size ? value : value % extent_of(r);
  }
}

// Hardware axes for ranges given outermost first; axis 0 moves fastest. One each where there are enough and
// each is long enough, else neighbours share an axis. What does not fit stays a loop.
void lay_out(const Refs& ranges, const std::string& name, const std::array<std::int64_t, 3>& most,
             Becomes& becomes) {
  std::array<Refs, 3> axes;
  std::array<std::int64_t, 3> size{1, 1, 1};
  bool one_each = ranges.size() <= 3;
  for (std::size_t a = 0; a < ranges.size() && one_each; ++a)
    one_each = extent_of(ranges[ranges.size() - 1 - a]) <= most[a];
  std::size_t axis = 0;
  for (std::size_t left = ranges.size(); left-- > 0;) {
    if (one_each) axis = ranges.size() - 1 - left;
    std::int64_t n = extent_of(ranges[left]);
    while (axis < 3 && n > most[axis] / size[axis]) ++axis;
    if (axis == 3) break;
    axes[axis].push_back(ranges[left]);
    size[axis] *= n;
  }
  for (std::size_t a = 0; a < 3; ++a) share(axes[a], name + std::to_string(a), becomes);
}

}  // namespace

Ref assign_launch(Ref kernel, const Target& target) {
  Kernel k(kernel);
  Refs threads, groups, items;
  Becomes becomes;
  for (std::size_t i = 0; i < k.loops.size(); ++i) {
    Ref r = k.loops[i];
    switch (r.range_kind()) {
      case RangeKind::Thread:
        threads.push_back(r);
        break;
      case RangeKind::Loop:
        if (!target.has_groups || i >= k.outputs || !r.src(0).is_const()) break;
        [[fallthrough]];
      case RangeKind::Global:
        groups.push_back(r);
        break;
      case RangeKind::Local:
      case RangeKind::Warp:
        items.push_back(r);
        break;
      default:
        break;
    }
  }
  for (Ref n : toposort(kernel))
    if (n.is(Op::Range) && n.range_kind() == RangeKind::GroupReduce) items.push_back(n);
  // A warp is made of neighbours.
  for (std::size_t n = items.size(), i = 0; i < n; ++i)
    if (items[i].range_kind() == RangeKind::Warp)
      std::rotate(items.begin() + static_cast<std::ptrdiff_t>(i),
                  items.begin() + static_cast<std::ptrdiff_t>(i) + 1, items.end());
  std::reverse(threads.begin(), threads.end());
  share(threads, "thread", becomes);
  lay_out(groups, "gidx", target.max_global, becomes);
  lay_out(items, "lidx", target.max_local, becomes);
  for (Ref r : items)
    if (!becomes.contains(r.node()))
      throw InternalError("[launch] the items of a group do not fit the device's three axes");
  if (becomes.empty()) return kernel;

  Refs srcs;
  for (Ref n : toposort(kernel)) {
    if (becomes.contains(n.node())) continue;
    srcs.clear();
    bool changed = false, closes = n.is(Op::End) || n.is(Op::Reduce);
    for (int i = 0; i < n.nsrc(); ++i) {
      Ref s = n.src(i);
      auto it = becomes.find(s.node());
      changed |= it != becomes.end();
      if (it == becomes.end())
        srcs.push_back(s);
      else if (!(closes && i > 0 && s.is(Op::Range)))
        srcs.push_back(it->second);
    }
    if (changed) becomes[n.node()] = make(n.op(), n.dtype(), n.lanes(), srcs, n->arg);
  }
  return becomes[kernel.node()];
}

}  // namespace pg::codegen
