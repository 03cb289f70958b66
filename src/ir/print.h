// Graphs as text, which ir/parse.h reads back to the same nodes. For people (errors, dumps, traces, text
// tests) and for programs kept on disk.
//
//   p0 = Param.f32[0]((32,))
//   r0 = Range[0, global](8)
//   r1 = Range[1, reduce](4)
//   v0 = Reduce[Add](Load(Index(p0, r0*4 + r1)), r1)      one node a line; what is short and used once stands
//   inside Sink(End(Store(Index(p0, r0), v0 + 1.0), r0))         the last line is the root
//
// A node is Op.type[argument](sources). The type is left out where it follows from the sources; elementwise
// ops are written with the operators of C++, which bind as there. A shape is a tuple: (), (4,), (n, 8). A
// number takes the type of its fellow operands; elsewhere 4 is a weak integer, and any type can be said:
// 4:i32, 0.5:f16, -inf:f32x8 (a splat). Reduce[Add, 0, 2] of a tensor names axes; Acc[Add; 3], and
// Reduce[Add; 4] of a kernel, a number. Names mean nothing; the printer numbers them in order, after slots
// and range ids where these are unique.
#pragma once

#include <string>

#include "ir/node.h"

namespace pg {

struct PrintOptions {
  /// A node used once is written inside its user if its text is no longer than this; 0 gives each node a
  /// line.
  std::size_t inline_width = 60;
};

/// The graph under root, a line each node, sources before users. Equal for structurally equal graphs. Inside
/// a GraphScope.
std::string print(Ref root, const PrintOptions& options = {});

/// One line about a node for messages: its sources to that depth, those below as `..`. Needs no scope.
std::string brief(Ref node, int depth = 3);

}  // namespace pg
