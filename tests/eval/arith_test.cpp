// ir/scalar.cpp, which folds constants and which the interpreter runs on, against the evaluator's arithmetic:
// every exact op on every dtype it takes, over values at the edges and over random bits.
#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "eval/array.h"
#include "eval/compare.h"

namespace pg::eval {
namespace {

constexpr DType kAll[] = {
    boolean, i8, u8, i16, u16, i32, u32, i64, u64, DType::WeakInt, f16, bf16, f32, f64, DType::WeakFloat};

std::vector<Scalar> samples(DType t) {
  std::vector<Scalar> out;
  std::mt19937_64 random(static_cast<std::uint64_t>(t) + 1);
  if (is_float(t)) {
    for (double v :
         {0.0,          -0.0,          1.0,     -1.0,    0.5,     1.5,   2.5,      -2.5,      127.5,
          255.0,        256.0,         65504.0, 65519.0, 65520.0, 1e-8,  1e-40,    3.4e38,    3.5e38,
          2147483647.0, -2147483648.0, 9.3e18,  -9.3e18, 1.9e19,  1e300, HUGE_VAL, -HUGE_VAL, std::nan("")})
      out.push_back(float_scalar(rounded(t, v)));
    for (int i = 0; i < 60; ++i) out.push_back(decode(t, random()));
  } else {
    for (std::int64_t v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100, -1, -2, -7, -100})
      out.push_back(convert(int_scalar(v), i64, t));
    if (t != DType::Bool)
      for (int bit : {7, 8, 15, 16, 31, 32, 63})
        for (std::int64_t d : {-1, 0, 1}) {
          auto v = static_cast<std::int64_t>((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(d));
          out.push_back(convert(int_scalar(v), i64, t));
        }
    for (int i = 0; i < 30; ++i) out.push_back(decode(t, random()));
  }
  return out;
}

bool identical(DType t, Scalar a, Scalar b) { return close(t, a, b, {.zero_signs = true}); }

bool takes(Op op, DType t) {
  switch (op) {
    case Op::Cast:
    case Op::Bitcast:
    case Op::Where:
      return false;  // tested apart
    case Op::Sqrt:
    case Op::Div:
      return is_float(t);
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return !is_float(t);
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::CDiv:
    case Op::CMod:
    case Op::Shl:
    case Op::Shr:
      return is_int(t);
    case Op::Threefry:
      return t == u64;
    case Op::DotBytes:
      return t == i32;
    case Op::Sub:
    case Op::Neg:
    case Op::Trunc:
    case Op::MulAcc:
      return t != DType::Bool;
    default:
      return true;
  }
}

std::string show(Op op, DType t, std::span<const Scalar> in, DType to, Scalar want, Scalar got) {
  std::string s = std::string(info(op).name) + " of " + std::string(name(t));
  for (Scalar v : in) s += " " + text(t, v);
  return s + " is " + text(to, want) + ", scalar.cpp says " + text(to, got);
}

TEST(Scalar, EveryExactOpOnEveryDType) {
  for (int i = 0; i < kOpCount; ++i) {
    Op op = static_cast<Op>(i);
    if (!is_exact(op)) continue;
    for (DType t : kAll) {
      if (!takes(op, t)) continue;
      DType to = info(op).flags & kComparison ? boolean : t;
      std::vector<Scalar> values = samples(t);
      int n = info(op).nsrc;
      std::mt19937_64 random(7);
      int wrong = 0;
      auto check = [&](std::span<const Scalar> in) {
        Scalar want = apply(op, to, t, in.data()), got = eval_scalar(op, to, t, in.data());
        if (!identical(to, got, want) && ++wrong <= 5) ADD_FAILURE() << show(op, t, in, to, want, got);
      };
      for (Scalar a : values) {
        if (n == 1)
          check(std::span<const Scalar>(&a, 1));
        else
          for (Scalar b : values) {
            Scalar in[3] = {a, b, n == 3 ? values[random() % values.size()] : Scalar{}};
            check(std::span<const Scalar>(in, static_cast<std::size_t>(n)));
          }
      }
    }
  }
}

TEST(Scalar, EveryCast) {
  for (DType from : kAll)
    for (DType to : kAll) {
      int wrong = 0;
      for (Scalar v : samples(from)) {
        Scalar want = convert(v, from, to), got = cast_scalar(v, from, to);
        if (!identical(to, got, want) && ++wrong <= 5)
          ADD_FAILURE() << "to " << name(to) << ": " << show(Op::Cast, from, {&v, 1}, to, want, got);
      }
    }
}

TEST(Scalar, StorageFormats) {
  for (DType t : kAll) {
    for (Scalar v : samples(t)) {
      if (is_float(t) && std::isnan(v.f)) continue;
      EXPECT_EQ(to_bits(t, v), encode(t, v)) << name(t) << " " << text(t, v);
      EXPECT_TRUE(identical(t, from_bits(t, encode(t, v)), v)) << name(t) << " " << text(t, v);
    }
    if (itemsize(t) == 2)
      for (std::uint64_t bits = 0; bits < 65536; ++bits)
        ASSERT_TRUE(identical(t, from_bits(t, bits), decode(t, bits))) << name(t) << " " << bits;
  }
}

TEST(Arrays, KeepTheBitsOfNaNs) {
  for (DType t : {f16, bf16})
    for (std::uint64_t bits = 0; bits < 65536; ++bits) ASSERT_EQ(encode(t, decode(t, bits)), bits) << name(t);
  for (std::uint64_t bits : {0x7f800001u, 0xffa00000u, 0x7fc00000u, 0xff800000u, 0x7fffffffu})
    EXPECT_EQ(encode(f32, decode(f32, bits)), bits);
  EXPECT_EQ(encode(f32, float_scalar(std::nan(""))), 0x7fc00000u);
}

TEST(Scalar, RoundsToNarrowFloats) {
  std::mt19937_64 random(3);
  for (DType t : {f16, bf16, f32})
    for (int i = 0; i < 20000; ++i) {
      // Near every exponent of the format, half of them on or beside a midpoint.
      double v = std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52,
                            static_cast<int>(random() % 300) - 160);
      if (i % 2) {
        double down = rounded(t, v);
        v = down + std::ldexp(down, -(t == f16 ? 11 : t == bf16 ? 8 : 24));
        if (i % 3 == 1) v = std::nextafter(v, i % 4 == 1 ? 0 : HUGE_VAL);
      }
      ASSERT_TRUE(identical(t, float_scalar(round_to(t, v)), float_scalar(rounded(t, v))))
          << name(t) << " " << text(f64, float_scalar(v));
    }
}

TEST(Compare, CountsRepresentableValues) {
  EXPECT_EQ(ulp_distance(f32, 1, 1 + 0x1p-23), 1);
  EXPECT_EQ(ulp_distance(f32, 0x1p-149, -0x1p-149), 2);
  EXPECT_EQ(ulp_distance(f64, 1, 1 + 0x1p-52), 1);
  EXPECT_EQ(ulp_distance(f16, 65504, HUGE_VAL), 1);
  EXPECT_EQ(ulp_distance(bf16, 0.0, -0.0), 0);
  EXPECT_EQ(ulp_distance(f32, std::nan(""), std::nan("")), 0);
  EXPECT_EQ(ulp_distance(f32, std::nan(""), 0), HUGE_VAL);
}

TEST(Compare, SaysWhereAndHowMuch) {
  Array want(f32, {2, 2}, {1, 2, 3, 4}), got(f32, {2, 2}, {1.0, 2.0, 3.5, 8.0});
  EXPECT_EQ(difference(want, want), "");
  EXPECT_EQ(difference(got, want),
            "f32 (2, 2): at (1, 0) got 3.5, want 3 (2.097e+06 ulp); 2 of 4 differ, worst at (1, 1) got 8, "
            "want 4 (8.389e+06 ulp)");
  EXPECT_EQ(difference(got, want, {.rel = 1}), "");
  EXPECT_NE(difference(Array(f32, {4}, {1, 2, 3, 4}), want), "");
  EXPECT_NE(difference(Array(f64, {2, 2}, {1, 2, 3, 4}), want), "");
  Array nan(f32, {2}, {std::nan(""), HUGE_VAL});
  EXPECT_EQ(difference(nan, nan), "");
  EXPECT_NE(difference(Array(f32, {2}, {0.0, HUGE_VAL}), nan, {.rel = 1}), "");
}

}  // namespace
}  // namespace pg::eval
