// The room that joins the others: computes what tensor graphs say. Used by the tensor room, which knows
// nothing of schedules, kernels or devices beyond this header.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/build.h"
#include "runtime/memory.h"
#include "schedule/schedule.h"

namespace pg::engine {

/// What a Buffer leaf stands for: contents of a piece of memory. A write in place moves the memory to a new
/// Storage, so a Storage never changes what it shows.
struct Storage final : Payload {
  DType dtype;
  std::int64_t elements = 0;
  std::uint64_t id = 0;  // never used twice
  std::string device;
  runtime::Buffer buffer;  // empty until the first write
  UOp parent;              // of a view: the Buffer leaf it is a range of, and where that begins, in elements
  std::int64_t start = 0;

  std::string text() const override { return "storage"; }
};
Storage& storage_of(Ref buffer);

/// A new storage on a device holding a copy of the bytes; the Buffer leaf of it. Throws DeviceError,
/// OutOfMemory.
UOp buffer_from_host(std::string_view device, DType t, Dims dims, const void* bytes);
/// Storage with unspecified contents, allocated at its first use.
UOp empty_buffer(std::string_view device, DType t, Dims dims);
/// The leaf of memory that is there already, with a deleter in it.
UOp buffer_of(std::string_view device, DType t, Dims dims, runtime::Buffer memory);

/// Computes the roots (nodes of the tensor graph); result i is the Buffer leaf with the contents of root i,
/// or root i itself if it is a constant. A contiguous range of a Buffer becomes a view of it without a
/// kernel. What was computed is remembered as the node's materialized leaf. A root After(old, Store(view, x))
/// runs in place if nothing but these roots refers to `old`, else on fresh storage. Throws OutOfMemory,
/// DeviceError; then nothing is replaced.
std::vector<UOp> realize(std::span<const UOp> roots);

/// The schedule that realizing the roots would run, made anew and not run: its kernels, buffers and memory
/// plan.
schedule::Schedule plan(std::span<const UOp> roots);

/// Schedules and compiles what realizing the roots would run, into the caches, and runs nothing.
void compile(std::span<const UOp> roots);

/// Copies the contents of a Buffer leaf to host memory, waiting for its device.
void read(Ref buffer, void* out, std::size_t bytes);

/// Where a node's value lives; empty for what has no device, such as constants. Throws DeviceError naming
/// both if the node mixes two.
std::string device_of(Ref node);
/// Canonical name of the device that is used where none is named: DEV, or CPU.
std::string default_device();

// --- counters
// ------------------------------------------------------------------------------------------------------

struct Counters {
  std::uint64_t kernels = 0;    // launched
  std::uint64_t copies = 0;     // between devices
  std::uint64_t compiled = 0;   // kernels that had to be compiled
  std::uint64_t schedules = 0;  // made, not found in the cache
  std::uint64_t schedule_hits = 0;
  std::uint64_t allocated = 0;  // bytes of storage made for results (not temporaries)
  double flops = 0, bytes = 0;  // arithmetic of the launched kernels; bytes they touch at least
  double seconds = 0;           // spent in kernels, with DEBUG >= 2
};
Counters counters();

// --- recording, for captures
// ---------------------------------------------------------------------------------------

struct Run;
/// One realize, as it happened: what it ran and on which storages, so that it can be run again on others.
/// Valid during the call of the recorder: whoever keeps a leaf keeps writes from going in place.
struct Recorded {
  std::shared_ptr<const Run> run;
  std::span<const UOp> inputs;    // Buffer leaves, by parameter
  std::span<const UOp> scalars;   // the Bind of each scalar parameter
  std::span<const UOp> outputs;   // Buffer leaves, by root
  std::span<const int> in_place;  // by root: the parameter whose storage it took, or -1
  /// Parameters whose storage was written, be it for a root or for a value in between.
  std::span<const int> overwritten;
};
/// Called for each realize of this thread while set. Returns the former.
using Recorder = std::function<void(const Recorded&)>;
Recorder set_recorder(Recorder recorder);

/// Storage of some elements, seen in a shape, on a device by its canonical name; without memory yet.
UOp new_buffer(const std::string& device, DType t, std::int64_t elements, Ref shape);
/// The contents of a leaf moved to a new version, which a write in place made.
UOp next_version(Ref leaf, Ref shape);
/// A range of a leaf's storage, sharing its memory; it begins at `start`, in elements.
UOp view_of(Ref leaf, std::int64_t start, Ref shape);
/// A copy of a leaf's storage, for a write that must not be seen through the leaf.
UOp copy_of(Ref leaf);
/// Runs what was recorded on other storages and scalars. Outputs get memory if they have none; those in place
/// are null.
void replay(const Run& run, std::span<Storage* const> inputs, std::span<const std::int64_t> scalars,
            std::span<Storage* const> outputs);

}  // namespace pg::engine
