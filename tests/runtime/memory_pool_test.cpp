// The pool: blocks come back to who asks for their size, the books balance, and running out is survivable.
#include "runtime/memory_pool.h"

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/sanitizers.h"
#include <pangrad/error.h>

#if PG_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace pg::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A driver with `capacity` bytes that counts what it is asked.
class CountingSource : public MemorySource {
 public:
  explicit CountingSource(size_t capacity) : capacity_(capacity) {}

  Block acquire(size_t bytes, MemoryKind kind) override {
    if (live.fetch_add(bytes) + bytes > capacity_) {
      live.fetch_sub(bytes);
      return {};
    }
    acquired++;
    return {.host = static_cast<std::byte*>(std::aligned_alloc(64, bytes)), .bytes = bytes, .kind = kind};
  }
  void release(const Block& block) noexcept override {
    live.fetch_sub(block.bytes);
    std::free(block.host);
  }

  std::atomic<size_t> live{0};
  std::atomic<int> acquired{0};

 private:
  size_t capacity_;
};

struct Pool {
  explicit Pool(MemoryPool::Limits limits, size_t capacity = size_t{1} << 40)
      : source(new CountingSource(capacity)), pool("TEST", std::unique_ptr<MemorySource>(source), limits) {}

  CountingSource* source;
  MemoryPool pool;
};

TEST(MemoryPool, SizeClassesWasteLittle) {
  EXPECT_EQ(MemorySource::size_class(0), 64U);
  EXPECT_EQ(MemorySource::size_class(65), 128U);
  EXPECT_EQ(MemorySource::size_class(2 * kMiB), 2 * kMiB);
  EXPECT_EQ(MemorySource::size_class(100 * kMiB + 1), 102 * kMiB);
  EXPECT_EQ(MemorySource::size_class(SIZE_MAX), SIZE_MAX);
  for (size_t bytes = 1; bytes < 300 * kMiB; bytes += 1 + bytes / 7) {
    const size_t rounded = MemorySource::size_class(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded - bytes, std::max<size_t>(63, bytes / 8)) << bytes;
    EXPECT_EQ(MemorySource::size_class(rounded), rounded);
    if (rounded > 2 * kMiB) EXPECT_EQ(rounded % (256 * 1024), 0U) << bytes;
  }
}

TEST(MemoryPool, ASteadyLoopAsksTheDriverOnce) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30});
  for (int step = 0; step < 100; step++) {
    const Block a = p.pool.allocate(1000, MemoryKind::Device);
    const Block b = p.pool.allocate(5 * kMiB, MemoryKind::Device);
    p.pool.free(a);
    p.pool.free(b);
  }
  EXPECT_EQ(p.source->acquired, 2);
  const MemoryStats stats = p.pool.stats();
  EXPECT_EQ(stats.reused, 198U);
  EXPECT_EQ(stats.acquired, 2U);
  EXPECT_EQ(stats.in_use, 0U);
  EXPECT_EQ(stats.cached, p.source->live);
  EXPECT_EQ(p.pool.trim(), stats.cached);
  EXPECT_EQ(p.source->live, 0U);
  EXPECT_EQ(p.pool.stats().cached, 0U);
}

TEST(MemoryPool, TheBlockUsedLastComesFirst) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30});
  const Block a = p.pool.allocate(100, MemoryKind::Device);
  const Block b = p.pool.allocate(100, MemoryKind::Device);
  p.pool.free(a);
  p.pool.free(b);
  EXPECT_EQ(p.pool.allocate(100, MemoryKind::Device).host, b.host);
  EXPECT_EQ(p.pool.allocate(100, MemoryKind::Device).host, a.host);
  p.pool.free(a);
  p.pool.free(b);
}

TEST(MemoryPool, LargeSizesThatWanderShareBlocks) {
  Pool p({.bytes = size_t{1} << 40, .cache = size_t{1} << 40});
  p.pool.free(p.pool.allocate(110 * kMiB, MemoryKind::Device));
  const Block fits = p.pool.allocate(100 * kMiB, MemoryKind::Device);
  EXPECT_EQ(fits.bytes, 110 * kMiB);
  p.pool.free(fits);
  const Block other = p.pool.allocate(50 * kMiB, MemoryKind::Device);  // too wasteful
  EXPECT_EQ(other.bytes, 50 * kMiB);
  p.pool.free(other);
}

TEST(MemoryPool, KindsAreKeptApart) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30});
  p.pool.free(p.pool.allocate(100, MemoryKind::Device));
  const Block host = p.pool.allocate(100, MemoryKind::Host);
  EXPECT_EQ(host.kind, MemoryKind::Host);
  EXPECT_EQ(p.source->acquired, 2);
  p.pool.free(host);
}

TEST(MemoryPool, WhatIsUnusedLongestGoesFirst) {
  Pool p({.bytes = 1 << 30, .cache = 4 * kMiB});
  const Block a = p.pool.allocate(2 * kMiB, MemoryKind::Device);
  const Block b = p.pool.allocate(kMiB, MemoryKind::Device);
  const Block c = p.pool.allocate(2 * kMiB, MemoryKind::Device);
  p.pool.free(a);
  p.pool.free(b);
  p.pool.free(c);  // 5 MiB: a has to go
  EXPECT_EQ(p.pool.stats().cached, 3 * kMiB);
  EXPECT_EQ(p.pool.allocate(kMiB, MemoryKind::Device).host, b.host);
  EXPECT_EQ(p.pool.allocate(2 * kMiB, MemoryKind::Device).host, c.host);
  p.pool.free(b);
  p.pool.free(c);
  p.pool.set_cache_limit(0);
  EXPECT_EQ(p.pool.stats().cached, 0U);
}

