#include "runtime/cpu/object_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <elf.h>
#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg::runtime {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kMostAlignment = 4096;
constexpr size_t kMostBytes = size_t{256} << 20;  // of one object in memory; kernels are a few KiB

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw DeviceError("[load] object file: " + fmt::format(format, std::forward<Args>(args)...));
}

Bytes part_of(Bytes bytes, uint64_t offset, uint64_t length, std::string_view what) {
  if (offset > bytes.size() || length > bytes.size() - offset) {
    fail("{} lies outside: bytes {} to {}+{} of {}", what, offset, offset, length, bytes.size());
  }
  return bytes.subspan(offset, length);
}

// An element of a table that may lie unaligned in the file.
template <class T>
T element(Bytes table, size_t index) {
  T value;
  std::memcpy(&value, table.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
size_t count_of(Bytes table) {
  return table.size() / sizeof(T);
}

std::string_view text_at(Bytes strings, size_t offset) {
  if (offset >= strings.size()) fail("a name at {} of a table of {}", offset, strings.size());
  const auto* begin = reinterpret_cast<const char*>(strings.data() + offset);
  const size_t most = strings.size() - offset;
  const size_t length = strnlen(begin, most);
  if (length == most) fail("a name at {} does not end", offset);
  return {begin, length};
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// How many bytes a relocation changes; nothing if the type is not supported.
std::optional<size_t> width_of(ObjectFile::Machine machine, uint32_t type) {
  if (machine == ObjectFile::Machine::X86_64) {
    switch (type) {
      case R_X86_64_NONE:
        return 0;
      case R_X86_64_64:
      case R_X86_64_PC64:
        return 8;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
      case R_X86_64_32:
      case R_X86_64_32S:
        return 4;
      default:
        return {};
    }
  }
  switch (type) {
    case R_AARCH64_NONE:
      return 0;
    case R_AARCH64_ABS64:
    case R_AARCH64_PREL64:
      return 8;
    case R_AARCH64_PREL32:
    case R_AARCH64_ADR_PREL_LO21:
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC:
    case R_AARCH64_JUMP26:
    case R_AARCH64_CALL26:
      return 4;
    default:
      return {};
  }
}

int64_t fits(uint64_t value, int bits, uint32_t type) {
  const auto number = static_cast<int64_t>(value);
  const int64_t most = int64_t{1} << (bits - 1);
  if (number < -most || number >= most)
    fail("relocation type {}: {} does not fit {} bits", type, number, bits);
  return number;
}

// The immediate of ADR and ADRP: two bits low, nineteen high.
void store_adr(std::byte* at, int64_t immediate) {
  const auto bits = static_cast<uint32_t>(immediate);
  store(at, (load<uint32_t>(at) & 0x9f00001fU) | ((bits & 3U) << 29) | (((bits >> 2) & 0x7ffffU) << 5));
}

void apply_aarch64(uint32_t type, uint64_t value, std::byte* at, uint64_t address) {
  // Of an address in a page, what a load or an addition adds, in units of the load's size.
  const auto page_offset = [&](int shift) {
    if ((value & ((uint64_t{1} << shift) - 1)) != 0)
      fail("relocation type {}: {:#x} is not aligned", type, value);
    const auto immediate = static_cast<uint32_t>((value & 0xfffU) >> shift);
    store(at, (load<uint32_t>(at) & ~(0xfffU << 10)) | (immediate << 10));
  };
  switch (type) {
    case R_AARCH64_NONE:
      return;
    case R_AARCH64_ABS64:
      return store(at, value);
    case R_AARCH64_PREL64:
      return store(at, value - address);
    case R_AARCH64_PREL32:
      return store(at, static_cast<int32_t>(fits(value - address, 32, type)));
    case R_AARCH64_ADR_PREL_LO21:
      return store_adr(at, fits(value - address, 21, type));
    case R_AARCH64_ADR_PREL_PG_HI21: {
      const uint64_t pages = (value & ~uint64_t{0xfff}) - (address & ~uint64_t{0xfff});
      return store_adr(at, fits(pages, 33, type) >> 12);
    }
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
      return page_offset(0);
    case R_AARCH64_LDST16_ABS_LO12_NC:
      return page_offset(1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
      return page_offset(2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
      return page_offset(3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
      return page_offset(4);
    case R_AARCH64_JUMP26:
    case R_AARCH64_CALL26: {
      const int64_t distance = fits(value - address, 28, type);
      if (distance % 4 != 0) fail("relocation type {}: a jump to {:#x}", type, value);
      return store(at,
                   (load<uint32_t>(at) & 0xfc000000U) | (static_cast<uint32_t>(distance >> 2) & 0x3ffffffU));
    }
    default:
      fail("relocation type {}", type);
  }
}

void apply_x86(uint32_t type, uint64_t value, std::byte* at, uint64_t address) {
  switch (type) {
    case R_X86_64_NONE:
      return;
    case R_X86_64_64:
      return store(at, value);
    case R_X86_64_PC64:
      return store(at, value - address);
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
      return store(at, static_cast<int32_t>(fits(value - address, 32, type)));
    case R_X86_64_32S:
      return store(at, static_cast<int32_t>(fits(value, 32, type)));
    case R_X86_64_32:
      if (value > UINT32_MAX) fail("relocation type {}: {:#x} does not fit 32 bits", type, value);
      return store(at, static_cast<uint32_t>(value));
    default:
      fail("relocation type {}", type);
  }
}

Elf64_Ehdr read_header(Bytes bytes, ObjectFile::Machine machine) {
  const auto header = element<Elf64_Ehdr>(part_of(bytes, 0, sizeof(Elf64_Ehdr), "the header"), 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    fail("not 64 bits, little endian");
  if (header.e_type != ET_REL) fail("not relocatable, but of type {}", header.e_type);
  if (header.e_machine != static_cast<uint16_t>(machine)) {
    fail("for machine {}, this is machine {}", header.e_machine, static_cast<uint16_t>(machine));
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr)) fail("section headers of {} bytes", header.e_shentsize);
  return header;
}

// Whether a section becomes part of the program. What only debuggers and unwinders read does not.
bool is_loaded(const Elf64_Shdr& section, std::string_view name) {
  if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOTE || name == ".eh_frame") return false;
  if (section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS) {
    if ((section.sh_flags & SHF_TLS) != 0) fail("section {} is thread-local", name);
    return true;
  }
  fail("section {} of type {}", name, section.sh_type);
}

// Appends to a part; returns the offset there.
size_t append(ObjectFile::Part& part, const Elf64_Shdr& section, std::string_view name) {
  const size_t alignment = std::max<size_t>(section.sh_addralign, 1);
  if (!std::has_single_bit(alignment) || alignment > kMostAlignment)
    fail("section {} aligned to {}", name, alignment);
  const size_t offset = (part.bytes + alignment - 1) & ~(alignment - 1);
  if (section.sh_size > kMostBytes || offset > kMostBytes - section.sh_size) {
    fail("section {} of {} bytes: larger than any kernel", name, section.sh_size);
  }
  part.bytes = offset + section.sh_size;
  part.alignment = std::max(part.alignment, alignment);
  return offset;
}

}  // namespace

ObjectFile::ObjectFile(Bytes bytes, Machine machine) : machine_(machine) {
  const Elf64_Ehdr header = read_header(bytes, machine);
  const Bytes headers =
      part_of(bytes, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "the table of sections");
  const auto header_of = [&](size_t index) { return element<Elf64_Shdr>(headers, index); };
  const auto contents_of = [&](const Elf64_Shdr& section) {
    return section.sh_type == SHT_NOBITS ? Bytes{}
                                         : part_of(bytes, section.sh_offset, section.sh_size, "a section");
  };
  if (header.e_shstrndx >= header.e_shnum)
    fail("the names are in section {} of {}", header.e_shstrndx, header.e_shnum);
  const Bytes section_names = contents_of(header_of(header.e_shstrndx));

  sections_.resize(header.e_shnum);
  std::optional<Elf64_Shdr> symbol_table;
  for (size_t i = 0; i < sections_.size(); i++) {
    const Elf64_Shdr section = header_of(i);
    if (section.sh_type == SHT_SYMTAB) symbol_table = section;
    const std::string_view name = text_at(section_names, section.sh_name);
    if (!is_loaded(section, name)) continue;
    const bool writable = (section.sh_flags & SHF_WRITE) != 0;
    sections_[i] = {.contents = contents_of(section),
                    .bytes = section.sh_size,
                    .offset = append(writable ? data_ : code_, section, name),
                    .loaded = true,
                    .writable = writable,
                    .executable = (section.sh_flags & SHF_EXECINSTR) != 0};
    if (writable && sections_[i].executable) fail("section {} is writable and executable", name);
  }

  Bytes symbols, names;
  if (symbol_table) {
    symbols = contents_of(*symbol_table);
    if (symbol_table->sh_link >= sections_.size())
      fail("the symbols' names are in section {}", symbol_table->sh_link);
    names = contents_of(header_of(symbol_table->sh_link));
  }
  for (size_t i = 0; i < count_of<Elf64_Sym>(symbols); i++) {
    const auto symbol = element<Elf64_Sym>(symbols, i);
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_NOTYPE) || symbol.st_shndx >= sections_.size()) continue;
    const Section& section = sections_[symbol.st_shndx];
    if (!section.executable || symbol.st_value >= section.bytes) continue;
    functions_.emplace(text_at(names, symbol.st_name), section.offset + symbol.st_value);
  }

  std::set<std::string_view> undefined;
  for (size_t i = 0; i < sections_.size(); i++) {
    const Elf64_Shdr section = header_of(i);
    if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL) continue;
    if (section.sh_info >= sections_.size())
      fail("relocations of section {} of {}", section.sh_info, sections_.size());
    if (!sections_[section.sh_info].loaded) continue;
    if (section.sh_type == SHT_REL) fail("relocations without addends");
    read_relocations(contents_of(section), section.sh_info, symbols, names, undefined);
  }
  if (!undefined.empty()) fail("needs what it does not define: {}", fmt::join(undefined, ", "));
}

void ObjectFile::read_relocations(Bytes table, size_t target, Bytes symbols, Bytes names,
                                  std::set<std::string_view>& undefined) {
  const Section& changed = sections_[target];
  for (size_t i = 0; i < count_of<Elf64_Rela>(table); i++) {
    const auto rela = element<Elf64_Rela>(table, i);
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(rela.r_info));
    const size_t index = ELF64_R_SYM(rela.r_info);
    if (index >= count_of<Elf64_Sym>(symbols)) fail("a relocation against symbol {}", index);
    const auto symbol = element<Elf64_Sym>(symbols, index);
    if (symbol.st_shndx == SHN_UNDEF && index != 0) {
      undefined.insert(text_at(names, symbol.st_name));
      continue;
    }
    const auto width = width_of(machine_, type);
    if (!width) fail("relocation type {} against {}", type, text_at(names, symbol.st_name));
    if (rela.r_offset > changed.contents.size() || *width > changed.contents.size() - rela.r_offset) {
      fail("a relocation at {} of a section of {}", rela.r_offset, changed.contents.size());
    }
    Symbol to{.absolute = symbol.st_shndx == SHN_ABS || index == 0, .value = symbol.st_value};
    if (!to.absolute) {
      to.section = symbol.st_shndx;
      if (to.section >= sections_.size() || !sections_[to.section].loaded) {
        fail("a relocation against section {}, which is not loaded", to.section);
      }
      if (to.value > sections_[to.section].bytes)
        fail("a symbol at {} of a section of {}", to.value, sections_[to.section].bytes);
    }
    relocations_.push_back(
        {.section = target, .offset = rela.r_offset, .type = type, .target = to, .addend = rela.r_addend});
  }
}

