// pangrad cache: what the cache of kernels on disk takes, and how to make it smaller.
#include <fmt/format.h>

#include "base/disk_cache.h"
#include "base/strings.h"
#include "commands.h"
#include "ir/node.h"
#include <pangrad/cache.h>

namespace pg::apps {

void show_cache(std::optional<std::int64_t> trim_to) {
  if (disk_cache().path().empty()) {
    fmt::print("nothing is kept on disk (CACHE is below 2, or there is no folder to keep it in)\n");
    return;
  }
  if (trim_to) cache::trim_disk(*trim_to);
  cache::Usage u = cache::usage();
  fmt::print("{}: {} kernels, {} of at most {}\n", disk_cache().path(), u.disk_entries,
             format_bytes(u.disk_bytes), format_bytes(u.most_disk_bytes));
  fmt::print("a process keeps at most {} schedules and {} kernels; a node of two operands takes {} bytes\n",
             u.most_schedules, u.most_kernels, sizeof(Node) + 2 * sizeof(Node*));
}

}  // namespace pg::apps
