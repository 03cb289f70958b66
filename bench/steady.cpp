// A week of eager work: a million graphs that are never seen again. Memory must stay where it was.
#include <fstream>

#include <unistd.h>

#include "base/flags.h"
#include "figure.h"
#include <pangrad/pangrad.h>

namespace pg::bench {
namespace {

double resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

void steady() {
  ScopedFlag nowhere("DEV", "NULL"), memory_only("CACHE", 1);
  constexpr int kGraphs = 1'000'000, kFull = 50'000;  // by then the caches are as full as they get
  Tensor x = Tensor::empty({4}).realize();
  double before = 0, start = 0;
  for (int i = 0; i < kGraphs; ++i) {
    if (i == kFull) before = resident_bytes(), start = now();
    (x * (i + 0.5) + 1).realize();
  }
  double each = (now() - start) / (kGraphs - kFull), grown = resident_bytes() - before;
  cache::trim();
  print({"a graph never seen before, from trace to launch without a compiler", each * 1e6, "us", 100});
  print({"memory after a million different graphs beyond that after 50,000", grown, "bytes", 8 << 20});
}

}  // namespace pg::bench
