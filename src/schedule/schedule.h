// From a call (a tensor graph over Params) to kernels in order: which values get storage, which loops are
// shared, which writes go in place, who must run before whom. Used by the engine, which keeps the results by
// the call's node.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "ir/build.h"
#include "ir/target.h"

namespace pg::schedule {

/// Set in the slot of a call's Param when a write may take its storage.
inline constexpr std::int64_t kDonated = std::int64_t{1} << 32;

/// A storage the calls of a schedule name by slot: the call's Params first, then outputs and temporaries.
struct BufferInfo {
  DType dtype;
  std::int64_t size;  // elements
  std::string device;
  /// Temporaries share memory: byte range in the arena of their device. Others: -1.
  std::int64_t arena_offset = -1;
};

struct Schedule {
  UOp linear;                             // Linear(Call(...)...)
  std::vector<BufferInfo> buffers;        // by slot
  std::size_t params = 0;                 // how many of them are the call's Params
  std::vector<int> outputs;               // slot of each root
  std::vector<std::int64_t> arena_bytes;  // one arena a device, in the order of devices
  std::vector<std::string> arena_devices;
};

/// What a device can do, by its name.
using TargetOf = std::function<const Target&(const std::string&)>;

/// Schedules a call. `device` is where values live whose sources name no device. Without `targets` every
/// stored value is a kernel of its own.
Schedule schedule(Ref call, std::string_view device, const TargetOf& targets = nullptr);

/// The slots that a call of a schedule writes, each once.
absl::InlinedVector<int, 2> written_slots(Ref call);

}  // namespace pg::schedule
