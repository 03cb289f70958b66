// Runs another program to its end, with text for its input and its output in memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pg::runtime {

struct ProcessResult {
  int status = 0;  ///< exit status, 128 + signal if it was killed, -1 if the host took the status first
  std::string output;
  std::string errors;
};

/// `arguments` begins with the program, found on PATH. DeviceError if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& arguments, std::string_view input);

}  // namespace pg::runtime
