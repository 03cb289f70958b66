// Which recording a call belongs to, and whether it runs, records or replays.
#include "base/log.h"
#include "tensor/check.h"
#include "tensor/ops.h"
#include "tensor/recording.h"
#include <pangrad/jit.h>

namespace pg::detail {
namespace {

// The bound Variables in an expression are collected; what is left tells apart expressions that differ in
// more than values.
std::string expression_key(Ref node, std::vector<UOp>& binds) {
  std::vector<std::pair<Ref, Ref>> numbered;
  for (Ref n : toposort(node)) {
    if (!n.is(Op::Bind)) continue;
    std::size_t k = 0;
    while (k < binds.size() && !same(binds[k].ref(), n)) ++k;
    if (k == binds.size()) binds.emplace_back(n);
    Ref v = n.src(0);
    numbered.emplace_back(n, var("#" + std::to_string(k), v.lo(), v.hi(), v.dtype()));
  }
  return std::to_string(substitute(node, numbered)->hash);
}

// Everything that a recording depends on besides contents.
std::string key_of(Call& call) {
  std::string key = call.given.key;
  key += engine::default_device();
  key += Training::enabled() ? 'T' : '-';
  key += NoGrad::enabled() ? 'N' : '-';
  GraphScope scope;
  for (const Dim& d : call.given.dims) key += '|' + expression_key(d.node(), call.binds);
  absl::flat_hash_map<Cell*, std::size_t> first;
  for (const Tensor& t : call.given.inputs) {
    Value v = read(t, "jit");
    key += '|';
    key += name(v.dtype());
    Ref shape = v.shape();
    for (int i = 0; i < rank(shape); ++i) {
      Ref d = dim(shape, i);
      key += d.is_const() ? ' ' + std::to_string(d.i()) : " ?" + expression_key(d, call.binds);
    }
    Impl& impl = *t.impl();
    key += '@' + std::to_string(first.try_emplace(impl.cell, first.size()).first->second);
    if (!impl.whole) key += '/' + expression_key(static_cast<View&>(impl).chain, call.binds);
    if (v.device) key += *v.device;
  }
  return key;
}

}  // namespace

void store_arguments(const Call& call) {
  std::vector<Impl*> cells;
  cells.reserve(call.given.inputs.size());
  for (const Tensor& t : call.given.inputs) cells.push_back(t.impl()->cell);
  realize(cells);
  for (Impl* cell : cells) {
    {
      GraphScope scope;
      if (!is_constant(cell->node) || !is_concrete(shape_of(cell->node))) continue;
    }
    store_constant(*cell->cell);
  }
}

void store_constant(Cell& cell) {
  UOp node;
  {
    GraphScope scope;
    node = make(Op::Contiguous, cell.node->dtype, {placed(cell.node, cell.device)});
  }
  UOp leaf = engine::realize({&node, 1})[0];
  GraphScope scope;
  settle(cell, leaf);
}

void end_histories(const JitResults& results, std::uint64_t born_before) {
  GraphScope scope;
  for (const Tensor& t : results.tensors)
    if (t.defined() && t.impl()->cell->serial > born_before) end_history(*t.impl()->cell, "jit");
}

struct Captures::State {
  struct Entry {
    bool called = false;
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

JitResults Captures::run(const JitCall& given, const Body& body) {
  if (cell_watch()) return body();  // within another recording: a part of it
  Call call{given, {}};
  State::Entry& entry = state_->entries[key_of(call)];
  JitResults results;
  if (entry.recording) {
    if (replay(*entry.recording, call, results)) return results;
    entry.recording.reset();
  } else if (!entry.called) {
    entry.called = true;
    std::uint64_t born_before;
    {
      GraphScope scope;
      born_before = last_serial();
    }
    results = body();
    end_histories(results, born_before);
    return results;
  }
  entry.recording = record(call, body, results);
  if (entry.recording) log(LogLevel::Summary, "jit: recorded {} runs", entry.recording->runs.size());
  return results;
}

}  // namespace pg::detail
