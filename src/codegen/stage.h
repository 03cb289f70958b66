// Panels: values that are computed once, put into memory close by, and read from there many times. STAGE
// becomes scratch memory of a thread with the loops that fill it; a reduction shared by the items of a group
// becomes shared memory, a barrier, and the sum of what the items found.
#pragma once

#include <span>

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// Numbers that a kernel does not use yet.
struct Fresh {
  explicit Fresh(Ref kernel);
  std::int64_t range = 0, slot = 0;
};

/// A value over the ranges `dims`, which nothing outside of it uses, put into scratch memory for every
/// combination of them, and read at the place `read`. The last dimension lies together.
Ref panel(Ref value, std::span<const Ref> dims, std::span<const Ref> read, Fresh& fresh,
          const Target& target);

/// A value put into scratch memory for every combination of the loops it is computed in, which the kernel has
/// anyway; and that value, at a place in them.
Ref fill_row(Ref value, std::span<const Ref> loops, Fresh& fresh);
Ref read_row(Ref filled, DType t, std::span<const Ref> loops, std::span<const Ref> at);

/// The value, reading nothing where the guard is false.
Ref guarded(Ref value, Ref guard);

/// The kernel without Stage nodes and without reductions over GroupReduce ranges; those ranges stay open.
Ref lower_stages(Ref kernel, const Target& target);

}  // namespace pg::codegen
