// Memory of a device: an Allocation is a counted piece of it, a Buffer a range of one. Everything that moves
// data or launches programs speaks of Buffers; only devices make Allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace pg::runtime {

class Device;

/// How memory is to be reached. Devices whose memory is all alike (CPU) take every kind and give the same.
enum class MemoryKind : uint8_t {
  Device,    ///< fast for the device; the host may not see it
  Host,      ///< seen by the host and the device: staging, pinned
  Uncached,  ///< seen by both, never cached: signals, rings
  Foreign,   ///< somebody else's, see Device::borrow
};

/// A piece of memory as a device's driver gives it: at `host` if the host can reach it, known to the driver
/// as `handle`.
struct Block {
  std::byte* host = nullptr;
  uint64_t handle = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  bool writable = true;

  explicit operator bool() const { return host != nullptr || handle != 0; }
};

/// A piece of a device's memory. Shared by Buffers; the last one gives it back to the device's pool, or calls
/// the deleter of foreign memory, on whichever thread that happens. Immutable, so any thread may read it.
class Allocation {
 public:
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  Device& device() const { return device_; }
  /// Where the host sees the first byte; null if it does not.
  std::byte* host() const { return block_.host; }
  /// What the device's driver calls it: an address, a descriptor, or 0.
  uint64_t handle() const { return block_.handle; }
  /// As asked for; the block beneath may be larger.
  size_t bytes() const { return bytes_; }
  MemoryKind kind() const { return block_.kind; }
  /// False for foreign memory that was lent for reading and for files opened read-only.
  bool writable() const { return block_.writable; }

 private:
  friend class Device;
  struct Key {};  // only a Device makes them

 public:
  Allocation(Key, Device& device, const Block& block, size_t bytes, std::function<void()> deleter)
      : device_(device), block_(block), bytes_(bytes), deleter_(std::move(deleter)) {}

 private:
  Device& device_;
  Block block_;
  size_t bytes_;
  std::function<void()> deleter_;
};

/// `bytes` bytes of an Allocation from `offset` on. A value: copying shares the memory. Empty when
/// default-made.
struct Buffer {
  std::shared_ptr<Allocation> allocation;
  size_t offset = 0;
  size_t bytes = 0;

  explicit operator bool() const { return allocation != nullptr; }
  Device& device() const { return allocation->device(); }
  /// Where the host sees the first byte; null if it does not.
  std::byte* host() const { return allocation->host() != nullptr ? allocation->host() + offset : nullptr; }
  /// `length` bytes from `start` on. IndexError if they are not all in here.
  Buffer slice(size_t start, size_t length) const;
};

/// What a device's memory is doing, in bytes unless said otherwise.
struct MemoryStats {
  size_t in_use = 0;       ///< handed out and not yet given back, rounded up as the pool does
  size_t peak = 0;         ///< the most `in_use` has been
  size_t cached = 0;       ///< given back and kept for reuse
  size_t limit = 0;        ///< `in_use + cached` never exceeds it
  size_t cache_limit = 0;  ///< `cached` never exceeds it
  size_t foreign = 0;      ///< borrowed; not in `in_use`, not under `limit`
  uint64_t reused = 0;     ///< allocations that were answered from the cache, a count
  uint64_t acquired = 0;   ///< allocations that went to the driver, a count
};

}  // namespace pg::runtime
