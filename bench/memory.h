// The most memory a piece of work takes, each measured in a process of its own.
#pragma once

#include <string>

namespace pg::bench {

/// Bytes that some training steps took beyond what this process had before: "demo" or "resnet50". Prints them
/// for the process that asked.
void print_peak_memory(const std::string& work);
/// Held against PyTorch, at most `share` of what it takes.
void compare_peak_memory(const std::string& name, const std::string& work, const std::string& rival_work,
                         double share);

}  // namespace pg::bench
