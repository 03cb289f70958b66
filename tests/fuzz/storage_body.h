// What the storage fuzzer captures: a function of two tensors, as the library runs it and as the model does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fuzz/storage_model.h"
#include <pangrad/tensor.h>

namespace pg::fuzz {

/// A number as an operand of a tensor of that dtype.
Operand operand(double v, DType t);

/// It may write to its first argument and to a tensor that it captured, may draw, and returns the first and
/// more.
struct Body {
  std::vector<std::pair<int, double>> steps;
  bool draws = false;

  Tensor operator()(Tensor a, const Tensor& b, Tensor captured, bool computes = true) const;
};

/// The same on the model.
eval::Array modelled(const Body& body, Model a, const Model& b, const Model& captured, RandomModel& random,
                     const std::string& device);

}  // namespace pg::fuzz
