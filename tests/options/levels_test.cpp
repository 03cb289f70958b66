// Code for machines that are not this one: each level of x86-64, run here where this machine has it, and
// NEON, compiled and read.
#include <array>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "codegen/choose.h"
#include "codegen/compile.h"
#include "programs/run.h"
#include "render/program.h"
#include "runtime/cpu/llvm_compiler.h"

namespace pg::codegen {
namespace {

using test::Array;

Ref read(Ref p, Ref at) { return make(Op::Load, p.dtype(), {make(Op::Index, p.dtype(), {p, at})}); }
Ref sized(std::int64_t slot, DType t, std::int64_t n) {
  return param(slot, t, shape_node(Dims(std::array{n})));
}

Ref product(std::int64_t m, std::int64_t n, std::int64_t k, DType t) {
  Ref i = range(0, RangeKind::Loop, idx(m)), j = range(1, RangeKind::Loop, idx(n)),
      l = range(2, RangeKind::Reduce, idx(k));
  DType out = is_float(t) ? f32 : i32;
  Ref p0 = sized(0, out, m * n), p1 = sized(1, t, m * k), p2 = sized(2, t, k * n);
  Ref sum = make(Op::Reduce, out, {cast(read(p1, i * k + l), out) * cast(read(p2, l * n + j), out), l},
                 reduce_arg(Op::Add));
  Ref stored = make(Op::Store, DType::Void, {make(Op::Index, out, {p0, i * n + j}), sum});
  return sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
}

Ref elementwise(std::int64_t n) {
  Ref i = range(0, RangeKind::Loop, idx(n)), p0 = sized(0, f32, n), p1 = sized(1, f32, n),
      p2 = sized(2, f32, n);
  Ref stored = make(Op::Store, DType::Void,
                    {make(Op::Index, f32, {p0, i}), (read(p1, i) + float_const(f32, 3)) * read(p2, i)});
  return sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i})});
}

std::string text_of(Ref kernel, const Target& target) {
  Ref linear = lower(kernel, target).linear;
  return render_llvm(linear, program_info(linear, "k", target), target);
}

// What the kernel compiled for the level gives here, and what it gives on the interpreter.
void expect_same(Ref kernel, const char* level, std::array<std::size_t, 3> sizes, DType in) {
  Target target = Target::cpu(level);
  std::mt19937 random(3);
  std::vector<Array> buffers;
  for (std::size_t b = 0; b < 3; ++b) {
    std::vector<double> values;
    for (std::size_t i = 0; i < sizes[b]; ++i) values.push_back(static_cast<double>(random() % 17) - 8);
    buffers.push_back(Array::of(b ? in : is_float(in) ? f32 : i32, values));
  }
  auto result = [&](const test::Backend::Run& run) {
    test::Memories memories;
    for (const Array& a : buffers) memories.push_back(std::make_unique<test::GuardedMemory>(a, false));
    run(memories, {});
    Array out = buffers[0];
    memories[0]->read(out);
    return out.bits;
  };
  Ref plain = lower_with(kernel, {}, target), chosen = lower(kernel, target).linear;
  rules::verify(chosen, rules::Stage::Program, level);
  auto expected = test::interp_backend().load(plain, program_info(plain, "k", target), target);
  runtime::LlvmCompiler compiler({.triple = "x86_64-linux-gnu", .cpu = level});
  runtime::Device& cpu = runtime::device("CPU");
  ProgramInfo info = program_info(chosen, "k", target);
  auto program = cpu.load({compiler.compile(render_llvm(chosen, info, target)), test::signature_of(info)});
  auto compiled = [&](const test::Memories& memories, const std::vector<std::int64_t>&) {
    std::vector<runtime::Buffer> all;
    for (auto& m : memories) all.push_back(cpu.borrow(m->data(), m->bytes(), {}, true));
    cpu.wait(program->launch(all));
  };
  EXPECT_EQ(result(compiled), result(expected)) << level << " " << name(in);
}

TEST(Levels, OfX86GiveTheSameValues) {
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    // What a machine of the level has, this one has too.
    if (Target::cpu(level).vector_bytes > Target::host_cpu().vector_bytes) {
      std::printf("this machine is below %s: not run\n", level);
      continue;
    }
    GraphScope scope;
    for (DType t : {f32, f16, bf16, i8})
      expect_same(product(37, 50, 29, t), level, {37 * 50, 37 * 29, 29 * 50}, t);
    expect_same(elementwise(1003), level, {1003, 1003, 1003}, f32);
  }
}

// Lines of the loop around the most instructions of a kind.
std::vector<std::string> hottest_loop(const std::string& assembly, const std::regex& kind) {
  std::vector<std::string> lines, best;
  std::size_t most = 0;
  std::map<std::string, std::size_t> labels;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_search(line, m, std::regex(R"(^([.\w$]+):)"))) labels[m[1]] = lines.size();
    lines.push_back(line);
    if (!std::regex_search(line, m, std::regex(R"(^\s+b\.?\w*\s+([.\w$]+))")) || !labels.contains(m[1]))
      continue;
    std::vector<std::string> body(lines.begin() + static_cast<std::ptrdiff_t>(labels[m[1]]), lines.end());
    auto count = static_cast<std::size_t>(std::count_if(
        body.begin(), body.end(), [&](const std::string& l) { return std::regex_search(l, kind); }));
    if (count > most) most = count, best = body;
  }
  return best;
}

TEST(Levels, NeonHasItsVectorsInTheLoop) {
  GraphScope scope;
  Target target = Target::cpu("aarch64");
  runtime::LlvmCompiler compiler({.triple = "aarch64-linux-gnu", .cpu = "generic"});
  const std::regex fma(R"(\bfmla\s+v\d+\.4s)"), add(R"(\bfadd\s+v\d+\.4s)"),
      scalar(R"(\bf(madd|mul|add)\s+s\d+)"), spill(R"(\[sp)");
  auto count = [](const std::vector<std::string>& lines, const std::regex& kind) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& l) { return std::regex_search(l, kind); });
  };
  std::vector<std::string> loop =
      hottest_loop(compiler.disassemble(text_of(product(256, 256, 256, f32), target)), fma);
  EXPECT_GE(count(loop, fma), 16) << "the tile is in registers";
  EXPECT_EQ(count(loop, scalar), 0);
  EXPECT_EQ(count(loop, spill), 0);
  loop = hottest_loop(compiler.disassemble(text_of(elementwise(4096), target)), add);
  EXPECT_GE(count(loop, add), 1);
  EXPECT_EQ(count(loop, scalar), 0);
  EXPECT_NO_THROW(compiler.compile(text_of(product(64, 64, 64, f16), target)));
  EXPECT_NO_THROW(compiler.compile(text_of(product(64, 64, 64, i8), target)));
}

TEST(Levels, OthersAreRefused) { EXPECT_THROW(Target::cpu("x86-64-v9"), ValueError); }

}  // namespace
}  // namespace pg::codegen
