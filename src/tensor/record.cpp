// Watching one call of a function, and making the recording of it.
#include <optional>

#include <absl/container/flat_hash_set.h>

#include "tensor/check.h"
#include "tensor/ops.h"
#include "tensor/recording.h"

namespace pg::detail {
namespace {

Tensor handle_of(Impl& impl) {
  impl.refs.fetch_add(1, std::memory_order_relaxed);
  return Tensor(&impl);
}

class Recorder final : public CellWatch {
 public:
  Recorder(const Call& call, Recording& into) : out_(into) {
    out_.binds = call.binds;
    random_before_ = random_offsets();
    for (const Tensor* handle : call.given.handles) argument_handles_.insert(handle);
    for (const Tensor& input : call.given.inputs) argument_handles_.insert(&input);
    GraphScope scope;
    born_before_ = last_serial();
    for (std::size_t i = 0; i < call.given.inputs.size(); ++i)
      argument_of_.try_emplace(call.given.inputs[i].impl()->cell, static_cast<int>(i));
    for (Cell* c = first_cell(); c; c = c->next) {
      forget_views(*c);  // here, since what they held is gone only after this scope
      if (c->grad.defined() && c->grad.impl()->whole) owner_of_[c->grad.impl()->cell] = c;
      if (c->marked || c->grad.defined()) targets_.emplace_back(handle_of(*c), c->grad);
    }
    former_ = watch_cells(this);
    former_recorder_ = engine::set_recorder([this](const engine::Recorded& r) { record(r); });
  }
  ~Recorder() override { stop(); }

  // --- what the body does

  void touched(Cell& cell, bool history) override {
    if (!is_older(cell)) return;
    int at = place_of(cell);
    bool first = claimed_.insert(at).second;
    if (history && (cell.tracked || (!first && aside_.contains(&cell))) && !outside_) outside_ = at;
    if (!first) return;
    Recording::Place& place = out_.places[static_cast<std::size_t>(at)];
    if (is_constant(cell.node)) {
      place.constant = cell.node;
    } else if (stored_leaf(cell.node)) {
      isolate(cell);
      place_of_storage_[engine::storage_of(stored_leaf(cell.node)).id] = at;
    } else {
      unready_ = true;
    }
  }
  void value_read(const char* op) override {
    fail<CaptureError>(op,
                       "a value cannot be read while a function is being recorded: the recording would keep "
                       "what was done about it");
  }
  void refused(const char* op, const char* reason) override { fail<CaptureError>(op, "{}", reason); }
  void gradient_taken() override { out_.takes_gradients |= !NoGrad::enabled(); }
  void handle_read(const Tensor& handle) override {
    if (young_.contains(&handle) || argument_handles_.contains(&handle)) return;
    if (read_.insert(&handle).second && handle.impl()) reached_.insert(handle.impl()->cell);
  }
  void handle_made(const Tensor* handle) override { young_.insert(handle); }
  void handle_changes(const Tensor* handle, const Impl* to) override {
    // An argument may be moved into the function.
    if (young_.contains(handle) || (!to && argument_handles_.contains(handle))) return;
    if (!rebound_.contains(handle)) rebound_.emplace(handle, *handle);
  }
  void handle_gone(const Tensor* handle) override {
    if (young_.erase(handle)) return;
    rebound_.erase(handle);
    read_.erase(handle);
  }

  // --- after it

  /// Computes what is pending and finishes. False if this call cannot be recorded but a later one may.
  bool finish(JitResults& results) {
    check_handles();
    if (out_.takes_gradients && outside_)
      fail<CaptureError>("jit",
                         "gradients would leave the function through the history of {}, which was computed "
                         "outside of it: detach() it, or compute it inside",
                         keep_[static_cast<std::size_t>(*outside_)].str());
    compute(results);
    stop();
    // What the body changes needs storage, or the recording would keep the constant it found.
    for (Recording::Place& place : out_.places)
      if (place.constant) unready_ |= give_storage(place);
    // What the body reads is only now in storage; the next call will find it there.
    if (unready_) return false;
    GraphScope scope;
    return describe_writes() && describe_gradients() && describe_results(results) && describe_rest();
  }

 private:
  bool is_older(const Cell& cell) const { return cell.serial <= born_before_; }

