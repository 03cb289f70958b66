// LLVM IR text to object code, in this process. LLVM itself is opened by the first compile, so a program that
// finds all its kernels compiled needs none and does not wait for it.
#pragma once

#include <string>
#include <utility>

#include "runtime/fork.h"
#include "runtime/program.h"

struct pg_llvm_compiler;

namespace pg::runtime {

struct LlvmOptions {
  std::string triple;          ///< "aarch64-linux-gnu"; empty for this machine
  std::string cpu = "native";  ///< "native" has all that this machine has
  std::string features;        ///< "+avx2,-fma", beyond those of the CPU
  std::string passes;  ///< of the middle end, as LLVM's tool `opt -passes=` takes them; empty for the default
  int level = 2;       ///< of instruction selection, 0 to 3
};

class LlvmCompiler : public Compiler {
 public:
  explicit LlvmCompiler(LlvmOptions options = {}) : options_(std::move(options)) {}
  ~LlvmCompiler() override;

  /// Names the module by its size and date, not by LLVM's version, which is known only once it is open.
  std::string key() const override;

  // These throw DeviceError also if the module that holds LLVM cannot be opened, with the places looked at,
  // and if LLVM refuses the options.

  std::vector<std::byte> compile(std::string_view text) override;
  std::string disassemble(std::string_view text) override;
  /// The IR as LLVM's passes leave it.
  std::string optimized(std::string_view text);

 private:
  pg_llvm_compiler* open();
  std::string run(std::string_view text, int output);

  const LlvmOptions options_;
  ForkSafeMutex mutex_;
  pg_llvm_compiler* compiler_ = nullptr;
};

/// Of the LLVM in use: "19.1.7". DeviceError if it cannot be opened.
std::string llvm_version();

}  // namespace pg::runtime
