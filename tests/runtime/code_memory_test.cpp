// Memory for code: shared by many kernels, given back, and never mixed up with a forked process's.
#include "runtime/cpu/code_memory.h"

#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pangrad/error.h>

namespace pg::runtime {
namespace {

// A block that holds `value` throughout, finished.
CodeBlock filled(size_t bytes, int value) {
  CodeBlock block = CodeMemory::get().allocate(bytes, 1, 0);
  std::memset(block.write_code(), value, bytes);
  block.finish();
  return block;
}

bool holds(const CodeBlock& block, size_t bytes, int value) {
  for (size_t i = 0; i < bytes; i++) {
    if (block.code()[i] != static_cast<std::byte>(value)) return false;
  }
  return true;
}

TEST(CodeMemory, SmallBlocksShareMappings) {
  const CodeMemory::Stats before = CodeMemory::get().stats();
  std::vector<CodeBlock> blocks;
  for (int i = 0; i < 1000; i++) blocks.push_back(filled(700, i));
  for (int i = 0; i < 1000; i++) EXPECT_TRUE(holds(blocks[static_cast<size_t>(i)], 700, i));
  const CodeMemory::Stats after = CodeMemory::get().stats();
  EXPECT_LE(after.arenas - before.arenas, 2U);
  EXPECT_EQ(after.used - before.used, 1000 * 704U);
}

TEST(CodeMemory, WhatIsFreedIsUsedAgain) {
  const size_t used = CodeMemory::get().stats().used;
  size_t most = 0;
  std::mt19937 random(1);
  std::vector<std::pair<CodeBlock, std::pair<size_t, int>>> live;
  for (int i = 0; i < 5000; i++) {
    if (live.size() < 100 && random() % 2 == 0) {
      const size_t bytes = 1 + random() % 20000;
      live.emplace_back(filled(bytes, i), std::pair(bytes, i));
    } else if (!live.empty()) {
      const size_t which = random() % live.size();
      ASSERT_TRUE(holds(live[which].first, live[which].second.first, live[which].second.second));
      live[which] = std::move(live.back());
      live.pop_back();
    }
    most = std::max(most, CodeMemory::get().stats().mapped);
  }
  live.clear();
  EXPECT_EQ(CodeMemory::get().stats().used, used);
  EXPECT_LE(most, size_t{8} << 20);
}

TEST(CodeMemory, LargeBlocksAndDataHaveMappingsOfTheirOwn) {
  const CodeMemory::Stats before = CodeMemory::get().stats();
  {
    CodeBlock block = CodeMemory::get().allocate(size_t{3} << 20, 4096, 100);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.code()) % 4096, 0U);
    std::memset(block.write_data(), 5, 100);
    block.finish();
    EXPECT_EQ(block.data()[99], std::byte{5});
    block.data()[0] = std::byte{6};
    EXPECT_EQ(CodeMemory::get().stats().arenas, before.arenas + 1);
  }
  EXPECT_EQ(CodeMemory::get().stats().arenas, before.arenas);
  EXPECT_EQ(CodeMemory::get().stats().used, before.used);
}

TEST(CodeMemory, NothingIsWritableAndExecutable) {
  const CodeBlock block = filled(100, 1);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("rwx"), std::string::npos) << line;
  }
}

TEST(CodeMemory, ThreadsMayLoadAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t] {
      for (int i = 0; i < 300; i++) {
        const CodeBlock a = filled(100 + static_cast<size_t>(i), t);
        const CodeBlock b = filled(5000, t + 100);
        EXPECT_TRUE(holds(a, 100, t));
        EXPECT_TRUE(holds(b, 5000, t + 100));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CodeMemory, AForkedProcessKeepsItsKernelsWhateverTheOtherDoes) {
  CodeBlock kept = filled(640, 1);
  auto dropped = std::make_unique<CodeBlock>(filled(640, 2));
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  char byte = 0;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<CodeBlock> mine;
    for (int i = 0; i < 100; i++) mine.push_back(filled(640, 3));
    const bool told = write(to_parent[1], "x", 1) == 1 && read(to_child[0], &byte, 1) == 1;
    bool good = told && holds(kept, 640, 1) && holds(*dropped, 640, 2);
    for (const CodeBlock& block : mine) good = good && holds(block, 640, 3);
    _exit(good ? 0 : 1);
  }
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  dropped.reset();
  std::vector<CodeBlock> mine;
  for (int i = 0; i < 100; i++) mine.push_back(filled(640, 4));
  ASSERT_EQ(write(to_child[1], "x", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const CodeBlock& block : mine) EXPECT_TRUE(holds(block, 640, 4));
  EXPECT_TRUE(holds(kept, 640, 1));
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
}

}  // namespace
}  // namespace pg::runtime
