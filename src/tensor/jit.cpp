// Recording and replaying. A recording is a list of engine runs whose storages are slots: bound to an
// argument, to a Cell that is older than the body, made by an earlier run, or constant.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "base/log.h"
#include "engine/engine.h"
#include "tensor/check.h"
#include "tensor/ops.h"
#include "tensor/watch.h"
#include <pangrad/jit.h>

namespace pg::detail {
namespace {

constexpr int kNone = -1;

struct Scalar64 {
  std::int64_t value;  // as bound; of a random offset: relative to where the body began
  Device generator = nullptr;
};

struct Step {
  std::shared_ptr<const engine::Run> run;
  std::vector<int> inputs, outputs;  // slots
  std::vector<int> in_place;         // by output: the slot whose storage it takes, or kNone
  std::vector<Scalar64> scalars;
};

struct Made {  // a slot that a run makes
  DType dtype;
  UOp shape;
  std::string device;
};

struct Result {
  int slot = kNone;  // kNone: `same`
  UOp shape;
  Device device = nullptr;
  Tensor same;  // an older tensor, returned as it is
};

struct CellSlot {
  Tensor cell;
  int slot;
  UOp shape;
};

struct Recording {
  std::vector<Made> slots;
  std::vector<std::pair<int, int>> inputs;  // slot, argument
  std::vector<CellSlot> cells;              // read or written from outside
  std::vector<std::pair<int, UOp>> constants;
  std::vector<std::pair<Tensor, UOp>> frozen;  // Cells that hold constants, which are part of the runs
  struct Slice {
    int base;
    std::int64_t start;
  };
  absl::flat_hash_map<int, Slice> slices;  // slots that are ranges of others
  std::vector<Step> steps;
  std::vector<CellSlot> writes, grads;  // what Cells hold afterwards
  std::vector<Tensor> no_grads;         // whose gradient is gone afterwards
  std::vector<Result> results;
  absl::flat_hash_map<Device, std::int64_t> draws;
};

Cell& cell_of(const Tensor& t) { return *t.impl()->cell; }

Ref stored(Ref node) {
  if (node.is(Op::Buffer)) return node;
  return node->cold ? node->cold->materialized.ref() : Ref();
}

// Watches one call of a body and makes the recording of it.
class Recorder final : public CellWatch {
 public:
  Recorder(std::span<const Tensor> arguments, Recording& into) : out_(into) {
    GraphScope scope;
    born_before_ = last_serial();
    for (Cell* c = first_cell(); c; c = c->next)
      if (c->marked || c->grad.defined()) grads_before_.emplace_back(Tensor(retained(*c)), c->grad);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (Ref b = stored(read(arguments[i], "jit").node))
        argument_of_.try_emplace(engine::storage_of(b).id, static_cast<int>(i));
    former_ = watch_cells(this);
    former_recorder_ = engine::set_recorder([this](const engine::Recorded& r) { record(r); });
  }
  ~Recorder() override { stop(); }

  void touched(Cell& cell) override {
    if (!is_older(cell) || !seen_.insert(&cell).second) return;
    order_.push_back(Tensor(retained(cell)));
    if (Ref b = stored(cell.node))
      cell_of_.try_emplace(engine::storage_of(b).id, static_cast<int>(order_.size()) - 1);
    else if (is_constant(cell.node))
      out_.frozen.emplace_back(order_.back(), cell.node);
    else
      unready_ = true;
  }
  void value_read(const char* op) override {
    fail<CaptureError>(op,
                       "a value cannot be read while a function is being recorded: the recording would keep "
                       "what was done about it");
  }

