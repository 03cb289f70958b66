// Random programs of storage: creations, views, values, writes, reads, at random points computed. A program
// is a list of numbers, a step each, so that any part of it is a program too, and a failing one can be made
// small.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/array.h"
#include <pangrad/tensor.h>

namespace pg::fuzz {

using Program = std::vector<std::uint64_t>;

struct Outcome {
  std::string wrong;   // empty if the library and the model agree
  std::string source;  // the program as C++
};

/// How a tensor is read: computed by the library, or by the evaluator from its graph.
using Reader = eval::Array (*)(const Tensor&);

Program random_program(std::uint64_t seed);
Outcome run(const Program& program, Reader read);
/// The program without the steps it fails without.
Program shrink(Program program, Reader read);

/// Through Tensor::copy_to.
eval::Array read_computed(const Tensor& x);

}  // namespace pg::fuzz
