// What a recording needs to see of the tensors a body uses.
#pragma once

#include <absl/container/flat_hash_map.h>

#include "tensor/cell.h"

namespace pg::detail {

/// Told of what this thread does with Cells.
class CellWatch {
 public:
  virtual ~CellWatch() = default;
  /// The Cell is about to be read or written; inside a GraphScope.
  virtual void touched(Cell& cell) = 0;
  /// Contents are about to be read by the host. May throw.
  virtual void value_read(const char* op) = 0;
};
/// Sets the watch of this thread, or null; returns the former.
CellWatch* watch_cells(CellWatch* watch);
/// The watch of this thread, or null.
CellWatch* cell_watch();

/// A write that happened: the Cell holds the leaf's contents now.
void overwrite(Cell& cell, Ref leaf);

/// Words drawn from a device's generator so far; of all of them; going on by some.
std::int64_t random_offset(Device device);
absl::flat_hash_map<Device, std::int64_t> random_offsets();
void advance_random(Device device, std::int64_t words);
/// The device whose generator's offset this Bind is, or null.
Device generator_of(Ref bind);

}  // namespace pg::detail
