// C text to object code through a clang process: slower than LLVM in this process by the time a process takes
// to start, and easier to read. Needs clang at run time.
#pragma once

#include <string>
#include <vector>

#include "runtime/program.h"

namespace pg::runtime {

class ClangCompiler : public Compiler {
 public:
  /// Takes the first that is clang of: CC, clang-19, clang. DeviceError with what was tried if none is.
  ClangCompiler();

  std::string key() const override { return key_; }
  /// DeviceError with what clang printed.
  std::vector<std::byte> compile(std::string_view text) override;
  std::string disassemble(std::string_view text) override;

 private:
  std::string run(std::string_view text, const char* output) const;

  std::string program_;
  std::string key_;
};

}  // namespace pg::runtime
