// Text to object code, in process and through clang: it runs, it fails in words, and many threads may do it.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "runtime/cpu/clang_compiler.h"
#include "runtime/cpu/llvm_compiler.h"
#include "runtime/cpu/loader.h"
#include "runtime/kernels.h"
#include "runtime/sanitizers.h"
#include <pangrad/error.h>

#if PG_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace pg::runtime {
namespace {

LlvmCompiler& llvm() {
  static auto* made = new LlvmCompiler;
  return *made;
}

template <class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(LlvmCompiler, CompiledKernelsCompute) {
  std::vector<float> a(256), b(256), out(256);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i), b[i] = 1000;
  const LoadedKernel add = load_kernel(llvm().compile(kernels::ir_add("add", 128)), "add");
  void* buffers[] = {out.data(), a.data(), b.data()};
  add(buffers, nullptr, 0, nullptr);
  add(buffers, nullptr, 1, nullptr);
  for (size_t i = 0; i < a.size(); i++) EXPECT_EQ(out[i], a[i] + 1000);

  constexpr size_t kRows = 14, kDepth = 32;
  std::vector<float> left(kRows * kDepth), right(kDepth * 32), product(kRows * 32);
  for (size_t i = 0; i < left.size(); i++) left[i] = static_cast<float>(i % 7);
  for (size_t i = 0; i < right.size(); i++) right[i] = static_cast<float>(i % 5);
  const LoadedKernel tile = load_kernel(llvm().compile(kernels::ir_tile("tile", kRows, kDepth)), "tile");
  void* tiles[] = {product.data(), left.data(), right.data()};
  tile(tiles, nullptr, 0, nullptr);
  for (size_t r = 0; r < kRows; r++) {
    for (size_t c = 0; c < 32; c++) {
      float sum = 0;
      for (size_t k = 0; k < kDepth; k++) sum += left[r * kDepth + k] * right[k * 32 + c];
      EXPECT_EQ(product[r * 32 + c], sum);
    }
  }

  const LoadedKernel sum = load_kernel(llvm().compile(kernels::ir_sum("sum", 256)), "sum");
  void* sums[] = {out.data(), a.data()};
  sum(sums, nullptr, 0, nullptr);
  EXPECT_EQ(out[0], 255 * 128);
}

TEST(LlvmCompiler, MistakesInTheTextAreReported) {
  const std::string message = message_of([] { llvm().compile("define void @f() {\n  ret i32 %x\n}\n"); });
  EXPECT_NE(message.find("[compile] LLVM: "), std::string::npos) << message;
  EXPECT_NE(message.find("ret i32 %x"), std::string::npos) << message;
  const std::string unverified = message_of([] {
    llvm().compile(
        "define void @f(i32 %x) {\nentry:\n  br label %b\nb:\n  %p = phi i32 [%x, %entry], [%x, %b2]\n"
        "  ret void\nb2:\n  ret void\n}\n");
  });
  EXPECT_NE(unverified.find("PHI"), std::string::npos) << unverified;
}

TEST(LlvmCompiler, WhatLlvmCallsFatalIsAnErrorAndTheProcessGoesOn) {
  LlvmCompiler plain({.cpu = "x86-64", .features = "-avx"});
  // An instruction this CPU does not have.
  const char* text =
      "declare <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float>)\n"
      "define void @f(ptr %p) {\n  %x = load <8 x float>, ptr %p\n"
      "  %y = call <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float> %x)\n"
      "  store <8 x float> %y, ptr %p\n  ret void\n}\n";
#if PG_ASAN
  const __lsan::ScopedDisabler lost;  // LLVM's memory goes with the compile it gave up
#endif
  for (int i = 0; i < 3; i++) {
    const std::string message = message_of([&] { plain.compile(text); });
    EXPECT_EQ(message.find("[compile] LLVM: "), 0U) << message;
  }
  EXPECT_FALSE(plain.compile("define void @f() {\n  ret void\n}\n").empty());
}

TEST(LlvmCompiler, BadInlineAssemblyIsAnError) {
  const std::string message = message_of([] {
    llvm().compile(
        "define void @f() {\n  call void asm sideeffect \"no such instruction\", \"\"()\n  ret void\n}\n");
  });
  EXPECT_NE(message.find("[compile] LLVM: "), std::string::npos) << message;
}

