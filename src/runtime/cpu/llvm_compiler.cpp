#include "runtime/cpu/llvm_compiler.h"

#include <cstring>
#include <filesystem>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/flags.h"
#include "runtime/cpu/host_identity.h"
#include "runtime/cpu/llvm_shim.h"
#include "runtime/cpu/object_file.h"
#include "runtime/sanitizers.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

constexpr const char* kModule = "libpangrad_llvm.so";

// The functions of llvm_shim.h in the opened module.
struct Shim {
  decltype(&pg_llvm_abi) abi;
  decltype(&pg_llvm_create) create;
  decltype(&pg_llvm_destroy) destroy;
  decltype(&pg_llvm_version) version;
  decltype(&pg_llvm_compile) compile;
  decltype(&pg_llvm_free) free;
};

std::filesystem::path folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

// Where the module may be, best first. The last, a bare name, leaves it to the system's search.
std::vector<std::string> places() {
  const std::string asked = flags::pangrad_llvm();
  std::error_code ignored;
  if (!asked.empty()) {
    const bool folder = std::filesystem::is_directory(asked, ignored);
    return {folder ? (std::filesystem::path(asked) / kModule).string() : asked};
  }
  std::vector<std::string> found;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (const std::filesystem::path& folder : {folder_of_this_library(), program.parent_path()}) {
    if (folder.empty()) continue;
    for (const auto& place : {folder / kModule, folder / ".." / "lib" / kModule}) {
      if (std::filesystem::exists(place, ignored)) found.push_back(place.string());
    }
  }
  found.emplace_back(kModule);
  return found;
}

void* open_module() {
  // Private, and preferring its own symbols to the host's. Sanitizers' interceptors cannot be preferred away.
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | (PG_ASAN || PG_TSAN ? 0 : RTLD_DEEPBIND);
  std::string problems;
  for (const std::string& place : places()) {
    if (void* module = dlopen(place.c_str(), kFlags)) return module;
    problems += fmt::format("\n  {}", dlerror());
  }
  throw DeviceError(
      fmt::format("[compile] cannot open {}, which holds LLVM; PANGRAD_LLVM names its file or folder:{}",
                  kModule, problems));
}

Shim open_shim() {
  void* module = open_module();
  const auto symbol = [&]<class F>(F& function, const char* name) {
    void* found = dlsym(module, name);
    if (found == nullptr)
      throw DeviceError(fmt::format("[compile] {} lacks {}: it is of another version", kModule, name));
    static_assert(sizeof(F) == sizeof(void*));
    std::memcpy(&function, &found, sizeof(F));
  };
  Shim shim{};
  symbol(shim.abi, "pg_llvm_abi");
  if (shim.abi() != PG_LLVM_ABI) {
    throw DeviceError(
        fmt::format("[compile] {} has ABI {}, this library wants {}", kModule, shim.abi(), PG_LLVM_ABI));
  }
  symbol(shim.create, "pg_llvm_create");
  symbol(shim.destroy, "pg_llvm_destroy");
  symbol(shim.version, "pg_llvm_version");
  symbol(shim.compile, "pg_llvm_compile");
  symbol(shim.free, "pg_llvm_free");
  return shim;
}

// Opened once and never closed: LLVM does not survive that. A failure is tried again.
const Shim& shim() {
  static auto* mutex = new ForkSafeMutex;
  static std::optional<Shim> opened;
  const std::lock_guard lock(*mutex);
  if (!opened) opened = open_shim();
  return *opened;
}

// Tells one build of the module from another without opening it.
std::string module_identity() {
  std::error_code missing;
  const std::string place = places().front();
  const auto bytes = std::filesystem::file_size(place, missing);
  if (missing) return "elsewhere";
  return fmt::format("{}.{}", bytes,
                     std::filesystem::last_write_time(place, missing).time_since_epoch().count());
}

// Takes over a message of the shim.
std::string take(const Shim& shim, char* message) {
  std::string text = message != nullptr ? message : "no reason given";
  shim.free(message);
  return text;
}

}  // namespace

std::string llvm_version() { return shim().version(); }

LlvmCompiler::~LlvmCompiler() {
  if (compiler_ != nullptr) shim().destroy(compiler_);
}

std::string LlvmCompiler::key() const {
  const bool native = options_.cpu == "native";
  return fmt::format("llvm {} {} {} {} [{}] O{}", module_identity(), options_.triple,
                     native ? host_identity() : options_.cpu, options_.features, options_.passes,
                     options_.level);
}

pg_llvm_compiler* LlvmCompiler::open() {
  const Shim& llvm = shim();
  const std::lock_guard lock(mutex_);
  if (compiler_ != nullptr) return compiler_;
  const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  const pg_llvm_options options{.triple = text(options_.triple),
                                .cpu = text(options_.cpu),
                                .features = text(options_.features),
                                .passes = text(options_.passes),
                                .level = options_.level};
  char* error = nullptr;
  compiler_ = llvm.create(&options, &error);
  if (compiler_ == nullptr) throw DeviceError(fmt::format("[compile] LLVM: {}", take(llvm, error)));
  return compiler_;
}

std::string LlvmCompiler::run(std::string_view text, int output) {
  pg_llvm_buffer result{};
  char* error = nullptr;
  pg_llvm_compiler* compiler = open();
  const Shim& llvm = shim();
  if (llvm.compile(compiler, text.data(), text.size(), static_cast<pg_llvm_output>(output), &result,
                   &error) != 0) {
    throw DeviceError(fmt::format("[compile] LLVM: {}", take(llvm, error)));
  }
  std::string bytes;
  try {
    bytes.assign(result.data, result.bytes);
  } catch (...) {
    llvm.free(result.data);
    throw;
  }
  llvm.free(result.data);
  return bytes;
}

std::vector<std::byte> LlvmCompiler::compile(std::string_view text) {
  const std::string object = run(text, PG_LLVM_OBJECT);
  const auto* begin = reinterpret_cast<const std::byte*>(object.data());
  std::vector<std::byte> code(begin, begin + object.size());
  if (options_.triple.empty())
    ObjectFile{code};  // what the loader would refuse is refused now, while the text is at hand
  return code;
}

std::string LlvmCompiler::disassemble(std::string_view text) { return run(text, PG_LLVM_ASSEMBLY); }
std::string LlvmCompiler::optimized(std::string_view text) { return run(text, PG_LLVM_IR); }

}  // namespace pg::runtime
