#include "schedule/schedule.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "rewrite/rewrite.h"
#include "rules/symbolic.h"
#include "schedule/plan.h"

namespace pg::schedule {

// Producers before readers, readers before those who overwrite; among the ready, the order of the program.
std::vector<int> Planner::order() const {
  std::size_t n = kernels_.size();
  std::vector<std::vector<int>> next(n);
  std::vector<int> waits(n, 0);
  auto edge = [&](int from, int to) {
    if (from == to) return;
    next[static_cast<std::size_t>(from)].push_back(to);
    ++waits[static_cast<std::size_t>(to)];
  };
  for (std::size_t k = 0; k < n; ++k)
    for (Node* read : kernels_[k].reads) {
      if (auto it = producer_.find(read); it != producer_.end()) edge(it->second, static_cast<int>(k));
      if (auto it = overwriter_.find(read); it != overwriter_.end()) edge(static_cast<int>(k), it->second);
    }
  for (auto& [node, k] : overwriter_)
    if (auto it = producer_.find(node); it != producer_.end()) edge(it->second, k);
  // What runs next: what gives back more memory than it takes, at once; else the earliest work, which has the
  // highest number, since kernels were started from results to inputs.
  std::vector<int> uses(buffers_.size(), 0);  // kernels still to come that read or write a temporary
  for (std::size_t i = 0; i < params_; ++i) ++uses[i];
  for (Ref r : roots_)
    if (auto it = buffer_.find(r.node()); it != buffer_.end()) ++uses[static_cast<std::size_t>(it->second)];
  std::vector<absl::InlinedVector<int, 6>> slots(n);
  std::vector<std::vector<int>> users(buffers_.size());
  for (std::size_t k = 0; k < n; ++k) {
    auto use = [&](int slot) {
      if (std::find(slots[k].begin(), slots[k].end(), slot) == slots[k].end()) slots[k].push_back(slot);
    };
    use(kernels_[k].buffer);
    for (Node* read : kernels_[k].reads)
      if (auto it = buffer_.find(read); it != buffer_.end()) use(it->second);
    for (int slot : slots[k]) {
      ++uses[static_cast<std::size_t>(slot)];
      users[static_cast<std::size_t>(slot)].push_back(static_cast<int>(k));
    }
  }
  std::vector<bool> made(buffers_.size(), false);
  auto gain = [&](int k) {
    double bytes = 0;
    for (int slot : slots[static_cast<std::size_t>(k)]) {
      const BufferInfo& b = buffers_[static_cast<std::size_t>(slot)];
      double size = static_cast<double>(b.size) * static_cast<double>(itemsize(b.dtype));
      if (slot == kernels_[static_cast<std::size_t>(k)].buffer && slot >= static_cast<int>(params_) &&
          !made[static_cast<std::size_t>(slot)])
        bytes -= size;
      if (uses[static_cast<std::size_t>(slot)] == 1) bytes += size;
    }
    return bytes;
  };
  // A gain only grows, and only when a kernel becomes the last to use something: older, smaller ones of the
  // same kernel come later.
  std::priority_queue<int> ready;
  std::priority_queue<std::pair<double, int>> gains;
  std::vector<int> order;
  std::vector<bool> done(n, false);
  auto weigh = [&](int k) {
    if (double bytes = gain(k); bytes > 0) gains.emplace(bytes, k);
  };
  auto make_ready = [&](int k) {
    ready.push(k);
    weigh(k);
  };
  for (std::size_t k = 0; k < n; ++k)
    if (!waits[k]) make_ready(static_cast<int>(k));
  while (!ready.empty()) {
    int k = gains.empty() ? ready.top() : gains.top().second;
    if (gains.empty())
      ready.pop();
    else
      gains.pop();
    if (done[static_cast<std::size_t>(k)]) continue;
    done[static_cast<std::size_t>(k)] = true;
    order.push_back(k);
    made[static_cast<std::size_t>(kernels_[static_cast<std::size_t>(k)].buffer)] = true;
    for (int slot : slots[static_cast<std::size_t>(k)])
      if (--uses[static_cast<std::size_t>(slot)] == 1)
        for (int last : users[static_cast<std::size_t>(slot)])
          if (!done[static_cast<std::size_t>(last)] && !waits[static_cast<std::size_t>(last)]) weigh(last);
    for (int to : next[static_cast<std::size_t>(k)])
      if (--waits[static_cast<std::size_t>(to)] == 0) make_ready(to);
  }
  return order.size() == n ? order : std::vector<int>{};
}

// A root that is no more than a scalar is stored all the same: Contiguous asks for it.
static Ref with_stored_roots(Ref call) {
  std::vector<Ref> roots;
  for (Node* raw : call.srcs()) {
    Ref r = raw;
    bool scalar = r.is(Op::Const) || r.is(Op::ScalarParam) || r.is(Op::Bind);
    roots.push_back(scalar ? make(Op::Contiguous, r.dtype(), {r}) : r);
  }
  return sink(roots);
}

// What is written to is a value of its own: where it was a view of something larger, a place in it is not one
// in that. Before movements merge, which would lose where the written value ends.
static Ref with_own_targets(Ref call) {
  absl::flat_hash_map<Node*, Ref> becomes;
  std::vector<Ref> srcs;
  for (Ref n : toposort(call)) {
    srcs.clear();
    bool changed = false;
    for (Node* s : n.srcs()) {
      auto it = becomes.find(s);
      srcs.push_back(it == becomes.end() ? Ref(s) : it->second);
      changed |= srcs.back().node() != s;
    }
    if (n.is(Op::After) && srcs.size() == 2 && srcs[1].is(Op::Store) &&
        storage_node(srcs[0]).has(kMovement)) {
      Ref own = make(Op::Contiguous, n.dtype(), {srcs[0]});
      std::pair<Ref, Ref> renamed{srcs[0], own};
      Ref view = substitute(srcs[1].src(0), std::span(&renamed, 1));
      becomes[n.node()] =
          make(Op::After, n.dtype(), {own, make(Op::Store, DType::Void, {view, srcs[1].src(1)})});
    } else if (changed) {
      becomes[n.node()] = make(n.op(), n.dtype(), n.lanes(), srcs, n->arg);
    }
  }
  auto it = becomes.find(call.node());
  return it == becomes.end() ? call : it->second;
}

absl::InlinedVector<int, 2> written_slots(Ref call) {
  Ref kernel = call.src(0);
  std::size_t stores = kernel.is(Op::Sink) ? static_cast<std::size_t>(kernel.nsrc()) : 1;
  absl::InlinedVector<int, 2> slots;
  // What a kernel writes are its first arguments.
  for (std::size_t k = 0; k < stores; ++k) {
    std::int64_t argument =
        kernel.is(Op::Sink) ? kernel.src(static_cast<int>(k)).src(0).src(0).src(0).i() : 0;
    int slot = static_cast<int>(call.src(static_cast<int>(argument) + 1).i());
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
  }
  return slots;
}

Schedule schedule(Ref call, std::string_view device, const TargetOf& targets) {
  absl::flat_hash_set<std::int64_t> demoted;
  Ref graph =
      rewrite(with_own_targets(call), rules::movement(), {.name = "simplify movement", .optional = true});
  graph =
      with_stored_roots(rewrite(graph, long_reductions(), {.name = "split reductions", .optional = true}));
  for (;;) {
    Planner planner(graph, device, targets, demoted);
    std::int64_t refuse = planner.plan();
    std::vector<int> order;
    if (refuse < 0) {
      order = planner.order();
      if (!order.empty() || planner.empty()) return planner.finish(order);
      refuse = planner.slot_to_demote();
      if (refuse < 0) refuse = kTakeOver;
      if (demoted.contains(refuse))
        throw InternalError("[schedule] kernels depend on each other in a circle");
    }
    demoted.insert(refuse);
  }
}

}  // namespace pg::schedule
