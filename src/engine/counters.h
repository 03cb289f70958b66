// The counters behind engine::counters(), added to from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pg::engine {

struct Counts {
  std::atomic<std::uint64_t> kernels{0}, copies{0}, schedules{0}, schedule_hits{0}, allocated{0};
  std::atomic<double> flops{0}, bytes{0}, seconds{0};
};
Counts& counts();

}  // namespace pg::engine
