// Sweeps: a reduction whose results lie in memory close by while its outermost loop goes over what it reads.
// The sum of every column of a matrix walks the matrix once, row by row, where a loop over columns outside
// would jump from row to row.
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

/// The kernel with its one reduction swept along `loop`, `rows` turns of it at a time: outside stands that
/// loop, inside the output loop with its lanes and copies, where what is in scratch memory is combined with
/// those turns' values. Null if that is not possible: several reductions, several output loops that are not
/// of threads, `rows` that do not divide the loop. After every other option.
Ref sweep(Ref kernel, Ref loop, std::int64_t rows, const Target& target);

}  // namespace pg::codegen
