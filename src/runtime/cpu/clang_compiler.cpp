#include "runtime/cpu/clang_compiler.h"

#include <fmt/format.h>

#include "base/flags.h"
#include "runtime/cpu/host_identity.h"
#include "runtime/cpu/object_file.h"
#include "runtime/cpu/process.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

// Freestanding, because nothing is linked in; no contraction, because an elementwise operation rounds once;
// no tables for unwinding, because kernels call nothing. No vectors but those of the program: clang 19 makes
// wrong ones of sums of products of bytes.
constexpr const char* kFlags[] = {"-O2",
                                  "-fno-slp-vectorize",
                                  "-march=native",
                                  "-std=c11",
                                  "-ffreestanding",
                                  "-fno-math-errno",
                                  "-ffp-contract=off",
                                  "-fPIC",
                                  "-fvisibility=hidden",
                                  "-fno-asynchronous-unwind-tables",
                                  "-fno-stack-protector",
                                  "-fcf-protection=none",
                                  "-fno-ident",
                                  "-w"};

std::vector<std::string> command(const std::string& program) {
  std::vector<std::string> arguments{program, "-x", "c"};
  arguments.insert(arguments.end(), std::begin(kFlags), std::end(kFlags));
  return arguments;
}

}  // namespace

ClangCompiler::ClangCompiler() {
  std::string tried;
  for (const std::string& program : {flags::cc(), std::string("clang-19"), std::string("clang")}) {
    if (program.empty()) continue;
    try {
      const ProcessResult version = run_process({program, "--version"}, "");
      const std::string first = version.output.substr(0, version.output.find('\n'));
      if (first.find("clang version") != std::string::npos) {
        program_ = program;
        key_ = first + " " + host_identity();
        for (const char* flag : kFlags) key_ += fmt::format(" {}", flag);
        return;
      }
      tried += fmt::format("\n  {} is not clang: {}", program, first);
    } catch (const DeviceError& error) {
      tried += fmt::format("\n  {}", error.what());
    }
  }
  throw DeviceError(
      fmt::format("[compile] kernels in C need clang, and there is none; CC names it:{}", tried));
}

std::string ClangCompiler::run(std::string_view text, const char* output) const {
  std::vector<std::string> arguments = command(program_);
  arguments.insert(arguments.end(), {output, "-", "-o", "-"});
  ProcessResult result = run_process(arguments, text);
  const bool unknown_status = result.status == -1 && !result.output.empty();
  if (result.status != 0 && !unknown_status) {
    throw DeviceError(
        fmt::format("[compile] {} ended with status {}:\n{}", program_, result.status, result.errors));
  }
  return std::move(result.output);
}

std::vector<std::byte> ClangCompiler::compile(std::string_view text) {
  const std::string object = run(text, "-c");
  const auto* begin = reinterpret_cast<const std::byte*>(object.data());
  std::vector<std::byte> code(begin, begin + object.size());
  ObjectFile{code};  // what the loader would refuse is refused now, while the text is at hand
  return code;
}

std::string ClangCompiler::disassemble(std::string_view text) { return run(text, "-S"); }

}  // namespace pg::runtime