  /// After the body: computes what is pending and finishes. False if this call cannot be recorded but a later
  /// one may.
  bool finish(std::vector<Tensor>& results) {
    std::vector<Impl*> pending;
    {
      GraphScope scope;
      for (const Tensor& t : order_)
        if (!cell_of(t).node.ref().is(Op::Buffer)) pending.push_back(&cell_of(t));
      for (auto& [owner, grad] : grads_before_)
        if (Tensor& now = cell_of(owner).grad; now.impl() != grad.impl() && now.defined())
          pending.push_back(now.impl());
    }
    for (Tensor& r : results) {
      bool old;
      {
        GraphScope scope;
        old = is_older(*r.impl()->cell);
      }
      if (!r.impl()->whole && !old) r = r.clone();  // a view of something made here
      pending.push_back(r.impl());
    }
    realize(pending);
    stop();
    // What the body changes needs storage, or the recording would keep the constant it found.
    for (auto& [cell, before] : out_.frozen) unready_ |= give_storage(cell, before);
    if (unready_) {
      // What the body reads is only now in storage; the next call will find it there.
      return false;
    }
    GraphScope scope;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Cell& cell = cell_of(order_[i]);
      Ref b = stored(cell.node);
      if (!b) continue;
      int slot = slot_of_.contains(engine::storage_of(b).id) ? slot_of_[engine::storage_of(b).id] : kNone;
      if (slot != kNone && made_.contains(slot)) out_.writes.push_back({order_[i], slot, UOp(shape_of(b))});
    }
    for (auto& [owner, grad] : grads_before_) {
      const Tensor& now = cell_of(owner).grad;
      if (now.impl() == grad.impl()) continue;
      if (!now.defined()) {
        out_.no_grads.push_back(owner);
        continue;
      }
      Ref b = stored(contents(*now.impl()));
      auto it = b ? slot_of_.find(engine::storage_of(b).id) : slot_of_.end();
      if (it == slot_of_.end()) return false;
      out_.grads.push_back({owner, it->second, UOp(shape_of(b))});
    }
    for (const Tensor& r : results) {
      Result result;
      if (is_older(*r.impl()->cell)) {
        result.same = r;
      } else if (r.impl()->cell->node.ref().is_const()) {
        result.same = r;
      } else {
        Ref b = stored(r.impl()->cell->node);
        auto it = b ? slot_of_.find(engine::storage_of(b).id) : slot_of_.end();
        if (it == slot_of_.end()) return false;
        result = {it->second, UOp(shape_of(b)), r.impl()->cell->device, {}};
      }
      out_.results.push_back(std::move(result));
    }
    for (auto& [device, start] : random_start_) out_.draws[device] = random_offset(device) - start;
    return true;
  }

 private:
  static Impl* retained(Cell& cell) {
    cell.refs.fetch_add(1, std::memory_order_relaxed);
    return &cell;
  }
  // Whether these contents are no longer what they were; constants are then put in storage.
  static bool give_storage(const Tensor& tensor, const UOp& before) {
    {
      GraphScope scope;
      Ref now = cell_of(tensor).node;
      if (same(now, before.ref())) return false;
      if (!is_constant(now)) return true;
    }
    Tensor copy = Tensor::empty(tensor.shape(), {.dtype = tensor.dtype(), .device = tensor.device()});
    copy.assign(tensor.detach()).realize();
    GraphScope scope;
    overwrite(cell_of(tensor), stored(cell_of(copy).node));
    return true;
  }
  bool is_older(const Cell& cell) const { return cell.serial <= born_before_; }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    watch_cells(former_);
    engine::set_recorder(std::move(former_recorder_));
  }

  int new_slot(std::uint64_t id, Ref leaf) {
    int slot = static_cast<int>(out_.slots.size());
    out_.slots.push_back({leaf.dtype(), UOp(leaf.src(0)), engine::storage_of(leaf).device});
    slot_of_[id] = slot;
    return slot;
  }

  int input_slot(Ref leaf) {
    engine::Storage& s = engine::storage_of(leaf);
    if (auto known = slot_of_.find(s.id); known != slot_of_.end()) return known->second;
    int slot = new_slot(s.id, leaf);
    if (auto arg = argument_of_.find(s.id); arg != argument_of_.end()) {
      out_.inputs.emplace_back(slot, arg->second);
    } else if (auto cell = cell_of_.find(s.id); cell != cell_of_.end()) {
      out_.cells.push_back({order_[static_cast<std::size_t>(cell->second)], slot, UOp(leaf.src(0))});
    } else if (s.parent) {
      int base = input_slot(s.parent);
      out_.slices[slot] = {base, s.start};
    } else {
      out_.constants.emplace_back(slot, leaf);
    }
    return slot;
  }

