#include "codegen/compile.h"

#include "base/flags.h"
#include "codegen/choose.h"
#include "codegen/expand.h"
#include "codegen/launch.h"
#include "codegen/linearize.h"
#include "codegen/share.h"
#include "codegen/stage.h"
#include "rewrite/rewrite.h"
#include "rules/decompose.h"
#include "rules/symbolic.h"

namespace pg::codegen {

Ref lower_with(Ref kernel, const std::vector<Opt>& options, const Target& target) {
  Ref k = kernel;
  for (const Opt& o : options) k = apply(k, o, target);
  k = lower_stages(k, target);
  k = assign_launch(k, target);
  k = expand(k);
  k = rewrite(k, rules::symbolic(), {.name = "simplify expanded", .optional = true});
  k = rewrite(k, rules::decompose(), {.name = "decompose", .ctx = const_cast<Target*>(&target)});
  k = lower_indices(k, target);
  k = rewrite(k, rules::late(), {.name = "late", .optional = true});
  return linearize(k, target);
}

Ref prepare(Ref kernel, const Target& target) {
  Ref k = share_loops(hoist_gates(merge_loops(kernel)));
  return target.has_groups ? k : share_rows(k);
}

Lowered lower(Ref kernel, const Target& target, const std::vector<Opt>* given) {
  Ref k = prepare(kernel, target);
  std::vector<Opt> options;
  if (given)
    options = *given;
  else if (!flags::noopt())
    options = choose_options(k, target);
  return {lower_with(k, options, target), options};
}

}  // namespace pg::codegen
