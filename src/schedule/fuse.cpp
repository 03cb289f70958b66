// Which values get storage of their own, and how every kernel reaches what it reads. Works from results to
// inputs: when a node's turn comes, all its users are placed, so what each of them needs of it is known.
#include <algorithm>

#include "schedule/plan.h"

namespace pg::schedule {
namespace {

bool passes_through(Ref n) {
  return n.is(Op::Detach) || n.is(Op::Leaf) || n.is(Op::ContiguousBackward) || n.is(Op::Contiguous);
}

// The base of a view that is written, past movements and bitcasts.
Ref view_base(Ref view) {
  while (view.has(kMovement) || view.is(Op::Bitcast) || view.is(Op::Detach) || view.is(Op::Leaf))
    view = view.src(0);
  return view;
}

// Arithmetic per element, in units of a simple vector instruction.
double own_work(Ref n) {
  switch (n.op()) {
    case Op::Cast:
    case Op::Bitcast:
      return 0;
    case Op::Div:
    case Op::Sqrt:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::CDiv:
    case Op::CMod:
      return 4;
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Tanh:
      return 12;
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Pow:
      return 30;
    case Op::Threefry:
      return 80;
    default:
      return n.has(kElementwise) ? 1 : 0;
  }
}

double elements(Ref n) { return static_cast<double>(max_numel(shape_of(n))); }

// A sum of products that is worth loops made for it alone.
bool is_large_product(Ref n) {
  constexpr double kLarge = 1 << 18;
  if (!n.is(Op::Reduce) || n.reduce_op() != Op::Add) return false;
  Ref value = n.src(0);
  while (value.is(Op::Cast) || value.has(kMovement)) value = value.src(0);
  return value.is(Op::Mul) && elements(n.src(0)) >= kLarge;
}

}  // namespace

Ref storage_node(Ref n) {
  Ref kept = n;  // what has the storage if the walk ends at a movement
  for (Ref s = n;;) {
    if (s.is(Op::Detach) || s.is(Op::Leaf) || s.is(Op::ContiguousBackward))
      kept = s = s.src(0);
    else if (s.is(Op::Reshape) || (s.is(Op::Contiguous) && !s.src(0).has(kMovement)))
      s = s.src(0);
    else if (s.is(Op::Const) || s.is(Op::Arange) || s.is(Op::ScalarParam) || s.is(Op::Bind))
      return n;  // no storage that anything could rename
    else
      return s.has(kMovement) ? kept : s;
  }
}

Planner::Planner(Ref call, std::string_view device, const TargetOf& targets,
                 const absl::flat_hash_set<std::int64_t>& demoted)
    : call_(call), default_device_(device), targets_(targets), demoted_(demoted), order_(toposort(call)) {
  for (Ref n : order_)
    if (n.is(Op::Param)) {
      auto slot = static_cast<std::size_t>(n.i() & (kDonated - 1));
      if (buffers_.size() <= slot) buffers_.resize(slot + 1);
      buffers_[slot] = {n.dtype(), max_numel(n.src(0)), n.nsrc() > 1 ? n.src(1).str() : default_device_};
      buffer_[n.node()] = static_cast<int>(slot);
    }
  params_ = buffers_.size();
}

// Sources say where a node is. What must be stored (and so what reads it) is in one place, whoever reads it:
// if no source names one, where its readers are. The rest is computed where it is wanted.
void Planner::place_nodes() {
  absl::flat_hash_set<Node*> stays;  // needs something stored that no source places
  auto inherit = [&](Ref n) {
    std::string& d = devices_[n.node()];
    for (Node* s : n.srcs())
      if (d.empty()) d = devices_[s];
    return d.empty();
  };
  for (Ref n : order_) {
    if (n.is(Op::Param)) {
      devices_[n.node()] = n.nsrc() > 1 ? n.src(1).str() : default_device_;
    } else if (n.is(Op::Copy)) {
      devices_[n.node()] = n.str();
    } else if (inherit(n)) {
      bool on_stored =
          std::any_of(n.srcs().begin(), n.srcs().end(), [&](Node* s) { return stays.contains(s); });
      if (on_stored || n.is(Op::After) || n.is(Op::Contiguous)) stays.insert(n.node());
    }
  }
  if (stays.empty()) return;
  for (std::size_t i = order_.size(); i-- > 0;) {
    Ref n = order_[i];
    if (n.is(Op::Copy) || n.is(Op::Sink) || devices_[n.node()].empty()) continue;
    for (Node* s : n.srcs())
      if (stays.contains(s) && devices_[s].empty()) devices_[s] = devices_[n.node()];
  }
  for (Ref n : order_)
    if (stays.contains(n.node()) && inherit(n)) devices_[n.node()] = default_device_;
}

std::string Planner::device_of(Ref node) {
  if (devices_.empty()) place_nodes();
  const std::string& d = devices_[node.node()];
  return d.empty() ? default_device_ : d;
}

int Planner::new_buffer(Ref node) {
  buffers_.push_back({node.dtype(), max_numel(shape_of(node)), device_of(node)});
  return static_cast<int>(buffers_.size()) - 1;
}

void Planner::find_forced() {
  device_of(call_);
  for (Node* r : call_.srcs()) {
    roots_.push_back(storage_node(r));
    forced_.insert(roots_.back().node());
    if (std::string& device = devices_[roots_.back().node()]; device.empty()) {
      device = default_device_;
      device_free_.insert(roots_.back().node());
    }
  }
  for (Ref n : order_) {
    if (n.is(Op::After)) forced_.insert(n.node());
    if (n.is(Op::Contiguous)) forced_.insert(storage_node(n).node());
    if (n.is(Op::Copy)) {
      forced_.insert(n.node());
      if (!devices_[n.src(0).node()].empty()) forced_.insert(storage_node(n.src(0)).node());
    }
    if (n.is(Op::Store)) continue;  // its view is no reader
    for (Node* s : n.srcs()) ++consumers_[s];
  }
}

void Planner::estimate_work() {
  absl::flat_hash_map<Node*, double> light;  // work, where reductions beneath are there already
  for (Ref n : order_) {
    double work = own_work(n), inputs = 0, beneath = work;
    bool stored = n.is(Op::Param) || forced_.contains(n.node());
    if (!stored && n.dtype() != DType::Void)
      for (Node* s : n.srcs()) {
        if (s->dtype == DType::Void) continue;
        // What was done for fewer elements is stored there if it was much.
        double share = std::min(1.0, elements(s) / std::max(1.0, elements(n)));
        work += work_[s] * share;
        beneath += light[s] * share;
        inputs += inputs_[s];
      }
    if (n.is(Op::Reduce)) work = (beneath + 1) * elements(n.src(0)) / std::max(1.0, elements(n));
    if (stored) work = 1;
    if (stored || n.is(Op::Reduce)) {
      beneath = 1;
      inputs = elements(n);
    }
    work_[n.node()] = work;
    inputs_[n.node()] = inputs;
    light[n.node()] = beneath;
  }
}

std::int64_t Planner::plan() {
  find_forced();
  estimate_work();
  for (std::size_t i = order_.size(); i-- > 0;) process(order_[i]);
  // A result that is an argument as it was keeps that argument from being overwritten.
  for (Ref r : roots_)
    if (overwriter_.contains(r.node())) return buffer_[r.node()];
  // A write in place may read what it overwrites only at the index it writes.
  for (auto& [node, k] : overwriter_) {
    const KernelPlan& kernel = kernels_[static_cast<std::size_t>(k)];
    if (!kernel.reads.contains(node)) continue;
    Ref offset = flatten(kernel.target_shape, kernel.target);
    for (int id : uses_[node]) {
      const Entry& e = entries_[static_cast<std::size_t>(id)];
      if (e.kernel == k && e.load && !same(flatten(shape_of(node), e.index), offset)) return buffer_[node];
    }
  }
  return -1;
}

void Planner::process(Ref n) {
  if (n.dtype() == DType::Void && !n.is(Op::Store)) return;
  if (n.is(Op::Store) || n.is(Op::Const) || n.is(Op::Bind) || n.is(Op::Var)) return;
  auto& entries = uses_[n.node()];
  bool stored = n.is(Op::Param);
  if (!stored) {
    bool forced = forced_.contains(n.node());
    if (!forced && entries.empty()) return;
    stored = forced || should_store(n, entries);
    if (stored) {
      // What no source places is made where it is first read.
      std::string& device = devices_[n.node()];
      if (device.empty()) device_free_.insert(n.node());
      if (device.empty() && !entries.empty())
        device =
            kernels_[static_cast<std::size_t>(entries_[static_cast<std::size_t>(entries[0])].kernel)].device;
      if (n.is(Op::After)) {
        start_write(n);
      } else if (n.is(Op::Copy)) {
        start_copy(n);
      } else {
        auto it = buffer_.find(n.node());  // given by a write that continues in it
        start_kernel(n, it != buffer_.end() ? it->second : new_buffer(n));
      }
    }
  }
  // By index: expanding adds entries, and the vector of them may move.
  for (std::size_t i = 0; i < uses_[n.node()].size(); ++i) {
    int id = uses_[n.node()][i];
    if (!stored) {
      expand_entry(id);
      continue;
    }
    Entry& e = entries_[static_cast<std::size_t>(id)];
    KernelPlan& kernel = kernels_[static_cast<std::size_t>(e.kernel)];
    if (elsewhere(n, kernel)) {
      expand_entry(id);
      continue;
    }
    e.load = true;
    kernel.reads.insert(n.node());
  }
}

// Stored for a kernel of another device, though it is of none itself: computed again.
bool Planner::elsewhere(Ref n, const KernelPlan& kernel) {
  return device_free_.contains(n.node()) && device_of(n) != kernel.device;
}

// Narrow weights that become wide ones in a few steps, of which a product of matrices keeps a panel: their
// elements are read in one turn each of the loops that they lie along, not in several as by a convolution.
bool Planner::widens_for_products(Ref n, const std::vector<int>& entries) const {
  constexpr double kSteps = 16;
  if (!is_float(n.dtype()) || work_.at(n.node()) > kSteps) return false;
  double bytes = 0;
  for (Ref m : toposort(n))
    if (m.is(Op::Param) || forced_.contains(m.node()))
      bytes += elements(m) * static_cast<double>(itemsize(m.dtype()));
  if (bytes * 2 > elements(n) * static_cast<double>(itemsize(n.dtype()))) return false;
  return std::all_of(entries.begin(), entries.end(), [&](int id) {
    const Entry& e = entries_[static_cast<std::size_t>(id)];
    if (!e.in_reduce) return false;
    for (Ref at : e.index.at)
      for (Ref m : toposort(at))
        if (m.is(Op::Add) && !m.src(1).is_const()) return false;
    return true;
  });
}

bool Planner::should_store(Ref n, const std::vector<int>& entries) const {
  if (n.has(kMovement) || passes_through(n) || n.is(Op::Arange) || n.is(Op::ScalarParam)) return false;
  double evals = 0, size = elements(n);
  bool in_reduce = false;
  std::int64_t loops = 0;
  bool second = false;
  for (int id : entries) {
    const Entry& e = entries_[static_cast<std::size_t>(id)];
    evals += e.evals;
    in_reduce |= e.in_reduce;
    const KernelPlan& kernel = kernels_[static_cast<std::size_t>(e.kernel)];
    loops = std::max(loops, kernel.next_range);
    second |= kernel.product && !same(kernel.product, n);
  }
  // A reduction is computed once: not again per user, nor per iteration of a loop it does not depend on. And
  // a kernel has so many loops at most: a sum of very many reductions reads the rest.
  // Few names are compared with all elements sooner than a kernel more runs.
  constexpr double kNames = 1 << 16;
  if (n.is(Op::Reduce) && elements(n.src(0)) >= kNames && names_elements(n) &&
      !begins_with_rest(n, entries[0]))
    return true;
  if (n.is(Op::Reduce))
    return entries.size() > 1 || in_reduce || evals * 4 > size * 5 || loops > kMostRanges ||
           (second && is_large_product(n));
  double work = work_.at(n.node());
  // What is costly is stored without the border that this puts around it, where no one looks behind a gate.
  for (Node* source : n.srcs()) {
    Ref s = source;
    bool pads = false;
    for (; s.has(kMovement); s = s.src(0)) pads |= s.is(Op::Pad);
    constexpr double kBorder = 4;
    if (pads && work_.at(s.node()) > kBorder && work <= work_.at(s.node()) + kBorder) return false;
  }
  // What expands from few elements (one-hot, masks, broadcasts) is cheaper to make again than to read.
  if (inputs_.at(n.node()) * 4 <= size && work <= 16) return false;
  // Twice the arithmetic is still no worse than a store, a load, and a kernel more.
  constexpr double kLoad = 1, kStore = 2, kPatience = 2, kLaunch = 4000;
  return evals * work > kPatience * (size * (work + kStore) + evals * kLoad) + kLaunch &&
         !widens_for_products(n, entries);
}

// Whether all that the kernel of an entry stores is a reduction, or that joined by one thing more.
bool Planner::begins_with_rest(Ref reduce, int entry) const {
  const KernelPlan& kernel =
      kernels_[static_cast<std::size_t>(entries_[static_cast<std::size_t>(entry)].kernel)];
  if (kernel.value < 0) return false;
  auto strip = [](Ref x) {
    while (x.has(kMovement) || passes_through(x)) x = x.src(0);
    return x;
  };
  Ref stored = strip(entries_[static_cast<std::size_t>(kernel.value)].node);
  return same(stored, reduce) || (stored.is(reduce.reduce_op()) &&
                                  (same(strip(stored.src(0)), reduce) || same(strip(stored.src(1)), reduce)));
}

int Planner::entry(Ref node, int kernel, const Index& index, double evals, bool in_reduce) {
  auto& list = uses_[node.node()];
  for (int id : list) {
    Entry& e = entries_[static_cast<std::size_t>(id)];
    if (e.kernel == kernel && same(e.index.valid, index.valid) &&
        std::equal(e.index.at.begin(), e.index.at.end(), index.at.begin(), index.at.end(),
                   [](Ref a, Ref b) { return same(a, b); })) {
      e.in_reduce |= in_reduce;
      return id;
    }
  }
  int id = static_cast<int>(entries_.size());
  entries_.push_back(
      {.node = node, .kernel = kernel, .index = index, .evals = evals, .in_reduce = in_reduce});
  list.push_back(id);
  return id;
}

int Planner::open_kernel(Ref node, int buffer, Ref shape) {
  int k = static_cast<int>(kernels_.size());
  kernels_.push_back({.node = node, .buffer = buffer, .device = device_of(node)});
  KernelPlan& kernel = kernels_.back();
  Index index;
  index.valid = bool_const(true);
  for (int i = 0; i < rank(shape); ++i) {
    Ref d = dim(shape, i);
    if (d.is_const(1)) {
      index.at.push_back(idx(0));
    } else {
      index.at.push_back(range(kernel.next_range++, RangeKind::Loop, d));
      kernel.ranges.push_back(index.at.back());
    }
  }
  kernel.target = index;
  kernel.target_shape = shape;
  buffer_[node.node()] = buffer;
  producer_[node.node()] = k;
  return k;
}

void Planner::start_kernel(Ref node, int buffer) {
  int k = open_kernel(node, buffer, shape_of(node));
  KernelPlan& kernel = kernels_[static_cast<std::size_t>(k)];
  kernel.value = static_cast<int>(entries_.size());
  entries_.push_back(
      {.node = node, .kernel = k, .index = kernel.target, .evals = elements(node), .in_reduce = false});
  expand_entry(kernel.value);
}

// After(old, Store(view, value)): a kernel over the view that stores the value into the storage of old, or of
// a copy.
void Planner::start_write(Ref node) {
  Ref old = node.src(0), view = node.src(1).src(0), value = node.src(1).src(1);
  Ref base = storage_node(old);
  bool whole = same(storage_node(view), base);
  auto given = buffer_.find(node.node());
  int buffer = given != buffer_.end() ? given->second : -1;
  bool donated = base.is(Op::Param) && (base.i() & kDonated) &&
                 !demoted_.contains(base.i() & (kDonated - 1)) && buffer < 0 &&
                 !overwriter_.contains(base.node());
  if (buffer < 0) buffer = donated ? buffer_[base.node()] : new_buffer(node);
  int k = open_kernel(node, buffer, shape_of(value));
  KernelPlan& kernel = kernels_[static_cast<std::size_t>(k)];
  kernel.value = entry(value, k, kernel.target, elements(value), false);
  if (donated) {
    overwriter_[base.node()] = k;
    demotable_.push_back(base.i() & (kDonated - 1));
  }
  Index target = kernel.target;
  Ref n = view;
  auto stored = static_cast<std::int64_t>(itemsize(value.dtype()));
  for (; !same(n, view_base(view)); n = n.src(0)) {
    if (n.has(kMovement)) target = source_index(n, target);
    if (!n.is(Op::Bitcast)) continue;
    // Where in an element lies what is stored, in units of its size. Of elements smaller than it there are
    // only those of the storage itself, which then holds them one after another (see detail::write).
    if (kernel.store_dtype == DType::Void) kernel.part = idx(0);
    kernel.store_dtype = value.dtype();  // stored as what it is: no bits change
    auto to = static_cast<std::int64_t>(itemsize(n.dtype())),
         from = static_cast<std::int64_t>(itemsize(n.src(0).dtype()));
    if (to == from) continue;
    Ref& last = target.at.back();
    if (to < from) {
      kernel.part = kernel.part + last % (from / to) * (to / stored);
      last = last / (from / to);
    } else if (stored <= from) {
      last = last * (to / from) + kernel.part / (from / stored);
      kernel.part = kernel.part % (from / stored);
    } else {
      last = last * (to / from);
    }
  }
  kernel.target = target;
  kernel.target_shape = shape_of(n);
  if (whole || donated) return;
  // The rest of the old contents must be there first: made in this very storage if nobody else wants them.
  if (!demoted_.contains(kTakeOver) && !base.is(Op::Param) && consumers_[base.node()] == 1 &&
      !buffer_.contains(base.node()) && same(base, old)) {
    forced_.insert(base.node());
    buffer_[base.node()] = buffer;
    overwriter_[base.node()] = k;
    return;
  }
  // A node of its own (the write makes it one): the program may hold a Contiguous of the same contents as a
  // value.
  Ref copy = make(Op::Contiguous, old.dtype(), {old, node});
  devices_[copy.node()] = device_of(old);
  start_kernel(copy, buffer);
  overwriter_[copy.node()] = k;
}

void Planner::start_copy(Ref node) {
  Ref from = storage_node(node.src(0));
  if (devices_[node.src(0).node()].empty())
    return start_kernel(node, new_buffer(node));  // computed where it is wanted
  int k = static_cast<int>(kernels_.size());
  kernels_.push_back({.node = node, .buffer = new_buffer(node), .device = device_of(node), .copy_of = from});
  buffer_[node.node()] = kernels_.back().buffer;
  producer_[node.node()] = k;
  kernels_.back().reads.insert(from.node());
}

void Planner::expand_entry(int id) {
  Entry e = entries_[static_cast<std::size_t>(id)];
  children_of(e);
  entries_[static_cast<std::size_t>(id)] = std::move(e);
}

void Planner::children_of(Entry& e) {
  Ref n = e.node;
  auto child = [&](Ref s, const Index& index, double evals, bool in_reduce) {
    e.children.push_back(entry(s, e.kernel, index, evals, in_reduce));
  };
  if (n.has(kMovement)) return child(n.src(0), source_index(n, e.index), e.evals, e.in_reduce);
  if (passes_through(n) || n.is(Op::Copy)) return child(n.src(0), e.index, e.evals, e.in_reduce);
  if (n.is(Op::Bitcast) && itemsize(n.dtype()) != itemsize(n.src(0).dtype())) {
    // Elements of the last axis are taken apart, or put together.
    auto to = static_cast<std::int64_t>(itemsize(n.dtype())),
         from = static_cast<std::int64_t>(itemsize(n.src(0).dtype()));
    Index index = e.index;
    Ref last = e.index.at.back();
    if (to < from) {
      index.at.back() = last / (from / to);
      return child(n.src(0), index, e.evals, e.in_reduce);
    }
    for (std::int64_t k = 0; k < to / from; ++k) {
      index.at.back() = last * (to / from) + k;
      child(n.src(0), index, e.evals, e.in_reduce);
    }
    return;
  }
  if (n.has(kElementwise)) {
    Ref shape = shape_of(n);
    for (Node* s : n.srcs()) child(s, broadcast_index(shape, shape_of(s), e.index), e.evals, e.in_reduce);
    return;
  }
  switch (n.op()) {
    case Op::Param:
    case Op::Const:
    case Op::Bind:
    case Op::ScalarParam:
    case Op::Arange:
      return;
    case Op::Reduce: {
      if (is_large_product(n)) kernels_[static_cast<std::size_t>(e.kernel)].product = n;
      if (names_elements(n)) kernels_[static_cast<std::size_t>(e.kernel)].scatters = true;
      Ref shape = shape_of(n.src(0));
      Index index = e.index;
      double evals = e.evals;
      for (int i = 0; i < rank(shape); ++i) {
        Ref d = dim(shape, i);
        if (!(n.reduce_axes() >> i & 1) || d.is_const(1)) continue;
        Ref r = range(kernels_[static_cast<std::size_t>(e.kernel)].next_range++, RangeKind::Reduce, d);
        index.at[static_cast<std::size_t>(i)] = r;
        e.ranges.push_back(r);
        evals *= static_cast<double>(d.hi());
      }
      return child(n.src(0), index, evals, true);
    }
    case Op::Index: {
      Ref x = shape_of(n.src(0)), rows = shape_of(n.src(1));
      auto lead = static_cast<std::size_t>(rank(rows));
      Index at;
      at.valid = e.index.valid;
      at.at.assign(e.index.at.begin(), e.index.at.begin() + static_cast<std::ptrdiff_t>(lead));
      child(n.src(1), at, e.evals, e.in_reduce);
      Ref values = n.src(1);
      e.row = make(Op::ScalarParam, DType::WeakInt, {idx(values.lo()), idx(values.hi())},
                   Arg{.i = (std::int64_t{1} << 40) + e.children[0]});
      Index of;
      of.valid = e.index.valid & ge(e.row, idx(0)) & (e.row < dim(x, 0));
      of.at.push_back(e.row);
      of.at.insert(of.at.end(), e.index.at.begin() + static_cast<std::ptrdiff_t>(lead), e.index.at.end());
      return child(n.src(0), of, e.evals, e.in_reduce);
    }
    case Op::Cat: {
      auto axis = static_cast<std::size_t>(n.i());
      Ref start = idx(0), at = e.index.at[axis];
      for (Node* s : n.srcs()) {
        Ref size = dim(shape_of(s), static_cast<int>(axis));
        Index index = e.index;
        index.at[axis] = at - start;
        index.valid = e.index.valid & ge(at, start) & (at < start + size);
        double share =
            static_cast<double>(size.hi()) /
            static_cast<double>(std::max<std::int64_t>(1, dim(shape_of(n), static_cast<int>(axis)).hi()));
        child(s, index, e.evals * share, e.in_reduce);
        start = start + size;
      }
      return;
    }
    default:
      throw InternalError("[schedule] " + std::string(info(n.op()).name) + " in a tensor graph");
  }
}

}  // namespace pg::schedule
