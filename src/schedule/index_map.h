// Movement ops as maps of indices: where an element of the result comes from. The only place that knows this.
#pragma once

#include <absl/container/inlined_vector.h>

#include "ir/build.h"

namespace pg::schedule {

/// Indices of one element (weak integers, possibly of ranges), and whether it exists at all.
struct Index {
  absl::InlinedVector<Ref, 8> at;
  Ref valid;  // bool

  /// As one node, so that equal indices are the same pointer.
  Ref node() const;
};

/// For a movement op: the index of its source that an index of its result reads. Pad narrows valid.
Index source_index(Ref movement, const Index& index);
/// For an elementwise source: trailing axes, with 0 where the source has one element and the result more.
Index broadcast_index(Ref shape, Ref source_shape, const Index& index);
/// Row-major offset of an index.
Ref flatten(Ref shape, const Index& index);

}  // namespace pg::schedule
