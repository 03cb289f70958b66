// Objects are linked right, and whatever the bytes are, the worst that happens is an exception.
#include "runtime/cpu/object_file.h"

#include <cstring>
#include <random>

#include <elf.h>
#include <gtest/gtest.h>

#include "runtime/cpu/llvm_compiler.h"
#include "runtime/cpu/loader.h"
#include "runtime/kernels.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

using Bytes = std::vector<std::byte>;

// A table of constants, a variable, and a function that calls another: every kind of section and symbol that
// there is.
constexpr const char* kAllKinds = R"(
@table = private constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 32
@count = internal global i64 100
@zeros = internal global [64 x i64] zeroinitializer, align 64
@pointer = internal global ptr @count
define internal i64 @entry_of(i64 %i) noinline {
  %a = getelementptr i64, ptr @table, i64 %i
  %v = load volatile i64, ptr %a
  ret i64 %v
}
define void @all_kinds(ptr %buffers, ptr %vars, i64 %thread, ptr %scratch) {
  %out = load ptr, ptr %buffers
  %v = call i64 @entry_of(i64 %thread)
  %p = load volatile ptr, ptr @pointer
  %c = load volatile i64, ptr %p
  %next = add i64 %c, 1
  store volatile i64 %next, ptr %p
  %z = load volatile i64, ptr @zeros
  %s0 = add i64 %v, %c
  %s1 = add i64 %s0, %z
  store i64 %s1, ptr %out
  ret void
}
)";

LlvmCompiler& compiler() {
  static auto* made = new LlvmCompiler;
  return *made;
}
const Bytes& all_kinds() {
  static const Bytes object = compiler().compile(kAllKinds);
  return object;
}

