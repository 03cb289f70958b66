// Wmma nodes: the matrix product d = a * b + c that a warp computes together. Each matrix lies row-major over
// the items of the warp in order: of a matrix of s elements, item t of w holds elements t * s / w to (t + 1)
// * s / w as a vector.
#pragma once

#include "ir/target.h"

namespace pg {

/// The argument of a Wmma; one object for each kind of matrix unit.
struct WmmaShape final : Payload {
  TensorCore core;
  std::string text() const override;  // wmma{16x16x16 f16 f32}
};

/// Item's parts of a, b (both of core.in) and c, d (of core.out). Within a GraphScope.
Ref wmma(Ref a, Ref b, Ref c, const TensorCore& core);

}  // namespace pg
