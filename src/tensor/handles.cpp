// Handles that recordings watch: a table by address, and the way of events to the recording of this thread.
#include <mutex>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "tensor/watch.h"

namespace pg::detail {

std::atomic<int> threads_recording{0};
std::atomic<std::uint32_t> handle_watches[kHandleBuckets];

namespace {

thread_local CellWatch* t_watch = nullptr;

struct Table {
  std::mutex mutex;
  absl::flat_hash_map<const Tensor*, absl::InlinedVector<std::shared_ptr<std::atomic<bool>>, 1>> flags;
  static Table& get() {
    static auto* table = new Table;  // handles outlive statics
    return *table;
  }
};

std::atomic<std::uint32_t>& bucket(const Tensor* handle) {
  return handle_watches[reinterpret_cast<std::uintptr_t>(handle) / sizeof(void*) % kHandleBuckets];
}

// Whoever watches the handle is told, and watches it no more.
void raise(const Tensor* handle) {
  if (bucket(handle).load(std::memory_order_relaxed) == 0) return;
  Table& table = Table::get();
  std::lock_guard lock(table.mutex);
  auto it = table.flags.find(handle);
  if (it == table.flags.end()) return;
  for (auto& flag : it->second) flag->store(true, std::memory_order_release);
  bucket(handle).fetch_sub(static_cast<std::uint32_t>(it->second.size()), std::memory_order_relaxed);
  table.flags.erase(it);
}

}  // namespace

CellWatch* watch_cells(CellWatch* watch) {
  threads_recording.fetch_add((watch != nullptr) - (t_watch != nullptr), std::memory_order_relaxed);
  return std::exchange(t_watch, watch);
}
CellWatch* cell_watch() { return t_watch; }

void HandleGuard::watch(std::vector<const Tensor*> handles) {
  handles_ = std::move(handles);
  Table& table = Table::get();
  std::lock_guard lock(table.mutex);
  for (const Tensor* handle : handles_) {
    table.flags[handle].push_back(raised_);
    bucket(handle).fetch_add(1, std::memory_order_relaxed);
  }
}

HandleGuard::~HandleGuard() {
  Table& table = Table::get();
  std::lock_guard lock(table.mutex);
  for (const Tensor* handle : handles_) {
    auto it = table.flags.find(handle);
    if (it == table.flags.end()) continue;
    auto mine = std::find(it->second.begin(), it->second.end(), raised_);
    if (mine == it->second.end()) continue;
    it->second.erase(mine);
    bucket(handle).fetch_sub(1, std::memory_order_relaxed);
    if (it->second.empty()) table.flags.erase(it);
  }
}

void handle_made(const Tensor* handle, const Tensor* from) noexcept {
  if (!t_watch) return;
  if (from) t_watch->handle_read(*from);
  t_watch->handle_made(handle);
}

void handle_changes(const Tensor* handle, const Impl* to) noexcept {
  if (t_watch) t_watch->handle_changes(handle, to);
  if (handle->impl() != to) raise(handle);
}

void handle_gone(const Tensor* handle) noexcept {
  if (t_watch) t_watch->handle_gone(handle);
  raise(handle);
}

}  // namespace pg::detail
