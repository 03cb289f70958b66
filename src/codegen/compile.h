// The whole lowering of a kernel, in order: from a kernel graph to a linear program for a target.
#pragma once

#include <vector>

#include "codegen/options.h"
#include "ir/target.h"

namespace pg::codegen {

struct Lowered {
  Ref linear;
  std::vector<Opt> options;
};

/// The kernel as options see it.
Ref prepare(Ref kernel, const Target& target);

/// With the options given, which are for the kernel as prepared, or those the cost model chooses.
/// Throws ValueError if an option does not fit, InternalError naming the pass that failed.
Lowered lower(Ref kernel, const Target& target, const std::vector<Opt>* given = nullptr);
Ref lower_with(Ref kernel, const std::vector<Opt>& options, const Target& target);

}  // namespace pg::codegen
