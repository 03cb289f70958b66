// The INTERP device: runs programs node by node in this process, slow and exact, and checks every access.
// "INTERP" runs threads, "INTERP:gpu" groups with shared memory and barriers. The reference that compiled
// code is held against.
#pragma once

#include <atomic>

#include "runtime/device.h"

namespace pg::runtime {

class InterpDevice : public Device {
 public:
  InterpDevice(std::string name, Target target);

  const Target& target() const override { return target_; }
  std::vector<std::string> languages() const override { return {"program"}; }
  /// Of programs as ir/print.h writes them; its code is the text. DeviceError if it does not read as one.
  Compiler& compiler(std::string_view language) override;
  /// A program that does what none may is an InternalError, here or when it runs: see interp/code.h.
  std::shared_ptr<Program> load(const ProgramImage& image) override;

  uint64_t submitted() const override { return completed(); }
  uint64_t completed() const override { return launches_.load(std::memory_order_relaxed); }
  void wait(uint64_t) override {}

  /// Counts a launch that has run; its number.
  uint64_t count_launch() { return launches_.fetch_add(1, std::memory_order_relaxed) + 1; }

 protected:
  void write(const Buffer& to, const void* from) override;
  void read(void* to, const Buffer& from) override;
  bool reaches_host() const override { return true; }

 private:
  const Target target_;
  std::atomic<uint64_t> launches_{0};
};

/// For the registry: "INTERP" and "INTERP:gpu", and either with a number.
std::unique_ptr<Device> open_interp(const std::string& name, const std::string& argument);

}  // namespace pg::runtime
