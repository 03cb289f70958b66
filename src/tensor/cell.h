// Cells: what stands behind a Tensor. A Cell is a storage identity with the node of its current contents; a
// view is a chain of movements on a Cell. The laws of writing, realizing and history are here; the operations
// build on them.
//
// Everything here is called inside a GraphScope, whose lock also guards the Cells, unless it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "ir/build.h"
#include <pangrad/tensor.h>

namespace pg::detail {

/// The interned canonical name of a device; null for a constant, which lives anywhere.
using Device = const std::string*;
/// Throws DeviceError on unknown names. An empty name is the default device.
Device device_named(std::string_view name);
Device default_device();

struct Cell;

/// What a Tensor points to: a Cell, or a view of one.
struct Impl {
  std::atomic<std::uint32_t> refs{1};
  const bool whole;  // a Cell
  Cell* const cell;
  /// Cell: the contents. View: the chain applied to them, null until asked for again.
  UOp node;

 protected:
  Impl(bool is_whole, Cell* of) : whole(is_whole), cell(of) {}
  ~Impl() = default;
};

/// Movements (and bitcasts, Detach) as nodes on a placeholder that stands for the Cell's contents.
struct View final : Impl {
  View(Cell* of, UOp movements);
  UOp chain;
  bool detached = false;  // through detach()
  bool repeats = false;   // through an expand: an element appears more than once
  View *prev = nullptr, *next = nullptr;
};

/// Finds the Cell of a Leaf as long as there is one.
struct CellTag {
  Cell* cell = nullptr;
};

/// The identity of a gradient target: which Cell, and which of its contents.
struct LeafId final : Payload {
  LeafId(std::shared_ptr<CellTag> of, std::uint64_t v) : tag(std::move(of)), version(v) { hash = 0x1EAF; }
  std::shared_ptr<CellTag> tag;
  std::uint64_t version;
  std::string text() const override { return "v" + std::to_string(version); }
};

struct Cell final : Impl {
  Cell(Ref contents, Device where, bool has_history);
  const std::uint64_t serial;  // Cells made later have greater ones
  Device device;
  bool tracked;               // the contents depend on a gradient target, differentiably
  bool marked = false;        // is a gradient target
  bool kept = false;          // a clone or copy: stored as soon as a reader is computed
  std::uint64_t version = 0;  // counts writes
  const char* last_write = nullptr;
  const char* history_end = nullptr;  // why there is no history any more
  UOp leaf;                           // Leaf(node), while marked and asked for
  Tensor grad;
  std::shared_ptr<CellTag> tag;
  View* views = nullptr;
  Cell *prev = nullptr, *next = nullptr;  // of all Cells
};

/// The last opened cell; the rest follow by `next`.
Cell* first_cell();
/// The serial of the Cell made last.
std::uint64_t last_serial();

/// One more reference, unless the last one is just being given up.
bool try_retain(Impl& impl);

/// Operand of an operation: a node, whether it has history, where it lives.
struct Value {
  Ref node;
  bool tracked = false;
  Device device = nullptr;
  DType dtype() const { return node.dtype(); }
  Ref shape() const { return shape_of(node); }
};
/// What a tensor reads as now. Throws ValueError, naming the operation, if it holds nothing.
Value read(const Tensor& x, const char* op);
/// The contents alone: no Leaf, no history of the Cell itself.
Ref contents(Impl& impl);

/// A new Cell.
Tensor computed(Ref node, bool tracked, Device device);
/// A view of x by a movement, given as what it makes of a node (called on the value and on the chain). x
/// itself if it changes nothing.
template <class F>
Tensor view_of(const Tensor& x, const char* op, F movement);
/// As above, for two results that were made already.
Tensor make_view(const Tensor& x, Ref value, Ref chain);
/// The chain of x, or the placeholder of its Cell.
Ref chain_of(Impl& impl);
/// Rebuilds a chain on other contents.
Ref apply_chain(Ref chain, Ref base, bool with_detach = true);

/// Gives the storage of x new contents, through its view. `value` has the shape (or one that broadcasts) and
/// dtype of x.
void write(const Tensor& x, const Value& value, const char* op);
/// Replaces the contents by others of equal value (a Buffer, say).
void settle(Cell& cell, Ref node);
/// Makes a Cell a gradient target, or no more.
void mark(Cell& cell, bool on);
/// Whether it is one number everywhere, which needs no storage.
bool is_constant(Ref node);
/// The contents on a device that was named; constants else live anywhere.
Ref placed(Ref node, Device device);
/// Forgets the history of the contents, saying why.
void end_history(Cell& cell, const char* why);

/// Computes tensors; not inside a GraphScope. See docs of Tensor::realize.
void realize(std::span<Impl* const> impls);

template <class F>
Tensor view_of(const Tensor& x, const char* op, F movement) {
  Ref value = read(x, op).node;
  Ref moved = movement(value);
  if (same(moved, value)) return x;
  return make_view(x, moved, movement(chain_of(*x.impl())));
}

}  // namespace pg::detail
