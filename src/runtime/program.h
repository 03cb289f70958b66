// Code on a device: the image a compiler made, its signature, the loaded Program, one launch of it, and lists
// of launches and copies prepared once and run many times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/memory.h"

namespace pg::runtime {

/// How many copies of a program run, as a grid of groups; `local` is the shape of a group. A CPU runs
/// global[0] * global[1] * global[2] threads and has no groups.
struct LaunchSize {
  std::array<int64_t, 3> global{1, 1, 1};
  std::array<int64_t, 3> local{1, 1, 1};

  bool operator==(const LaunchSize&) const = default;
};

/// What a program wants when it is launched.
struct Signature {
  std::string name;   ///< of its entry point
  int buffers = 0;    ///< passed as addresses, in order
  int variables = 0;  ///< passed as int64
  LaunchSize size;    ///< of a launch that says nothing else
  size_t scratch_bytes =
      0;  ///< of memory that each thread has to itself while it runs, uninitialised, aligned to 64
};

/// What Device::load takes: code in the form that the device's compilers make, and how to call it.
struct ProgramImage {
  std::vector<std::byte> code;
  Signature signature;
};

/// When a command ran, in seconds of the host's steady clock.
struct Interval {
  double begin = 0;
  double end = 0;
};

/// Turns the text of one language into the code of one device. Any number of threads may compile at once.
class Compiler {
 public:
  virtual ~Compiler();
  /// All that decides the output besides the text: compiler, version, target, options. The key of caches on
  /// disk.
  virtual std::string key() const = 0;
  /// Code that the device loads. DeviceError with the compiler's own words if the text does not compile.
  virtual std::vector<std::byte> compile(std::string_view text) = 0;
  /// The machine's instructions as text, for people.
  virtual std::string disassemble(std::string_view text) = 0;
};

/// Code loaded on a device, to be launched from any thread.
class Program {
 public:
  Program(Device& device, Signature signature) : device_(device), signature_(std::move(signature)) {}
  virtual ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Device& device() const { return device_; }
  const Signature& signature() const { return signature_; }

  /// Submits one run and does not wait for it where the device runs by itself; returns the submission's
  /// number, see Device::wait. Buffers may be let go at once: memory is reused in the order of submissions.
  /// `time`, if given, is filled by the time the wait for the number ends and must live until then.
  /// ValueError if the counts are not the signature's, DeviceError if a buffer is another device's,
  /// OutOfMemory if scratch cannot be had.
  uint64_t launch(std::span<const Buffer> buffers, std::span<const int64_t> variables, const LaunchSize& size,
                  Interval* time = nullptr);
  uint64_t launch(std::span<const Buffer> buffers, std::span<const int64_t> variables = {}) {
    return launch(buffers, variables, signature_.size);
  }

 protected:
  /// launch() after its checks.
  virtual uint64_t submit(std::span<const Buffer> buffers, std::span<const int64_t> variables,
                          const LaunchSize& size, Interval* time) = 0;

 private:
  Device& device_;
  Signature signature_;
};

/// One run of a program, as an element of a list.
struct Launch {
  std::shared_ptr<Program> program;
  std::vector<Buffer> buffers;
  std::vector<int64_t> variables;
  LaunchSize size;
};

/// A copy of as many bytes as both have, from any device to any other.
struct Copy {
  Buffer to;
  Buffer from;
};

using Command = std::variant<Launch, Copy>;

/// Commands that run in order, checked once when the list is prepared, patched and run many times. One thread
/// at a time.
class LaunchList {
 public:
  virtual ~LaunchList();

  /// Replaces a buffer of a command; of a copy, 0 is where to and 1 is where from. IndexError, DeviceError,
  /// and for copies ValueError if the size differs. Takes effect with the next run.
  virtual void set_buffer(size_t command, size_t index, const Buffer& buffer) = 0;
  /// Replaces a variable of a launch. IndexError.
  virtual void set_variable(size_t command, size_t index, int64_t value) = 0;
  /// Replaces the size of a launch. IndexError.
  virtual void set_size(size_t command, const LaunchSize& size) = 0;
  /// Submits all commands and returns the last submission's number on the list's device. `times` is empty or
  /// has one place for each command, to be filled as Program::launch says.
  virtual uint64_t run(std::span<Interval> times = {}) = 0;
};

/// The checks of Program::launch alone.
void check_launch(const Program& program, std::span<const Buffer> buffers, std::span<const int64_t> variables,
                  const LaunchSize& size);
/// That one buffer may be passed to a program: DeviceError, ValueError if it is empty.
void check_argument(const Program& program, size_t index, const Buffer& buffer);

/// Seconds of the host's steady clock, as Interval has them.
double now_seconds();

}  // namespace pg::runtime
