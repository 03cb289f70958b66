// The part of a prepared list that is the same for every device: commands kept as they were given, checked
// when they are given and when they are patched. Devices with nothing better run it as a loop.
#pragma once

#include <vector>

#include "runtime/program.h"

namespace pg::runtime {

class CommandLoop : public LaunchList {
 public:
  /// Checks every command.
  CommandLoop(Device& device, std::vector<Command> commands);

  void set_buffer(size_t command, size_t index, const Buffer& buffer) override;
  void set_variable(size_t command, size_t index, int64_t value) override;
  void set_size(size_t command, const LaunchSize& size) override;
  uint64_t run(std::span<Interval> times) override;

 protected:
  Device& device() const { return device_; }
  const std::vector<Command>& commands() const { return commands_; }
  /// Runs one command as it stands.
  void run_command(size_t command, Interval* time);
  /// ValueError if `times` is neither empty nor one for each command.
  void check_times(std::span<const Interval> times) const;

 private:
  Launch& launch_at(size_t command);

  Device& device_;
  std::vector<Command> commands_;
};

}  // namespace pg::runtime
