#include <gtest/gtest.h>

#include <pangrad/dtype.h>

namespace pg {
namespace {

constexpr DType kAll[] = {DType::Bool, DType::WeakInt,   i8,  u8,   i16, u16, i32, u32, i64,
                          u64,         DType::WeakFloat, f16, bf16, f32, f64};

// Rows and columns: bool, weakint, i8, u8, i16, u16, i32, u32, i64, u64, weakfloat, f16, bf16, f32, f64.
constexpr const char* kPromotions[15][15] = {
    {"bool", "weakint", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"weakint", "weakint", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"i8", "i8", "i8", "i16", "i16", "i32", "i32", "i64", "i64", "weakfloat", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"u8", "u8", "i16", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "weakfloat", "f16", "bf16", "f32",
     "f64"},
    {"i16", "i16", "i16", "i16", "i16", "i32", "i32", "i64", "i64", "weakfloat", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"u16", "u16", "i32", "u16", "i32", "u16", "i32", "u32", "i64", "u64", "weakfloat", "f16", "bf16", "f32",
     "f64"},
    {"i32", "i32", "i32", "i32", "i32", "i32", "i32", "i64", "i64", "weakfloat", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"u32", "u32", "i64", "u32", "i64", "u32", "i64", "u32", "i64", "u64", "weakfloat", "f16", "bf16", "f32",
     "f64"},
    {"i64", "i64", "i64", "i64", "i64", "i64", "i64", "i64", "i64", "weakfloat", "weakfloat", "f16", "bf16",
     "f32", "f64"},
    {"u64", "u64", "weakfloat", "u64", "weakfloat", "u64", "weakfloat", "u64", "weakfloat", "u64",
     "weakfloat", "f16", "bf16", "f32", "f64"},
    {"weakfloat", "weakfloat", "weakfloat", "weakfloat", "weakfloat", "weakfloat", "weakfloat", "weakfloat",
     "weakfloat", "weakfloat", "weakfloat", "f16", "bf16", "f32", "f64"},
    {"f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f16", "f32", "f32", "f64"},
    {"bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "f32", "bf16",
     "f32", "f64"},
    {"f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f64"},
    {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64"},
};

TEST(DTypes, PromoteByTheTable) {
  for (int a = 0; a < 15; ++a)
    for (int b = 0; b < 15; ++b)
      EXPECT_EQ(name(promote(kAll[a], kAll[b])), kPromotions[a][b])
          << name(kAll[a]) << " with " << name(kAll[b]);
}

TEST(DTypes, SumsAccumulateInAtLeast32Bits) {
  const std::pair<DType, DType> rows[] = {{DType::Bool, i32},
                                          {DType::WeakInt, i32},
                                          {i8, i32},
                                          {u8, u32},
                                          {i16, i32},
                                          {u16, u32},
                                          {i32, i32},
                                          {u32, u32},
                                          {i64, i64},
                                          {u64, u64},
                                          {DType::WeakFloat, f32},
                                          {f16, f32},
                                          {bf16, f32},
                                          {f32, f32},
                                          {f64, f64}};
  for (auto [t, sum] : rows) EXPECT_EQ(accumulator(t), sum) << name(t);
}

TEST(DTypes, LosslessCasts) {
  auto sources = [](DType to) {
    std::string out;
    for (DType from : kAll)
      if (from != to && from != DType::Bool && from != DType::WeakInt && is_lossless(from, to))
        out += std::string(name(from)) + " ";
    return out;
  };
  EXPECT_EQ(sources(i8), "");
  EXPECT_EQ(sources(i16), "i8 u8 ");
  EXPECT_EQ(sources(u16), "u8 ");
  EXPECT_EQ(sources(i32), "i8 u8 i16 u16 ");
  EXPECT_EQ(sources(u32), "u8 u16 ");
  EXPECT_EQ(sources(i64), "i8 u8 i16 u16 i32 u32 ");
  EXPECT_EQ(sources(u64), "u8 u16 u32 ");
  EXPECT_EQ(sources(f16), "i8 u8 ");
  EXPECT_EQ(sources(bf16), "i8 u8 ");
  EXPECT_EQ(sources(f32), "i8 u8 i16 u16 f16 bf16 ");
  for (DType t : kAll) {
    EXPECT_TRUE(is_lossless(DType::Bool, t));
    EXPECT_TRUE(is_lossless(t, t));
    if (is_int(t) && t != u64) EXPECT_TRUE(is_lossless(t, DType::WeakInt)) << name(t);
  }
}

TEST(DTypes, NamesAndAliases) {
  for (DType t : kAll) EXPECT_EQ(parse_dtype(name(t)), t);
  EXPECT_EQ(parse_dtype("float32"), f32);
  EXPECT_EQ(parse_dtype("half"), f16);
  EXPECT_EQ(parse_dtype("bfloat16"), bf16);
  EXPECT_EQ(parse_dtype("long"), i64);
  EXPECT_THROW(parse_dtype("float31"), DTypeError);
  EXPECT_THROW(parse_dtype(""), DTypeError);
}

TEST(DTypes, Kinds) {
  for (DType t : kAll) {
    EXPECT_EQ(is_float(t) + is_int(t) + (t == DType::Bool), 1) << name(t);
    EXPECT_EQ(strong(t), t == DType::WeakInt ? i32 : t == DType::WeakFloat ? f32 : t);
    if (is_int(t)) EXPECT_EQ(is_unsigned(t), int_min(t) == 0) << name(t);
  }
  EXPECT_EQ(itemsize(DType::Bool), 1u);
  EXPECT_EQ(itemsize(bf16), 2u);
  EXPECT_EQ(int_max(u32), 4294967295);
}

}  // namespace
}  // namespace pg
