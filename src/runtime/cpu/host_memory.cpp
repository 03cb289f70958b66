#include "runtime/cpu/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace pg::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLine = 64;

// Mapped with its beginning at a huge page: what sticks out on either side is unmapped again.
std::byte* map_aligned(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(memory);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // where there are none, ordinary pages do
  return begin + before;
}

}  // namespace

Block HostMemorySource::acquire(size_t bytes, MemoryKind kind) {
  if (bytes > SIZE_MAX / 2) return {};
  std::byte* memory = nullptr;
  if (bytes >= kHugePage) {
    memory = map_aligned(bytes);
  } else {
    memory = static_cast<std::byte*>(std::aligned_alloc(kLine, bytes));
  }
  if (memory == nullptr) return {};
  return {.host = memory, .handle = reinterpret_cast<uintptr_t>(memory), .bytes = bytes, .kind = kind};
}

void HostMemorySource::release(const Block& block) noexcept {
  if (block.bytes >= kHugePage) {
    munmap(block.host, block.bytes);
  } else {
    std::free(block.host);
  }
}

size_t host_memory_bytes() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // The control group's limit is a number, or "max". Where there is no such file, there is no such limit.
  std::ifstream file("/sys/fs/cgroup/memory.max");
  size_t limit = 0;
  if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

}  // namespace pg::runtime
