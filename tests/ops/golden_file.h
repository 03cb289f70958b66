// Golden data: what other frameworks computed, a line each in the files of tests/golden.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "eval/array.h"

namespace pg::ops {

struct Golden {
  std::uint64_t digest = 0;  // of the inputs; 0 where there are none
  eval::Array value;
};

/// The lines of tests/golden/<file>: name, digest in hexadecimal, dtype, dimensions ("2x3", "-" for none),
/// values. Throws FileError if it is not there or a line is malformed.
std::map<std::string, Golden> read_golden(const std::string& file);

}  // namespace pg::ops
