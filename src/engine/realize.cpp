#include <algorithm>
#include <atomic>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "base/flags.h"
#include "engine/counters.h"
#include "engine/engine.h"
#include "engine/run.h"
#include "ir/print.h"
#include "rewrite/rewrite.h"
#include "rules/spec.h"
#include "rules/symbolic.h"
#include "schedule/index_map.h"
#include "schedule/plan.h"

namespace pg::engine {
namespace {

thread_local Recorder t_recorder;

UOp leaf(Storage* storage, Ref shape) { return make(Op::Buffer, storage->dtype, {shape}, Arg{.p = storage}); }

Storage* new_storage(DType t, std::int64_t elements, std::string_view device, runtime::Buffer memory = {}) {
  static std::atomic<std::uint64_t> last_id{0};
  auto* s = new Storage;
  s->id = ++last_id;
  s->dtype = t;
  s->elements = elements;
  s->device = device;
  s->buffer = std::move(memory);
  s->hash = static_cast<std::uint64_t>(t) * 31 + static_cast<std::uint64_t>(elements);
  object_payload(s);
  return s;
}

std::size_t bytes_of(const Storage& s) { return static_cast<std::size_t>(s.elements) * itemsize(s.dtype); }

void ensure_memory(Storage& s) {
  if (s.buffer) return;
  // A kernel may have an argument without elements: it has an address all the same.
  s.buffer = runtime::device(s.device).allocate(std::max<std::size_t>(1, bytes_of(s)));
  counts().allocated += bytes_of(s);
}

// The Buffer that stands for a node's value if there is one.
Ref stored(Ref n) {
  if (n.is(Op::Buffer)) return n;
  return n->cold && n->cold->materialized ? n->cold->materialized.ref() : Ref();
}

// A chain of movements over a Buffer that is a contiguous range of it: the Buffer and where the range begins.
bool contiguous_range(Ref root, Ref& buffer, std::int64_t& start) {
  schedule::Index index;
  Ref shape = shape_of(root), n = root;
  if (!is_concrete(shape)) return false;
  index.valid = bool_const(true);
  for (int i = 0; i < rank(shape); ++i) {
    Ref d = dim(shape, i);
    index.at.push_back(d.is_const(1) ? idx(0) : range(i, RangeKind::Loop, d));
  }
  Ref expected = schedule::flatten(shape, index);
  for (;;) {
    if (Ref b = stored(n)) {
      buffer = b;
      break;
    }
    if (n.has(kMovement))
      index = schedule::source_index(n, index);
    else if (!n.is(Op::Detach) && !n.is(Op::Leaf) && !n.is(Op::ContiguousBackward) && !n.is(Op::Contiguous))
      return false;
    n = n.src(0);
  }
  if (!is_concrete(shape_of(buffer)) || !index.valid.is_const(1)) return false;
  Ref offset = rewrite(schedule::flatten(shape_of(buffer), index) - expected, rules::symbolic(),
                       {.name = "view offset"});
  if (!offset.is_const()) return false;
  start = offset.i();
  return true;
}

UOp view(Ref buffer, std::int64_t start, Ref shape) {
  Storage& base = storage_of(buffer);
  if (start == 0 && numel(shape) == base.elements) return leaf(&base, shape);
  if (numel(shape) == 0) return leaf(new_storage(base.dtype, 0, base.device), shape);
  ensure_memory(base);
  std::size_t item = itemsize(base.dtype);
  Storage* s = new_storage(base.dtype, numel(shape), base.device,
                           base.buffer.slice(static_cast<std::size_t>(start) * item,
                                             static_cast<std::size_t>(numel(shape)) * item));
  s->parent = buffer;
  s->start = start;
  return leaf(s, shape);
}

// The stored contents a node shows in another shape, or null.
Ref reshaped_storage(Ref n) {
  while (n.is(Op::Reshape) && !stored(n)) n = n.src(0);
  return stored(n);
}

// A Shrink of stored contents that is a contiguous range of them: where it begins, or -1.
std::int64_t slice_start(Ref n) {
  if (!n.is(Op::Shrink) || !reshaped_storage(n.src(0)) || !is_concrete(n.src(1)) || !is_concrete(n.src(2)) ||
      !is_concrete(shape_of(n.src(0))))
    return -1;
  Dims from = dims(shape_of(n.src(0))), to = dims(n.src(1)), offset = dims(n.src(2));
  std::int64_t start = 0;
  bool whole = true;  // all axes so far, from the last, are taken whole
  bool single = true;
  for (std::size_t i = from.size(); i-- > 0;) {
    if (!whole && to[i] != 1) single = false;
    whole &= to[i] == from[i];
  }
  if (!single) return -1;
  for (std::size_t i = 0; i < from.size(); ++i) start = start * from[i] + offset[i];
  return start;
}

// A graph of tensors turned into a call, and what its parameters stand for.
struct Call {
  UOp sink;
  std::vector<UOp> params;  // Buffer leaves
  std::vector<bool> donated;
  std::vector<UOp> scalars;  // Bind nodes
};

using NodeSet = absl::flat_hash_set<Node*>;

// Everything the roots need, down to stored values; sources first. What is in `unstored` is no stored value
// here.
std::vector<Ref> reachable(std::span<const Ref> roots, const NodeSet& unstored = {}) {
  std::vector<Ref> order;
  NodeSet seen;
  std::vector<std::pair<Node*, bool>> stack;
  for (std::size_t i = roots.size(); i-- > 0;) stack.emplace_back(roots[i].node(), false);
  while (!stack.empty()) {
    auto [n, ready] = stack.back();
    stack.pop_back();
    if (ready) {
      order.emplace_back(n);
      continue;
    }
    if (!seen.insert(n).second) continue;
    stack.emplace_back(n, true);
    if (n->op == Op::Bind) continue;
    if (stored(n) && !unstored.contains(n)) {
      // Of stored values the call has the shape, whose sizes may be bound.
      if (Node* shape = stored(n).src(0).node(); shape->nsrc && !seen.contains(shape))
        stack.emplace_back(shape, false);
      continue;
    }
    for (std::uint32_t k = n->nsrc; k-- > 0;)
      if (!seen.contains(n->src[k])) stack.emplace_back(n->src[k], false);
  }
  return order;
}

// The movements through which writes go: that one was computed once does not make its storage the one to
// write.
bool add_written_views(std::span<const Ref> order, NodeSet& views) {
  bool added = false;
  for (Ref n : order)
    if (n.is(Op::Store))
      for (Ref v = n.src(0); v.has(kMovement) || v.is(Op::Bitcast) || v.is(Op::Detach) || v.is(Op::Leaf);
           v = v.src(0))
        added |= views.insert(v.node()).second;
  return added;
}

Call make_call(std::span<const Ref> roots) {
  NodeSet views, is_root, written;
  std::vector<Ref> order = reachable(roots);
  while (add_written_views(order, views)) order = reachable(roots, views);
  auto is_stored = [&](Ref n) { return stored(n) && !views.contains(n.node()); };
  for (Ref r : roots) is_root.insert(r.node());
  absl::flat_hash_map<Node*, std::uint32_t> edges;
  for (Ref n : order) {
    if (is_stored(n) || n.is(Op::Bind)) continue;
    for (Node* s : n.srcs()) ++edges[s];
    if (n.is(Op::After)) written.insert(schedule::storage_node(n.src(0)).node());
  }
  // Old contents stay if anything outside may still read them: through the leaf itself, or through a node of
  // this graph that somebody else refers to and that will not be stored by this call.
  NodeSet held;
  if (!written.empty()) {
    std::vector<Node*> stack;
    for (Ref n : order)
      if (!is_root.contains(n.node()) && (!is_stored(n) || n.is(Op::Buffer)) &&
          n->refs.load() != edges[n.node()])
        stack.push_back(n.node());
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (!held.insert(n).second || is_stored(n)) continue;
      for (Node* s : Ref(n).srcs())
        if (!is_root.contains(s)) stack.push_back(s);
    }
  }
  Call call;
  absl::flat_hash_map<Node*, Ref> becomes;
  absl::InlinedVector<Ref, 8> srcs;
  auto shape_in_call = [&](Ref shape) {
    auto it = becomes.find(shape.node());
    return it == becomes.end() ? shape : it->second;
  };
  auto parameter = [&](Ref leaf, bool donated) {
    Storage& s = storage_of(leaf);
    std::int64_t slot = static_cast<std::int64_t>(call.params.size()) | (donated ? schedule::kDonated : 0);
    Ref device = make(Op::Device, DType::Void, {}, Arg{.p = str_payload(s.device)});
    call.params.emplace_back(leaf);
    call.donated.push_back(donated);
    return make(Op::Param, leaf.dtype(), {shape_in_call(leaf.src(0)), device}, Arg{.i = slot});
  };
  // What a node is in the call. Stored values become parameters when first asked for.
  auto now = [&](Ref n) {
    Ref b = is_stored(n) ? stored(n) : Ref();
    auto [it, fresh] = becomes.try_emplace(b ? b.node() : n.node(), n);
    if (!fresh || !b) return it->second;
    Storage& s = storage_of(b);
    bool donated = n.is(Op::Buffer) && written.contains(n.node()) && !held.contains(n.node()) &&
                   s.refs.load() == 1 &&
                   (!s.buffer || (s.buffer.allocation.use_count() == 1 && s.buffer.allocation->writable()));
    Ref p = parameter(b, donated);
    becomes[b.node()] = p;
    return p;
  };
  for (Ref n : order) {
    if (is_stored(n)) continue;
    if (n.is(Op::Bind)) {
      becomes[n.node()] =
          scalar_param(static_cast<std::int64_t>(call.scalars.size()), n.dtype(), n.lo(), n.hi());
      call.scalars.emplace_back(n);
      continue;
    }
    // These say something about gradients and nothing about values.
    if (n.is(Op::Leaf) || n.is(Op::Detach) || n.is(Op::ContiguousBackward)) {
      becomes[n.node()] = now(n.src(0));
      continue;
    }
    // A range of a buffer is a parameter of its own, so that other ranges of it are the same call.
    if (std::int64_t start = views.contains(n.node()) ? -1 : slice_start(n);
        start >= 0 && !written.contains(reshaped_storage(n.src(0)).node())) {
      becomes[n.node()] = parameter(view(reshaped_storage(n.src(0)), start, shape_of(n)), false);
      continue;
    }
    bool changed = false;
    srcs.clear();
    for (Node* s : n.srcs()) {
      Ref to = now(s);
      changed |= to.node() != s;
      srcs.push_back(to);
    }
    if (changed) becomes[n.node()] = with_srcs(n, srcs);
  }
  absl::InlinedVector<Ref, 8> out;
  for (Ref r : roots) out.push_back(now(r));
  call.sink = sink({out.data(), out.size()});
  return call;
}

}  // namespace

