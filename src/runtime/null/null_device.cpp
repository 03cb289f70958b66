#include "runtime/null/null_device.h"

#include <cstdint>

#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg::runtime {
namespace {

constexpr size_t kBytes = size_t{1} << 60;  // more than any model, and sums of sizes do not wrap

// Addresses that nobody may follow, each once.
class NullMemory : public MemorySource {
 public:
  Block acquire(size_t bytes, MemoryKind kind) override {
    return {.handle = next_.fetch_add(bytes, std::memory_order_relaxed), .bytes = bytes, .kind = kind};
  }
  void release(const Block&) noexcept override {}

 private:
  std::atomic<uint64_t> next_{4096};
};

class NullCompiler : public Compiler {
 public:
  std::string key() const override { return "NULL"; }
  std::vector<std::byte> compile(std::string_view text) override {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  std::string disassemble(std::string_view text) override { return std::string(text); }
};

class NullProgram : public Program {
 public:
  NullProgram(NullDevice& device, const Signature& signature) : Program(device, signature), null_(device) {}

  uint64_t submit(std::span<const Buffer>, std::span<const int64_t>, const LaunchSize&,
                  Interval* time) override {
    if (time != nullptr) time->begin = time->end = now_seconds();
    return null_.count_launch();
  }

 private:
  NullDevice& null_;
};

}  // namespace

NullDevice::NullDevice(std::string name)
    : Device(std::move(name), std::make_unique<NullMemory>(), {.bytes = kBytes, .cache = kBytes}),
      target_(Target::null()) {}

Compiler& NullDevice::compiler(std::string_view) {
  static auto* compiler = new NullCompiler;
  return *compiler;
}

std::shared_ptr<Program> NullDevice::load(const ProgramImage& image) {
  return std::make_shared<NullProgram>(*this, image.signature);
}

void NullDevice::read(void*, const Buffer&) {
  throw DeviceError(fmt::format("[copy] {} computes nothing, so there is nothing to read from it", name()));
}

std::unique_ptr<Device> open_null(const std::string& name, const std::string&) {
  return std::make_unique<NullDevice>(name);
}

}  // namespace pg::runtime
