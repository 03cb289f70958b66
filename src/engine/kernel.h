// A kernel of this process: what was lowered and rendered, and its code once somebody needed it. Made under
// the graph's lock, compiled without it, by whichever thread comes first.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codegen/options.h"
#include "ir/build.h"
#include "runtime/device.h"

namespace pg::engine {

class Kernel {
 public:
  /// Lowers and renders a kernel graph; with a digest, the code goes to the disk cache. With the options
  /// given, or those the cost model chooses. Inside a GraphScope. ValueError if the options do not fit.
  static std::shared_ptr<Kernel> lowered(Ref kernel, runtime::Device& device, const Digest* digest,
                                         const std::vector<codegen::Opt>* options = nullptr);
  /// What the disk cache has under the digest, ready, or null. Outside of GraphScopes: it reads a file.
  static std::shared_ptr<Kernel> from_disk(runtime::Device& device, const Digest& digest);

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const std::string& name() const { return image_.signature.name; }
  /// As rendered; empty once it is compiled.
  const std::string& text() const { return text_; }
  /// Arithmetic of one run, and the memory it touches at least.
  double flops() const { return flops_; }
  double bytes() const { return bytes_; }

  bool ready() const { return state_.load(std::memory_order_acquire) == State::Ready; }
  /// Compiles and loads it if nobody has begun to; false if somebody has. Throws DeviceError with the
  /// compiler's words; then it counts as not begun. Outside of GraphScopes.
  bool compile();
  /// The program, compiled here or waited for. Throws as compile().
  runtime::Program& program() {
    if (!ready()) wait();
    return *program_;
  }

 private:
  enum class State : std::uint8_t { Waiting, Compiling, Ready };
  friend struct Compiling;

  explicit Kernel(runtime::Device& device) : device_(device) {}
  void wait();
  void make();
  void load();
  std::string pack() const;
  bool unpack(const std::string& bytes);

  runtime::Device& device_;
  std::string language_, text_;
  runtime::ProgramImage image_;
  double flops_ = 0, bytes_ = 0;
  Digest digest_;
  bool to_disk_ = false;
  std::shared_ptr<runtime::Program> program_;
  std::atomic<State> state_{State::Waiting};
};

/// What identifies a kernel on disk: the graph, the device's target, the compiler, the version of this
/// library. Inside a GraphScope.
Digest digest_of(Ref kernel, runtime::Device& device);

/// How many were compiled, not found, since the process began.
std::uint64_t kernels_compiled();

/// Arithmetic and memory traffic of one run of a linear program.
struct Estimate {
  double flops = 0, bytes = 0;
};
Estimate estimate(Ref linear);

}  // namespace pg::engine
