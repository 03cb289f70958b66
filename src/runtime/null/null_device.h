// The NULL device: takes every text and every launch and does nothing, at once. For everything up to the
// hardware: compiling models larger than the memory, counting kernels, timing the host's side. What it would
// have computed cannot be read.
#pragma once

#include <atomic>

#include "runtime/device.h"

namespace pg::runtime {

class NullDevice : public Device {
 public:
  explicit NullDevice(std::string name);

  const Target& target() const override { return target_; }
  std::vector<std::string> languages() const override { return {"llvm", "c"}; }
  /// Of any language whatever; its code is the text.
  Compiler& compiler(std::string_view language) override;
  std::shared_ptr<Program> load(const ProgramImage& image) override;

  uint64_t submitted() const override { return completed(); }
  uint64_t completed() const override { return launches_.load(std::memory_order_relaxed); }
  void wait(uint64_t) override {}

  /// Counts a launch; its number.
  uint64_t count_launch() { return launches_.fetch_add(1, std::memory_order_relaxed) + 1; }

 protected:
  void write(const Buffer&, const void*) override {}
  /// DeviceError: there is nothing to read.
  void read(void* to, const Buffer& from) override;
  bool copy_from_peer(const Buffer&, const Buffer&) override { return true; }

 private:
  const Target target_;
  std::atomic<uint64_t> launches_{0};
};

/// For the registry. Any argument: "NULL:1" and "NULL:gpu" are devices apart.
std::unique_ptr<Device> open_null(const std::string& name, const std::string& argument);

}  // namespace pg::runtime
