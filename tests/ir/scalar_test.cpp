// What each op computes, in tables of known answers, and roundings against independent arithmetic on bits.
#include "ir/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace pg {
namespace {

constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min(),
                       kMax64 = std::numeric_limits<std::int64_t>::max();
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

std::int64_t ints(Op op, DType t, std::int64_t a, std::int64_t b = 0) {
  Scalar s[2] = {int_scalar(a), int_scalar(b)};
  return eval_scalar(op, info(op).flags & kComparison ? DType::Bool : t, t, s).i;
}
double floats(Op op, DType t, double a, double b = 0, double c = 0) {
  Scalar s[3] = {float_scalar(a), float_scalar(b), float_scalar(c)};
  return eval_scalar(op, t, t, s).f;
}
std::int64_t to_int(double v, DType from, DType to) { return cast_scalar(float_scalar(v), from, to).i; }
double to_float(std::int64_t v, DType from, DType to) { return cast_scalar(int_scalar(v), from, to).f; }

TEST(Scalar, DivisionByZeroGivesZero) {
  for (DType t : {i8, u8, i16, u16, i32, u32, i64, u64, DType::WeakInt})
    for (Op op : {Op::FloorDiv, Op::FloorMod, Op::CDiv, Op::CMod})
      for (std::int64_t a : {std::int64_t{0}, std::int64_t{1}, std::int64_t{100}, int_min(t), int_max(t)})
        EXPECT_EQ(ints(op, t, a, 0), 0) << info(op).name << " " << name(t) << " " << a;
}

TEST(Scalar, TheLeastNumberByMinusOneWraps) {
  for (DType t : {i8, i16, i32, i64}) {
    EXPECT_EQ(ints(Op::FloorDiv, t, int_min(t), -1), int_min(t));
    EXPECT_EQ(ints(Op::CDiv, t, int_min(t), -1), int_min(t));
    EXPECT_EQ(ints(Op::FloorMod, t, int_min(t), -1), 0);
    EXPECT_EQ(ints(Op::CMod, t, int_min(t), -1), 0);
    EXPECT_EQ(ints(Op::Neg, t, int_min(t)), int_min(t));
  }
}

TEST(Scalar, DivisionRoundsDownOrToZero) {
  struct Row {
    std::int64_t a, b, floor_div, floor_mod, c_div, c_mod;
  };
  for (Row r : {Row{7, 2, 3, 1, 3, 1}, Row{-7, 2, -4, 1, -3, -1}, Row{7, -2, -4, -1, -3, 1},
                Row{-7, -2, 3, -1, 3, -1}, Row{6, 3, 2, 0, 2, 0}, Row{-6, 3, -2, 0, -2, 0},
                Row{1, 5, 0, 1, 0, 1}, Row{-1, 5, -1, 4, 0, -1}})
    for (DType t : {i8, i16, i32, i64, DType::WeakInt}) {
      EXPECT_EQ(ints(Op::FloorDiv, t, r.a, r.b), r.floor_div);
      EXPECT_EQ(ints(Op::FloorMod, t, r.a, r.b), r.floor_mod);
      EXPECT_EQ(ints(Op::CDiv, t, r.a, r.b), r.c_div);
      EXPECT_EQ(ints(Op::CMod, t, r.a, r.b), r.c_mod);
    }
  EXPECT_EQ(ints(Op::FloorDiv, u64, -1, 2), kMax64) << "u64 by its bits";
  EXPECT_EQ(ints(Op::FloorMod, u64, -1, 10), 5);
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(ints(Op::Add, u8, 255, 2), 1);
  EXPECT_EQ(ints(Op::Mul, u8, 200, 2), 144);
  EXPECT_EQ(ints(Op::Add, i8, 127, 1), -128);
  EXPECT_EQ(ints(Op::Sub, u32, 0, 1), 0xffffffff);
  EXPECT_EQ(ints(Op::Mul, i64, kMax64, 2), -2);
  EXPECT_EQ(ints(Op::Add, DType::Bool, 1, 1), 1);
  EXPECT_EQ(ints(Op::Pow, i32, 3, 5), 243);
  EXPECT_EQ(ints(Op::Pow, i32, 2, -1), 0);
  EXPECT_EQ(ints(Op::Pow, i32, -1, -3), -1);
  EXPECT_EQ(ints(Op::CmpLt, u64, 1, -1), 1);
  EXPECT_EQ(ints(Op::CmpLt, i64, 1, -1), 0);
  EXPECT_EQ(ints(Op::Max, u64, 1, -1), -1);
}

TEST(Scalar, ShiftsByTheWidthOrMoreLeaveNothingButTheSign) {
  for (DType t : {i8, u8, i16, u16, i32, u32, i64, u64}) {
    auto bits = static_cast<std::int64_t>(itemsize(t)) * 8;
    std::int64_t odd = is_unsigned(t) ? 5 : -5;
    EXPECT_EQ(ints(Op::Shl, t, 1, bits - 1),
              wrap(t, static_cast<std::int64_t>(std::uint64_t{1} << (bits - 1))));
    for (std::int64_t by : {bits, bits + 1, std::int64_t{100}}) {
      EXPECT_EQ(ints(Op::Shl, t, odd, by), 0);
      EXPECT_EQ(ints(Op::Shr, t, odd, by), is_unsigned(t) ? 0 : -1);
      EXPECT_EQ(ints(Op::Shr, t, 5, by), 0);
    }
    EXPECT_EQ(ints(Op::Shr, t, odd, 1), is_unsigned(t) ? 2 : -3);
  }
  EXPECT_EQ(ints(Op::Shl, i32, 1, -1), 0) << "a negative shift is one by a lot";
  EXPECT_EQ(ints(Op::Shr, u64, -1, 63), 1);
}

TEST(Scalar, FloatToIntegerTruncatesAndSaturates) {
  for (DType from : {f32, f64}) {
    EXPECT_EQ(to_int(1.9, from, i32), 1);
    EXPECT_EQ(to_int(-1.9, from, i32), -1);
    EXPECT_EQ(to_int(-0.9, from, u32), 0);
    EXPECT_EQ(to_int(1.2, from, u32), 1);
    for (DType t : {i8, u8, i16, u16, i32, u32, i64, DType::WeakInt}) {
      EXPECT_EQ(to_int(kNaN, from, t), 0);
      EXPECT_EQ(to_int(kInf, from, t), int_max(t));
      EXPECT_EQ(to_int(-kInf, from, t), int_min(t));
      EXPECT_EQ(to_int(1e30, from, t), int_max(t));
    }
    EXPECT_EQ(to_int(300, from, u8), 255);
    EXPECT_EQ(to_int(-1, from, u8), 0);
    EXPECT_EQ(to_int(kInf, from, u64), -1);
    EXPECT_EQ(to_int(1.8446744073709550e19, from == f64 ? f64 : f64, u64),
              static_cast<std::int64_t>(18446744073709549568u));
    EXPECT_EQ(to_int(9.3e18, f64, u64), static_cast<std::int64_t>(9300000000000000000u));
    EXPECT_EQ(to_int(0x1p63, from, i64), kMax64);
    EXPECT_EQ(to_int(-0x1p63, from, i64), kMin64);
    EXPECT_EQ(to_int(0.1, from, DType::Bool), 1);
    EXPECT_EQ(to_int(-0.0, from, DType::Bool), 0);
    EXPECT_EQ(to_int(kNaN, from, DType::Bool), 1);
  }
}

TEST(Scalar, IntegerCastsWrapAndRoundOnce) {
  EXPECT_EQ(cast_scalar(int_scalar(255), u8, i8).i, -1);
  EXPECT_EQ(cast_scalar(int_scalar(-1), i8, u16).i, 65535);
  EXPECT_EQ(cast_scalar(int_scalar(65535), u16, i8).i, -1);
  EXPECT_EQ(cast_scalar(int_scalar(256), i32, DType::Bool).i, 1);
  EXPECT_EQ(to_float(-1, u64, f64), 18446744073709551616.0);
  EXPECT_EQ(to_float(-1, i64, f64), -1.0);
  // 2^54 + 2^30 + 1 goes up as a float, but through a double it would be a tie, and go down.
  std::int64_t v = (std::int64_t{1} << 54) + (std::int64_t{1} << 30) + 1;
  EXPECT_EQ(to_float(v, i64, f32), 0x1p54 + 0x1p31);
  EXPECT_EQ(to_float(65520, i32, f16), kInf);
  EXPECT_EQ(to_float(65519, i32, f16), 65504);
}

TEST(Scalar, FloatsRoundOnceInTheirOwnDtype) {
  EXPECT_EQ(floats(Op::Add, f32, 16777216, 1), 16777216);
  EXPECT_EQ(floats(Op::Add, f64, 16777216, 1), 16777217);
  EXPECT_EQ(floats(Op::Add, f16, 2048, 1), 2048);
  EXPECT_EQ(floats(Op::Add, bf16, 256, 1), 256);
  EXPECT_EQ(floats(Op::Mul, f16, 300, 300), kInf);
  EXPECT_EQ(floats(Op::MulAcc, f32, 1 + 0x1p-12, 1 + 0x1p-12, -1), 0x1p-11 + 0x1p-24) << "rounded once";
  EXPECT_EQ(floats(Op::Trunc, f32, -2.7), -2);
  EXPECT_TRUE(std::signbit(floats(Op::Trunc, f32, -0.7)));
  EXPECT_EQ(floats(Op::Sqrt, f32, 2), static_cast<double>(std::sqrt(2.0f)));
}

TEST(Scalar, ExtremaPropagateNaNAndOrderZeros) {
  for (DType t : {f16, bf16, f32, f64}) {
    EXPECT_TRUE(std::isnan(floats(Op::Max, t, kNaN, 1)) && std::isnan(floats(Op::Max, t, 1, kNaN)));
    EXPECT_TRUE(std::isnan(floats(Op::Min, t, kNaN, 1)) && std::isnan(floats(Op::Min, t, 1, kNaN)));
    EXPECT_FALSE(std::signbit(floats(Op::Max, t, -0.0, 0.0)) || std::signbit(floats(Op::Max, t, 0.0, -0.0)));
    EXPECT_TRUE(std::signbit(floats(Op::Min, t, -0.0, 0.0)) && std::signbit(floats(Op::Min, t, 0.0, -0.0)));
    EXPECT_EQ(floats(Op::Max, t, -kInf, -3), -3);
  }
}

// --- 16-bit floats against arithmetic on bits

// The nearest f16 of a float, ties to even, by integer arithmetic on its bits alone.
std::uint16_t f16_by_bits(float value) {
  auto v = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = v >> 16 & 0x8000, e = v >> 23 & 255, m = v & 0x7fffff;
  if (e == 255) return static_cast<std::uint16_t>(sign | 0x7c00 | (m ? 0x200 : 0));
  int shift = e >= 113 ? 13 : 126 - static_cast<int>(e);  // bits that go
  if (shift > 25) return static_cast<std::uint16_t>(sign);
  std::uint32_t full = e ? m | 0x800000 : m, base = e >= 113 ? (e - 113) << 10 : 0;
  std::uint32_t kept = full >> shift, rest = full & ((1u << shift) - 1), half = 1u << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  std::uint32_t r = base + kept;
  return static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(r, 0x7c00));
}
std::uint16_t bf16_by_bits(float value) {
  auto v = std::bit_cast<std::uint32_t>(value);
  if ((v & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(v >> 16 | 0x40);
  return static_cast<std::uint16_t>((v + 0x7fff + (v >> 16 & 1)) >> 16);
}

TEST(Scalar, SixteenBitFloatsRoundAsTheirBitsSay) {
  std::mt19937 random(5);
  auto check = [](std::uint32_t bits) {
    float v = std::bit_cast<float>(bits);
    if (std::isnan(v)) return;
    ASSERT_EQ(to_bits(f16, float_scalar(round_to(f16, static_cast<double>(v)))), f16_by_bits(v))
        << std::hex << bits;
    ASSERT_EQ(to_bits(bf16, float_scalar(round_to(bf16, static_cast<double>(v)))), bf16_by_bits(v))
        << std::hex << bits;
  };
  for (int i = 0; i < 400'000; ++i) check(static_cast<std::uint32_t>(random()));
  // Every exponent, at and around ties.
  for (std::uint32_t e = 0; e < 256; ++e)
    for (std::uint32_t m :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fffu, 0x8000u, 0x8001u, 0x17fffu,
          0x18000u, 0x18001u, 0x7fffffu, 0x7fe000u, 0x7ff000u, 0x400000u})
      for (std::uint32_t sign : {0u, 1u}) check(sign << 31 | e << 23 | m);
}

TEST(Scalar, AllSixteenBitPatternsComeBack) {
  for (std::uint32_t b = 0; b < 65536; ++b) {
    ASSERT_EQ(to_bits(f16, from_bits(f16, b)), b);
    ASSERT_EQ(to_bits(bf16, from_bits(bf16, b)), b) << "NaNs as well";
    Scalar v = from_bits(f16, b);
    if (!std::isnan(v.f)) ASSERT_EQ(round_to(f16, v.f), v.f);
  }
  EXPECT_EQ(f16_value(1), 0x1p-24);
  EXPECT_EQ(f16_value(0x7bff), 65504);
  EXPECT_EQ(f16_from(0x1p-25), 0) << "a tie goes to even";
  EXPECT_EQ(f16_from(0x1.8p-24), 2);
}

TEST(Scalar, BitcastsKeepBits) {
  for (std::uint64_t b : {0x7fc00001u, 0x7f800001u, 0xffc12345u, 0x3f800000u, 0x80000000u}) {
    Scalar bits = int_scalar(static_cast<std::int64_t>(b)), f = eval_scalar(Op::Bitcast, f32, u32, &bits);
    EXPECT_EQ(static_cast<std::uint64_t>(eval_scalar(Op::Bitcast, u32, f32, &f).i), b);
  }
  Scalar one = float_scalar(1);
  EXPECT_EQ(eval_scalar(Op::Bitcast, i32, f32, &one).i, 0x3f800000);
  EXPECT_EQ(eval_scalar(Op::Bitcast, i16, bf16, &one).i, 0x3f80);
}

TEST(Scalar, ThreefryGivesThePublishedNumbers) {
  // Known answers of Random123, threefry2x32 with 20 rounds (kat_vectors).
  auto pair = [](std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; };
  EXPECT_EQ(threefry2x32(0, 0), pair(0x6b200159, 0x99ba4efe));
  EXPECT_EQ(threefry2x32(~std::uint64_t{0}, ~std::uint64_t{0}), pair(0x1cb996fc, 0xbb002be7));
  EXPECT_EQ(threefry2x32(pair(0x243f6a88, 0x85a308d3), pair(0x13198a2e, 0x03707344)),
            pair(0xc4923a9c, 0x483df7a0));
}

}  // namespace
}  // namespace pg
