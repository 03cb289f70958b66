#include "tensor/cell.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_set>

#include "engine/engine.h"
#include "runtime/device.h"
#include "tensor/watch.h"

namespace pg::detail {
namespace {

std::uint64_t g_serial = 0;  // guarded like the next
Cell* g_cells = nullptr;     // all of them; guarded by the graph's lock

constexpr std::int64_t kPlaceholder = -1;

bool is_placeholder(Ref node) { return node.is(Op::Param) && node.i() == kPlaceholder; }

void forget(View& view) {
  view.node = UOp();
  if (view.prev) view.prev->next = view.next;
  if (view.next) view.next->prev = view.prev;
  if (view.cell->views == &view) view.cell->views = view.next;
  view.prev = view.next = nullptr;
}

void remember(View& view, Ref node) {
  if (view.node) forget(view);
  view.node = node;
  view.next = view.cell->views;
  if (view.next) view.next->prev = &view;
  view.cell->views = &view;
}

// Views hold what they read only as long as the contents are these: a stale one would look like a reader.
void contents_changed(Cell& cell) {
  while (cell.views) forget(*cell.views);
}

bool repeats_elements(Ref expand) {
  Ref to = shape_of(expand), from = shape_of(expand.src(0));
  int extra = rank(to) - rank(from);
  for (int i = 0; i < rank(to); ++i) {
    Ref d = dim(to, i);
    if (!d.is_const(1) && (i < extra || !same(d, dim(from, i - extra)))) return true;
  }
  return false;
}

Ref leaf_of(Cell& cell) {
  if (!cell.leaf) {
    if (!cell.tag) {
      cell.tag = std::make_shared<CellTag>();
      cell.tag->cell = &cell;
    }
    Payload* id = object_payload(new LeafId(cell.tag, cell.version));
    cell.leaf = make(Op::Leaf, cell.node.ref().dtype(), {cell.node}, Arg{.p = id});
  }
  return cell.leaf;
}

// To whoever watches this thread: a handle and its Cell are used.
void tell(const Tensor& x) {
  CellWatch* watch = cell_watch();
  if (!watch) return;
  watch->handle_read(x);
  bool detached = !x.impl()->whole && static_cast<View&>(*x.impl()).detached;
  watch->touched(*x.impl()->cell, !detached && !NoGrad::enabled());
}

void tell(Cell& cell) {
  if (CellWatch* watch = cell_watch()) watch->touched(cell, false);
}

Ref detached(Ref node) { return node.is(Op::Detach) ? node : make(Op::Detach, node.dtype(), {node}); }

}  // namespace

Cell* first_cell() { return g_cells; }
std::uint64_t last_serial() { return g_serial; }

bool try_retain(Impl& impl) {
  std::uint32_t refs = impl.refs.load(std::memory_order_relaxed);
  while (refs)
    if (impl.refs.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) return true;
  return false;
}

Device device_named(std::string_view name) {
  if (name.empty()) return default_device();
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::string canonical = runtime::canonical_device(name);
  std::lock_guard lock(mutex);
  return &*names->insert(std::move(canonical)).first;
}

Device default_device() { return device_named(engine::default_device()); }

Cell::Cell(Ref contents_node, Device where, bool has_history)
    : Impl(true, this), serial(++g_serial), device(where), tracked(has_history) {
  node = contents_node;
  next = g_cells;
  if (next) next->prev = this;
  g_cells = this;
}

View::View(Cell* of, UOp movements) : Impl(false, of), chain(std::move(movements)) {
  cell->refs.fetch_add(1, std::memory_order_relaxed);
  for (Ref n = chain; !is_placeholder(n); n = n.src(0)) {
    detached |= n.is(Op::Detach);
    repeats |= n.is(Op::Expand) && repeats_elements(n);
  }
}

Ref chain_of(Impl& impl) {
  if (!impl.whole) return static_cast<View&>(impl).chain;
  Ref node = impl.cell->node;
  return param(kPlaceholder, node.dtype(), shape_of(node));
}

Ref apply_chain(Ref chain, Ref base, bool with_detach) {
  absl::InlinedVector<Ref, 8> steps;
  for (Ref n = chain; !is_placeholder(n); n = n.src(0)) steps.push_back(n);
  Ref x = base;
  for (std::size_t i = steps.size(); i-- > 0;) {
    Ref n = steps[i];
    switch (n.op()) {
      case Op::Reshape:
        x = reshape(x, n.src(1));
        break;
      case Op::Permute:
        x = permute(x, n.ints());
        break;
      case Op::Expand:
        x = expand(x, n.src(1));
        break;
      case Op::Pad:
        x = pad(x, n.src(1), n.src(2));
        break;
      case Op::Shrink:
        x = shrink(x, n.src(1), n.src(2));
        break;
      case Op::Flip:
        x = flip(x, static_cast<std::uint64_t>(n.i()));
        break;
      case Op::Bitcast:
        x = bitcast(x, n.dtype());
        break;
      case Op::Detach:
        x = with_detach ? detached(x) : x;
        break;
      default:
        throw InternalError("[view] " + std::string(info(n.op()).name) + " is no view");
    }
  }
  return x;
}

Ref contents(Impl& impl) {
  Ref node = impl.cell->node;
  return impl.whole ? node : apply_chain(static_cast<View&>(impl).chain, node);
}

Value read(const Tensor& x, const char* op) {
  Impl* impl = x.impl();
  if (!impl)
    throw ValueError("[" + std::string(op) +
                     "] the tensor holds nothing: it was never given a value, or was moved from");
  Cell& cell = *impl->cell;
  if (is_recording()) tell(x);
  bool history = !NoGrad::enabled();
  if (!history && (cell.marked || cell.tracked)) {
    Ref node = contents(*impl);
    return {cell.tracked ? detached(node) : node, false, cell.device};
  }
  Ref node = cell.marked ? leaf_of(cell) : cell.node.ref();
  bool tracked = cell.marked || cell.tracked;
  if (!impl->whole) {
    auto& view = static_cast<View&>(*impl);
    if (!view.node) remember(view, apply_chain(view.chain, node));
    node = view.node;
    tracked = tracked && !view.detached;
  }
  return {node, tracked && is_float(node.dtype()), cell.device};
}

Tensor computed(Ref node, bool tracked, Device device) {
  return Tensor(new Cell(node, device, tracked && is_float(node.dtype())));
}

Tensor make_view(const Tensor& x, Ref value, Ref chain) {
  Cell* cell = x.impl()->cell;
  if (is_placeholder(chain)) {
    cell->refs.fetch_add(1, std::memory_order_relaxed);
    return Tensor(static_cast<Impl*>(cell));
  }
  auto* view = new View(cell, chain);
  if (!NoGrad::enabled() || !(cell->marked || cell->tracked)) remember(*view, value);
  return Tensor(static_cast<Impl*>(view));
}

// --- contents
// ------------------------------------------------------------------------------------------------------

namespace {

// Whether the contents are in storage of the Cell's own, to which writes go: a whole write keeps it.
bool stored(Ref node) {
  while (node.is(Op::After)) node = node.src(0);
  return node.is(Op::Buffer);
}

}  // namespace

Ref placed(Ref node, Device device) {
  if (!device || device == default_device() || !engine::device_of(node).empty()) return node;
  return make(Op::Copy, node.dtype(), {node}, Arg{.p = str_payload(*device)});
}

void forget_views(Cell& cell) { contents_changed(cell); }

void settle(Cell& cell, Ref node) {
  UOp keep = cell.leaf;
  cell.node = node;
  // The same target over what is now the shorter way to the same contents.
  if (keep) cell.leaf = make(Op::Leaf, node.dtype(), {node}, keep->arg);
  contents_changed(cell);
}

void mark(Cell& cell, bool on) {
  if (cell.marked == on) return;
  tell(cell);
  if (on && cell.tracked) {
    // Gradients stop at a target.
    cell.tracked = false;
    settle(cell, detached(cell.node));
  }
  cell.marked = on;
  cell.leaf = UOp();
  contents_changed(cell);
}

void overwrite(Cell& cell, Ref leaf) {
  cell.node = leaf;
  cell.tracked = false;
  cell.leaf = UOp();
  cell.history_end = nullptr;
  ++cell.version;
  cell.last_write = "jit";
  contents_changed(cell);
}

void end_history(Cell& cell, const char* why) {
  if (!cell.tracked) return;
  Ref node = cell.node;
  Ref buffer = node->cold ? node->cold->materialized.ref() : Ref();
  cell.tracked = false;
  cell.history_end = why;
  settle(cell, buffer ? buffer : detached(node));
}

namespace {

// The narrowest elements that a view looks at through other ones, where they may lie apart: a wider element
// cannot be stored to them in one piece.
std::size_t narrowest_below(Ref chain) {
  std::size_t least = itemsize(chain.dtype());
  for (Ref n = chain; !is_placeholder(n); n = n.src(0)) {
    Ref from = n.src(0);
    // Side by side in the storage itself they are one piece.
    if (n.is(Op::Bitcast) && !(is_placeholder(from) && least == itemsize(chain.dtype())))
      least = std::min(least, itemsize(from.dtype()));
  }
  return least;
}

// The same bits as elements of that many bytes.
Ref in_pieces(Ref x, std::size_t bytes) {
  if (rank(shape_of(x)) == 0) x = reshape(x, shape_node(Dims(std::array<std::int64_t, 1>{1})));
  return bitcast(x, bytes == 1 ? u8 : bytes == 2 ? u16 : u32);
}

}  // namespace

void write(const Tensor& x, const Value& value, const char* op) {
  Impl& impl = *x.impl();
  Cell& cell = *impl.cell;
  if (is_recording()) tell(x);
  Ref old = cell.node, v = value.node, view = old;
  bool whole = impl.whole, tracked = value.tracked && !cell.marked;
  if (value.tracked && cell.marked) v = detached(v);
  Ref target = shape_of(old);
  if (!impl.whole) {
    auto& through = static_cast<View&>(impl);
    target = shape_of(through.chain);
    if (through.repeats)
      throw ShapeError("[" + std::string(op) +
                       "] the target repeats elements by an expand: which of them to write is open");
    // What a view reads as is no matter here, so Detach says nothing.
    Ref chain = through.chain;
    while (chain.is(Op::Detach)) chain = chain.src(0);
    whole = is_placeholder(chain);
    if (!whole) {
      // A base that is a movement itself would be taken for a part of the view.
      old = placed(old, cell.device);
      if (old.has(kMovement) || old.is(Op::Bitcast) || old.is(Op::Detach) || old.is(Op::Const))
        old = make(Op::Contiguous, old.dtype(), {old});
      view = apply_chain(chain, old, false);
    }
  }
  v = expand(v, target);
  if (!whole)
    if (std::size_t bytes = narrowest_below(static_cast<View&>(impl).chain); bytes < itemsize(v.dtype())) {
      view = in_pieces(view, bytes);
      v = in_pieces(v, bytes);
    }
  if (whole)
    cell.node = stored(old) ? after(old, store(old, v)) : v;
  else
    cell.node = after(old, store(view, v));
  cell.kept = false;
  cell.tracked = whole ? tracked : cell.tracked || tracked;
  cell.leaf = UOp();
  cell.history_end = nullptr;
  ++cell.version;
  cell.last_write = op;
  contents_changed(cell);
}

bool is_constant(Ref node) {
  while (node.has(kMovement) && !node.is(Op::Pad)) node = node.src(0);
  return node.is(Op::Const);
}

// --- computing
// -----------------------------------------------------------------------------------------------------

namespace {

struct Root {
  Impl* impl;
  UOp node;
  Tensor alive;           // the handle, while the lock is not held
  std::uint64_t version;  // of the contents
};

Ref materialized(Ref node) { return node->cold ? node->cold->materialized.ref() : Ref(); }

std::int64_t bytes_of(Ref node) {
  return max_numel(shape_of(node)) * static_cast<std::int64_t>(itemsize(node.dtype()));
}

class Pending {
 public:
  explicit Pending(std::vector<Root>& roots) : roots_(roots) {
    for (Root& r : roots_) taken_.insert(r.impl);
  }

