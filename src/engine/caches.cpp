#include "engine/caches.h"

#include "base/disk_cache.h"
#include "engine/engine.h"
#include "engine/run.h"
#include <pangrad/cache.h>

namespace pg {
namespace engine {

// Never destroyed: threads may still realize while the process exits. A kernel takes a page or so, and a
// schedule as much in nodes for each of its kernels.
RecentMap<KernelKey, CachedKernel>& kernels() {
  static auto* map = new RecentMap<KernelKey, CachedKernel>(std::size_t{1} << 13);
  return *map;
}
RecentMap<ScheduleKey, CachedRun>& schedules() {
  static auto* map = new RecentMap<ScheduleKey, CachedRun>(std::size_t{1} << 12);
  return *map;
}

}  // namespace engine

namespace cache {

Usage usage() {
  Usage u;
  u.schedules = engine::schedules().size();
  u.most_schedules = engine::schedules().cap();
  u.kernels = engine::kernels().size();
  u.most_kernels = engine::kernels().cap();
  GraphStats graph = graph_stats();
  u.nodes = graph.live;
  u.node_bytes = graph.bytes;
  DiskCache::Usage disk = disk_cache().usage();
  u.disk_entries = disk.entries;
  u.disk_bytes = disk.bytes;
  u.most_disk_bytes = disk_cache().cap();
  return u;
}

void trim(std::size_t entries) {
  engine::schedules().trim(entries);
  engine::kernels().trim(entries);
}

void trim_disk(std::int64_t bytes) { disk_cache().trim(bytes); }

}  // namespace cache
}  // namespace pg
