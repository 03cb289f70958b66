// The caches of this process: schedules by the call, kernels by their graph. Both keep what they are keyed
// by.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/kernel.h"
#include "engine/recent_map.h"

namespace pg::engine {

struct Run;

struct KernelKey {
  Node* kernel;
  runtime::Device* device;
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
  template <class H>
  friend H AbslHashValue(H h, const KernelKey& k) {
    return H::combine(std::move(h), k.kernel, k.device);
  }
};
struct CachedKernel {
  UOp keep;
  std::shared_ptr<Kernel> kernel;
};
RecentMap<KernelKey, CachedKernel>& kernels();

/// The call, and the device of what names none.
using ScheduleKey = std::pair<Node*, std::string>;
struct CachedRun {
  UOp keep;
  std::shared_ptr<const Run> run;
};
RecentMap<ScheduleKey, CachedRun>& schedules();

}  // namespace pg::engine