  // Writes that the roots read become roots themselves, so that they happen in place; clones so that they are
  // kept.
  void add_sources() {
    std::vector<Ref> nodes;
    for (Root& r : roots_) nodes.push_back(r.node);
    std::vector<Ref> order = toposort(nodes);
    auto seen = [&](Node* n) { return n->mark - 1 < order.size() && order[n->mark - 1].node() == n; };
    for (Cell* c = first_cell(); c; c = c->next)
      if ((c->kept || c->node->op == Op::After) && seen(c->node.ref().node())) add(*c);
  }

  // Whoever still reads contents that are about to be overwritten keeps the write from going in place. Small
  // readers are computed first, in the same run; histories that the write makes useless are dropped; values
  // that have storage by now let go of what they were computed from.
  void add_readers() {
    absl::flat_hash_map<Node*, std::int64_t> overwritten;
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      Ref n = roots_[i].node;
      while (n.is(Op::After)) n = n.src(0);
      if (n.is(Op::Buffer) && !same(n, roots_[i].node)) overwritten[n.node()] = bytes_of(n);
    }
    if (overwritten.empty()) return;
    std::vector<Cell*> cells;
    std::vector<Ref> nodes;
    for (Cell* c = first_cell(); c; c = c->next)
      if (c->node->op != Op::Buffer && !taken_.contains(c)) {
        cells.push_back(c);
        nodes.push_back(c->node);
      }
    std::vector<Ref> order = toposort(nodes);
    std::vector<Reading> facts(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) facts[i] = reading_of(order[i], facts, overwritten);
    // Marks are of this walk until the first change to the graph.
    std::vector<std::pair<Cell*, Reading>> found;
    for (Cell* c : cells)
      if (const Reading& r = facts[c->node->mark - 1]; r.holds) found.emplace_back(c, r);
    for (auto& [c, r] : found) {
      if (Ref buffer = materialized(c->node)) {
        // A history above a leaf that is overwritten can never be used again: it needs no copy of what it
        // read.
        if (r.plainly || !r.overwriter) continue;
        c->tracked = false;
        c->history_end = r.overwriter;
        settle(*c, buffer);
      } else if (r.bytes) {
        if (bytes_of(c->node) <= r.bytes) add(*c);
      } else if (!c->tracked) {
        settle(*c, with_storage(c->node));
      }
    }
  }

