// Running a recording on what a call finds.
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "tensor/check.h"
#include "tensor/ops.h"
#include "tensor/recording.h"

namespace pg::detail {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Replay {
 public:
  Replay(const Recording& recording, const Call& call) : r_(recording), call_(call) {
    for (std::size_t k = 0; k < call.binds.size(); ++k)
      if (!same(call.binds[k].ref(), r_.binds[k].ref()))
        other_binds_.emplace_back(r_.binds[k], call.binds[k]);
  }

  // Finds the Cells and their contents. False if the recording does not hold for them.
  bool find() {
    absl::InlinedVector<Impl*, 8> pending;
    {
      GraphScope scope;
      if (!find_cells()) return false;
      for (std::size_t i = 0; i < r_.places.size(); ++i)
        if (r_.places[i].slot != kNone && !stored_leaf(cells_[i]->node)) {
          pending.push_back(cells_[i]);
          cells_[i]->refs.fetch_add(1, std::memory_order_relaxed);
        }
    }
    if (!pending.empty()) {
      std::vector<Tensor> alive;
      for (Impl* cell : pending) alive.emplace_back(cell);
      realize({pending.data(), pending.size()});
    }
    GraphScope scope;
    // Views let go of what is written, in a scope before the one that asks who holds it.
    for (const Recording::Write& w : r_.writes) forget_views(*cells_[at(w.place)]);
    values_.resize(r_.slots.size());
    for (std::size_t i = 0; i < r_.places.size(); ++i) {
      const Recording::Place& place = r_.places[i];
      if (place.constant && !same(cells_[i]->node.ref(), place.constant.ref())) return false;
      if (place.slot == kNone) continue;
      Ref leaf = stored_leaf(cells_[i]->node);
      if (!leaf || leaf.dtype() != place.dtype || !same(leaf.src(0), now(place.shape))) return false;
      value(place.slot) = leaf;
    }
    for (std::size_t i = 0; i < r_.slots.size(); ++i)
      if (r_.slots[i].constant) values_[i] = r_.slots[i].constant;
    for (const Recording::Draws& draw : r_.draws) {
      if (random_key(draw.device) != draw.key) return false;
      random_start_[draw.device] = random_offset(draw.device);
    }
    return true;
  }

  void run() {
    allocate();
    std::size_t done = 0;
    try {
      for (const RecordedRun& run : r_.runs) {
        launch(run);
        ++done;
      }
    } catch (...) {
      settle_writes(done);
      throw;
    }
    for (const Recording::Draws& draw : r_.draws) advance_random(draw.device, draw.words);
  }

  // What Cells hold now, and what the function returns.
  void finish(JitResults& results) {
    GraphScope scope;
    version_writes(r_.runs.size());
    // One storage may be seen in several shapes.
    auto in_shape = [&](int slot, const UOp& shape) -> UOp {
      Ref leaf = leaf_of(slot), to = now(shape);
      return same(leaf.src(0), to) ? UOp(leaf) : engine::view_of(leaf, 0, to);
    };
    for (const Recording::Write& w : r_.writes) overwrite(*cells_[at(w.place)], in_shape(w.slot, w.shape));
    for (auto& [place, on] : r_.marks) mark(*cells_[at(place)], on);
    std::vector<Tensor> made;
    for (const Recording::Made& m : r_.made) {
      UOp node = m.constant ? m.constant : in_shape(m.slot, m.shape);
      made.push_back(computed(node, false, m.device));
      made.back().impl()->cell->history_end = "jit";
    }
    auto tensor = [&](const Recording::Value& v) {
      if (v.made == kNone && v.place == kNone) return Tensor();
      Impl* cell = v.made != kNone ? made[at(v.made)].impl() : cells_[at(v.place)];
      cell->refs.fetch_add(1, std::memory_order_relaxed);
      Tensor whole(cell);
      if (!v.chain) return whole;
      Ref chain = now(v.chain);
      return make_view(whole, apply_chain(chain, cell->node), chain);
    };
    for (const Recording::Gradient& g : r_.gradients) cells_[at(g.place)]->grad = tensor(g.value);
    for (const Recording::Value& v : r_.results) results.tensors.push_back(tensor(v));
    results.lengths = r_.lengths;
  }

 private:
  bool find_cells() {
    absl::flat_hash_set<Cell*> seen;
    for (const Recording::Place& place : r_.places) {
      Cell* cell = nullptr;
      if (place.argument != kNone) {
        cell = call_.given.inputs[at(place.argument)].impl()->cell;
        if (place.cell.defined() && place.cell.impl()->cell != cell) return false;
      } else if (place.gradient_of != kNone) {
        const Tensor& grad = cells_[at(place.gradient_of)]->grad;
        if (!grad.defined() || !grad.impl()->whole) return false;
        cell = grad.impl()->cell;
      } else {
        cell = place.cell.impl()->cell;
      }
      // Two that were apart may not be one.
      if (!seen.insert(cell).second) return false;
      if (cell->marked != place.marked || cell->grad.defined() != place.had_grad) return false;
      if (r_.takes_gradients && cell->tracked) return false;
      cells_.push_back(cell);
    }
    return true;
  }

