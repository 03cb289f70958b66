#include "engine/run.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/strings.h"
#include "engine/counters.h"
#include "ir/print.h"
#include "rules/spec.h"

namespace pg::engine {
namespace {

struct Cache {
  std::mutex mutex;
  struct Entry {
    UOp keep;
    std::shared_ptr<const Run> run;
  };
  absl::flat_hash_map<std::pair<Node*, std::string>, Entry> runs;
  static constexpr std::size_t kCap = 1 << 12;
};
Cache& cache() {
  static Cache* c = new Cache;
  return *c;
}

// A call whose result has no elements.
bool nothing_to_do(const schedule::Schedule& s, Ref call) {
  return s.buffers[static_cast<std::size_t>(call.src(1).i())].size == 0;
}

}  // namespace

std::size_t schedules_cached() {
  std::lock_guard lock(cache().mutex);
  return cache().runs.size();
}
void forget_schedules() {
  absl::flat_hash_map<std::pair<Node*, std::string>, Cache::Entry> old;
  std::lock_guard lock(cache().mutex);
  old.swap(cache().runs);
}

std::shared_ptr<const Run> prepare(const UOp& call, const std::string& device) {
  std::pair<Node*, std::string> key{call.ref().node(), device};
  {
    std::lock_guard lock(cache().mutex);
    auto it = cache().runs.find(key);
    if (it != cache().runs.end()) {
      ++counts().schedule_hits;
      return it->second.run;
    }
  }
  ++counts().schedules;
  auto run = std::make_shared<Run>();
  std::vector<KernelJob> jobs;
  {
    DeferLog defer;
    GraphScope scope;
    if (log_enabled(LogLevel::Graphs)) log_text(LogLevel::Graphs, "call:\n" + print(call));
    rules::check(call, rules::Stage::Call, "realize");
    run->schedule = schedule::schedule(call, device);
    rules::check(run->schedule.linear, rules::Stage::Schedule, "schedule");
    if (log_enabled(LogLevel::Graphs))
      log_text(LogLevel::Graphs, "schedule:\n" + print(run->schedule.linear));
    absl::flat_hash_set<std::pair<Node*, runtime::Device*>> wanted;
    for (Node* c : run->schedule.linear.ref().srcs()) {
      Ref kernel = c->src[0];
      if (kernel.is(Op::Copy) || nothing_to_do(run->schedule, c)) continue;
      const auto& info = run->schedule.buffers[static_cast<std::size_t>(c->src[1]->arg.i)];
      runtime::Device& d = runtime::device(info.device);
      if (!find_kernel(kernel, d) && wanted.insert({kernel.node(), &d}).second) jobs.emplace_back(kernel, d);
    }
  }
  log(LogLevel::Summary, "scheduled {} kernels, {} to compile", run->schedule.linear->nsrc, jobs.size());
  compile_all(jobs);
  GraphScope scope;
  for (Node* c : run->schedule.linear.ref().srcs()) {
    if (nothing_to_do(run->schedule, c)) continue;
    Step step;
    Ref kernel = c->src[0];
    for (Node* arg : Ref(c).srcs().subspan(1)) {
      if (arg->op == Op::Param)
        step.slots.push_back(static_cast<int>(arg->arg.i));
      else
        step.scalars.push_back(static_cast<int>(arg->arg.i));
    }
    if (!kernel.is(Op::Copy)) {
      runtime::Device& d =
          runtime::device(run->schedule.buffers[static_cast<std::size_t>(step.slots[0])].device);
      step.kernel = find_kernel(kernel, d);
      if (!step.kernel) throw InternalError("[realize] a kernel that was just compiled is gone");
    }
    run->steps.push_back(std::move(step));
  }
  absl::flat_hash_set<int> seen;
  for (const Step& step : run->steps)
    if (step.slots[0] < static_cast<int>(run->schedule.params) && seen.insert(step.slots[0]).second)
      run->overwritten.push_back(step.slots[0]);
  for (int out : run->schedule.outputs)
    if (out >= static_cast<int>(run->schedule.params) && seen.insert(out).second) run->fresh.push_back(out);
  std::lock_guard lock(cache().mutex);
  if (cache().runs.size() >= Cache::kCap) cache().runs.clear();
  cache().runs[key] = {call, run};
  return run;
}

void place_temporaries(const Run& run, std::vector<runtime::Buffer>& buffers) {
  const schedule::Schedule& s = run.schedule;
  if (s.arena_devices.empty()) return;
  absl::InlinedVector<runtime::Buffer, 2> arenas;
  for (std::size_t i = 0; i < s.arena_devices.size(); ++i)
    arenas.push_back(runtime::device(s.arena_devices[i])
                         .allocate(std::max<std::size_t>(1, static_cast<std::size_t>(s.arena_bytes[i]))));
  for (std::size_t i = s.params; i < s.buffers.size(); ++i) {
    const schedule::BufferInfo& b = s.buffers[i];
    if (b.arena_offset < 0) continue;
    std::size_t arena = 0;
    while (s.arena_devices[arena] != b.device) ++arena;
    buffers[i] = arenas[arena].slice(static_cast<std::size_t>(b.arena_offset),
                                     static_cast<std::size_t>(b.size) * itemsize(b.dtype));
  }
}

void execute(const Run& run, std::span<const runtime::Buffer> buffers,
             std::span<const std::int64_t> scalars) {
  bool timed = flags::debug() >= 2;
  absl::InlinedVector<runtime::Buffer, 8> args;
  absl::InlinedVector<std::int64_t, 4> vars;
  for (const Step& step : run.steps) {
    if (!step.kernel) {
      runtime::copy(buffers[static_cast<std::size_t>(step.slots[0])],
                    buffers[static_cast<std::size_t>(step.slots[1])]);
      ++counts().copies;
      continue;
    }
    args.clear();
    vars.clear();
    for (int s : step.slots) args.push_back(buffers[static_cast<std::size_t>(s)]);
    for (int s : step.scalars) vars.push_back(scalars[static_cast<std::size_t>(s)]);
    const CompiledKernel& k = *step.kernel;
    runtime::Interval interval;
    std::uint64_t ticket = k.program->launch({args.data(), args.size()}, {vars.data(), vars.size()},
                                             k.program->signature().size, timed ? &interval : nullptr);
    auto& c = counts();
    ++c.kernels;
    c.flops.fetch_add(k.flops, std::memory_order_relaxed);
    c.bytes.fetch_add(k.bytes, std::memory_order_relaxed);
    if (timed) {
      k.program->device().wait(ticket);
      double seconds = interval.end - interval.begin;
      c.seconds.fetch_add(seconds, std::memory_order_relaxed);
      log(LogLevel::Kernels, "{:8} {:40} arg {:2} {:>10} {:8.2f} GFLOP/s {:8.2f} GB/s",
          k.program->device().name(), k.name, args.size(), format_seconds(seconds), k.flops / seconds * 1e-9,
          k.bytes / seconds * 1e-9);
    }
  }
}

}  // namespace pg::engine
