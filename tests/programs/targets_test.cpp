// Code for machines with less than this one: what they lack is done otherwise, with the same values and
// without a call.
#include "programs/cases.h"
#include "runtime/cpu/llvm_compiler.h"

namespace pg::test {
namespace {

// SSE4.1 alone: no masks, no conversions of f16, no fused multiply-add.
Target plain() {
  Target t = Target::host_cpu();
  t.computes.remove(f16);
  t.converts = {};
  t.ops = t.ops - OpSet{Op::MulAcc, Op::DotBytes};
  t.vector_bytes = 16;
  t.masked_bytes = t.gather_bytes = 0;
  return t;
}
// AVX2 with F16C and FMA.
Target middle() {
  Target t = plain();
  t.converts = {f16};
  t.ops.add(Op::MulAcc);
  t.vector_bytes = 32;
  t.masked_bytes = t.gather_bytes = 4;
  return t;
}

TEST(Targets, WhatAMachineLacksIsDoneOtherwise) {
  GraphScope scope;
  for (DType t : {f16, bf16, f32, f64, i64, boolean})
    for (int lanes : {1, 16}) {
      SCOPED_TRACE(name(t));
      Case c = all_casts(t, lanes);
      expect_all(c.linear, c.buffers, c.expected, {}, false, plain());
    }
  Case c = all_ops(f32, 8, plain());
  expect_all(c.linear, c.buffers, c.expected, {}, false, plain());
}

// A vector under a gate of its own and one of one bool, a gather and a scatter.
Ref accesses(DType t) {
  Builder p;
  Ref i = p.loop(4), first = i * 8, lane = splat(first, 8) + p.iota(8), on = first < p.scalar(0);
  Ref in = p.param(0, t, 32), out = p.param(1, t, 32);
  Ref index = p.load(p.at(p.param(2, i64, 32), first), 8);
  p.store(p.at(out, first, lane < 30), p.load(p.at(in, first, lane < 30), 8));
  p.store(p.at(out, first, on), p.load(p.at(in, first, on), 8));
  p.store(p.at(out, index, index < 32), p.load(p.at(in, index, index < 32)));
  p.store(p.at(out, index), p.load(p.at(in, index)));
  p.end();
  return p.linear();
}

TEST(Targets, NothingBecomesACall) {
  GraphScope scope;
  struct Machine {
    const char* cpu;
    Target target;
  };
  // Compiling fails if the object needs a symbol.
  for (const auto& [cpu, target] :
       {Machine{"x86-64-v2", plain()}, Machine{"haswell", middle()}, Machine{"skylake-avx512", middle()}}) {
    SCOPED_TRACE(cpu);
    runtime::LlvmCompiler compiler({.triple = "x86_64-linux-gnu", .cpu = cpu});
    for (DType t : {boolean, i8, u16, i32, u64, f16, bf16, f32, f64})
      for (int lanes : {1, 16}) {
        SCOPED_TRACE(name(t));
        for (Ref linear : {all_ops(t, lanes, target).linear, all_casts(t, lanes).linear, accesses(t)})
          EXPECT_NO_THROW(compiler.compile(render_llvm(linear, program_info(linear, "k", target), target)));
      }
  }
}

TEST(Targets, WhatShouldHaveBeenDecomposedIsRefused) {
  GraphScope scope;
  Target target = plain();
  auto program = [](Op op, DType t) {
    Builder p;
    Ref x = p.load(p.at(p.param(0, t, 1), int_const(i64, 0)));
    Ref s[3] = {x, x, x};
    p.store(p.at(p.param(0, t, 1), int_const(i64, 0)),
            alu(op, std::span<const Ref>(s, static_cast<std::size_t>(info(op).nsrc))));
    return p.linear();
  };
  for (auto [op, t] : {std::pair(Op::MulAcc, f32), std::pair(Op::Exp, f32), std::pair(Op::Add, bf16),
                       std::pair(Op::Threefry, u64)}) {
    Ref linear = program(op, t);
    EXPECT_THROW(render_llvm(linear, program_info(linear, "k", target), target), InternalError)
        << info(op).name;
    EXPECT_THROW(render_c(linear, program_info(linear, "k", target), target), InternalError) << info(op).name;
  }
}

// What a person sees: names that lead from one language to the other.
TEST(Targets, TextOfAKernel) {
  GraphScope scope;
  Builder p;
  Ref i = p.loop(p.scalar(0, i64, 1, 64)), x = p.load(p.at(p.param(1, f32, 64), i));
  p.store(p.at(p.param(0, f32, 64), i), max(x, float_const(f32, 0)));
  p.end();
  ProgramInfo info = program_info(p.linear(), "e_64", plain());
  EXPECT_EQ(info.buffers, 2);
  EXPECT_EQ(info.scalars, 1);
  std::string ir = render_llvm(p.linear(), info, plain());
  EXPECT_NE(ir.find(R"(loop1:
  %i1 = phi i64 [ 0, %begin ], [ %i1.next, %turn1 ]
  %v4 = getelementptr inbounds float, ptr %v3, i64 %i1
  %v5 = load float, ptr %v4, align 4
  %v6 = fcmp ogt float 0x0000000000000000, %v5
  %v7 = select i1 %v6, float 0x0000000000000000, float %v5
  %v8 = fadd float %v7, 0x0000000000000000
)"),
            std::string::npos)
      << ir;
  std::string c = render_c(p.linear(), info, plain());
  EXPECT_NE(c.find(R"(
void e_64(void* const* buffers, const i64* vars, i64 thread, void* scratch) {
  i64 v0 = vars[0];
  f32_m* p1 = buffers[1];
  f32_m* p0 = buffers[0];
  LOOP for (i64 k0 = 0; k0 < v0; ++k0) {
    f32 v1 = p1[k0];
    u8 v2 = ((f32)0x0p+0f) > v1;
    f32 v3 = v2 ? ((f32)0x0p+0f) : v1;
    f32 v4 = (f32)(v3 + ((f32)0x0p+0f));
    p0[k0] = v4;
  }
}
)"),
            std::string::npos)
      << c;
}

}  // namespace
}  // namespace pg::test