void ObjectFile::link(const Place& code, const Place& data) const {
  const auto place_of = [&](const Section& section) -> const Place& {
    return section.writable ? data : code;
  };
  // What lies between sections traps if it is ever run.
  constexpr int kTrap = 0xcc;
  std::memset(code.memory, kTrap, code_.bytes);
  for (const Section& section : sections_) {
    if (!section.loaded || section.bytes == 0) continue;
    std::byte* to = place_of(section).memory + section.offset;
    if (!section.contents.empty()) std::memcpy(to, section.contents.data(), section.contents.size());
    std::memset(to + section.contents.size(), 0, section.bytes - section.contents.size());
  }
  for (const Relocation& r : relocations_) {
    const Section& changed = sections_[r.section];
    uint64_t value = r.target.value + static_cast<uint64_t>(r.addend);
    if (!r.target.absolute) {
      const Section& target = sections_[r.target.section];
      value += place_of(target).address + target.offset;
    }
    const size_t offset = changed.offset + r.offset;
    std::byte* at = place_of(changed).memory + offset;
    const uint64_t address = place_of(changed).address + offset;
    machine_ == Machine::X86_64 ? apply_x86(r.type, value, at, address)
                                : apply_aarch64(r.type, value, at, address);
  }
}

size_t ObjectFile::find(std::string_view function) const {
  const auto found = functions_.find(function);
  if (found == functions_.end()) fail("there is no function \"{}\" in it", function);
  return found->second;
}

}  // namespace pg::runtime
