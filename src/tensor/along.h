// What operations along one axis share: running results, sorting.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/ops.h"

namespace pg::detail {

/// x with the axis last, n there; and the order of axes that leads back.
struct Along {
  Tensor x;
  std::vector<std::int64_t> back;
  Dim n;
};
Along along(const char* op, const Tensor& x, std::int64_t axis);

/// x with `none` before and behind its last axis.
Tensor pad_last(const Tensor& x, const Dim& before, const Dim& after, Number none);
/// The front of the last axis.
Tensor first_of_last(const Tensor& x, const Dim& n);
/// An axis moved to the end, and the last one moved there.
Tensor to_end(const Tensor& x, int axis);
Tensor from_end(const Tensor& x, int axis);

/// An associative way to combine elements.
struct Combine {
  Number none;                                               // changes nothing
  std::function<Tensor(const Tensor&)> over_last;            // all of the last axis
  std::function<Tensor(const Tensor&, const Tensor&)> both;  // two of them
};
/// By Add, Mul, Max or Min, of elements of a dtype.
Combine combine(Op how, DType t);
/// Running result over the last axis.
Tensor running(const Tensor& x, const Combine& how);

/// The value in a Cell of its own.
Tensor value_copy(const Tensor& x, const char* op);

}  // namespace pg::detail
