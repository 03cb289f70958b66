// Kernels in the order of a schedule, before they are calls, and what makes one of several. Only the
// scheduler uses it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "schedule/schedule.h"

namespace pg::schedule {

/// Ranges of a kernel: one of very many reductions reads the rest, and is merged with nothing.
inline constexpr std::int64_t kMostRanges = 24;

using Slots = absl::InlinedVector<std::int64_t, 8>;
using Strides = absl::InlinedVector<std::pair<Node*, std::int64_t>, 8>;

/// A kernel over the slots of the schedule, Sink(End(Store, ranges...)...), or a Copy of one slot to another.
struct Work {
  Ref root;
  std::string device;
  std::int64_t next_range = 0;  // above the numbers of its ranges
  Slots reads{}, writes{};
  absl::InlinedVector<Ref, 8> loads{};  // the Index of each
  std::int64_t turns = 1;               // iterations of the innermost loop
  bool own_loops = false;               // a product of matrices, or a scatter: shaped by that alone
};

/// Fills in what follows from the root of a kernel.
void collect(Work& work);

/// Makes one of kernels that run through the same elements, or one through the rows of the other.
void merge_kernels(std::vector<Work>& works, const TargetOf& targets);

/// Takes out the stores that nobody reads; `read` are the slots that are read later.
void drop_dead_stores(std::vector<Work>& works, absl::flat_hash_set<std::int64_t> read);

}  // namespace pg::schedule
