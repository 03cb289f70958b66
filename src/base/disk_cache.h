// A cache on disk of what is slow to make: compiled kernels, winners of searches. It maps a table name and a
// 128-bit digest to bytes, in one SQLite file that any number of processes and threads share. It is never the
// reason for a failure: whatever is wrong with the file, a `get` finds nothing and a `put` does nothing, and
// DEBUG=1 says why.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace pg {

class DiskCache {
 public:
  static constexpr int64_t kDefaultCap = int64_t{1} << 30;

  /// A cache in this file, which is opened at first use, with its folders made if need be. Past `cap` bytes
  /// the entries not used for longest are dropped. An empty path gives a cache that holds nothing.
  explicit DiskCache(std::string_view path, int64_t cap = kDefaultCap);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// What was put, or nothing. Bytes damaged on disk are recognised and count as nothing.
  std::optional<std::string> get(std::string_view table, const Digest& key);

  /// Keeps these bytes, in place of what was there. More than a quarter of the cap is not kept.
  void put(std::string_view table, const Digest& key, std::string_view bytes);

  /// Of its file; empty if it holds nothing.
  const std::string& path() const { return path_; }
  int64_t cap() const { return cap_; }

  struct Usage {
    int64_t entries = 0;
    int64_t bytes = 0;  ///< of the file, with its overhead
  };
  Usage usage();

  /// Drops the entries not used for longest until the file takes at most so many bytes; with 0, all of them.
  void trim(int64_t bytes);

 private:
  friend DiskCache& disk_cache();

  class Connection;
  struct Process;

  template <typename Function>
  void attempt(Function&& function);
  void open();
  void recover(int code, std::string_view message);
  void disable(std::string_view reason);

  const std::string path_;
  const int64_t cap_;
  std::unique_ptr<Connection> connection_;  // null until first use, around a fork, and once disabled
  bool disabled_;
  bool rebuilt_ = false;
};

/// The cache that the flags CACHE and CACHEDB ask for; one that holds nothing if CACHE is below 2.
DiskCache& disk_cache();

}  // namespace pg
