// The one interface to every device: memory, programs, time and lists of launches. The engine drives devices
// through it and asks none by name; each device is a folder beside this file and a line in registry.cpp. All
// of it may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/target.h"
#include "runtime/memory.h"
#include "runtime/memory_pool.h"
#include "runtime/program.h"

namespace pg::runtime {

class Device {
 public:
  /// A device outlives everything made from it. Those of the registry are never destroyed.
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Canonical: "CPU", "CPU:1", "DISK:/tmp/weights".
  const std::string& name() const { return name_; }

  /// What it can do. DeviceError if nothing runs on it.
  virtual const Target& target() const = 0;

  // --- memory ---

  /// Uninitialised memory, aligned to 64 bytes at least. From the device's pool: a steady loop gets the same
  /// blocks again. OutOfMemory says how much is in use; what had been allocated stays valid.
  Buffer allocate(size_t bytes, MemoryKind kind = MemoryKind::Device);
  /// Memory of somebody else as a Buffer, of any alignment. `deleter` runs when the last Buffer goes, and
  /// must not throw. DeviceError if the device cannot reach the host's memory.
  Buffer borrow(void* memory, size_t bytes, std::function<void()> deleter = {}, bool writable = false);
  /// What the device holds before anything is allocated: the bytes of a file. DeviceError if it is no such
  /// device.
  virtual Buffer contents();
  /// The same memory as seen from this device, without a copy; keeps the other's allocation. DeviceError if
  /// can_map is false.
  Buffer map(const Buffer& buffer);
  /// Whether map() works: always for its own buffers.
  virtual bool can_map(const Buffer& buffer) const;

  /// Copies from host memory. `from` may be reused on return.
  void copy_in(const Buffer& to, const void* from);
  /// Copies to host memory; waits for what was submitted before.
  void copy_out(void* to, const Buffer& from);

  /// Limits `in_use + cached`. Below what is in use it only stops further allocations.
  void set_memory_limit(size_t bytes) { pool_.set_limit(bytes); }
  /// Limits what is kept for reuse; 0 keeps nothing.
  void set_cache_limit(size_t bytes) { pool_.set_cache_limit(bytes); }
  /// Gives cached memory back to the driver; returns how many bytes.
  size_t trim() { return pool_.trim(); }
  MemoryStats memory() const { return pool_.stats(); }
  void reset_peak() { pool_.reset_peak(); }

  // --- programs ---

  /// The languages its compilers take, preferred first: {"llvm", "c"}.
  virtual std::vector<std::string> languages() const = 0;
  /// The compiler of a language. DeviceError if the device has none, or with the reason why it did not start.
  virtual Compiler& compiler(std::string_view language) = 0;
  /// DeviceError if the image is malformed, lacks the entry point or needs symbols it does not define.
  virtual std::shared_ptr<Program> load(const ProgramImage& image) = 0;
  /// Checks the commands as Program::launch and copy() do and prepares them to run as one. Devices without
  /// such a thing inherit a loop.
  virtual std::unique_ptr<LaunchList> prepare(std::vector<Command> commands);

  // --- time ---

  /// Number of the last submission: it grows by one with each launch and asynchronous copy.
  virtual uint64_t submitted() const = 0;
  /// All submissions up to this number are done.
  virtual uint64_t completed() const = 0;
  /// Blocks until completed() >= value. DeviceError naming the program if the device hangs or faults.
  virtual void wait(uint64_t value) = 0;
  void synchronize() { wait(submitted()); }
  /// What is submitted here from now on runs after `other` completed `value`; by default the host waits.
  virtual void wait_for(Device& other, uint64_t value);
  /// Makes the device usable again after a fault; its memory contents are lost. Nothing to do where programs
  /// run in this process.
  virtual void reset() {}

 protected:
  Device(std::string name, std::unique_ptr<MemorySource> source, MemoryPool::Limits limits);

  /// A Buffer over memory that does not come from the pool; `deleter` runs when the last of it goes.
  Buffer adopt(const Block& block, std::function<void()> deleter);

  // What a device implements besides; buffers are its own and not empty, ranges are checked.

  virtual void write(const Buffer& to, const void* from) = 0;
  virtual void read(void* to, const Buffer& from) = 0;
  /// Copies from another device's buffer if there is a way that does not pass through the host; false if
  /// there is none.
  virtual bool copy_from_peer(const Buffer& to, const Buffer& from);
  /// Whether memory that the host sees can be borrowed and mapped.
  virtual bool reaches_host() const { return false; }

 private:
  friend class Allocation;
  friend void copy(const Buffer& to, const Buffer& from);

  Buffer wrap(const Block& block, size_t bytes, std::function<void()> deleter = {});

  std::string name_;
  MemoryPool pool_;
};

/// Copies between any two devices, or within one where the ranges may overlap. Later submissions on the
/// target's device see the result; `from` may be written by later submissions of its own. ValueError if the
/// sizes differ, DeviceError if either side refuses.
void copy(const Buffer& to, const Buffer& from);
/// The checks of copy() alone.
void check_copy(const Buffer& to, const Buffer& from);

// --- registry ---

/// The device of that name, opened when first asked for and never closed: "CPU", "CPU:1", "INTERP:gpu",
/// "NULL", "DISK:path". Case of the part before ':' does not matter. DeviceError lists the devices there are,
/// and why each that does not open does not.
Device& device(std::string_view name);

/// The one spelling of a name: upper case, ":0" dropped, a path absolute. DeviceError as device(), but opens
/// nothing.
std::string canonical_device(std::string_view name);

/// How the part of a name after ':' is read.
enum class DeviceArgument : uint8_t {
  Ordinal,  ///< a number: "CPU:1"
  Text,     ///< anything, and a number at the end: "INTERP:gpu:1"
  Path,     ///< of a file, required
};

/// A family of devices: what stands before ':'.
struct DeviceKind {
  std::string name;
  DeviceArgument argument = DeviceArgument::Ordinal;
  /// `name` is canonical; `argument` is what follows its first ':', or empty. Throws DeviceError if it cannot
  /// be opened.
  std::function<std::unique_ptr<Device>(const std::string& name, const std::string& argument)> open;
};

/// Adds a family to those built in. ValueError if there is one of that name.
void register_device(DeviceKind kind);

/// What there is, in the order of preference, for listings.
struct DeviceInfo {
  std::string kind;
  std::string problem;  ///< why it did not open; empty if it did
  bool needs_argument;  ///< "DISK" means nothing without a path, and is not tried
};
/// Tries to open one of each kind.
std::vector<DeviceInfo> list_devices();

}  // namespace pg::runtime
