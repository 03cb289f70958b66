// Between tensors and the evaluator: the graph behind a tensor, and tensors that are inputs of a graph rather
// than storage.
#pragma once

#include <span>
#include <vector>

#include "eval/evaluate.h"
#include <pangrad/tensor.h>

namespace pg::ops {

/// What the evaluator says of a tensor: inputs by slot, Buffers as their storage is now.
eval::Array evaluate(const Tensor& x, std::span<const eval::Array> inputs = {});
/// Several, sharing what they have in common.
std::vector<eval::Array> evaluate(std::span<const Tensor> xs, std::span<const eval::Array> inputs);

/// A tensor that is input `slot` of what is built on it.
Tensor input(int slot, DType t, const eval::Dims& dims);

/// Storage on a device, holding the array; and what is in it.
Tensor stored(const eval::Array& a, const std::string& device = "");
eval::Array computed(const Tensor& x);

/// Devices of the usual ones that open here.
std::vector<std::string> devices();

}  // namespace pg::ops
