// A relocatable ELF object, as LLVM and C compilers emit it for one or more kernels: read, checked and linked
// in itself, into memory of the caller. Nothing outside the object is ever linked in. The bytes may come from
// a disk cache or a network, so every number in them is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pg::runtime {

class ObjectFile {
 public:
  /// Instruction sets, by their ELF numbers.
  enum class Machine : uint16_t { X86_64 = 62, Aarch64 = 183 };
  static constexpr Machine kHost =
#if defined(__aarch64__)
      Machine::Aarch64;
#else
      Machine::X86_64;
#endif

  /// Reads the object; `bytes` must outlive it. DeviceError says what is malformed or not supported, and
  /// names all symbols that the object needs and does not define.
  explicit ObjectFile(std::span<const std::byte> bytes, Machine machine = kHost);

  /// Two parts of memory, the code with its constants, and what it may write (mostly nothing).
  struct Part {
    size_t bytes = 0;
    size_t alignment = 1;  ///< a power of two, 4096 at most
  };
  const Part& code() const { return code_; }
  const Part& data() const { return data_; }

  /// Where a part is written and where it will be seen by the program.
  struct Place {
    std::byte* memory = nullptr;
    uint64_t address = 0;
  };
  /// Writes both parts, with addresses filled in. DeviceError if one does not fit its field: parts further
  /// than 2 GiB apart.
  void link(const Place& code, const Place& data) const;

  /// Offset in the code of a function. DeviceError if there is none of that name.
  size_t find(std::string_view function) const;

 private:
  struct Section {
    std::span<const std::byte> contents;  // shorter than `bytes` if the rest is zero
    size_t bytes = 0;
    size_t offset = 0;  // in its part
    bool loaded = false;
    bool writable = false;
    bool executable = false;
  };
  struct Symbol {
    size_t section = 0;  // index; of no section if absolute
    bool absolute = false;
    uint64_t value = 0;
  };
  struct Relocation {
    size_t section = 0;  // that is changed
    size_t offset = 0;
    uint32_t type = 0;
    Symbol target;
    int64_t addend = 0;
  };

  void read_relocations(std::span<const std::byte> table, size_t target, std::span<const std::byte> symbols,
                        std::span<const std::byte> names, std::set<std::string_view>& undefined);

  Machine machine_;
  Part code_, data_;
  std::vector<Section> sections_;
  std::vector<Relocation> relocations_;
  std::map<std::string, size_t, std::less<>> functions_;
};

}  // namespace pg::runtime
