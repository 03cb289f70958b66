// What is known of a linear program besides its instructions: how it is called. The renderers write its
// signature from this, and the engine hands it to the device that loads the code.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "ir/target.h"

namespace pg {

struct ProgramInfo {
  std::string name = "kernel";  // of the entry point: letters, digits and _
  int buffers = 0;              // one more than the highest slot of a Param, and of a ScalarParam
  int scalars = 0;
  std::int64_t threads = 1;        // extent of Special("thread")
  std::int64_t scratch_bytes = 0;  // of each thread: the Locals, where the device has no groups
  std::array<std::int64_t, 3> global{1, 1, 1}, local{1, 1, 1};  // extents of gidx0.., lidx0..
  std::int64_t local_bytes = 0;                                 // of each group: the Locals, where it has
  /// Promised by the caller: no two of the buffers overlap, in any launch. Otherwise they may.
  bool distinct = false;
};

/// Reads all but `distinct` off the instructions of a Linear. InternalError if an extent or the size of a
/// Local is not a constant.
ProgramInfo program_info(Ref linear, std::string_view name, const Target& target);

/// A Local of a program and where it begins in scratch memory, in the order of slots; each is aligned to 64
/// bytes.
struct ScratchPart {
  Ref local;
  std::int64_t offset;
  std::int64_t bytes;
};
std::vector<ScratchPart> scratch_layout(Ref linear);

/// The alignment in bytes that a Store past the caches needs where its buffer has it; 0: it cannot go there,
/// being of scalars, behind a gate, or at places of which some are in the middle of a vector.
int stream_alignment(Ref store);

/// The buffer beneath an Index or a chain of After on one: a Param or a Local.
Ref buffer_of(Ref x);
/// x without the After around it.
Ref strip_after(Ref x);

// --- renderers: pure functions of the program, called within a GraphScope
// ------------------------------------------ A kernel on a CPU is `void name(void* const* buffers, const
// int64_t* vars, int64_t thread, void* scratch)`, with the address of the buffer in slot i at buffers[i]
// (aligned for its dtype, no more) and the value of ScalarParam i at vars[i]: integers and bools as such,
// floats by their bits. They throw InternalError on what should have been decomposed.

/// A module of LLVM IR, version 19, without triple and data layout.
std::string render_llvm(Ref linear, const ProgramInfo& program, const Target& target);
/// A translation unit of C11 with clang's vector extensions, to be compiled with -ffp-contract=off. It
/// includes nothing.
std::string render_c(Ref linear, const ProgramInfo& program, const Target& target);

}  // namespace pg