  void record(const engine::Recorded& r) {
    GraphScope scope;
    Step step;
    step.run = r.run;
    for (const UOp& leaf : r.inputs) step.inputs.push_back(input_slot(leaf));
    for (std::size_t k = 0; k < r.outputs.size(); ++k) {
      engine::Storage& s = engine::storage_of(r.outputs[k]);
      auto known = slot_of_.find(s.id);
      int slot = known != slot_of_.end() ? known->second : new_slot(s.id, r.outputs[k]);
      bool input =
          r.in_place[k] < 0 && std::find(step.inputs.begin(), step.inputs.end(), slot) != step.inputs.end();
      if (!input) made_.insert(slot);
      step.outputs.push_back(slot);
      step.in_place.push_back(r.in_place[k] < 0 ? kNone
                                                : step.inputs[static_cast<std::size_t>(r.in_place[k])]);
    }
    for (const UOp& bind : r.scalars) {
      Scalar64 scalar{bind.ref().src(1).i()};
      if (Device device = generator_of(bind)) {
        auto [it, fresh] = random_start_.try_emplace(device, scalar.value);
        scalar.value -= it->second;
        scalar.generator = device;
      }
      step.scalars.push_back(scalar);
    }
    out_.steps.push_back(std::move(step));
  }

 public:
  /// Where generators stood when the body began.
  void set_random_start(absl::flat_hash_map<Device, std::int64_t> start) { random_start_ = std::move(start); }

 private:
  Recording& out_;
  CellWatch* former_;
  engine::Recorder former_recorder_;
  bool stopped_ = false, unready_ = false;
  std::uint64_t born_before_ = 0;                        // serials up to it are of older Cells
  std::vector<std::pair<Tensor, Tensor>> grads_before_;  // of older Cells that have or may get one
  absl::flat_hash_map<std::uint64_t, int> argument_of_;  // by id of storage
  absl::flat_hash_map<std::uint64_t, int> cell_of_;      // index into order_
  absl::flat_hash_map<std::uint64_t, int> slot_of_;
  absl::flat_hash_set<int> made_;
  absl::flat_hash_set<Cell*> seen_;
  std::vector<Tensor> order_;  // older Cells the body touched
  absl::flat_hash_map<Device, std::int64_t> random_start_;
};

// Contents that nobody but the recording and their Cell can see.
bool exclusive(const UOp& leaf, std::uint32_t holders) {
  engine::Storage& s = engine::storage_of(leaf);
  return leaf->refs.load() == holders && s.refs.load() == 1 &&
         (!s.buffer || (s.buffer.allocation.use_count() == 1 && s.buffer.allocation->writable()));
}

// Runs a recording. Null where a Cell no longer fits it.
bool replay(const Recording& r, std::span<const Tensor> arguments, std::vector<Tensor>& results) {
  std::vector<Impl*> needed;
  for (auto& [slot, argument] : r.inputs)
    needed.push_back(arguments[static_cast<std::size_t>(argument)].impl());
  for (const CellSlot& c : r.cells) needed.push_back(c.cell.impl());
  realize(needed);

  std::vector<UOp> values(r.slots.size());
  {
    GraphScope scope;
    auto fits = [&](int slot, Ref leaf) {
      return leaf && leaf.dtype() == r.slots[static_cast<std::size_t>(slot)].dtype &&
             same(leaf.src(0), r.slots[static_cast<std::size_t>(slot)].shape);
    };
    for (auto& [slot, argument] : r.inputs) {
      Ref leaf = stored(read(arguments[static_cast<std::size_t>(argument)], "jit").node);
      if (!leaf) throw InternalError("[jit] an argument has no storage");
      values[static_cast<std::size_t>(slot)] = leaf;
    }
    for (const CellSlot& c : r.cells) {
      Ref leaf = stored(cell_of(c.cell).node);
      if (!fits(c.slot, leaf)) return false;
      values[static_cast<std::size_t>(c.slot)] = leaf;
    }
    for (auto& [slot, leaf] : r.constants) values[static_cast<std::size_t>(slot)] = leaf;
    for (auto& [cell, constant] : r.frozen)
      if (!same(cell_of(cell).node.ref(), constant.ref())) return false;
  }
  absl::flat_hash_map<Device, std::int64_t> start;
  for (auto& [device, words] : r.draws) start[device] = random_offset(device);
  auto value = [&](int slot) -> UOp& { return values[static_cast<std::size_t>(slot)]; };
  auto made = [&](int slot) -> const Made& { return r.slots[static_cast<std::size_t>(slot)]; };
  {
    // Storage for all results. What is written in place is the storage that was there, if nobody else can see
    // it.
    GraphScope scope;
    absl::flat_hash_set<int> of_cells, ours;
    for (const CellSlot& c : r.cells) of_cells.insert(c.slot);
    for (const Step& step : r.steps)
      for (std::size_t k = 0; k < step.outputs.size(); ++k) {
        int from = step.in_place[k], to = step.outputs[k];
        if (from == kNone) {
          if (!value(to))
            value(to) = engine::new_buffer(made(to).device, made(to).dtype, made(to).shape), ours.insert(to);
          continue;
        }
        if (!ours.contains(from) && !exclusive(value(from), of_cells.contains(from) ? 2 : 1))
          value(from) = engine::copy_of(value(from));
        ours.insert(from);
        value(to) = value(from);
        ours.insert(to);
      }
  }
  std::vector<engine::Storage*> inputs, outputs;
  std::vector<std::int64_t> scalars;
  for (const Step& step : r.steps) {
    inputs.clear();
    outputs.clear();
    scalars.clear();
    for (int slot : step.inputs) {
      if (auto slice = r.slices.find(slot); slice != r.slices.end()) {
        GraphScope scope;
        value(slot) = engine::view_of(value(slice->second.base), slice->second.start, made(slot).shape);
      }
      inputs.push_back(&engine::storage_of(value(slot)));
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k)
      outputs.push_back(step.in_place[k] == kNone ? &engine::storage_of(value(step.outputs[k])) : nullptr);
    for (const Scalar64& s : step.scalars)
      scalars.push_back(s.generator ? start[s.generator] + s.value : s.value);
    engine::replay(*step.run, inputs, scalars, outputs);
  }
  for (auto& [device, words] : r.draws) advance_random(device, words);

  GraphScope scope;
  // What was written in place is a new version of its storage.
  for (const Step& step : r.steps)
    for (std::size_t k = 0; k < step.outputs.size(); ++k)
      if (int from = step.in_place[k]; from != kNone && value(from)) {
        UOp next = engine::next_version(value(from), made(step.outputs[k]).shape);
        value(from) = UOp();
        value(step.outputs[k]) = next;
      }
  for (const CellSlot& w : r.writes) overwrite(cell_of(w.cell), value(w.slot));
  for (const Tensor& t : r.no_grads) cell_of(t).grad = Tensor();
  for (const CellSlot& g : r.grads)
    cell_of(g.cell).grad = computed(value(g.slot), false, cell_of(g.cell).device);
  for (const Result& result : r.results)
    results.push_back(result.slot == kNone ? result.same
                                           : computed(value(result.slot), false, result.device));
  return true;
}

