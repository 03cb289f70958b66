// Numbers that change from step to step.
#pragma once

#include <string>

#include <pangrad/tensor.h>

namespace pg::nn {

/// A scalar in storage of its own from the start. One made of a constant would be folded into what reads it,
/// and so into the recording of a step.
inline Tensor stored_scalar(double value, DType dtype, const std::string& device) {
  Tensor scalar = Tensor::empty({}, {.dtype = dtype, .device = device});
  scalar.assign(value);
  return scalar;
}

}  // namespace pg::nn
