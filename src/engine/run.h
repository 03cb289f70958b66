// A scheduled call, ready to be run any number of times: its kernels compiled, its storages named by slot.
#pragma once

#include <memory>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "engine/engine.h"
#include "engine/kernel_cache.h"
#include "schedule/schedule.h"

namespace pg::engine {

struct Step {
  std::shared_ptr<const CompiledKernel> kernel;  // null: a copy of slots[1] to slots[0]
  absl::InlinedVector<int, 6> slots;
  absl::InlinedVector<int, 2> scalars;
};

struct Run {
  schedule::Schedule schedule;
  std::vector<Step> steps;
  /// The schedule's slots that are neither parameters nor temporaries: made at each run.
  std::vector<int> fresh;
  /// Parameters that a step writes.
  std::vector<int> overwritten;
};

/// Schedules and compiles a call. Enters GraphScopes itself; call it outside of any.
std::shared_ptr<const Run> prepare(const UOp& call, const std::string& device);

/// Runs the steps; `buffers` by slot, temporaries already placed. Counts and, with DEBUG=2, prints each
/// kernel.
void execute(const Run& run, std::span<const runtime::Buffer> buffers, std::span<const std::int64_t> scalars);

/// Memory of a run's temporaries, put into their slots.
void place_temporaries(const Run& run, std::vector<runtime::Buffer>& buffers);

}  // namespace pg::engine
