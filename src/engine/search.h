// BEAM: kernels tried out on the device they are for. Used where a kernel is missing, before it is lowered.
#pragma once

#include <chrono>
#include <vector>

#include "base/hash.h"
#include "codegen/options.h"
#include "runtime/device.h"

namespace pg::engine {

struct Searched {
  std::vector<codegen::Opt> options;
  double seconds = 0, first = 0;  // of a run with them, and with the cost model's choice
  bool finished = true;           // else the best until then, from which the next search goes on
};
/// The best options that BEAM finds for a kernel graph in a few seconds and before `until`, timed on memory
/// of its own while nothing compiles. With a digest, a search that is interrupted leaves what it found in the
/// disk cache. One search at a time in a process. Outside GraphScopes.
Searched search_options(Ref kernel, runtime::Device& device, const Digest* digest,
                        std::chrono::steady_clock::time_point until);

}  // namespace pg::engine
