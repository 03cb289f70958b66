// What is kept so that equal work is not done again: schedules and kernels in this process, kernels on disk.
// All of it is capped; a program that wants its memory back asks here. Any thread may call these at any time:
// what is in use stays until its user is done.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pangrad/error.h>

namespace pg::cache {

struct Usage {
  std::size_t schedules = 0, most_schedules = 0;  ///< calls whose kernels are known, and how many may be
  std::size_t kernels = 0, most_kernels = 0;      ///< compiled
  std::uint64_t nodes = 0, node_bytes = 0;  ///< of the graph: lives as long as tensors or caches refer to it
  std::int64_t disk_entries = 0, disk_bytes = 0;  ///< of the file that CACHEDB names
  std::int64_t most_disk_bytes = 0;
};
PG_API Usage usage();

/// Forgets schedules and kernels of this process, those not used for longest first, until so many of each are
/// left.
PG_API void trim(std::size_t entries = 0);

/// Drops entries of the cache on disk, those not used for longest first, until the file takes at most so many
/// bytes.
PG_API void trim_disk(std::int64_t bytes = 0);

}  // namespace pg::cache
