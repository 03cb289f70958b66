// The specs: what each stage allows, what it refuses, and that the refusal names the culprit. Cases are
// written as text; more of them stand in tests/text/spec.txt.
#include "rules/spec.h"

#include <gtest/gtest.h>

#include "base/flags.h"
#include "ir/build.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace pg::rules {
namespace {

struct Storage final : Payload {
  std::string text() const override { return "#buffer1"; }
};

std::string refusal(Ref root, Stage stage) {
  try {
    verify(root, stage, "test");
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}
std::string refusal(std::string_view text, Stage stage) {
  GraphScope scope;
  return refusal(parse(text), stage);
}

constexpr std::string_view kKernel = R"(
  p0 = Param.f32[0]((8,))
  p1 = Param.f32[1]((32,))
  r0 = Range[0, loop](8)
  r1 = Range[1, reduce](4)
  v0 = Reduce[Add](Load(Index(p1, r0*4 + r1)), r1)
  v1 = Store(Index(p0, r0), v0 + 1.0)
  Sink(End(v1, r0)))";

constexpr std::string_view kProgram = R"(
  p0 = Param.f32[0]((32,))
  r0 = Range[0, loop](4:i32)
    v0 = r0*8
    v1 = Index.f32x8(p0, v0)
    v2 = Load(v1)
    v3 = 1.0:f32x8
    v4 = v2 + v3
    v5 = Store(v1, v4)
  v6 = End(v5, r0)
  Linear(p0, 8:i32, r0, v0, v1, v2, v3, v4, v5, v6))";

// The parser makes no such nodes; a pass with a bug might.
TEST(Spec, ANodeHasTheSourcesItsOpTakes) {
  GraphScope scope;
  for (Op op : {Op::EndIf, Op::If, Op::Splat, Op::Range, Op::Extract, Op::Special}) {
    Ref list = intern(Op::Linear, DType::Void, 1, {{intern(op, DType::Void, 1, {})}});
    EXPECT_NE(refusal(list, Stage::Program).find("takes 1 sources, not 0"), std::string::npos)
        << info(op).name;
  }
  Ref end = intern(Op::EndIf, DType::Void, 1, {{bool_const(true)}});
  EXPECT_NE(refusal(intern(Op::Linear, DType::Void, 1, {{end}}), Stage::Program).find("it ends an If"),
            std::string::npos);
}

TEST(Spec, WhatIsRightPasses) {
  EXPECT_EQ(refusal(kKernel, Stage::Kernel), "");
  EXPECT_EQ(refusal(kProgram, Stage::Program), "");
  EXPECT_EQ(refusal(R"(
    d = Device["CPU"]
    x = Param.f32[0]((4, 8), d)
    y = Reduce[Max, 1](Permute[1, 0](x) * 2.0)
    w = After(x, Store(Shrink(x, (2, 8), (1, 0)), Expand(1.0:f32, (2, 8))))
    Sink(Cat[1](y, y), w, Arange.i32((4,))))",
                    Stage::Call),
            "");
  EXPECT_EQ(refusal(R"(
    n = Var["n"](1, 10)
    a = Expand(1.0:f32, (n, 8))
    b = Pad(a, (n + 2, 8), (1, 0))
    b + Cast.f32(Bind(n, 4)))",
                    Stage::Tensor),
            "");
}

TEST(Spec, ARefusalNamesTheNodeWithWhatItStandsOnAndWhoUsesIt) {
  EXPECT_EQ(
      refusal("r0 = Range[0, loop](8)\np0 = Param.f32[0]((8,))\nSink(End(Store(Index(p0, r0), 1:i32), r0))",
              Stage::Kernel),
      "[spec] test: a kernel graph may not hold this Store: it is Store(Index, value) of the type of the "
      "buffer\n"
      "p0 = Param.f32[0]((8,))\n"
      "r0 = Range[0, loop](8)\n"
      "Store(Index(p0, r0), 1:i32)\n"
      "used by End(Store(Index(.., ..), 1:i32), Range[0, loop](8))");
}

