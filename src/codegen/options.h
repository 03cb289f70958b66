// What can be done to the loops of a kernel. Each option is one rewrite of the graph; a list of them is what
// the cost model or the search comes up with, and what is kept with the kernel.
#pragma once

#include <string>
#include <vector>

#include "ir/build.h"

namespace pg::codegen {

enum class OptKind : std::uint8_t { Split, Upcast, Unroll, Lane, Thread, PadTo, Reorder };

/// An option on the loop with that id. Sizes that do not divide the loop pad it with exact masking.
struct Opt {
  OptKind kind;
  std::int64_t loop;
  std::int64_t amount = 0;
  friend bool operator==(const Opt&, const Opt&) = default;
};
std::string to_string(const Opt& opt);

/// The kernel with the option applied. Throws ValueError naming the option if it does not fit.
///   Split   loop -> outer * amount + inner, both loops
///   Upcast  the same with the inner part unrolled in registers (output loops)
///   Unroll  the same for loops of reductions
///   Lane    the same with the inner part a vector (one loop of a kernel)
///   Thread  loop -> amount chunks, run in any order by threads, of a loop each (output loops)
///   PadTo   the extent up to a multiple of amount
///   Reorder the loop outermost of its kind
Ref apply(Ref kernel, const Opt& opt);

/// Loops that every access walks as one become one: (i < a, j < b) -> (k < a*b).
Ref merge_loops(Ref kernel);

}  // namespace pg::codegen