Storage& storage_of(Ref buffer) { return buffer.object<Storage>(); }

Counts& counts() {
  static Counts c;
  return c;
}

std::string default_device() {
  static const std::string fallback = "CPU";
  std::string name = runtime::canonical_device(flags::dev().empty() ? fallback : flags::dev());
  thread_local std::string able;
  if (name != able) {
    if (runtime::device(name).languages().empty())
      throw DeviceError("[device] " + name + " runs no kernels, so it cannot be the default device");
    able = name;
  }
  return name;
}

UOp buffer_of(std::string_view device, DType t, Dims dims, runtime::Buffer memory) {
  GraphScope scope;
  Ref shape = shape_node(dims);
  return leaf(new_storage(t, numel(shape), runtime::canonical_device(device), std::move(memory)), shape);
}

UOp empty_buffer(std::string_view device, DType t, Dims dims) { return buffer_of(device, t, dims, {}); }

UOp buffer_from_host(std::string_view device, DType t, Dims dims, const void* bytes) {
  std::size_t n = itemsize(t);
  for (std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  runtime::Buffer memory;
  if (n) {
    runtime::Device& d = runtime::device(device);
    memory = d.allocate(n);
    counts().allocated += n;
    d.copy_in(memory, bytes);
  }
  return buffer_of(device, t, dims, std::move(memory));
}

void read(Ref buffer, void* out, std::size_t bytes) {
  Storage& s = storage_of(buffer);
  if (bytes == 0) return;
  ensure_memory(s);
  runtime::Buffer part = bytes == s.buffer.bytes ? s.buffer : s.buffer.slice(0, bytes);
  part.device().copy_out(out, part);
}

std::string device_of(Ref root) {
  GraphScope scope;
  absl::flat_hash_map<Node*, std::string> devices;
  Ref roots[1] = {root};
  for (Ref n : reachable(roots)) {
    std::string d;
    if (Ref b = stored(n)) {
      d = storage_of(b).device;
    } else if (n.is(Op::Copy)) {
      d = n.str();
    } else {
      for (Node* s : n.srcs()) {
        const std::string& other = devices[s];
        if (other.empty()) continue;
        if (!d.empty() && d != other)
          throw DeviceError("[" + std::string(info(n.op()).name) + "] tensors on " + d + " and " + other +
                            " do not mix; move one with to()");
        d = other;
      }
    }
    devices[n.node()] = std::move(d);
  }
  return devices[root.node()];
}

std::vector<UOp> realize(std::span<const UOp> roots) {
  std::vector<UOp> results(roots.size());
  std::vector<std::size_t> open;  // roots that take a kernel
  Call call;
  {
    GraphScope scope;
    std::vector<Ref> todo;
    for (std::size_t i = 0; i < roots.size(); ++i) {
      Ref r = roots[i], buffer;
      std::int64_t start = 0;
      if (Ref b = stored(r))
        results[i] = b;
      else if (r.is_const())
        results[i] = r;
      else if (r.nsrc() &&
               (r.has(kMovement) || r.is(Op::Detach) || r.is(Op::Leaf) || r.is(Op::Contiguous) ||
                r.is(Op::ContiguousBackward)) &&
               contiguous_range(r, buffer, start))
        results[i] = view(buffer, start, shape_of(r));
      else if (max_numel(shape_of(r)) == 0)
        results[i] = leaf(new_storage(r.dtype(), 0, device_of(r).empty() ? default_device() : device_of(r)),
                          shape_of(r));
      else
        open.push_back(i), todo.push_back(r);
    }
    if (todo.empty()) return results;
    if (rules::checking()) rules::verify(todo, rules::Stage::Tensor, "realize");
    call = make_call(todo);
  }
  std::string device = default_device();
  auto [run, crew] = prepare(call.sink, device);
  const schedule::Schedule& s = run->schedule;

  // All memory first: if there is none, nothing has happened yet.
  std::vector<runtime::Buffer> buffers(s.buffers.size());
  for (std::size_t i = 0; i < call.params.size(); ++i) {
    Storage& storage = storage_of(call.params[i]);
    ensure_memory(storage);
    buffers[i] = storage.buffer;
  }
  for (int slot : run->fresh) {
    const schedule::BufferInfo& b = s.buffers[static_cast<std::size_t>(slot)];
    std::size_t bytes = std::max<std::size_t>(1, static_cast<std::size_t>(b.size) * itemsize(b.dtype));
    buffers[static_cast<std::size_t>(slot)] = runtime::device(b.device).allocate(bytes);
    counts().allocated += bytes;
  }
  place_temporaries(*run, buffers);
  std::vector<std::int64_t> scalars;
  for (const UOp& b : call.scalars) scalars.push_back(b.ref().src(1).i());
  execute(*run, buffers, scalars, crew.get());

  GraphScope scope;
  std::vector<UOp> outputs;
  std::vector<int> in_place;
  absl::flat_hash_map<int, Storage*> made;
  for (std::size_t k = 0; k < open.size(); ++k) {
    Ref r = roots[open[k]];
    int slot = s.outputs[k];
    if (slot < 0) throw InternalError("[realize] a root without storage:\n" + print(r));
    auto at = static_cast<std::size_t>(slot);
    bool taken = at < s.params && call.donated[at];
    if (at < s.params && !taken) {
      results[open[k]] = leaf(&storage_of(call.params[at]), shape_of(r));
    } else {
      auto [it, fresh] = made.try_emplace(slot);
      if (fresh) {
        const schedule::BufferInfo& b = s.buffers[at];
        it->second = new_storage(b.dtype, b.size, b.device, buffers[at]);
        if (taken) storage_of(call.params[at]).buffer = {};
      }
      results[open[k]] = leaf(it->second, shape_of(r));
    }
    // A value that reads no storage is the same node in the cached call: it would keep its result there, for
    // every device.
    if (!same(call.sink.ref().src(static_cast<int>(k)), r)) cold(r).materialized = results[open[k]];
    if (t_recorder) {
      in_place.push_back(taken ? slot : -1);
      outputs.push_back(results[open[k]]);
    }
  }
  if (t_recorder) t_recorder({run, call.params, call.scalars, outputs, in_place, run->overwritten});
  return results;
}

schedule::Schedule plan(std::span<const UOp> roots) {
  GraphScope scope;
  std::vector<Ref> nodes(roots.begin(), roots.end());
  return schedule::schedule(make_call(nodes).sink, default_device(), target_of);
}

void compile(std::span<const UOp> roots) {
  UOp sink;
  {
    GraphScope scope;
    std::vector<Ref> nodes(roots.begin(), roots.end());
    sink = make_call(nodes).sink;
  }
  auto [run, crew] = prepare(sink, default_device());
  if (!crew) return;
  crew->finish();
  run->compiled = true;
}

UOp new_buffer(const std::string& device, DType t, std::int64_t elements, Ref shape) {
  return leaf(new_storage(t, elements, device), shape);
}

UOp next_version(Ref from, Ref shape) {
  Storage& s = storage_of(from);
  return leaf(new_storage(s.dtype, s.elements, s.device, std::exchange(s.buffer, {})), shape);
}

UOp view_of(Ref buffer, std::int64_t start, Ref shape) { return view(buffer, start, shape); }

UOp copy_of(Ref from) {
  Storage& s = storage_of(from);
  Storage* copy = new_storage(s.dtype, s.elements, s.device);
  UOp result = leaf(copy, from.src(0));
  if (s.buffer) {
    ensure_memory(*copy);
    runtime::copy(copy->buffer, s.buffer);
  }
  return result;
}

void replay(const Run& run, std::span<Storage* const> inputs, std::span<const std::int64_t> scalars,
            std::span<Storage* const> outputs) {
  const schedule::Schedule& s = run.schedule;
  std::vector<runtime::Buffer> buffers(s.buffers.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ensure_memory(*inputs[i]);
    buffers[i] = inputs[i]->buffer;
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    auto slot = static_cast<std::size_t>(s.outputs[k]);
    if (slot < s.params) continue;
    if (!outputs[k]->buffer)
      outputs[k]->buffer =
          runtime::device(outputs[k]->device).allocate(std::max<std::size_t>(1, bytes_of(*outputs[k])));
    buffers[slot] = outputs[k]->buffer;
  }
  place_temporaries(run, buffers);
  execute(run, buffers, scalars);
}

Recorder set_recorder(Recorder recorder) { return std::exchange(t_recorder, std::move(recorder)); }

Counters counters() {
  const Counts& c = counts();
  Counters out;
  out.kernels = c.kernels;
  out.copies = c.copies;
  out.compiled = kernels_compiled();
  out.schedules = c.schedules;
  out.schedule_hits = c.schedule_hits;
  out.allocated = c.allocated;
  out.flops = c.flops;
  out.bytes = c.bytes;
  out.seconds = c.seconds;
  return out;
}

}  // namespace pg::engine
