// A scheduled call, ready to be run any number of times: its kernels compiled, its storages named by slot.
#pragma once

#include <memory>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "engine/compile_crew.h"
#include "engine/engine.h"
#include "schedule/schedule.h"

namespace pg::engine {

/// What a device can do, by its name.
const Target& target_of(const std::string& device);

struct Step {
  std::shared_ptr<Kernel> kernel;  // null: a copy of slots[1] to slots[0]
  absl::InlinedVector<int, 6> slots;
  absl::InlinedVector<int, 2> scalars;
  absl::InlinedVector<int, 1> overwrites;  // parameters whose contents it replaces
};

struct Run {
  schedule::Schedule schedule;
  std::vector<Step> steps;
  /// The schedule's slots that are neither parameters nor temporaries: made at each run.
  std::vector<int> fresh;
  /// Parameters that a step writes.
  std::vector<int> overwritten;
  /// Whether all kernels were ready once.
  mutable std::atomic<bool> compiled{false};
};

/// A run, with whoever compiles its kernels, if any have to be.
struct Prepared {
  std::shared_ptr<const Run> run;
  std::unique_ptr<CompileCrew> crew;
};

/// Schedules a call, and lowers its kernels and begins to compile them. Enters GraphScopes itself; call it
/// outside of any.
Prepared prepare(const UOp& call, const std::string& device);

/// Runs the steps; `buffers` by slot, temporaries already placed. A step is launched once its kernel is
/// compiled; until all are, nothing is overwritten, so that a kernel that does not compile leaves everything
/// as it was. Counts and, with DEBUG=2, prints each kernel.
void execute(const Run& run, std::span<const runtime::Buffer> buffers, std::span<const std::int64_t> scalars,
             CompileCrew* crew = nullptr);

/// Memory of a run's temporaries, put into their slots.
void place_temporaries(const Run& run, std::vector<runtime::Buffer>& buffers);

}  // namespace pg::engine
