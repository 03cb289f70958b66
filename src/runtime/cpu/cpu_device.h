// The CPU device: this machine's memory and cores. Object code runs in this process on the launch workers,
// synchronously: a launch is done when it returns. "CPU:1" and so on are further devices over the same memory
// and cores, for programs that are to run on several.
#pragma once

#include <atomic>

#include "runtime/device.h"

namespace pg::runtime {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(std::string name);

  const Target& target() const override { return target_; }
  std::vector<std::string> languages() const override { return {"llvm", "c"}; }
  Compiler& compiler(std::string_view language) override;
  /// Object code of this machine's architecture; the signature's name is the function, a KernelFunction.
  std::shared_ptr<Program> load(const ProgramImage& image) override;
  std::unique_ptr<LaunchList> prepare(std::vector<Command> commands) override;

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

/// For the registry. `argument` is the ordinal, empty for the first.
std::unique_ptr<Device> open_cpu(const std::string& name, const std::string& argument);

}  // namespace pg::runtime
