// What a recording needs to see of the tensors a body uses, and to do in its place.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include <absl/container/flat_hash_map.h>

#include "tensor/cell.h"

namespace pg::detail {

/// Told of what this thread does with Cells and handles.
class CellWatch {
 public:
  virtual ~CellWatch() = default;
  /// The Cell is about to be read, written or marked, with its history or without; inside a GraphScope.
  virtual void touched(Cell& cell, bool history) = 0;
  /// Contents, or the value of a symbolic size, are about to be read by the host. May throw.
  virtual void value_read(const char* op) = 0;
  /// Something else that a replay cannot do. Throws, giving the reason.
  virtual void refused(const char* op, const char* reason) = 0;
  /// Gradients are about to flow from a value.
  virtual void gradient_taken() = 0;
  /// A handle is read; handles come, go and change (see pangrad/handles.h).
  virtual void handle_read(const Tensor& handle) = 0;
  virtual void handle_made(const Tensor* handle) = 0;
  virtual void handle_changes(const Tensor* handle, const Impl* to) = 0;
  virtual void handle_gone(const Tensor* handle) = 0;
};
/// Sets the watch of this thread, or null; returns the former. While one is set, handles tell of themselves.
CellWatch* watch_cells(CellWatch* watch);
/// The watch of this thread, or null.
CellWatch* cell_watch();

/// Raises a flag once one of some handles is rebound or destroyed.
class HandleGuard {
 public:
  HandleGuard() = default;
  HandleGuard(const HandleGuard&) = delete;
  HandleGuard& operator=(const HandleGuard&) = delete;
  ~HandleGuard();
  /// Once.
  void watch(std::vector<const Tensor*> handles);
  bool raised() const { return raised_->load(std::memory_order_acquire); }

 private:
  std::vector<const Tensor*> handles_;
  std::shared_ptr<std::atomic<bool>> raised_ = std::make_shared<std::atomic<bool>>(false);
};

/// A write that happened: the Cell holds the leaf's contents now.
void overwrite(Cell& cell, Ref leaf);
/// Lets views forget what they read, so that they hold no contents.
void forget_views(Cell& cell);

/// Words drawn from a device's generator so far; of all of them; going on by some.
std::int64_t random_offset(Device device);
absl::flat_hash_map<Device, std::int64_t> random_offsets();
void advance_random(Device device, std::int64_t words);
/// What the words of a device's generator are made of beside their positions.
std::uint64_t random_key(Device device);
/// The device whose generator's offset this Bind is, or null.
Device generator_of(Ref bind);

}  // namespace pg::detail
