#include "runtime/interp/interp_device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "ir/parse.h"
#include "runtime/cpu/float_environment.h"
#include "runtime/interp/code.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

constexpr size_t kBytes = size_t{1} << 40, kCache = size_t{64} << 20;

class InterpMemory : public MemorySource {
 public:
  Block acquire(size_t bytes, MemoryKind kind) override {
    void* memory = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
    return {.host = static_cast<std::byte*>(memory), .bytes = bytes, .kind = kind};
  }
  void release(const Block& block) noexcept override { ::operator delete(block.host, std::align_val_t{64}); }
};

std::string_view text_of(const std::vector<std::byte>& code) {
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

class InterpCompiler : public Compiler {
 public:
  std::string key() const override { return "program"; }
  std::vector<std::byte> compile(std::string_view text) override {
    const GraphScope scope;
    try {
      parse(text);
    } catch (const ValueError& error) {
      throw DeviceError(fmt::format("[compile] {}", error.what()));
    }
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  std::string disassemble(std::string_view text) override { return std::string(text); }
};

class InterpProgram : public Program {
 public:
  InterpProgram(InterpDevice& device, const Signature& signature, interp::Code code)
      : Program(device, signature), interp_(device), code_(std::move(code)) {}

  uint64_t submit(std::span<const Buffer> buffers, std::span<const int64_t> variables, const LaunchSize& size,
                  Interval* time) override {
    std::vector<interp::Memory> memories;
    for (const Buffer& b : buffers)
      memories.push_back({b.host(), static_cast<int64_t>(b.bytes), b.allocation->writable()});
    const Target& target = interp_.target();
    interp::Grid grid{.warp = target.warp};
    if (target.has_groups) {
      std::ranges::copy(size.global, grid.groups);
      std::ranges::copy(size.local, grid.items);
      if (size.local[0] * size.local[1] * size.local[2] > target.max_group)
        throw DeviceError(fmt::format("[launch] {}: groups of {} x {} x {} items, where {} has at most {}",
                                      signature().name, size.local[0], size.local[1], size.local[2],
                                      interp_.name(), target.max_group));
    } else {
      grid.threads = size.global[0] * size.global[1] * size.global[2];
    }
    const FloatEnvironment environment;
    const double begin = time != nullptr ? now_seconds() : 0;
    interp::execute(code_, memories, variables, grid);
    if (time != nullptr) *time = {begin, now_seconds()};
    return interp_.count_launch();
  }

 private:
  InterpDevice& interp_;
  const interp::Code code_;
};

}  // namespace

InterpDevice::InterpDevice(std::string name, Target target)
    : Device(std::move(name), std::make_unique<InterpMemory>(), {.bytes = kBytes, .cache = kCache}),
      target_(std::move(target)) {}

Compiler& InterpDevice::compiler(std::string_view language) {
  if (language != "program")
    throw DeviceError(fmt::format("[compile] {} has no compiler for \"{}\"; it takes programs as they are",
                                  name(), language));
  static auto* compiler = new InterpCompiler;
  return *compiler;
}

std::shared_ptr<Program> InterpDevice::load(const ProgramImage& image) {
  const GraphScope scope;
  interp::Code code;
  try {
    code = interp::decode(parse(text_of(image.code)), image.signature.name);
  } catch (const ValueError& error) {
    throw DeviceError(fmt::format("[load] {}", error.what()));
  }
  if (code.buffer_slots > image.signature.buffers || code.scalar_slots > image.signature.variables)
    throw DeviceError(
        fmt::format("[load] {} takes more arguments than its signature says", image.signature.name));
  if (target_.has_groups && code.local_bytes > target_.local_bytes)
    throw DeviceError(fmt::format("[load] {} takes {} bytes of local memory, where {} has {}",
                                  image.signature.name, code.local_bytes, name(), target_.local_bytes));
  return std::make_shared<InterpProgram>(*this, image.signature, std::move(code));
}

void InterpDevice::write(const Buffer& to, const void* from) { std::memmove(to.host(), from, to.bytes); }
void InterpDevice::read(void* to, const Buffer& from) { std::memmove(to, from.host(), from.bytes); }

std::unique_ptr<Device> open_interp(const std::string& name, const std::string& argument) {
  const bool number = std::ranges::all_of(argument, [](char c) { return c >= '0' && c <= '9'; });
  if (number) return std::make_unique<InterpDevice>(name, Target::interp());
  std::string kind = argument.substr(0, argument.find(':'));
  std::ranges::transform(kind, kind.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (kind != "gpu") throw DeviceError(fmt::format("[device] \"{}\": there are INTERP and INTERP:gpu", name));
  return std::make_unique<InterpDevice>(name, Target::interp_gpu());
}

}  // namespace pg::runtime
