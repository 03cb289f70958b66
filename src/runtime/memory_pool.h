// Memory kept for reuse, for every kind of device: freed blocks wait in classes of equal size, the one unused
// longest goes first when a limit is met. Blocks come from a MemorySource, which is all that a device writes
// itself.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fork.h"
#include "runtime/memory.h"

namespace pg::runtime {

/// Where a pool gets its blocks. Any number of threads may call it at once.
class MemorySource {
 public:
  virtual ~MemorySource();
  /// A block of exactly `bytes` bytes, or an empty one if there is no memory. May throw a pg::Error that says
  /// more.
  virtual Block acquire(size_t bytes, MemoryKind kind) = 0;
  /// Takes back what acquire gave; waits for submissions that may still use it.
  virtual void release(const Block& block) noexcept = 0;
  /// The size that a request of `bytes` is rounded up to.
  virtual size_t round(size_t bytes) const { return size_class(bytes); }

  /// Eight classes to a power of two up to 16 MiB, then multiples of 2 MiB: an eighth is wasted at most (half
  /// below 512 bytes), and large blocks fill whole huge pages.
  static size_t size_class(size_t bytes);
};

class MemoryPool {
 public:
  struct Limits {
    size_t bytes;  ///< in use and cached together
    size_t cache;  ///< cached
  };

  /// `name` stands in error messages.
  MemoryPool(std::string name, std::unique_ptr<MemorySource> source, Limits limits);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of at least `bytes`, to be given back by free(). Cached blocks are let go before memory is said
  /// to have run out. OutOfMemory.
  Block allocate(size_t bytes, MemoryKind kind);
  void free(const Block& block) noexcept;
  /// Borrowed memory comes (positive) or goes.
  void count_foreign(size_t bytes, bool comes);

  void set_limit(size_t bytes);
  void set_cache_limit(size_t bytes);
  size_t trim();
  void reset_peak();
  MemoryStats stats() const;

 private:
  using Lru = std::list<Block>;
  using Class = std::pair<MemoryKind, size_t>;

  Block take_cached(size_t bytes, MemoryKind kind);
  bool keep(const Block& block) noexcept;
  Lru evict(size_t most_cached);
  void release(const Block& block) noexcept;
  void release_all(const Lru& blocks) noexcept;
  [[noreturn]] void fail(size_t bytes) const;

  const std::string name_;
  const std::unique_ptr<MemorySource> source_;
  mutable ForkSafeMutex mutex_;
  Lru lru_;    // front unused longest
  Lru spare_;  // nodes for it
  std::map<Class, std::vector<Lru::iterator>>
      classes_;  // back used last, so that a front is its class's first in lru_
  MemoryStats stats_;
};

}  // namespace pg::runtime
