#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <absl/container/inlined_vector.h>
#include <fmt/format.h>

#include "runtime/cpu/clang_compiler.h"
#include "runtime/cpu/host_memory.h"
#include "runtime/cpu/launch_workers.h"
#include "runtime/cpu/llvm_compiler.h"
#include "runtime/cpu/loader.h"
#include "runtime/launch_list.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

constexpr int64_t kMostDevices = 1024;

// --- running one kernel
// ----------------------------------------------------------------------------------------------

size_t scratch_stride(const Signature& signature) { return (signature.scratch_bytes + 63) / 64 * 64; }

int64_t threads_of(const Signature& signature, const LaunchSize& size) {
  int64_t threads = 1;
  for (const int64_t n : size.global) {
    if (__builtin_mul_overflow(threads, n, &threads)) {
      throw ValueError(fmt::format("[launch] {}: more threads than an int64 counts", signature.name));
    }
  }
  return threads;
}

// Scratch is one piece for each thread that can be at work at once, not one for each step.
size_t scratch_needed(const Signature& signature, int64_t threads) {
  return scratch_stride(signature) *
         static_cast<size_t>(std::min<int64_t>(threads, LaunchWorkers::get().participants()));
}

struct Run {
  const LoadedKernel& kernel;
  void* const* buffers;
  const int64_t* variables;
  std::byte* scratch;
  size_t stride;
};

void run_step(void* context, int64_t index, int participant) noexcept {
  const Run& run = *static_cast<const Run*>(context);
  run.kernel(run.buffers, run.variables, index, run.scratch + static_cast<size_t>(participant) * run.stride);
}

class CpuProgram : public Program {
 public:
  CpuProgram(CpuDevice& device, const Signature& signature, LoadedKernel kernel)
      : Program(device, signature), cpu_(device), kernel_(std::move(kernel)) {}

  uint64_t submit(std::span<const Buffer> buffers, std::span<const int64_t> variables, const LaunchSize& size,
                  Interval* time) override {
    absl::InlinedVector<void*, 16> addresses(buffers.size());
    std::ranges::transform(buffers, addresses.begin(), &Buffer::host);
    const int64_t threads = threads_of(signature(), size);
    Buffer scratch;
    if (signature().scratch_bytes != 0) scratch = cpu_.allocate(scratch_needed(signature(), threads));
    return run(addresses.data(), variables.data(), threads, scratch ? scratch.host() : nullptr, time);
  }

  uint64_t run(void* const* addresses, const int64_t* variables, int64_t threads, std::byte* scratch,
               Interval* time) {
    Run call{kernel_, addresses, variables, scratch, scratch_stride(signature())};
    const double begin = time != nullptr ? now_seconds() : 0;
    LaunchWorkers::get().run(threads, run_step, &call);
    if (time != nullptr) *time = {begin, now_seconds()};
    return cpu_.count_launch();
  }

 private:
  CpuDevice& cpu_;
  LoadedKernel kernel_;
};

// --- lists
// -----------------------------------------------------------------------------------------------------------

// Addresses and thread counts are worked out when a command is given or patched; a run only calls.
class CpuLaunchList : public CommandLoop {
 public:
  CpuLaunchList(CpuDevice& device, std::vector<Command> given)
      : CommandLoop(device, std::move(given)), cpu_(device) {
    calls_.resize(commands().size());
    for (size_t i = 0; i < commands().size(); i++) resolve(i);
  }

  void set_buffer(size_t command, size_t index, const Buffer& buffer) override {
    CommandLoop::set_buffer(command, index, buffer);
    if (calls_[command].program != nullptr) calls_[command].addresses[index] = buffer.host();
  }
  void set_size(size_t command, const LaunchSize& size) override {
    CommandLoop::set_size(command, size);
    resolve(command);
  }