  // An expression of the recorded Variables with the values of this call.
  Ref now(Ref node) const {
    if (other_binds_.empty()) return node;
    return substitute(node, other_binds_);
  }
  UOp& value(int slot) { return values_[at(slot)]; }

  // The leaf in a slot; of a range it is made when asked for.
  Ref leaf_of(int slot) {
    const Recording::Slot& s = r_.slots[at(slot)];
    if (s.base != kNone) value(slot) = engine::view_of(leaf_of(s.base), s.start, now(s.shape));
    return value(slot);
  }

  // Contents that nobody but we and their Cell can see.
  bool exclusive(const UOp& leaf, std::uint32_t holders) const {
    engine::Storage& s = engine::storage_of(leaf);
    return leaf->refs.load() == holders && s.refs.load() == 1 &&
           (!s.buffer || (s.buffer.allocation.use_count() == 1 && s.buffer.allocation->writable()));
  }

  // Storage for all results. What is written in place is the storage that was there, if nobody else can see
  // it.
  void allocate() {
    GraphScope scope;
    std::vector<Cell*> holder(r_.slots.size());
    for (std::size_t i = 0; i < r_.places.size(); ++i)
      if (r_.places[i].slot != kNone) holder[at(r_.places[i].slot)] = cells_[i];
    std::vector<bool> ours(r_.slots.size());
    for (const RecordedRun& run : r_.runs) {
      for (int from : run.overwritten) {
        if (ours[at(from)]) continue;
        ours[at(from)] = true;
        bool kept = std::find(run.in_place.begin(), run.in_place.end(), from) != run.in_place.end();
        // Nothing is left of it: a later run that fails would have lost it.
        bool lost = !kept && r_.runs.size() > 1;
        if (lost || !exclusive(value(from), holder[at(from)] ? 2 : 1))
          value(from) = engine::copy_of(value(from));
      }
      for (std::size_t k = 0; k < run.outputs.size(); ++k) {
        int from = run.in_place[k], to = run.outputs[k];
        const Recording::Slot& slot = r_.slots[at(to)];
        if (from != kNone)
          value(to) = value(from);
        else if (!value(to) && slot.base == kNone)
          value(to) = engine::new_buffer(slot.device, slot.dtype, slot.elements, now(slot.shape));
        else
          continue;
        ours[at(to)] = true;
      }
    }
  }

  void launch(const RecordedRun& run) {
    inputs_.clear();
    outputs_.clear();
    scalars_.clear();
    for (int slot : run.inputs) {
      if (r_.slots[at(slot)].base != kNone) {
        GraphScope scope;
        leaf_of(slot);
      }
      inputs_.push_back(&engine::storage_of(value(slot)));
    }
    for (std::size_t k = 0; k < run.outputs.size(); ++k)
      outputs_.push_back(run.in_place[k] == kNone ? &engine::storage_of(value(run.outputs[k])) : nullptr);
    for (const RecordedScalar& s : run.scalars)
      scalars_.push_back(s.generator       ? random_start_[s.generator] + s.value
                         : s.bind != kNone ? call_.binds[at(s.bind)].ref().src(1).i()
                                           : s.value);
    engine::replay(*run.run, inputs_, scalars_, outputs_);
  }

  // What was written in place is a new version of its storage.
  void version_writes(std::size_t runs) {
    for (std::size_t i = 0; i < runs; ++i)
      for (std::size_t k = 0; k < r_.runs[i].outputs.size(); ++k)
        if (int from = r_.runs[i].in_place[k], to = r_.runs[i].outputs[k]; from != kNone && value(from)) {
          UOp next = engine::next_version(value(from), now(r_.slots[at(to)].shape));
          value(from) = UOp();
          value(to) = next;
        }
  }

  // After a failure: what ran stays.
  void settle_writes(std::size_t runs) {
    GraphScope scope;
    std::vector<std::pair<Cell*, int>> held;
    for (std::size_t i = 0; i < r_.places.size(); ++i)
      if (r_.places[i].slot != kNone) held.emplace_back(cells_[i], r_.places[i].slot);
    std::vector<bool> changed(held.size());
    for (std::size_t i = 0; i < runs; ++i)
      for (std::size_t k = 0; k < r_.runs[i].outputs.size(); ++k)
        for (std::size_t h = 0; h < held.size(); ++h)
          if (r_.runs[i].in_place[k] == held[h].second) {
            held[h].second = r_.runs[i].outputs[k];
            changed[h] = true;
          }
    version_writes(runs);
    for (std::size_t h = 0; h < held.size(); ++h)
      if (changed[h]) overwrite(*held[h].first, value(held[h].second));
  }

  const Recording& r_;
  const Call& call_;
  std::vector<std::pair<Ref, Ref>> other_binds_;
  absl::InlinedVector<Cell*, 16> cells_;  // by place
  std::vector<UOp> values_;               // by slot
  absl::flat_hash_map<Device, std::int64_t> random_start_;
  std::vector<engine::Storage*> inputs_, outputs_;
  std::vector<std::int64_t> scalars_;
};

}  // namespace

bool replay(const Recording& recording, const Call& call, JitResults& results) {
  if (recording.handles.raised()) return false;
  Replay replay(recording, call);
  if (!replay.find()) return false;
  replay.run();
  replay.finish(results);
  return true;
}

}  // namespace pg::detail
