// Caches: what hits, what they hold, and that a program of ever new work stays as large as it was.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/flags.h"
#include "engine/engine.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

std::string text_of(const Tensor& x) { return fmt::format("{}", fmt::join(x.to_vector<float>(), " ")); }

TEST(Caches, EqualWorkOnOtherBuffersAndBoundValuesHits) {
  Variable n("n", 1, 8);
  auto run = [&](std::int64_t size, float first) {
    Tensor x = Tensor::of({first, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f}).realize();
    return text_of((x.shrink({{0, n.bind(size)}}).sum() * 2).realize());
  };
  EXPECT_EQ(run(2, 1), "6");
  engine::Counters before = engine::counters();
  EXPECT_EQ(run(3, 10), "30");
  EXPECT_EQ(run(8, 0), "70");
  EXPECT_EQ(engine::counters().schedules, before.schedules);
  EXPECT_EQ(engine::counters().schedule_hits, before.schedule_hits + 2);
}

TEST(Caches, TheyCanBeAskedAndTrimmed) {
  cache::trim();
  cache::Usage none = cache::usage();
  EXPECT_EQ(none.schedules, 0u);
  EXPECT_EQ(none.kernels, 0u);
  EXPECT_GT(none.most_schedules, 0u);
  Tensor x = Tensor::of({1.f, 2.f}).realize();
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back((x * (i + 2.5f)).realize());
  cache::Usage five = cache::usage();
  EXPECT_EQ(five.schedules, 5u);
  EXPECT_EQ(five.kernels, 5u);
  EXPECT_GT(five.nodes, none.nodes);
  // The last used stays, and is found.
  (x * 2.5f).realize();
  cache::trim(1);
  EXPECT_EQ(cache::usage().schedules, 1u);
  engine::Counters before = engine::counters();
  (x * 2.5f).realize();
  EXPECT_EQ(engine::counters().schedule_hits, before.schedule_hits + 1);
  // What was trimmed is made again, and what is in use stays in use.
  EXPECT_EQ(text_of(x * 4.5f), "4.5 9");
  EXPECT_EQ(text_of(results[1]), "3.5 7");
}

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("pangrad-caches-{}.db", ::getpid())).string();
  ~TemporaryFile() {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  }
};

TEST(Caches, KernelsComeBackFromDiskAndDamageIsMadeGood) {
  TemporaryFile file;
  ScopedFlag place("CACHEDB", file.path), on("CACHE", 2);
  auto compiled = [&](float factor) {
    cache::trim();
    std::uint64_t before = engine::counters().compiled;
    EXPECT_EQ(text_of(Tensor::of({1.f, 2.f}) * factor + 0.25f),
              fmt::format("{} {}", factor + 0.25f, 2 * factor + 0.25f));
    return engine::counters().compiled - before;
  };
  EXPECT_EQ(compiled(7), 1u);
  EXPECT_EQ(compiled(7), 0u);
  EXPECT_EQ(cache::usage().disk_entries, 1);
  EXPECT_GT(cache::usage().disk_bytes, 0);
  cache::trim_disk();
  EXPECT_EQ(cache::usage().disk_entries, 0);
  EXPECT_EQ(compiled(7), 1u);
  // Bytes of the file turned over: whatever it gives is not trusted.
  {
    std::fstream f(file.path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(0, std::ios::end);
    auto size = static_cast<std::int64_t>(f.tellg());
    for (std::int64_t at = 100; at < size; at += 97) {
      f.seekg(at);
      char c = static_cast<char>(f.get());
      f.seekp(at);
      f.put(static_cast<char>(~c));
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_LE(compiled(7), 1u);
  // A cache that cannot be: every kernel is compiled, nothing fails.
  ScopedFlag nowhere("CACHEDB", "/proc/no/such/place.db");
  EXPECT_EQ(compiled(9), 1u);
  EXPECT_EQ(compiled(9), 1u);
}

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// A week of eager work in small: graphs that are never seen again, more of them than the caches hold.
TEST(Caches, EverNewGraphsHoldMemorySteady) {
  ScopedFlag nowhere("DEV", "NULL"), memory_only("CACHE", 1);
  cache::trim();
  Tensor x = Tensor::empty({4}).realize();
  int number = 0;
  auto work = [&](int graphs) {
    for (int i = 0; i < graphs; ++i) (x * (++number + 0.5f) + 1).realize();
  };
  auto most = static_cast<int>(std::max(cache::usage().most_kernels, cache::usage().most_schedules));
  work(most);  // until the caches are as full as they get
  work(most / 2);
  cache::Usage before = cache::usage();
  std::int64_t resident = resident_bytes();
  work(most);
  cache::Usage after = cache::usage();
  EXPECT_LE(after.kernels, after.most_kernels);
  EXPECT_LE(after.schedules, after.most_schedules);
  EXPECT_LE(after.nodes, before.nodes + before.nodes / 10);
  EXPECT_LE(resident_bytes(), resident + (std::int64_t{8} << 20));
  cache::trim();
}

}  // namespace
}  // namespace pg
