// Nests of a kernel that go through the same elements: sums that read the same run in one loop, and what
// costs much to compute is computed once and kept in scratch memory for the nests that come after.
#pragma once

#include "ir/build.h"

namespace pg::codegen {

/// Reductions over loops of the same sizes, neither of which needs the other and which read something in
/// common, over the same loops.
Ref share_loops(Ref kernel);

/// Values of a row that an earlier nest has computed, read from scratch memory by the later ones.
Ref share_rows(Ref kernel);

}  // namespace pg::codegen
