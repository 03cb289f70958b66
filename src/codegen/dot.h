// DOT: a sum of products of bytes becomes a sum of products of words of four bytes, for machines that
// multiply and add four pairs of bytes in one instruction. The words lie in the panels of both factors.
#pragma once

#include "codegen/options.h"

namespace pg::codegen {

/// The kernel with the sum of products over the loop in words, each of bytes a quarter of the loop apart;
/// null where the factors are not bytes, one of them signed, and the sum not i32.
Ref dot_of_bytes(Ref kernel, Ref loop);

/// The loop best shared out among the bytes of words, or null.
Ref loop_of_bytes(Ref kernel);

}  // namespace pg::codegen