TEST(LlvmCompiler, OptionsAreChecked) {
  const auto refused = [](const LlvmOptions& options) {
    return message_of([&] { LlvmCompiler(options).compile(""); });
  };
  EXPECT_NE(refused({.triple = "vax-dec-vms"}).find("vax"), std::string::npos);
  EXPECT_NE(refused({.passes = "function(nonsense)"}).find("nonsense"), std::string::npos);
  EXPECT_NE(refused({.level = 7}).find("level 7"), std::string::npos);
}

TEST(LlvmCompiler, TheKeySaysWhatDecidesTheOutput) {
  const std::string key = llvm().key();
  EXPECT_EQ(LlvmCompiler().key(), key);
  EXPECT_EQ(key.find("native"), std::string::npos) << "another machine must not find this one's code";
  EXPECT_NE(LlvmCompiler({.level = 1}).key(), key);
  EXPECT_NE(LlvmCompiler({.passes = "function(sroa)"}).key(), key);
  EXPECT_NE(LlvmCompiler({.cpu = "x86-64"}).key(), key);
}

TEST(LlvmCompiler, AKeyNeedsNoLlvmAndItsAbsenceSaysWhereItWasLookedFor) {
  const ScopedFlag elsewhere("PANGRAD_LLVM", "/no/such/folder/libpangrad_llvm.so");
  EXPECT_NE(LlvmCompiler().key(), "");
  EXPECT_EQ(llvm_version().substr(0, 2), "19") << "what is open stays open";
}

TEST(LlvmCompiler, TextForPeople) {
  const std::string text = kernels::ir_sum("sum", 256);
  EXPECT_NE(llvm().disassemble(text).find("sum:"), std::string::npos);
  EXPECT_EQ(llvm().optimized(text).find("alloca"), std::string::npos) << "accumulators are in registers";
}

TEST(LlvmCompiler, ThreadsMayCompileAtOnce) {
  const std::vector<std::byte> expected = llvm().compile(kernels::ir_add("add", 1024));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; i++) {
        llvm().compile(kernels::ir_tile("tile", 4 + t, 64));
        EXPECT_EQ(llvm().compile(kernels::ir_add("add", 1024)), expected)
            << "and the output is the same each time";
        EXPECT_THROW(llvm().compile("nonsense"), DeviceError);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr const char* kScaleInC =
    "void scale(void* const* buffers, const long* vars, long thread, void* scratch) {\n"
    "  float* out = buffers[0];\n  const float* in = buffers[1];\n"
    "  for (long i = 0; i < vars[0]; i++) out[thread * vars[0] + i] = in[thread * vars[0] + i] * 2.5f;\n}\n";

TEST(ClangCompiler, CompiledKernelsCompute) {
  ClangCompiler clang;
  const LoadedKernel scale = load_kernel(clang.compile(kScaleInC), "scale");
  std::vector<float> in{1, 2, 3, 4}, out(4);
  void* buffers[] = {out.data(), in.data()};
  const int64_t half = 2;
  scale(buffers, &half, 1, nullptr);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 7.5F, 10}));
  EXPECT_NE(clang.disassemble(kScaleInC).find("scale:"), std::string::npos);
  EXPECT_NE(clang.key().find("clang version"), std::string::npos);
}

TEST(ClangCompiler, WhatClangPrintsIsInTheMessage) {
  ClangCompiler clang;
  const std::string message = message_of([&] { clang.compile("void f(void) { return nonsense; }\n"); });
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
  EXPECT_NE(message.find("ended with status 1"), std::string::npos) << message;
}

TEST(ClangCompiler, CopiesOfTheLibraryAreNamed) {
  ClangCompiler clang;
  const std::string message = message_of([&] {
    clang.compile(
        "struct big { char bytes[5000]; };\n"
        "void f(void* const* b, const long* v, long t, void* s) {\n"
        "  *(struct big*)b[0] = *(struct big*)b[1];\n}\n");
  });
  EXPECT_EQ(message, "[load] object file: needs what it does not define: memcpy");
}

TEST(ClangCompiler, WithoutClangTheErrorSaysWhatWasTried) {
  const std::string before = std::getenv("PATH");
  setenv("PATH", "/no/such/folder", 1);
  const ScopedFlag cc("CC", "/bin/sh");
  const std::string message = message_of([] { ClangCompiler clang; });
  setenv("PATH", before.c_str(), 1);
  EXPECT_NE(message.find("kernels in C need clang"), std::string::npos) << message;
  EXPECT_NE(message.find("/bin/sh is not clang"), std::string::npos) << message;
  EXPECT_NE(message.find("clang-19"), std::string::npos) << message;
}

}  // namespace
}  // namespace pg::runtime