 private:
  // How a node depends on contents that are overwritten.
  struct Reading {
    std::int64_t bytes = 0;            // the largest it must read to be computed
    bool holds = false;                // refers to any at all
    bool plainly = false;              // other than as a target that was written since
    const char* overwriter = nullptr;  // what wrote such a target
  };

  static Reading reading_of(Ref n, const std::vector<Reading>& facts,
                            const absl::flat_hash_map<Node*, std::int64_t>& overwritten) {
    Reading r;
    if (auto it = overwritten.find(n.node()); it != overwritten.end())
      return {it->second, true, true, nullptr};
    for (Node* s : n.srcs()) {
      const Reading& from = facts[s->mark - 1];
      r.bytes = std::max(r.bytes, from.bytes);
      r.holds |= from.holds;
      r.plainly |= from.plainly;
      if (from.overwriter) r.overwriter = from.overwriter;
    }
    if (materialized(n)) r.bytes = 0;
    if (n.is(Op::Leaf) && r.holds) {
      const LeafId& id = n.object<LeafId>();
      if (Cell* target = id.tag->cell; target && target->version != id.version) {
        r.plainly = false;
        r.overwriter = target->last_write;
      }
    }
    return r;
  }

  // The same value over the storage that its parts have by now.
  static Ref with_storage(Ref node) {
    std::vector<std::pair<Ref, Ref>> known;
    for (Ref n : toposort(node))
      if (Ref m = materialized(n)) known.emplace_back(n, m);
    return substitute(node, known);
  }

