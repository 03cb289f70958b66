// BEAM: kernels tried out on the device they are for. Used where a kernel is missing, before it is lowered.
#pragma once

#include <vector>

#include "codegen/options.h"
#include "runtime/device.h"

namespace pg::engine {

/// The best options that BEAM finds for a kernel graph in a few seconds, timed on memory of its own. One
/// search at a time in a process. Outside GraphScopes.
std::vector<codegen::Opt> search_options(Ref kernel, runtime::Device& device);

}  // namespace pg::engine