  int place_of(Cell& cell) {
    if (auto it = places_.find(&cell); it != places_.end()) return it->second;
    Recording::Place place;
    if (auto arg = argument_of_.find(&cell); arg != argument_of_.end())
      place.argument = arg->second;
    else if (auto owner = owner_of_.find(&cell); owner != owner_of_.end())
      place.gradient_of = place_of(*owner->second);
    keep_.push_back(handle_of(cell));
    if (place.argument == kNone && place.gradient_of == kNone) place.cell = keep_.back();
    place.dtype = cell.node->dtype;
    place.shape = shape_of(cell.node);
    place.marked = cell.marked;
    place.had_grad = cell.grad.defined();
    out_.places.push_back(std::move(place));
    return places_[&cell] = static_cast<int>(out_.places.size()) - 1;
  }

  // Gives the contents a leaf that nothing else refers to: what was computed from them before the body, or
  // shares their storage, must not be found in their place.
  void isolate(Cell& cell) {
    if (cell.tracked) {
      // The history is put aside: inside it is a value like any other.
      aside_.insert(&cell);
      histories_.push_back({handle_of(cell), cell.node, cell.version});
      cell.tracked = false;
      settle(cell, engine::copy_of(stored_leaf(cell.node)));
      return;
    }
    if (Ref leaf = stored_leaf(cell.node); !same(leaf, cell.node.ref())) settle(cell, leaf);
    Ref leaf = cell.node;
    UOp mark = std::exchange(cell.leaf, UOp());
    bool shared = leaf->refs.load() > (mark ? 2u : 1u) || engine::storage_of(leaf).refs.load() > 1 ||
                  (mark && mark->refs.load() > 1);
    cell.leaf = std::move(mark);
    if (shared) settle(cell, engine::copy_of(leaf));
  }

  void check_handles() {
    GraphScope scope;
    // Gradients are handles of ours.
    for (Cell* c = first_cell(); c; c = c->next) rebound_.erase(&c->grad), read_.erase(&c->grad);
    for (auto& [handle, before] : rebound_) {
      if (handle->impl() == before.impl()) continue;
      fail<CaptureError>(
          "jit",
          "{}, older than this call, was rebound to {} inside it, which a replay could not do: "
          "write to it with assign(), or return the new one",
          before.str(), handle->str());
    }
  }

  void compute(JitResults& results) {
    std::vector<Impl*> pending;
    std::vector<std::size_t> views;
    {
      GraphScope scope;
      for (const Tensor& t : keep_)
        if (Cell& cell = *t.impl()->cell; !cell.node.ref().is(Op::Buffer)) pending.push_back(&cell);
      absl::flat_hash_map<Cell*, int> shown;
      for (auto& [owner, grad] : targets_)
        if (Tensor& now = owner.impl()->cell->grad; now.impl() != grad.impl() && now.defined())
          pending.push_back(now.impl()->cell), ++shown[now.impl()->cell];
      for (const Tensor& r : results.tensors)
        if (r.defined() && !is_older(*r.impl()->cell)) ++shown[r.impl()->cell];
      for (std::size_t i = 0; i < results.tensors.size(); ++i) {
        const Tensor& r = results.tensors[i];
        if (!r.defined()) continue;
        Cell& cell = *r.impl()->cell;
        if (is_older(cell))
          place_of(cell);
        else if (r.impl()->whole || shown[&cell] > 1)
          pending.push_back(&cell);
        else
          views.push_back(i);
      }
    }
    // A view of something made here that nobody else sees is a value: of the rest nothing need be computed.
    for (std::size_t i : views) {
      Tensor value = results.tensors[i].clone();
      results.tensors[i] = value;
      pending.push_back(value.impl());
    }
    realize(pending);
  }

  void stop() {
    if (stopped_) return;
    stopped_ = true;
    watch_cells(former_);
    engine::set_recorder(std::move(former_recorder_));
    GraphScope scope;
    for (History& h : histories_) {
      Cell& cell = *h.cell.impl()->cell;
      if (cell.version != h.version || cell.tracked) continue;
      settle(cell, h.node);
      cell.tracked = true;
    }
    histories_.clear();
  }

