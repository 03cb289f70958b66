// A kernel graph as the code generator sees it: its loops, and how each access to memory moves with each of
// them.
#pragma once

#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "ir/build.h"

namespace pg::codegen {

/// How an offset moves with one loop variable.
struct Stride {
  std::int64_t value = 0;
  bool regular = true;  // false: not linear in the variable (division, table lookup, ...)
};

struct Access {
  Ref index;  // the Index node
  DType dtype;
  bool store;
  std::vector<Stride> strides;  // by loop, in the order of Kernel::loops
  std::vector<bool> gated;      // whether the gate depends on the loop
};

/// The slot of the Param that is accessed, or -1.
inline std::int64_t slot_of(const Access& a) {
  return a.index.src(0).is(Op::Param) ? a.index.src(0).i() : -1;
}

struct Kernel {
  explicit Kernel(Ref sink);
  Ref sink;
  std::vector<Ref> loops;   // output ranges in order, then those of reductions, then those that fill panels
  std::size_t outputs = 0;  // how many are output ranges
  std::size_t body = 0;     // and of reductions: what comes after fills panels
  std::vector<Ref> reduces;
  std::vector<Access> accesses;  // but those that fill panels
  std::uint64_t pinned = 0;      // loops in each turn of which a panel is filled: they stay loops
  std::uint64_t shared = 0;      // output loops that every store stands in
  std::vector<bool> in_values;   // by loop: used as a value, not just in offsets and gates

  int loop_of(Ref range) const;
  bool is_reduce(std::size_t loop) const { return loop >= outputs; }
  std::int64_t extent(std::size_t loop) const { return loops[loop].src(0).hi(); }
};

/// Whether two Reduces or Ends close the same loops, in the same order.
bool same_loops(Ref a, Ref b);

/// Sets of loops a node depends on, as masks over Kernel::loops; loops a Reduce closes are not in its mask.
absl::flat_hash_map<Node*, std::uint64_t> dependences(const Kernel& kernel);

/// What a panel of the load holds: what is computed from it, step by step up, with nothing but what moves
/// with its own loops. `order` is the kernel in order, `masks` the dependences.
Ref panel_value(Ref load, std::span<const Ref> order, const absl::flat_hash_map<Node*, std::uint64_t>& masks);

/// How `factor` times an offset moves with every loop; `masks` are the dependences. Adds to what `out` holds.
void collect_strides(Ref offset, std::int64_t factor, const Kernel& kernel,
                     const absl::flat_hash_map<Node*, std::uint64_t>& masks, std::vector<Stride>& out);

}  // namespace pg::codegen
