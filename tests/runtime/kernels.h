// Kernels as LLVM IR text, the size and shape of what the renderer will write: an elementwise add, a register
// tile of a matrix product and a reduction. Tests run them and benchmarks time how long they take to compile.
#pragma once

#include <string>

#include <fmt/format.h>

namespace pg::kernels {

inline std::string ir_begin(const std::string& name, int buffers) {
  std::string text =
      fmt::format("define void @{}(ptr %buffers, ptr %vars, i64 %thread, ptr %scratch) {{\nentry:\n", name);
  for (int i = 0; i < buffers; i++) {
    text += fmt::format(
        "  %slot{0} = getelementptr ptr, ptr %buffers, i64 {0}\n  %p{0} = load ptr, ptr %slot{0}\n", i);
  }
  return text;
}

/// out[i] = a[i] + b[i] for the thread's `chunk` floats, 64 at a time; chunk is a multiple of 64.
inline std::string ir_add(const std::string& name, int64_t chunk) {
  std::string text = ir_begin(name, 3);
  text += fmt::format("  %first = mul i64 %thread, {}\n  br label %loop\n", chunk);
  text += "loop:\n  %i = phi i64 [0, %entry], [%next, %loop]\n  %base = add i64 %first, %i\n";
  for (int u = 0; u < 4; u++) {
    text += fmt::format("  %o{0} = add i64 %base, {1}\n", u, u * 16);
    for (const char* buffer : {"1", "2"}) {
      text += fmt::format(
          "  %a{1}_{0} = getelementptr float, ptr %p{1}, i64 %o{0}\n"
          "  %v{1}_{0} = load <16 x float>, ptr %a{1}_{0}, align 4\n",
          u, buffer);
    }
    text += fmt::format(
        "  %s{0} = fadd <16 x float> %v1_{0}, %v2_{0}\n  %w{0} = getelementptr float, ptr %p0, i64 %o{0}\n"
        "  store <16 x float> %s{0}, ptr %w{0}, align 4\n",
        u);
  }
  text += fmt::format(
      "  %next = add i64 %i, 64\n  %more = icmp ult i64 %next, {}\n"
      "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n",
      chunk);
  return text;
}

/// C(rows, 32) = A(rows, k) @ B(k, 32), row-major, as one tile of rows x 2 vectors: rows * 2 accumulators.
inline std::string ir_tile(const std::string& name, int rows, int64_t k) {
  std::string text = ir_begin(name, 3);
  text += "  br label %loop\nloop:\n  %i = phi i64 [0, %entry], [%next, %loop]\n";
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < 2; c++) {
      text += fmt::format(
          "  %acc{0}_{1} = phi <16 x float> [zeroinitializer, %entry], [%sum{0}_{1}, %loop]\n", r, c);
    }
  }
  text +=
      "  %row = mul i64 %i, 32\n  %b0 = getelementptr float, ptr %p2, i64 %row\n  %x0 = load <16 x float>, "
      "ptr %b0, align 4\n"
      "  %b1 = getelementptr float, ptr %b0, i64 16\n  %x1 = load <16 x float>, ptr %b1, align 4\n";
  for (int r = 0; r < rows; r++) {
    text += fmt::format(
        "  %ao{0} = add i64 %i, {1}\n  %ap{0} = getelementptr float, ptr %p1, i64 %ao{0}\n"
        "  %av{0} = load float, ptr %ap{0}, align 4\n"
        "  %ai{0} = insertelement <16 x float> poison, float %av{0}, i64 0\n"
        "  %as{0} = shufflevector <16 x float> %ai{0}, <16 x float> poison, <16 x i32> zeroinitializer\n",
        r, r * k);
    for (int c = 0; c < 2; c++) {
      text += fmt::format(
          "  %sum{0}_{1} = call <16 x float> @llvm.fma.v16f32(<16 x float> %as{0}, <16 x float> %x{1}, "
          "<16 x float> %acc{0}_{1})\n",
          r, c);
    }
  }
  text += fmt::format(
      "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, {}\n"
      "  br i1 %more, label %loop, label %done\ndone:\n",
      k);
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < 2; c++) {
      text += fmt::format(
          "  %c{0}_{1} = getelementptr float, ptr %p0, i64 {2}\n"
          "  store <16 x float> %sum{0}_{1}, ptr %c{0}_{1}, align 4\n",
          r, c, r * 32 + c * 16);
    }
  }
  text += "  ret void\n}\ndeclare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)\n";
  return text;
}

/// out[thread] = sum of the thread's row of n floats, in four vector accumulators kept in memory, as a
/// renderer writes them.
inline std::string ir_sum(const std::string& name, int64_t n) {
  std::string text = ir_begin(name, 2);
  for (int u = 0; u < 4; u++) {
    text +=
        fmt::format("  %m{0} = alloca <16 x float>\n  store <16 x float> zeroinitializer, ptr %m{0}\n", u);
  }
  text += fmt::format("  %first = mul i64 %thread, {}\n  br label %loop\n", n);
  text += "loop:\n  %i = phi i64 [0, %entry], [%next, %loop]\n  %base = add i64 %first, %i\n";
  for (int u = 0; u < 4; u++) {
    text += fmt::format(
        "  %o{0} = add i64 %base, {1}\n  %a{0} = getelementptr float, ptr %p1, i64 %o{0}\n"
        "  %v{0} = load <16 x float>, ptr %a{0}, align 4\n  %l{0} = load <16 x float>, ptr %m{0}\n"
        "  %s{0} = fadd <16 x float> %l{0}, %v{0}\n  store <16 x float> %s{0}, ptr %m{0}\n",
        u, u * 16);
  }
  text += fmt::format(
      "  %next = add i64 %i, 64\n  %more = icmp ult i64 %next, {}\n"
      "  br i1 %more, label %loop, label %done\ndone:\n",
      n);
  for (int u = 0; u < 4; u++) text += fmt::format("  %f{0} = load <16 x float>, ptr %m{0}\n", u);
  text +=
      "  %t0 = fadd <16 x float> %f0, %f1\n  %t1 = fadd <16 x float> %f2, %f3\n  %t2 = fadd <16 x float> "
      "%t0, %t1\n"
      "  %total = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, <16 x float> %t2)\n"
      "  %w = getelementptr float, ptr %p0, i64 %thread\n  store float %total, ptr %w, align 4\n  ret "
      "void\n}\n"
      "declare float @llvm.vector.reduce.fadd.v16f32(float, <16 x float>)\n";
  return text;
}

}  // namespace pg::kernels
