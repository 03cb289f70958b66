#include "runtime/cpu/code_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pangrad/error.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace pg::runtime {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 20;
constexpr size_t kLine = 64;
constexpr int kTrap = 0xcc;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

int open_memory(size_t bytes) {
  // Kernels before 6.3 do not know MFD_EXEC; later ones may refuse to execute what was made without it.
  int file = memfd_create("pangrad-code", MFD_CLOEXEC | MFD_EXEC);
  if (file < 0 && errno == EINVAL) file = memfd_create("pangrad-code", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

std::byte* map(void* where, size_t bytes, int protection, int flags, int file, size_t offset) {
  void* memory = mmap(where, bytes, protection, flags, file, static_cast<off_t>(offset));
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

// `code_bytes` of code, then `data_bytes` of data, in one range of addresses. With two mappings of the same
// memory `writer` is where it is written; without (the system refused) it is `base`, the arena holds one
// block, and finish() turns it over.
struct CodeArena {
  std::byte* base = nullptr;
  std::byte* writer = nullptr;
  size_t code_bytes = 0;
  size_t data_bytes = 0;
  int file = -1;        // kept only until the data has been mapped
  bool sealed = false;  // no block is placed here any more, and freed memory is not touched
  size_t blocks = 0;
  std::map<size_t, size_t> free;  // offset and length of what may be given out

  CodeArena(size_t code, size_t data) : code_bytes(code), data_bytes(data) {
    const size_t bytes = code + data;
    free.emplace(0, code);
    file = open_memory(bytes);
    if (file >= 0) {
      writer = map(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      base = writer != nullptr ? map(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) : nullptr;
      if (base != nullptr) {
        if (data == 0) close_file();
        return;
      }
      if (writer != nullptr) munmap(writer, bytes);
      close_file();
    }
    base = writer = map(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == nullptr) throw OutOfMemory(fmt::format("[load] no memory for {} bytes of code", bytes));
    sealed = true;
  }
  ~CodeArena() {
    if (writer != base) munmap(writer, code_bytes + data_bytes);
    munmap(base, code_bytes + data_bytes);
    close_file();
  }
  CodeArena(const CodeArena&) = delete;
  CodeArena& operator=(const CodeArena&) = delete;

  void close_file() {
    if (file >= 0) close(file);
    file = -1;
  }

  // Offset of free code memory, which is then taken, or SIZE_MAX.
  size_t take(size_t bytes, size_t alignment) {
    for (auto it = free.begin(); it != free.end(); ++it) {
      const auto [begin, length] = *it;
      const size_t start = round_up(begin, alignment);
      if (start + bytes > begin + length) continue;
      const size_t end = begin + length;
      if (start + bytes < end) free.emplace(start + bytes, end - start - bytes);
      start > begin ? void(it->second = start - begin) : void(free.erase(it));
      return start;
    }
    return SIZE_MAX;
  }
  void give_back(size_t offset, size_t bytes) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free.emplace_hint(next, offset, bytes);
  }
};

CodeBlock::~CodeBlock() {
  if (arena_ != nullptr) CodeMemory::get().release(*this);
}

void CodeBlock::swap(CodeBlock& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(write_code_, other.write_code_);
  std::swap(write_data_, other.write_data_);
  std::swap(code_, other.code_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

void CodeBlock::finish() {
  CodeArena& arena = *arena_;
  bool failed = false;
  if (arena.writer == arena.base) {
    failed = mprotect(arena.base, arena.code_bytes, PROT_READ | PROT_EXEC) != 0;
  } else if (arena.data_bytes != 0) {
    // A private copy, so that a forked child's writes are its own.
    failed = map(arena.base + arena.code_bytes, arena.data_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED, arena.file, arena.code_bytes) == nullptr;
    arena.close_file();
  }
  if (failed)
    throw DeviceError(fmt::format("[load] the system gives no executable memory: {}", std::strerror(errno)));
  if (bytes_ != 0) {
    auto* begin = reinterpret_cast<char*>(code_);
    __builtin___clear_cache(begin, begin + bytes_);
  }
  write_code_ = write_data_ = nullptr;
}

CodeMemory::CodeMemory() = default;

CodeMemory& CodeMemory::get() {
  static auto* memory = [] {
    auto* made = new CodeMemory;
    after_fork([](bool in_child) { seal_after_fork(in_child); });
    return made;
  }();
  return *memory;
}

// Parent and child now share the memory itself, and neither knows when the other frees a kernel: from here on
// both leave what is there as it is. A mapping goes when all its kernels have gone.
void CodeMemory::seal_after_fork(bool) {
  for (const auto& arena : get().arenas_) arena->sealed = true;
}

CodeBlock CodeMemory::allocate(size_t code_bytes, size_t alignment, size_t data_bytes) {
  const size_t bytes = round_up(std::max<size_t>(code_bytes, 1), kLine);
  alignment = std::max(alignment, kLine);
  const std::lock_guard lock(mutex_);
  CodeArena* arena = nullptr;
  size_t offset = SIZE_MAX;
  if (data_bytes == 0) {
    for (const auto& candidate : arenas_) {
      if (candidate->sealed || candidate->data_bytes != 0) continue;
      offset = candidate->take(bytes, alignment);
      arena = candidate.get();
      if (offset != SIZE_MAX) break;
    }
  }
  if (offset == SIZE_MAX) {
    const bool shared = data_bytes == 0 && bytes < kArenaBytes;
    auto made = std::make_unique<CodeArena>(shared ? kArenaBytes : round_up(bytes, page_bytes()),
                                            round_up(data_bytes, page_bytes()));
    offset = made->take(bytes, alignment);
    arena = made.get();
    arenas_.push_back(std::move(made));
  }
  arena->blocks++;
  used_ += bytes + arena->data_bytes;
  CodeBlock block;
  block.arena_ = arena;
  block.bytes_ = bytes;
  block.code_ = arena->base + offset;
  block.write_code_ = arena->writer + offset;
  if (data_bytes != 0) {
    block.data_ = arena->base + arena->code_bytes;
    block.write_data_ = arena->writer + arena->code_bytes;
  }
  return block;
}

void CodeMemory::release(const CodeBlock& block) noexcept {
  const std::lock_guard lock(mutex_);
  CodeArena& arena = *block.arena_;
  arena.blocks--;
  used_ -= block.bytes_ + arena.data_bytes;
  // One empty mapping is kept: a kernel loaded and dropped in a loop should not map and unmap each time.
  const auto open = [](const auto& a) { return !a->sealed && a->data_bytes == 0; };
  if (arena.blocks == 0 &&
      (arena.sealed || arena.data_bytes != 0 || std::ranges::count_if(arenas_, open) > 1)) {
    std::erase_if(arenas_, [&](const auto& a) { return a.get() == &arena; });
    return;
  }
  if (arena.sealed) return;
  const auto offset = static_cast<size_t>(block.code_ - arena.base);
  std::memset(arena.writer + offset, kTrap, block.bytes_);  // a stale call traps
  try {
    arena.give_back(offset, block.bytes_);
  } catch (const std::bad_alloc&) {
    // Lost until the whole mapping goes.
  }
}

CodeMemory::Stats CodeMemory::stats() {
  const std::lock_guard lock(mutex_);
  Stats stats{.used = used_, .arenas = arenas_.size()};
  for (const auto& arena : arenas_) stats.mapped += arena->code_bytes + arena->data_bytes;
  return stats;
}

}  // namespace pg::runtime
