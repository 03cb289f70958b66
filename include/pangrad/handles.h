// How a recording (jit.h) learns what becomes of handles. A replay looks at the storages that the body
// reached through handles of the program; a handle that is rebound inside the body, or rebound or destroyed
// afterwards, would make it reach others. Tensor tells of such events, at the cost of one load where nobody
// listens. For tensor.h only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pangrad/error.h>

namespace pg {
class Tensor;
namespace detail {
struct Impl;

/// How many threads are recording now.
extern PG_API std::atomic<int> threads_recording;
/// How many watches there are on handles, by a part of their address.
inline constexpr std::size_t kHandleBuckets = 1024;
extern PG_API std::atomic<std::uint32_t> handle_watches[kHandleBuckets];

inline bool is_recording() noexcept { return threads_recording.load(std::memory_order_relaxed) != 0; }
inline bool is_watched(const Tensor* handle) noexcept {
  std::size_t bucket = reinterpret_cast<std::uintptr_t>(handle) / sizeof(void*) % kHandleBuckets;
  return is_recording() || handle_watches[bucket].load(std::memory_order_relaxed) != 0;
}

/// A handle was made, as a copy of another or (null) not.
PG_API void handle_made(const Tensor* handle, const Tensor* from) noexcept;
/// A handle is about to point elsewhere.
PG_API void handle_changes(const Tensor* handle, const Impl* to) noexcept;
/// A handle is about to be destroyed.
PG_API void handle_gone(const Tensor* handle) noexcept;

}  // namespace detail
}  // namespace pg