  uint64_t run(std::span<Interval> times) override {
    check_times(times);
    Buffer scratch;
    if (const size_t most = most_scratch(); most != 0) scratch = cpu_.allocate(most);
    for (size_t i = 0; i < calls_.size(); i++) {
      Interval* time = times.empty() ? nullptr : &times[i];
      const Call& call = calls_[i];
      if (call.program != nullptr) {
        const auto& launch = std::get<Launch>(commands()[i]);
        call.program->run(call.addresses.data(), launch.variables.data(), call.threads,
                          scratch ? scratch.host() : nullptr, time);
      } else {
        run_command(i, time);
      }
    }
    return cpu_.completed();
  }

 private:
  // Of a launch of this device; what else there is runs as in any list.
  struct Call {
    CpuProgram* program = nullptr;
    absl::InlinedVector<void*, 8> addresses;
    int64_t threads = 0;
    size_t scratch = 0;
  };

  void resolve(size_t command) {
    const auto* launch = std::get_if<Launch>(&commands()[command]);
    if (launch == nullptr || &launch->program->device() != &cpu_) return;
    Call& call = calls_[command];
    call.program = static_cast<CpuProgram*>(launch->program.get());  // this device loads no others
    call.addresses.resize(launch->buffers.size());
    std::ranges::transform(launch->buffers, call.addresses.begin(), &Buffer::host);
    call.threads = threads_of(launch->program->signature(), launch->size);
    call.scratch = scratch_needed(launch->program->signature(), call.threads);
  }
  size_t most_scratch() const {
    size_t most = 0;
    for (const Call& call : calls_) most = std::max(most, call.scratch);
    return most;
  }

  CpuDevice& cpu_;
  std::vector<Call> calls_;
};

Target target_of_host() {
  Target target = Target::host_cpu();
  target.cores = LaunchWorkers::get().participants();
  return target;
}

// --- compilers
// -------------------------------------------------------------------------------------------------------

// One of each for all CPU devices. Never destroyed; one that does not start is tried again.
struct Compilers {
  ForkSafeMutex mutex;
  std::unique_ptr<Compiler> llvm, c;
};

}  // namespace

CpuDevice::CpuDevice(std::string name)
    : Device(std::move(name), std::make_unique<HostMemorySource>(),
             {.bytes = host_memory_bytes(), .cache = host_memory_bytes() / 2}),
      target_(target_of_host()) {}

Compiler& CpuDevice::compiler(std::string_view language) {
  static auto* compilers = new Compilers;
  const auto get = [&]<class C>(std::unique_ptr<Compiler>& one, C* /*kind*/) -> Compiler& {
    {
      const std::lock_guard lock(compilers->mutex);
      if (one) return *one;
    }
    auto made = std::make_unique<C>();
    const std::lock_guard lock(compilers->mutex);
    if (!one) one = std::move(made);
    return *one;
  };
  if (language == "llvm") return get(compilers->llvm, static_cast<LlvmCompiler*>(nullptr));
  if (language == "c") return get(compilers->c, static_cast<ClangCompiler*>(nullptr));
  throw DeviceError(
      fmt::format("[compile] {} has no compiler for \"{}\"; it has llvm and c", name(), language));
}

std::shared_ptr<Program> CpuDevice::load(const ProgramImage& image) {
  return std::make_shared<CpuProgram>(*this, image.signature, load_kernel(image.code, image.signature.name));
}

std::unique_ptr<LaunchList> CpuDevice::prepare(std::vector<Command> commands) {
  return std::make_unique<CpuLaunchList>(*this, std::move(commands));
}

void CpuDevice::write(const Buffer& to, const void* from) { std::memmove(to.host(), from, to.bytes); }
void CpuDevice::read(void* to, const Buffer& from) { std::memmove(to, from.host(), from.bytes); }

std::unique_ptr<Device> open_cpu(const std::string& name, const std::string& argument) {
  if (!argument.empty() && (argument.size() > 4 || std::stoll(argument) >= kMostDevices)) {
    throw DeviceError(fmt::format("[device] \"{}\": the last is CPU:{}", name, kMostDevices - 1));
  }
  return std::make_unique<CpuDevice>(name);
}

}  // namespace pg::runtime
