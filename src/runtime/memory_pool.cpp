#include "runtime/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "base/strings.h"
#include "runtime/sanitizers.h"
#include <pangrad/error.h>

#if PG_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace pg::runtime {
namespace {

constexpr size_t kSmallest = 64;
// Classes with nothing in them are kept up to so many: a steady loop empties and fills the same ones.
constexpr size_t kEmptyClasses = 256;
constexpr size_t kHugePage = size_t{2} << 20;

// Under AddressSanitizer only the bytes asked for are accessible: not what rounding added, nothing in a
// cached block.
void expose(const Block& block, size_t bytes) {
#if PG_ASAN
  if (block.host == nullptr) return;
  ASAN_UNPOISON_MEMORY_REGION(block.host, bytes);
  ASAN_POISON_MEMORY_REGION(block.host + bytes, block.bytes - bytes);
#else
  static_cast<void>(block), static_cast<void>(bytes);
#endif
}

}  // namespace

MemorySource::~MemorySource() = default;

size_t MemorySource::size_class(size_t bytes) {
  const size_t step = std::clamp(std::bit_floor(std::max<size_t>(bytes, 1)) / 8, kSmallest, kHugePage);
  if (bytes > SIZE_MAX - step) return SIZE_MAX;
  return std::max((bytes + step - 1) / step * step, kSmallest);
}

MemoryPool::MemoryPool(std::string name, std::unique_ptr<MemorySource> source, Limits limits)
    : name_(std::move(name)), source_(std::move(source)) {
  stats_.limit = limits.bytes;
  stats_.cache_limit = limits.cache;
}

MemoryPool::~MemoryPool() { trim(); }

Block MemoryPool::allocate(size_t bytes, MemoryKind kind) {
  const size_t rounded = source_->round(bytes);
  Lru evicted;
  Block block;
  {
    const std::lock_guard lock(mutex_);
    block = take_cached(rounded, kind);
    if (block) {
      stats_.reused++;
    } else {
      if (rounded > stats_.limit || stats_.in_use > stats_.limit - rounded) fail(bytes);
      evicted = evict(stats_.limit - rounded - stats_.in_use);
      stats_.acquired++;
    }
    stats_.in_use += block
                         ? block.bytes
                         : rounded;  // reserved before it is there, or threads would pass the limit together
    stats_.peak = std::max(stats_.peak, stats_.in_use);
  }
  release_all(evicted);
  if (!block) {
    try {
      block = source_->acquire(rounded, kind);
      if (!block) {
        trim();
        block = source_->acquire(rounded, kind);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      stats_.in_use -= rounded;
      throw;
    }
    if (!block) {
      const std::lock_guard lock(mutex_);
      stats_.in_use -= rounded;
      fail(bytes);
    }
  }
  expose(block, bytes);
  return block;
}

void MemoryPool::free(const Block& block) noexcept {
  expose(block, 0);
  Lru evicted;
  bool kept = false;
  {
    const std::lock_guard lock(mutex_);
    stats_.in_use -= block.bytes;
    if (block.bytes <= stats_.cache_limit) {
      kept = keep(block);
      const size_t room = stats_.limit > stats_.in_use ? stats_.limit - stats_.in_use : 0;
      evicted = evict(std::min(stats_.cache_limit, room));
    }
  }
  if (!kept) release(block);
  release_all(evicted);
}

void MemoryPool::count_foreign(size_t bytes, bool comes) {
  const std::lock_guard lock(mutex_);
  stats_.foreign = comes ? stats_.foreign + bytes : stats_.foreign - bytes;
}

void MemoryPool::set_limit(size_t bytes) {
  Lru evicted;
  {
    const std::lock_guard lock(mutex_);
    stats_.limit = bytes;
    evicted = evict(bytes > stats_.in_use ? bytes - stats_.in_use : 0);
  }
  release_all(evicted);
}

void MemoryPool::set_cache_limit(size_t bytes) {
  Lru evicted;
  {
    const std::lock_guard lock(mutex_);
    stats_.cache_limit = bytes;
    evicted = evict(bytes);
  }
  release_all(evicted);
}

size_t MemoryPool::trim() {
  Lru evicted;
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes = stats_.cached;
    evicted = evict(0);
  }
  release_all(evicted);
  return bytes;
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.in_use;
}

MemoryStats MemoryPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

// The cached block of that size used last, whose lines may still be in a cache. Large requests also take a
// block up to an eighth larger: sizes that wander (a growing sequence) would miss exact classes forever.
Block MemoryPool::take_cached(size_t bytes, MemoryKind kind) {
  const size_t most = bytes >= kHugePage ? bytes + bytes / 8 : bytes;
  for (auto it = classes_.lower_bound({kind, bytes}); it != classes_.end(); ++it) {
    if (it->first.first != kind || it->first.second > most) break;
    if (it->second.empty()) continue;
    const Lru::iterator place = it->second.back();
    it->second.pop_back();
    if (it->second.empty() && classes_.size() > kEmptyClasses) classes_.erase(it);
    spare_.splice(spare_.end(), lru_, place);
    stats_.cached -= place->bytes;
    return *place;
  }
  return {};
}

// False if there is no memory to write the block down in.
bool MemoryPool::keep(const Block& block) noexcept {
  try {
    if (spare_.empty()) spare_.emplace_back();
    auto& same = classes_[{block.kind, block.bytes}];
    same.push_back(spare_.begin());
    spare_.front() = block;
    lru_.splice(lru_.end(), spare_, spare_.begin());
    stats_.cached += block.bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Unlinks blocks unused longest until no more than so many bytes are cached. The caller releases them,
// without the lock.
MemoryPool::Lru MemoryPool::evict(size_t most_cached) {
  Lru evicted;
  while (stats_.cached > most_cached) {
    const Block& oldest = lru_.front();
    const auto found = classes_.find({oldest.kind, oldest.bytes});
    found->second.erase(found->second.begin());
    if (found->second.empty()) classes_.erase(found);
    stats_.cached -= oldest.bytes;
    evicted.splice(evicted.end(), lru_, lru_.begin());
  }
  return evicted;
}

void MemoryPool::release(const Block& block) noexcept {
  expose(block, block.bytes);  // the addresses may serve anything next
  source_->release(block);
}

void MemoryPool::release_all(const Lru& blocks) noexcept {
  for (const Block& block : blocks) release(block);
}

void MemoryPool::fail(size_t bytes) const {
  const auto text = [](size_t n) {
    return format_bytes(static_cast<int64_t>(std::min<size_t>(n, INT64_MAX)));
  };
  throw OutOfMemory(fmt::format("[allocate] {}: out of memory: {} asked for, {} in use, limit {}", name_,
                                text(bytes), text(stats_.in_use), text(stats_.limit)));
}

}  // namespace pg::runtime
