#include <algorithm>

#include <absl/container/flat_hash_map.h>

#include "engine/kernel.h"

namespace pg::engine {

Estimate estimate(Ref linear) {
  Estimate e;
  double trips = 1;
  std::vector<double> outer;
  absl::flat_hash_map<std::int64_t, double>
      touched;  // bytes by slot: as accessed, but no more than there are
  for (Node* raw : linear.srcs()) {
    Ref n = raw;
    if (n.is(Op::Special)) trips *= static_cast<double>(n.src(0).hi());
    if (n.is(Op::Range)) {
      outer.push_back(trips);
      trips *= static_cast<double>(n.src(0).hi());
    } else if (n.is(Op::End)) {
      trips = outer.back();
      outer.pop_back();
    } else if (n.has(kElementwise) && is_float(n.dtype()) && !n.is(Op::Cast) && !n.is(Op::Bitcast) &&
               !n.is(Op::Where)) {
      e.flops += trips * n.lanes() * (n.is(Op::MulAcc) ? 2 : 1);
    } else if ((n.is(Op::Load) || n.is(Op::Store)) && n.src(0).is(Op::Index) &&
               n.src(0).src(0).is(Op::Param)) {
      Ref param = n.src(0).src(0);
      double size = static_cast<double>(itemsize(param.dtype()));
      double& t = touched[param.i() * 2 + n.is(Op::Store)];
      int lanes = n.is(Op::Load) ? n.lanes() : n.src(1).lanes();
      t = std::min(t + trips * lanes * size, size * static_cast<double>(max_numel(param.src(0))));
    }
  }
  for (auto& [slot, bytes] : touched) e.bytes += bytes;
  return e;
}

}  // namespace pg::engine
