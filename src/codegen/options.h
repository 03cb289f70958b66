// What can be done to the loops of a kernel. Each option is one rewrite of the graph; a list of them is what
// the cost model or the search comes up with, and what is kept with the kernel.
#pragma once

#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

enum class OptKind : std::uint8_t {
  Split,
  Upcast,
  Unroll,
  Lane,
  Thread,
  PadTo,
  Reorder,
  Local,
  Group,
  TensorCore,
  Stage,
  Window,
  Sweep,
  Scatter,
  Stream,
};

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
///   Local   loop -> outer * amount + inner, the inner part work-items of a group (output loops)
///   Group   the same for a loop of a reduction: the items share their results
///   TensorCore  a sum of products over the loop on matrix unit number `amount` of the target: the output
///   loop along
///           which the kernel stores, and the other one that the other factor depends on, in tiles of a warp.
///           All three are multiples of the unit's sizes (PadTo)
///   Stage   what is read from the buffer in slot `amount`, and what is computed from that alone, is put into
///           scratch memory in the order in which the loops within this one use it; kWholeKernel: within all
///           of them. After every other option
///   Window  what is read from the buffer in slot `amount` in overlapping boxes is put into scratch memory,
///   with zeros
///           where its gate is false. Before every other option
///   Sweep   the results of the one reduction lie in scratch memory, and `amount` turns of its loop at a time
///           pass over all of them. After every other option but Stream
///   Scatter each value of the reduction joins the one element along the loop that it names, in order. After
///           every other option
///   Stream  what is stored into the buffer in slot `amount`, which the kernel does not read, goes past the
///           caches where whole aligned vectors are stored
Ref apply(Ref kernel, const Opt& opt, const Target& target);
inline constexpr std::int64_t kWholeKernel = -1;

/// A sum of products for a matrix unit: the factors in its dtype, `a` over m and k, `b` over k and n, where
/// the kernel stores along n. Without `reduce`: none such over that loop.
struct MatrixLoops {
  Ref reduce, a, b, m, n, k;
};
MatrixLoops matrix_loops(Ref kernel, Ref k_loop, const TensorCore& core);

/// Sums whose terms stand behind a gate: what the gate does not depend on is summed up within it, and reads
/// nothing behind it that is there anyway. Sum[k, c] where(g(k), f(k, c), 0) -> Sum[k] where(g(k), Sum[c]
/// f(k, c), 0).
Ref hoist_gates(Ref kernel);

/// Loops that every access walks as one become one: (i < a, j < b) -> (k < a*b).
Ref merge_loops(Ref kernel);

}  // namespace pg::codegen
