// Windows: a reduction that reads a box of its input again and again, one step on each time, behind gates at
// the border (a convolution). The box is put into scratch memory once, with zeros around it, so the inner
// loop has no gates.
#pragma once

#include "ir/build.h"
#include "ir/target.h"

namespace pg::codegen {

struct Window {
  Ref kernel;           // with the panel; null if the loads of that slot are no such windows
  double elements = 0;  // of the panel
  double reads = 0;     // of the inner loop, for each time that the panel is filled
};
/// What the kernel reads from the buffer in that slot, as one panel for every turn of the loops outside.
Window window(Ref kernel, std::int64_t slot, const Target& target);

}  // namespace pg::codegen
