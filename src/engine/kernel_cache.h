// Kernels by what they compute and for which target: lowered and rendered under the graph's lock, compiled in
// parallel without it, loaded once, kept in memory and on disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codegen/options.h"
#include "ir/build.h"
#include "runtime/device.h"

namespace pg::engine {

/// What launching a kernel needs, and what is printed of it.
struct CompiledKernel {
  std::shared_ptr<runtime::Program> program;
  std::string name;
  double flops = 0, bytes = 0;
};

/// A kernel on its way: text rendered, or code found on disk, not loaded yet.
class KernelJob {
 public:
  /// Inside a GraphScope. `kernel` is a kernel graph.
  KernelJob(Ref kernel, runtime::Device& device);
  /// Outside of it: compiles if need be, and loads. Throws DeviceError with the compiler's words.
  std::shared_ptr<const CompiledKernel> finish();

 private:
  UOp kernel_;
  runtime::Device& device_;
  std::string language_, text_;
  runtime::ProgramImage image_;
  CompiledKernel info_;
  Digest digest_;
  bool from_disk_ = false, to_disk_ = false;
};

/// The kernel if this process has it. Inside a GraphScope.
std::shared_ptr<const CompiledKernel> find_kernel(Ref kernel, const runtime::Device& device);
/// Finishes jobs on all cores and remembers their kernels. Outside a GraphScope.
void compile_all(std::vector<KernelJob>& jobs);

std::size_t kernels_cached();
/// How many were compiled, not found, since the process began.
std::uint64_t kernels_compiled();
void forget_kernels();

/// Arithmetic and memory traffic of one run of a linear program.
struct Estimate {
  double flops = 0, bytes = 0;
};
Estimate estimate(Ref linear);

}  // namespace pg::engine