thread_local bool t_recording = false;

}  // namespace

struct Captures::State {
  struct Entry {
    int calls = 0;
    std::unique_ptr<Recording> recording;
  };
  absl::flat_hash_map<std::string, Entry> entries;
};

Captures::Captures() : state_(std::make_unique<State>()) {}
Captures::~Captures() = default;
Captures::Captures(Captures&&) noexcept = default;
Captures& Captures::operator=(Captures&&) noexcept = default;

std::size_t Captures::size() const {
  std::size_t n = 0;
  for (auto& [key, entry] : state_->entries) n += entry.recording != nullptr;
  return n;
}
void Captures::clear() { state_->entries.clear(); }

std::vector<Tensor> Captures::run(std::span<const Tensor> inputs, const std::string& key, const Body& body) {
  if (t_recording) return body();  // within another recording: a part of it
  std::string full = key;
  {
    GraphScope scope;
    for (const Tensor& t : inputs) {
      Value v = read(t, "jit");
      full += '|';
      full += name(v.dtype());
      Ref shape = v.shape();
      for (int i = 0; i < rank(shape); ++i) {
        Ref d = dim(shape, i);
        full += d.is_const() ? " " + std::to_string(d.i()) : " ?" + std::to_string(d->hash);
      }
      if (v.device) full += *v.device;
    }
    full += Training::enabled() ? "T" : "-";
    full += NoGrad::enabled() ? "N" : "-";
  }
  State::Entry& entry = state_->entries[full];
  if (entry.recording) {
    std::vector<Tensor> results;
    if (replay(*entry.recording, inputs, results)) return results;
    entry.recording.reset();
  } else if (entry.calls++ == 0) {
    return body();
  }
  std::vector<Impl*> arguments;
  for (const Tensor& t : inputs) arguments.push_back(t.impl());
  realize(arguments);
  auto recording = std::make_unique<Recording>();
  auto start = random_offsets();
  Recorder recorder(inputs, *recording);
  recorder.set_random_start(std::move(start));
  struct Flag {
    Flag() { t_recording = true; }
    ~Flag() { t_recording = false; }
  } flag;
  std::vector<Tensor> results = body();
  if (recorder.finish(results)) {
    log(LogLevel::Summary, "jit: recorded {} runs", recording->steps.size());
    entry.recording = std::move(recording);
  }
  return results;
}

}  // namespace pg::detail