  void add(Cell& c) {
    if (taken_.contains(&c) || is_constant(c.node) || materialized(c.node) || !try_retain(c)) return;
    tell(c);
    taken_.insert(&c);
    roots_.push_back({&c, c.node, Tensor(static_cast<Impl*>(&c)), c.version});
  }

  std::vector<Root>& roots_;
  absl::flat_hash_set<Impl*> taken_;
};

}  // namespace

void realize(std::span<Impl* const> impls) {
  std::vector<Root> roots;
  std::vector<UOp> nodes, held;
  {
    GraphScope scope;
    absl::flat_hash_set<Impl*> seen;
    for (Impl* impl : impls) {
      if (!seen.insert(impl).second) continue;
      impl->refs.fetch_add(1, std::memory_order_relaxed);
      Tensor alive(impl);
      tell(*impl->cell);
      Ref node = impl->whole ? impl->cell->node.ref() : read(alive, "realize").node;
      if (node.is(Op::Buffer) || is_constant(node)) continue;
      if (Ref buffer = materialized(node)) {
        if (impl->whole && !impl->cell->tracked) settle(*impl->cell, buffer);
        continue;
      }
      roots.push_back({impl, node, std::move(alive), impl->cell->version});
    }
    if (roots.empty()) return;
    Pending pending(roots);
    pending.add_sources();
    pending.add_readers();
    for (Root& r : roots) {
      nodes.push_back(placed(r.node, r.impl->cell->device));
      // A history that is kept reads the old contents again.
      if (r.impl->whole && r.impl->cell->tracked)
        for (Ref n = r.node; n.is(Op::After);) held.emplace_back(n = n.src(0));
    }
  }
  std::vector<UOp> results = engine::realize(nodes);
  GraphScope scope;
  std::vector<std::pair<View*, Ref>> views;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    Impl& impl = *roots[i].impl;
    Ref node = roots[i].node, result = results[i];
    Cell& cell = *impl.cell;
    // Another thread may have been here meanwhile.
    if (cell.version != roots[i].version || (impl.whole && !same(cell.node, node))) continue;
    bool history = cell.tracked || (!impl.whole && cell.marked);
    if (history && !materialized(node)) cold(node).materialized = result;
    if (impl.whole && !history) settle(cell, result);
    if (!impl.whole) views.emplace_back(&static_cast<View&>(impl), history ? node : result);
  }
  // Last, since what becomes of a Cell makes its views forget.
  for (auto& [view, node] : views) remember(*view, node);
  roots.clear();
}

// --- lifetime
// ------------------------------------------------------------------------------------------------------

namespace {

void destroy(Impl* impl) {
  GraphScope scope;
  if (impl->whole) {
    auto* cell = static_cast<Cell*>(impl);
    if (cell->tag) cell->tag->cell = nullptr;
    if (cell->prev) cell->prev->next = cell->next;
    if (cell->next) cell->next->prev = cell->prev;
    if (g_cells == cell) g_cells = cell->next;
    delete cell;
  } else {
    auto* view = static_cast<View*>(impl);
    Cell* cell = view->cell;
    if (view->node) forget(*view);
    delete view;
    if (cell->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(cell);
  }
}

}  // namespace
}  // namespace pg::detail

namespace pg {

void Tensor::retain() const noexcept {
  if (impl_) impl_->refs.fetch_add(1, std::memory_order_relaxed);
}

void Tensor::release() noexcept {
  if (impl_ && impl_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::destroy(impl_);
}

}  // namespace pg
