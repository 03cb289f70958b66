// How graphs read as text. That the text means the same graph is tested in parse_test.cpp.
#include "ir/print.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/parse.h"

namespace pg {
namespace {

Ref shape_of_sizes(std::initializer_list<std::int64_t> sizes) {
  return shape_node(Dims(sizes.begin(), sizes.size()));
}

struct Kernel {
  GraphScope scope;
  Ref p0 = param(0, f32, shape_of_sizes({32}));
  Ref r0 = range(0, RangeKind::Global, idx(8)), r1 = range(1, RangeKind::Reduce, idx(4));
  Ref load(Ref offset) { return make(Op::Load, f32, {make(Op::Index, f32, {p0, offset})}); }
};

TEST(Print, AKernelReadsLikeCode) {
  Kernel k;
  Ref sum = make(Op::Reduce, f32, {k.load(k.r0 * 4 + k.r1), k.r1}, reduce_arg(Op::Add));
  Ref write =
      store(make(Op::Index, f32, {param(1, f32, shape_of_sizes({8})), k.r0}), sum + float_const(f32, 1));
  Ref end = make(Op::End, DType::Void, {write, k.r0});
  EXPECT_EQ(print(sink(std::span<const Ref>(&end, 1))),
            "p1 = Param.f32[1]((8,))\n"
            "r0 = Range[0, global](8)\n"
            "p0 = Param.f32[0]((32,))\n"
            "r1 = Range[1, reduce](4)\n"
            "v0 = Reduce[Add](Load(Index(p0, r0*4 + r1)), r1)\n"
            "v1 = Store(Index(p1, r0), v0 + 1.0)\n"
            "v2 = End(v1, r0)\n"
            "Sink(v2)\n");
}

TEST(Print, ParenthesesStandWhereCppNeedsThemOrReadersDo) {
  GraphScope scope;
  for (std::string text : {
           "(r0*4 + r1) % 8",
           "r0*(r1*2)",
           "r0 - (r1 - 3)",
           "r0 - r1 - 3",
           "(r0 + 1) << r1",
           "(r0 < 3) & !(r1 < 2)",
           "(r0 < 3) == (r1 < 2)",
           "(r0 & r1) + 1 < 5",
           "-(r0 + r1)*-2",
           "Where(r0 < 3, r1, -r0)",
       }) {
    std::string printed = print(parse("r0 = Range[0, loop](8); r1 = Range[1, loop](4)\n" + text));
    printed.pop_back();
    EXPECT_EQ(printed.substr(printed.rfind('\n') + 1), text);
  }
}

TEST(Print, NumbersCarryTheirTypeOnlyWhereItDoesNotFollow) {
  GraphScope scope;
  Ref n = var("n", 1, 10);
  EXPECT_EQ(brief(int_const(i32, 4)), "4:i32");
  EXPECT_EQ(brief(idx(-4)), "-4");
  EXPECT_EQ(brief(bool_const(true)), "true");
  EXPECT_EQ(brief(int_const(u64, -1)), "18446744073709551615:u64");
  EXPECT_EQ(brief(float_const(f32, 0.1)), "0.1:f32");
  EXPECT_EQ(brief(float_const(f16, 0.1)), "0.099975586:f16");
  EXPECT_EQ(brief(float_const(f64, 1e300)), "1e+300:f64");
  EXPECT_EQ(brief(float_const(f32, -0.0)), "-0.0:f32");
  EXPECT_EQ(brief(float_const(f32, -std::numeric_limits<double>::infinity())), "-inf:f32");
  EXPECT_EQ(brief(float_const(bf16, std::nan(""))), "nan:bf16");
  EXPECT_EQ(brief(splat(int_const(i32, 3), 8)), "3:i32x8");
  EXPECT_EQ(brief(cast(n, f32) * float_const(f32, 2)), "Cast.f32(Var[\"n\"](1, 10))*2.0");
}

TEST(Print, ShapesAreTuples) {
  GraphScope scope;
  Ref n = var("n", 1, 10);
  Ref symbolic[] = {n, idx(8)};
  EXPECT_EQ(brief(shape_of_sizes({})), "()");
  EXPECT_EQ(brief(shape_of_sizes({4})), "(4,)");
  EXPECT_EQ(print(shape_node(std::span<const Ref>(symbolic))), "n = Var[\"n\"](1, 10)\n(n, 8)\n");
}

TEST(Print, WhatIsUsedTwiceOrLongHasALineOfItsOwn) {
  Kernel k;
  Ref t = k.r0 + k.r1;
  EXPECT_EQ(print(t * t), "r0 = Range[0, global](8)\nr1 = Range[1, reduce](4)\nv0 = r0 + r1\nv0*v0\n");
  EXPECT_EQ(print((k.r0 + k.r1) % 4, {.inline_width = 0}),
            "r0 = Range[0, global](8)\nr1 = Range[1, reduce](4)\nv0 = r0 + r1\nv0 % 4\n");
}

TEST(Print, NamesAreNumberedWhenSlotsOrIdsClash) {
  GraphScope scope;
  Ref a = range(0, RangeKind::Loop, idx(4)), b = range(0, RangeKind::Reduce, idx(4)), v = var("r0", 0, 3),
      w = var("inf", 0, 3);
  std::string s = print((a * 2 + b) * (v - w));
  EXPECT_EQ(
      s,
      "v0 = Var[\"r0\"](0, 3)\nv1 = Var[\"inf\"](0, 3)\nr0 = Range[0, loop](4)\nv2 = Range[0, reduce](4)\n"
      "(v0 - v1)*(r0*2 + v2)\n");
}

TEST(Print, InstructionsStandInOrderIndentedByTheirLoops) {
  GraphScope scope;
  Ref p = param(0, f32, shape_of_sizes({8}));
  Ref r = make(Op::Range, i32, {int_const(i32, 8)}, Arg{.i = static_cast<int>(RangeKind::Loop)});
  Ref at = make(Op::Index, f32, {p, r});
  Ref write = store(at, float_const(f32, 0));
  Ref end = make(Op::End, DType::Void, {write, r});
  EXPECT_EQ(print(make(Op::Linear, DType::Void, {p, r, at, write, end})),
            "p0 = Param.f32[0]((8,))\n"
            "r0 = Range[0, loop](8:i32)\n"
            "  v0 = Index(p0, r0)\n"
            "  v1 = Store(v0, 0.0:f32)\n"
            "v2 = End(v1, r0)\n"
            "Linear(p0, r0, v0, v1, v2)\n");
}

TEST(Print, BriefStopsAtItsDepthAndAtItsWidth) {
  Kernel k;
  Ref deep = k.r0;
  for (int i = 0; i < 1000; ++i) deep = deep * 3 + k.r1;
  EXPECT_EQ(brief(deep, 2), "(.. + ..)*3 + Range[1, reduce](4)");
  std::vector<Ref> many(1000, k.r0);
  EXPECT_EQ(brief(make(Op::Linear, DType::Void, 1, many)), "Linear(1000 sources)");
  EXPECT_LT(brief(deep, 1000).size(), 10000u);
}

}  // namespace
}  // namespace pg