std::string message_of(const Bytes& object) {
  try {
    const ObjectFile file(object);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(ObjectFile, ConstantsDataAndCallsAreLinked) {
  const ObjectFile file(all_kinds());
  EXPECT_GE(file.data().bytes, 64 * 8U);
  EXPECT_GE(file.data().alignment, 64U);
  const LoadedKernel kernel = load_kernel(all_kinds(), "all_kinds");
  int64_t out = 0;
  void* buffers[] = {&out};
  kernel(buffers, nullptr, 2, nullptr);
  EXPECT_EQ(out, 107);
  kernel(buffers, nullptr, 3, nullptr);
  EXPECT_EQ(out, 112) << "the count it keeps has grown";
  const LoadedKernel another = load_kernel(all_kinds(), "all_kinds");
  another(buffers, nullptr, 0, nullptr);
  EXPECT_EQ(out, 103) << "each load has data of its own";
}

TEST(ObjectFile, AFunctionMustBeThere) {
  EXPECT_THROW(load_kernel(all_kinds(), "nonsense"), DeviceError);
  EXPECT_THROW(load_kernel(all_kinds(), "count"), DeviceError) << "data is no function";
}

TEST(ObjectFile, UndefinedSymbolsAreNamed) {
  try {
    compiler().compile(
        "declare void @memcpy_of_ours(ptr)\ndeclare i32 @puts(ptr)\n"
        "define void @f(ptr %b, ptr %v, i64 %t, ptr %s) {\n"
        "  call void @memcpy_of_ours(ptr %b)\n  call i32 @puts(ptr %b)\n  call i32 @puts(ptr %b)\n"
        "  ret void\n}\n");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "[load] object file: needs what it does not define: memcpy_of_ours, puts");
  }
}

TEST(ObjectFile, LoopsDoNotBecomeCallsOfTheLibrary) {
  // Loops that are memset and memcpy by any other name.
  for (const char* passes : {"default<O3>", "function(loop(loop-idiom))"}) {
    LlvmCompiler eager({.passes = passes, .level = 3});
    eager.compile(
        "define void @f(ptr %b, ptr %v, i64 %n, ptr %s) {\nentry:\n  br label %loop\nloop:\n"
        "  %i = phi i64 [0, %entry], [%j, %loop]\n  %p = getelementptr i32, ptr %b, i64 %i\n"
        "  %q = getelementptr i32, ptr %s, i64 %i\n  store i32 0, ptr %p\n  %x = load i32, ptr %v\n"
        "  store i32 7, ptr %q\n  %j = add i64 %i, 1\n  %c = icmp ult i64 %j, %n\n"
        "  br i1 %c, label %loop, label %done\ndone:\n  ret void\n}\n");
  }
}

TEST(ObjectFile, WhatIsNoObjectIsRefused) {
  EXPECT_NE(message_of({}).find("the header lies outside"), std::string::npos);
  EXPECT_NE(message_of(Bytes(1000)).find("not an ELF file"), std::string::npos);
  Bytes shared = all_kinds();
  shared[offsetof(Elf64_Ehdr, e_type)] = std::byte{ET_DYN};
  EXPECT_NE(message_of(shared).find("not relocatable"), std::string::npos);
  Bytes other = all_kinds();
  other[offsetof(Elf64_Ehdr, e_machine)] = std::byte{EM_RISCV};
  EXPECT_NE(message_of(other).find("for machine 243"), std::string::npos);
}

// Reads an object and links it into memory of exactly the size it asks for, where a sanitizer sees every byte
// too far.
void read_and_link(const Bytes& object) {
  const ObjectFile file(object);
  constexpr size_t kEnough = size_t{1} << 20;
  if (file.code().bytes > kEnough || file.data().bytes > kEnough) return;
  Bytes code(file.code().bytes), data(file.data().bytes);
  file.link({.memory = code.data(), .address = 0x10000}, {.memory = data.data(), .address = 0x200000});
  file.find("all_kinds");
}

TEST(ObjectFile, TruncatedObjectsAreRefusedOrHarmless) {
  const Bytes whole = all_kinds();
  for (size_t bytes = 0; bytes < whole.size(); bytes++) {
    try {
      read_and_link(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
    } catch (const DeviceError&) {
    }
  }
}

TEST(ObjectFile, CorruptObjectsAreRefusedOrHarmless) {
  std::mt19937_64 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const uint64_t interesting[] = {0,          1,          0x7f,       0xff,       0xfff1,
                                  0xffff,     0x7fffffff, 0xffffffff, 1ULL << 32, 1ULL << 40,
                                  1ULL << 63, UINT64_MAX, 64,         4096};
  const Bytes whole = all_kinds();
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  int refused = 0, accepted = 0;
  constexpr int kRounds = 30000;
  for (int round = 0; round < kRounds; round++) {
    Bytes object = whole;
    for (size_t edits = 1 + below(3); edits > 0; edits--) {
      // Half of the edits go into the tables that say where everything is.
      const size_t tables = header.e_shoff;
      const size_t at = below(2) == 0 ? below(object.size()) : tables + below(object.size() - tables);
      const uint64_t value = below(2) == 0 ? random() : interesting[below(std::size(interesting))];
      const size_t width = std::min(size_t{1} << below(4), object.size() - at);
      std::memcpy(object.data() + at, &value, width);
    }
    try {
      read_and_link(object);
      accepted++;
    } catch (const DeviceError&) {
      refused++;
    }
  }
  EXPECT_EQ(refused + accepted, kRounds);
  EXPECT_GT(refused, kRounds / 20);
  EXPECT_GT(accepted, kRounds / 20);
}

// --- aarch64, linked here and read back
// ------------------------------------------------------------------------------

uint32_t word_at(const Bytes& code, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, code.data() + offset, 4);
  return word;
}

// The address that an ADRP and the instruction after it that uses its register make up, relative to the code.
uint64_t address_of_pair(const Bytes& code, size_t offset, uint64_t base) {
  const uint32_t adrp = word_at(code, offset);
  const uint64_t immediate = ((adrp >> 29) & 3) | (((adrp >> 5) & 0x7ffff) << 2);
  const auto pages = static_cast<int64_t>(immediate << 43) >> 43;  // 21 bits, signed
  const uint32_t next = word_at(code, offset + 4);
  const bool add = (next & 0xff800000) == 0x91000000;
  const uint32_t scale =
      add ? 0 : (next >> 30) + ((next & 0x04800000) == 0x04800000 ? 4 : 0);  // LDR q: 16 bytes
  return ((base + offset) & ~uint64_t{0xfff}) + static_cast<uint64_t>(pages * 4096) +
         (static_cast<uint64_t>((next >> 10) & 0xfff) << scale);
}

TEST(ObjectFile, Aarch64IsLinked) {
  LlvmCompiler arm({.triple = "aarch64-linux-gnu", .cpu = "generic"});
  const Bytes object = arm.compile(
      "define internal void @callee(ptr %p) noinline {\n  store volatile i64 1, ptr %p\n  ret void\n}\n"
      "define void @f(ptr %b, ptr %v, i64 %t, ptr %s) {\n"
      "  store <4 x i32> <i32 11, i32 22, i32 33, i32 44>, ptr %b\n  call void @callee(ptr %b)\n  ret "
      "void\n}\n");
  EXPECT_THROW(ObjectFile(object, ObjectFile::Machine::X86_64), DeviceError);
  const ObjectFile file(object, ObjectFile::Machine::Aarch64);
  Bytes code(file.code().bytes);
  constexpr uint64_t kBase = 0x7f0000403000;
  file.link({.memory = code.data(), .address = kBase}, {});
  bool constants = false, call = false;
  for (size_t at = 0; at + 8 <= code.size(); at += 4) {
    const uint32_t word = word_at(code, at);
    if ((word & 0x9f000000) == 0x90000000) {
      const uint64_t target = address_of_pair(code, at, kBase) - kBase;
      ASSERT_LE(target + 16, code.size());
      EXPECT_EQ(word_at(code, target), 11U);
      EXPECT_EQ(word_at(code, target + 12), 44U);
      constants = true;
    }
    if ((word & 0xfc000000) == 0x94000000) {
      const auto distance = static_cast<int64_t>(static_cast<uint64_t>(word) << 38) >> 36;
      EXPECT_EQ(at + static_cast<uint64_t>(distance), 0U) << "callee is first";
      call = true;
    }
  }
  EXPECT_TRUE(constants);
  EXPECT_TRUE(call);
}

}  // namespace
}  // namespace pg::runtime
