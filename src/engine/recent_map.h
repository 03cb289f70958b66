// A map with a cap, of which the entries not used for longest go first. The caches of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "runtime/fork.h"

namespace pg::engine {

/// Safe to use from any thread. Values are handles: what is dropped is destroyed outside the lock.
template <class Key, class Value>
class RecentMap {
 public:
  explicit RecentMap(std::size_t cap) : cap_(cap) {}

  /// The value, which counts as used now.
  std::optional<Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return std::nullopt;
    it->second.used = ++time_;
    return it->second.value;
  }

  /// Keeps the value unless there is one; returns the one that stays.
  Value insert(const Key& key, Value value) {
    std::vector<Value> dropped;
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= cap_) drop(cap_ / 2, dropped);
    auto [it, fresh] = entries_.try_emplace(key, Entry{std::move(value), 0});
    it->second.used = ++time_;
    return it->second.value;
  }

  /// Keeps at most so many.
  void trim(std::size_t entries) {
    std::vector<Value> dropped;
    const std::lock_guard lock(mutex_);
    drop(entries, dropped);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  std::size_t cap() const { return cap_; }

 private:
  struct Entry {
    Value value;
    std::uint64_t used;
  };

  void drop(std::size_t keep, std::vector<Value>& dropped) {
    if (entries_.size() <= keep) return;
    std::vector<std::uint64_t> times;
    for (auto& [key, entry] : entries_) times.push_back(entry.used);
    auto newest_dropped = times.begin() + static_cast<std::ptrdiff_t>(times.size() - keep - 1);
    std::nth_element(times.begin(), newest_dropped, times.end());
    for (auto it = entries_.begin(); it != entries_.end();) {
      auto at = it++;
      if (at->second.used > *newest_dropped) continue;
      dropped.push_back(std::move(at->second.value));
      entries_.erase(at);
    }
  }

  const std::size_t cap_;
  mutable runtime::ForkSafeMutex mutex_;
  absl::flat_hash_map<Key, Entry> entries_;
  std::uint64_t time_ = 0;
};

}  // namespace pg::engine
