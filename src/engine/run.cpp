#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <absl/container/flat_hash_set.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strings.h"
#include "engine/caches.h"
#include "engine/counters.h"
#include "engine/search.h"
#include "ir/print.h"
#include "rules/spec.h"

namespace pg::engine {
namespace {

// A call whose result has no elements.
bool nothing_to_do(const schedule::Schedule& s, Ref call) {
  return s.buffers[static_cast<std::size_t>(call.src(1).i())].size == 0;
}

using KernelsOf = absl::flat_hash_map<KernelKey, std::shared_ptr<Kernel>>;

KernelKey key_of(const schedule::Schedule& s, Ref call) {
  auto to = static_cast<std::size_t>(call.src(1).i());
  return {call.src(0).node(), &runtime::device(s.buffers[to].device)};
}

// A kernel that this process does not have yet. The schedule keeps its graph.
struct Wanted {
  KernelKey key;
  Digest digest{};
};

// Finds the kernels of a schedule in memory; returns the others, each once, in the order of their first use.
std::vector<Wanted> find_kernels(const schedule::Schedule& s, bool disk, KernelsOf& found) {
  std::vector<Wanted> missing;
  for (Node* c : s.linear.ref().srcs()) {
    if (c->src[0]->op == Op::Copy || nothing_to_do(s, c)) continue;
    KernelKey key = key_of(s, c);
    auto [it, fresh] = found.try_emplace(key);
    if (!fresh) continue;
    if (auto there = kernels().find(key)) {
      it->second = there->kernel;
      continue;
    }
    missing.push_back({key});
    if (disk) missing.back().digest = digest_of(key.kernel, *key.device);
  }
  return missing;
}

// Options for those that were not found. Once time is up, what is left keeps the cost model's choice for now:
// it is not kept on disk, so that the next process goes on there.
absl::flat_hash_map<KernelKey, Searched> search(std::span<const Wanted> missing, bool disk,
                                                const KernelsOf& found) {
  absl::flat_hash_map<KernelKey, Searched> out;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(flags::beam_seconds());
  std::optional<Progress> progress;
  if (log_enabled(LogLevel::Summary))
    progress.emplace(static_cast<std::int64_t>(missing.size()),
                     Progress::Options{"search", "kernels", 1, stderr});
  double before = 0, after = 0;
  // Those of the longest loops first, where there is most to gain.
  std::vector<std::pair<double, const Wanted*>> order;
  {
    GraphScope scope;
    for (const Wanted& w : missing) {
      double turns = 1;
      for (Ref n : toposort(Ref(w.key.kernel)))
        if (n.is(Op::Range)) turns *= static_cast<double>(n.hi()) + 1;
      order.emplace_back(-turns, &w);
    }
  }
  std::sort(order.begin(), order.end());  // equal ones as they lie in `missing`
  for (auto& [turns, wanted] : order) {
    const Wanted& w = *wanted;
    if (auto it = found.find(w.key); it == found.end() || !it->second) {
      const Searched& s = out[w.key] =
          search_options(w.key.kernel, *w.key.device, disk ? &w.digest : nullptr, until);
      before += s.first, after += s.seconds;
    }
    if (progress) progress->advance(fmt::format("{:.2f} ms from {:.2f} ms", after * 1e3, before * 1e3));
  }
  return out;
}

// Brings those kernels: from disk, else lowered one after the other, while a crew compiles those that are.
std::unique_ptr<CompileCrew> bring(std::span<const Wanted> missing, bool disk, KernelsOf& found) {
  if (disk)
    for (const Wanted& w : missing) found[w.key] = Kernel::from_disk(*w.key.device, w.digest);
  std::unique_ptr<CompileCrew> crew;
  // All searches first: nothing else compiles while they time kernels.
  absl::flat_hash_map<KernelKey, Searched> searched;
  if (flags::beam() && !flags::noopt()) searched = search(missing, disk, found);
  for (const Wanted& w : missing) {
    DeferLog defer;
    std::shared_ptr<Kernel>& kernel = found[w.key];
    auto options = searched.find(w.key);
    GraphScope scope;
    // Another thread may have come first.
    if (auto there = kernels().find(w.key)) kernel = there->kernel;
    if (!kernel)
      kernel = Kernel::lowered(
          w.key.kernel, *w.key.device,
          disk && (options == searched.end() || options->second.finished) ? &w.digest : nullptr,
          options == searched.end() ? nullptr : &options->second.options);
    kernel = kernels().insert(w.key, {Ref(w.key.kernel), kernel}).kernel;
    if (kernel->ready()) continue;
    if (!crew) crew = std::make_unique<CompileCrew>();
    crew->add(kernel);
  }
  return crew;
}

// A run whose kernels were not all compiled when it was last prepared, since one failed.
std::unique_ptr<CompileCrew> crew_of(const Run& run) {
  if (run.compiled.load(std::memory_order_acquire)) return nullptr;
  auto crew = std::make_unique<CompileCrew>();
  for (const Step& step : run.steps)
    if (step.kernel && !step.kernel->ready()) crew->add(step.kernel);
  return crew;
}

std::vector<Step> steps_of(const schedule::Schedule& s, const KernelsOf& found) {
  std::vector<Step> out;
  for (Node* c : s.linear.ref().srcs()) {
    if (nothing_to_do(s, c)) continue;
    Step step;
    for (Node* arg : Ref(c).srcs().subspan(1)) {
      if (arg->op == Op::Param)
        step.slots.push_back(static_cast<int>(arg->arg.i));
      else
        step.scalars.push_back(static_cast<int>(arg->arg.i));
    }
    for (int slot : schedule::written_slots(c))
      if (static_cast<std::size_t>(slot) < s.params) step.overwrites.push_back(slot);
    if (c->src[0]->op != Op::Copy) step.kernel = found.at(key_of(s, c));
    out.push_back(std::move(step));
  }
  return out;
}

}  // namespace

const Target& target_of(const std::string& device) { return runtime::device(device).target(); }

Prepared prepare(const UOp& call, const std::string& device) {
  ScheduleKey key{call.ref().node(), device};
  if (auto found = schedules().find(key)) {
    ++counts().schedule_hits;
    return {found->run, crew_of(*found->run)};
  }
  ++counts().schedules;
  auto run = std::make_shared<Run>();
  const bool disk = flags::cache() >= 2;
  KernelsOf found;
  std::vector<Wanted> missing;
  {
    DeferLog defer;
    GraphScope scope;
    if (log_enabled(LogLevel::Graphs)) log_text(LogLevel::Graphs, "call:\n" + print(call));
    rules::check(call, rules::Stage::Call, "realize");
    run->schedule = schedule::schedule(call, device, target_of);
    rules::check(run->schedule.linear, rules::Stage::Schedule, "schedule");
    if (log_enabled(LogLevel::Graphs))
      log_text(LogLevel::Graphs, "schedule:\n" + print(run->schedule.linear));
    missing = find_kernels(run->schedule, disk, found);
  }
  log(LogLevel::Summary, "scheduled {} kernels, {} to compile", run->schedule.linear->nsrc, missing.size());
  std::unique_ptr<CompileCrew> crew = bring(missing, disk, found);
  run->steps = steps_of(run->schedule, found);
  run->compiled = !crew;
  absl::flat_hash_set<int> seen;
  for (const Step& step : run->steps)
    for (int slot : step.overwrites)
      if (seen.insert(slot).second) run->overwritten.push_back(slot);
  for (int out : run->schedule.outputs)
    if (out >= static_cast<int>(run->schedule.params) && seen.insert(out).second) run->fresh.push_back(out);
  return {schedules().insert(key, {call, run}).run, std::move(crew)};
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

void execute(const Run& run, std::span<const runtime::Buffer> buffers, std::span<const std::int64_t> scalars,
             CompileCrew* crew) {
  bool timed = flags::debug() >= 2, waited = false;
  absl::InlinedVector<runtime::Buffer, 8> args;
  absl::InlinedVector<std::int64_t, 4> vars;
  for (const Step& step : run.steps) {
    if (crew && !step.overwrites.empty() && !waited) {
      crew->finish();
      waited = true;
    }
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
    Kernel& k = *step.kernel;
    runtime::Program& program = crew ? crew->program(k) : k.program();
    runtime::Interval interval;
    std::uint64_t ticket = program.launch({args.data(), args.size()}, {vars.data(), vars.size()},
                                          program.signature().size, timed ? &interval : nullptr);
    auto& c = counts();
    ++c.kernels;
    c.flops.fetch_add(k.flops(), std::memory_order_relaxed);
    c.bytes.fetch_add(k.bytes(), std::memory_order_relaxed);
    if (timed) {
      program.device().wait(ticket);
      double seconds = interval.end - interval.begin;
      c.seconds.fetch_add(seconds, std::memory_order_relaxed);
      log(LogLevel::Kernels, "{:8} {:40} arg {:2} {:>10} {:8.2f} GFLOP/s {:8.2f} GB/s",
          program.device().name(), k.name(), args.size(), format_seconds(seconds), k.flops() / seconds * 1e-9,
          k.bytes() / seconds * 1e-9);
    }
  }
  if (crew) run.compiled.store(true, std::memory_order_release);
}

}  // namespace pg::engine