  // Whether these contents are no longer what they were; constants are then put in storage.
  bool give_storage(const Recording::Place& place) {
    const Tensor& tensor = keep_[static_cast<std::size_t>(&place - out_.places.data())];
    {
      GraphScope scope;
      Ref now = tensor.impl()->cell->node;
      if (same(now, place.constant.ref())) return false;
      if (!is_constant(now)) return true;
    }
    store_constant(*tensor.impl()->cell);
    return true;
  }

  int new_slot(std::uint64_t id, Ref leaf) {
    engine::Storage& s = engine::storage_of(leaf);
    int slot = static_cast<int>(out_.slots.size());
    Recording::Slot made;
    made.dtype = leaf.dtype();
    made.shape = leaf.src(0);
    made.elements = s.elements;
    made.device = s.device;
    out_.slots.push_back(std::move(made));
    slot_of_[id] = slot;
    return slot;
  }

  int input_slot(Ref leaf) {
    engine::Storage& s = engine::storage_of(leaf);
    if (auto known = slot_of_.find(s.id); known != slot_of_.end()) return known->second;
    int slot = new_slot(s.id, leaf);
    if (auto place = place_of_storage_.find(s.id); place != place_of_storage_.end()) {
      out_.places[static_cast<std::size_t>(place->second)].slot = slot;
    } else if (s.parent) {
      int base = input_slot(s.parent);
      out_.slots[static_cast<std::size_t>(slot)].base = base;
      out_.slots[static_cast<std::size_t>(slot)].start = s.start;
    } else {
      out_.slots[static_cast<std::size_t>(slot)].constant = leaf;
    }
    return slot;
  }

  void record(const engine::Recorded& r) {
    GraphScope scope;
    RecordedRun run;
    run.run = r.run;
    for (const UOp& leaf : r.inputs) run.inputs.push_back(input_slot(leaf));
    for (std::size_t k = 0; k < r.outputs.size(); ++k) {
      engine::Storage& s = engine::storage_of(r.outputs[k]);
      auto known = slot_of_.find(s.id);
      int slot = known != slot_of_.end() ? known->second : new_slot(s.id, r.outputs[k]);
      bool input =
          r.in_place[k] < 0 && std::find(run.inputs.begin(), run.inputs.end(), slot) != run.inputs.end();
      if (!input) out_.slots[static_cast<std::size_t>(slot)].made = true;
      run.outputs.push_back(slot);
      run.in_place.push_back(r.in_place[k] < 0 ? kNone : run.inputs[static_cast<std::size_t>(r.in_place[k])]);
    }
    for (int k : r.overwritten) run.overwritten.push_back(run.inputs[static_cast<std::size_t>(k)]);
    for (const UOp& bind : r.scalars) run.scalars.push_back(scalar_of(bind));
    out_.runs.push_back(std::move(run));
  }

  RecordedScalar scalar_of(Ref bind) {
    RecordedScalar scalar;
    scalar.value = bind.src(1).i();
    if (Device device = generator_of(bind)) {
      auto [it, fresh] = random_before_.try_emplace(device, 0);
      scalar.value -= it->second;
      scalar.generator = device;
      return scalar;
    }
    for (std::size_t k = 0; k < out_.binds.size(); ++k)
      if (same(out_.binds[k].ref(), bind)) scalar.bind = static_cast<int>(k);
    return scalar;
  }

  bool describe_writes() {
    for (std::size_t i = 0; i < out_.places.size(); ++i) {
      if (!claimed_.contains(static_cast<int>(i)) || out_.places[i].constant) continue;
      const Cell& cell = *keep_[i].impl()->cell;
      Ref leaf = stored_leaf(cell.node);
      if (!leaf) return false;
      if (cell.tracked) continue;  // its history is back, and with it the contents it had
      auto found = place_of_storage_.find(engine::storage_of(leaf).id);
      if (found != place_of_storage_.end() && found->second == static_cast<int>(i)) continue;
      out_.writes.push_back({static_cast<int>(i), input_slot(leaf), shape_of(leaf)});
    }
    return true;
  }

