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

/// Where answers come from: computed by the library, or said by the evaluator of graphs that are never
/// realized.
enum class Reads : std::uint8_t { Computed, Evaluated };

Program random_program(std::uint64_t seed);
Outcome run(const Program& program, Reads reads);
/// What failures of one kind have in common: the message without names and numbers.
std::string kind_of(std::string wrong);
/// The program without the steps it fails without, in the same way.
Program shrink(Program program, Reads reads);

}  // namespace pg::fuzz
