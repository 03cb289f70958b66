// Memory that kernels run from. Never writable and executable at one address: it is written through one
// mapping and run through another. Kernels are small, so many share a mapping: loading one costs a copy, not
// pages and system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/fork.h"

namespace pg::runtime {

struct CodeArena;

/// A piece of code memory with, behind it, memory that the code may write. Given back on destruction.
class CodeBlock {
 public:
  CodeBlock() = default;
  ~CodeBlock();
  CodeBlock(CodeBlock&& other) noexcept { swap(other); }
  CodeBlock& operator=(CodeBlock&& other) noexcept {
    CodeBlock(std::move(other)).swap(*this);
    return *this;
  }

  /// Where to write the parts, until finish(). Null if a part is empty.
  std::byte* write_code() const { return write_code_; }
  std::byte* write_data() const { return write_data_; }
  /// Where the program sees them.
  std::byte* code() const { return code_; }
  std::byte* data() const { return data_; }
  /// Makes what was written executable. DeviceError if the system does not allow it.
  void finish();

 private:
  friend class CodeMemory;
  void swap(CodeBlock& other) noexcept;

  CodeArena* arena_ = nullptr;
  std::byte* write_code_ = nullptr;
  std::byte* write_data_ = nullptr;
  std::byte* code_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;  // of code, as the arena counts them
};

class CodeMemory {
 public:
  /// The one of the process. Never destroyed.
  static CodeMemory& get();

  /// Room for code, aligned to 64 bytes or more (a power of two, 4096 at most), and for data, aligned to
  /// pages. The two lie less than 2 GiB apart. OutOfMemory, or DeviceError if the system gives no executable
  /// memory.
  CodeBlock allocate(size_t code_bytes, size_t alignment, size_t data_bytes);

  struct Stats {
    size_t used = 0;    ///< bytes of code and data in live blocks
    size_t mapped = 0;  ///< bytes of executable mappings
    size_t arenas = 0;  ///< a count
  };
  Stats stats();

 private:
  friend class CodeBlock;
  CodeMemory();
  static void seal_after_fork(bool in_child);
  void release(const CodeBlock& block) noexcept;

  ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<CodeArena>> arenas_;
  size_t used_ = 0;
};

}  // namespace pg::runtime
