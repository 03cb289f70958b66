// From object code to a function that can be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/cpu/code_memory.h"

namespace pg::runtime {

/// How every kernel of the CPU is called: addresses of its buffers, its variables, which of the launch's
/// threads this is, and scratch memory that nobody else uses meanwhile. Kernels call nothing and throw
/// nothing.
using KernelFunction = void (*)(void* const* buffers, const int64_t* variables, int64_t thread,
                                void* scratch);

struct LoadedKernel {
  CodeBlock memory;  // `entry` points into it
  KernelFunction entry = nullptr;

  /// Calls it. A sanitizer that checks the types of functions would read what precedes the code, where there
  /// may be nothing.
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  void
  operator()(void* const* buffers, const int64_t* variables, int64_t thread, void* scratch) const {
    entry(buffers, variables, thread, scratch);
  }
};

/// Loads a relocatable object and finds its function. DeviceError if it is malformed, needs symbols that it
/// does not define, or has no such function; OutOfMemory.
LoadedKernel load_kernel(std::span<const std::byte> object, std::string_view function);

}  // namespace pg::runtime