// Every elementwise op, with operands of its own kind and of another.
TEST(Spec, ElementwiseOpsTakeTheirDtypes) {
  GraphScope scope;
  for (int i = 0; i < kOpCount; ++i) {
    auto op = static_cast<Op>(i);
    if (!(info(op).flags & kElementwise) || op == Op::Cast || op == Op::Bitcast || op == Op::Where) continue;
    int takers = 0;
    for (DType t : {boolean, i32, u64, f32}) {
      Ref x = expand(int_const(t, 1), shape_node(Dims()));
      if (is_float(t)) x = float_const(t, 1);
      std::vector<Ref> srcs(static_cast<std::size_t>(info(op).nsrc), x);
      DType result = info(op).flags & kComparison ? boolean : t;
      bool ok = refusal(intern(op, result, 1, srcs), Stage::Tensor).empty();
      takers += ok;
      if (srcs.size() > 1) {
        srcs[1] = int_const(i16, 1);
        EXPECT_NE(refusal(intern(op, result, 1, srcs), Stage::Tensor), "") << info(op).name;
      }
      EXPECT_NE(refusal(intern(op, DType::WeakFloat, 1,
                               std::vector<Ref>(srcs.size(), float_const(DType::WeakFloat, 1))),
                        Stage::Tensor),
                "");
    }
    EXPECT_GE(takers, 1) << info(op).name;
  }
}

TEST(Spec, StorageNeedsAnObject) {
  GraphScope scope;
  std::int64_t size[] = {4};
  Ref shape = shape_node(Dims(size));
  Ref buffer = make(Op::Buffer, f32, {shape}, Arg{.p = object_payload(new Storage)});
  EXPECT_EQ(refusal(make(Op::Leaf, f32, {buffer}, Arg{.p = object_payload(new Storage)}), Stage::Tensor), "");
  EXPECT_NE(refusal(make(Op::Buffer, f32, {shape}, Arg{.p = nullptr}), Stage::Tensor), "");
  EXPECT_NE(refusal(sink(std::array<Ref, 1>{buffer}), Stage::Call), "");
}

TEST(Spec, AScheduleChecksItsKernelsAndTheirArguments) {
  std::string kernel(kKernel);
  kernel.replace(kernel.find("Sink("), 5, "k = Sink(");
  std::string arguments = "\nb = Param.f32[3]((8,)); a = Param.f32[2]((32,)); s = ScalarParam[0](1, 4)\n";
  EXPECT_EQ(refusal(kernel + arguments + "Linear(Call(k, b, a))", Stage::Schedule), "");
  EXPECT_EQ(
      refusal(kernel + arguments + "Linear(Call(k, b, a), Call(Copy[\"GPU\"](a), b, a))", Stage::Schedule),
      "");
  auto expect_in = [](std::string_view part, const std::string& whole) {
    EXPECT_NE(whole.find(part), std::string::npos) << whole;
  };
  expect_in("no argument for Param.f32[1]",
            refusal(kernel + arguments + "Linear(Call(k, b))", Stage::Schedule));
  expect_in("is given for", refusal(kernel + arguments + "Linear(Call(k, a, b))", Stage::Schedule));
  kernel.replace(kernel.find("v0 + 1.0"), 8, "1:i32");
  expect_in("this Store", refusal(kernel + arguments + "Linear(Call(k, b, a))", Stage::Schedule));
}

TEST(Spec, CheckObeysTheFlag) {
  GraphScope scope;
  Ref bad = intern(Op::Const, DType::Void, 1, {});
  {
    ScopedFlag off("SPEC", 0);
    EXPECT_NO_THROW(check(bad, Stage::Tensor, "off"));
    set_always_check(true);
    EXPECT_THROW(check(bad, Stage::Tensor, "on"), InternalError);
    set_always_check(false);
  }
  ScopedFlag on("SPEC", 1);
  EXPECT_THROW(check(bad, Stage::Tensor, "on"), InternalError);
}

TEST(Spec, StagesHaveNames) {
  for (Stage s : {Stage::Tensor, Stage::Call, Stage::Schedule, Stage::Kernel, Stage::Program})
    EXPECT_EQ(parse_stage(name(s)), s);
  EXPECT_THROW(parse_stage("stage"), ValueError);
}

}  // namespace
}  // namespace pg::rules