TEST(MemoryPool, TheLimitCountsCachedBlocksButLetsThemGo) {
  Pool p({.bytes = 8 * kMiB, .cache = 8 * kMiB});
  p.pool.free(p.pool.allocate(6 * kMiB, MemoryKind::Device));
  const Block other = p.pool.allocate(4 * kMiB, MemoryKind::Device);
  EXPECT_EQ(p.pool.stats().cached, 0U);
  p.pool.free(other);
}

TEST(MemoryPool, RunningOutSaysWhatIsInUseAndCanBeSurvived) {
  Pool p({.bytes = 8 * kMiB, .cache = 8 * kMiB});
  const Block held = p.pool.allocate(6 * kMiB, MemoryKind::Device);
  try {
    p.pool.allocate(4 * kMiB, MemoryKind::Device);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(),
                 "[allocate] TEST: out of memory: 4.00 MiB asked for, 6.00 MiB in use, limit 8.00 MiB");
  }
  EXPECT_EQ(p.pool.stats().in_use, 6 * kMiB);
  p.pool.free(held);
  p.pool.free(p.pool.allocate(4 * kMiB, MemoryKind::Device));
  EXPECT_EQ(p.pool.stats().peak, 6 * kMiB);
  p.pool.reset_peak();
  EXPECT_EQ(p.pool.stats().peak, 0U);
  EXPECT_THROW(p.pool.allocate(SIZE_MAX, MemoryKind::Device), OutOfMemory);
}

TEST(MemoryPool, ADriverThatHasNoMoreGetsTheCacheBackFirst) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30}, 4 * kMiB);
  p.pool.free(p.pool.allocate(3 * kMiB, MemoryKind::Device));
  const Block block = p.pool.allocate(2 * kMiB, MemoryKind::Device);
  EXPECT_THROW(p.pool.allocate(3 * kMiB, MemoryKind::Device), OutOfMemory);
  EXPECT_EQ(p.pool.stats().in_use, 2 * kMiB);
  p.pool.free(block);
  p.pool.free(p.pool.allocate(3 * kMiB, MemoryKind::Device));
}

TEST(MemoryPool, LoweringTheLimitStopsOnlyWhatComes) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30});
  const Block held = p.pool.allocate(4 * kMiB, MemoryKind::Device);
  p.pool.free(p.pool.allocate(2 * kMiB, MemoryKind::Device));
  p.pool.set_limit(kMiB);
  EXPECT_EQ(p.pool.stats().cached, 0U);
  EXPECT_THROW(p.pool.allocate(64, MemoryKind::Device), OutOfMemory);
  p.pool.free(held);
  EXPECT_EQ(p.pool.stats().cached, 0U) << "a block larger than the limit is not kept";
  p.pool.free(p.pool.allocate(64, MemoryKind::Device));
}

TEST(MemoryPool, ThreadsKeepTheBooksTogether) {
  Pool p({.bytes = 64 * kMiB, .cache = 8 * kMiB});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&p, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Block> held;
      for (int i = 0; i < 2000; i++) {
        if (held.size() < 8 && random() % 2 == 0) {
          try {
            held.push_back(p.pool.allocate(1 + random() % (3 * kMiB), MemoryKind::Device));
            held.back().host[0] = std::byte{1};
          } catch (const OutOfMemory&) {
          }
        } else if (!held.empty()) {
          p.pool.free(held.back());
          held.pop_back();
        }
      }
      for (const Block& block : held) p.pool.free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MemoryStats stats = p.pool.stats();
  EXPECT_EQ(stats.in_use, 0U);
  EXPECT_EQ(stats.cached, p.source->live);
  EXPECT_LE(stats.peak, 64 * kMiB);
}

#if PG_ASAN
TEST(MemoryPool, OnlyWhatWasAskedForIsAccessible) {
  Pool p({.bytes = 1 << 30, .cache = 1 << 30});
  const Block block = p.pool.allocate(1001, MemoryKind::Device);
  EXPECT_FALSE(__asan_address_is_poisoned(block.host));
  EXPECT_FALSE(__asan_address_is_poisoned(block.host + 1000));
  EXPECT_TRUE(__asan_address_is_poisoned(block.host + 1001));
  EXPECT_TRUE(__asan_address_is_poisoned(block.host + block.bytes - 1));
  p.pool.free(block);
  EXPECT_TRUE(__asan_address_is_poisoned(block.host));
  const Block again = p.pool.allocate(1010, MemoryKind::Device);
  EXPECT_EQ(again.host, block.host);
  EXPECT_FALSE(__asan_address_is_poisoned(block.host + 1009));
  EXPECT_TRUE(__asan_address_is_poisoned(block.host + 1010));
  p.pool.free(again);
}
#endif

}  // namespace
}  // namespace pg::runtime