  bool describe(const Tensor& t, Recording::Value& value) {
    Cell& cell = *t.impl()->cell;
    if (!t.impl()->whole) value.chain = static_cast<View&>(*t.impl()).chain;
    if (is_older(cell)) {
      value.place = place_of(cell);
      return true;
    }
    if (auto known = made_of_.find(&cell); known != made_of_.end()) {
      value.made = known->second;
      return true;
    }
    Recording::Made made;
    made.shape = shape_of(cell.node);
    made.device = cell.device;
    if (is_constant(cell.node))
      made.constant = cell.node;
    else if (Ref leaf = stored_leaf(cell.node))
      made.slot = input_slot(leaf);
    else
      return false;
    out_.made.push_back(std::move(made));
    value.made = made_of_[&cell] = static_cast<int>(out_.made.size()) - 1;
    return true;
  }

  bool describe_gradients() {
    for (auto& [owner, grad] : targets_) {
      Cell& cell = *owner.impl()->cell;
      const Tensor& now = cell.grad;
      // A gradient that is a view is looked up as what it shows, which another may have replaced.
      if (now.impl() == grad.impl()) {
        if (now.defined() && !now.impl()->whole && places_.contains(now.impl()->cell)) return false;
        continue;
      }
      Recording::Gradient g;
      g.place = place_of(cell);
      if (now.defined() && !describe(now, g.value)) return false;
      out_.gradients.push_back(std::move(g));
    }
    return true;
  }

  bool describe_results(const JitResults& results) {
    out_.lengths = results.lengths;
    for (const Tensor& r : results.tensors) {
      Recording::Value value;
      if (r.defined() && !describe(r, value)) return false;
      out_.results.push_back(std::move(value));
    }
    return true;
  }

  bool describe_rest() {
    for (std::size_t i = 0; i < out_.places.size(); ++i) {
      Recording::Place& place = out_.places[i];
      Cell& cell = *keep_[i].impl()->cell;
      if (cell.marked != place.marked) out_.marks.emplace_back(static_cast<int>(i), cell.marked);
      // An argument that the body also reached otherwise: only while it is the same.
      if (reached_.contains(&cell) && place.argument != kNone) place.cell = keep_[i];
    }
    for (auto& [device, start] : random_before_)
      if (std::int64_t words = random_offset(device) - start)
        out_.draws.push_back({device, words, random_key(device)});
    out_.handles.watch({read_.begin(), read_.end()});
    return true;
  }

  // Of a Cell that was computed outside with a history.
  struct History {
    Tensor cell;
    UOp node;
    std::uint64_t version;
  };

  Recording& out_;
  CellWatch* former_;
  engine::Recorder former_recorder_;
  bool stopped_ = false, unready_ = false;
  std::uint64_t born_before_ = 0;                   // serials up to it are of older Cells
  std::vector<std::pair<Tensor, Tensor>> targets_;  // older Cells that have or may get a gradient, and theirs
  absl::flat_hash_map<Cell*, Cell*> owner_of_;      // of a gradient
  absl::flat_hash_map<Cell*, int> argument_of_;
  absl::flat_hash_map<Device, std::int64_t> random_before_;

  absl::flat_hash_map<Cell*, int> places_;
  std::vector<Tensor> keep_;          // the Cells of places
  absl::flat_hash_set<int> claimed_;  // places whose contents are used
  std::vector<History> histories_;    // that are put aside, of these:
  absl::flat_hash_set<Cell*> aside_;
  std::optional<int> outside_;  // the first place whose history the body saw
  absl::flat_hash_map<std::uint64_t, int> place_of_storage_, slot_of_;  // by id of storage
  absl::flat_hash_map<Cell*, int> made_of_;

  absl::flat_hash_set<const Tensor*> argument_handles_, young_, read_;
  absl::flat_hash_set<Cell*> reached_;                  // by handles that are no arguments
  absl::flat_hash_map<const Tensor*, Tensor> rebound_;  // older handles, and what they were
};

}  // namespace

std::unique_ptr<Recording> record(const Call& call, const Captures::Body& body, JitResults& results) {
  store_arguments(call);
  auto recording = std::make_unique<Recording>();
  std::uint64_t born_before;
  {
    GraphScope scope;
    born_before = last_serial();
  }
  Recorder recorder(call, *recording);
  results = body();
  bool done = recorder.finish(results);
  end_histories(results, born_before);
  return done ? std::move(recording) : nullptr;
}

}  // namespace pg::detail
