// Every function against the C library in a wider format, and what it costs in ops. Samples are every 4099th
// float (PG_EVERY_FLOAT=1: all), neighbourhoods of the hard places, and the special values. Bounds are
// rounded up from wider measurements with the same templates, in ULP:
// clang-format off
//   all 2^32 floats       exp 0.921, exp2 0.893, log 0.919, log2 0.965, tanh 1.362, erf 1.385
//   every 97th and kHard  sin 0.875 and cos 0.871, but 1.07 next to multiples of pi/2; tan 1.630
//   pow in f32            3.256 over 24 large exponents of each base in [1/2, 2); 3.07 over 1.4e8 others
//   f64, 2e7 samples      exp 0.90, exp2 0.84, log 1.42, log2 1.25, tanh 2.53, erf 1.07, sin 0.87, cos 0.95,
//                         tan 1.70
//   pow in f64            1.06 over 3.5e7 pairs
// clang-format on
#include "rules/functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ir/build.h"
#include "rules/decompose.h"
#include "rules/host_value.h"

namespace pg::test {
namespace {

namespace fn = rules::functions;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// |got - want| in units in the last place of want as an F; infinite where they differ in kind or in the sign
/// of zero. Past the largest finite number the scale goes on to its successor, which infinity stands for.
template <class F, class R>
double error_in_ulp(F got, R want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : kInf;
  if (std::signbit(got) != std::signbit(want)) return kInf;
  if (std::isinf(want) || want == 0) return static_cast<R>(got) == want ? 0 : kInf;
  using L = std::numeric_limits<F>;
  R end = std::ldexp(R{1}, L::max_exponent);
  R g = std::isinf(got) ? end : static_cast<R>(std::fabs(got)), w = std::min(std::fabs(want), end);
  int exponent = std::clamp(std::ilogb(w), L::min_exponent - 1, L::max_exponent - 1);
  return static_cast<double>(std::ldexp(std::fabs(g - w), L::digits - 1 - exponent));
}

template <class F>
struct Worst {
  double error = 0;
  F x = 0, y = 0, got = 0;
  void see(double e, F a, F b, F g) {
    if (e > error) error = e, x = a, y = b, got = g;
  }
};

template <class F, class R>
struct Row {
  const char* name;
  F (*run)(F);
  Traced (*trace)(const Traced&);
  R (*reference)(R);
  double bound;  // ULP: the largest error measured, rounded up
  int ops;
};

template <auto Function, class F>
F run(F x) {
  return Function(Host<F>{x}).v;
}

#define PG_ROW(F, R, name, function, bound, ops)                                                           \
  Row<F, R> {                                                                                              \
    #function, run<fn::function<Host<F>>, F>, fn::function<Traced>, [](R x) -> R { return std::name(x); }, \
        bound, ops                                                                                         \
  }
#define PG_ROW_32(name, bound, ops) PG_ROW(float, double, name, name##_f32, bound, ops)
#define PG_ROW_64(name, bound, ops) PG_ROW(double, long double, name, name##_f64, bound, ops)
const Row<float, double> kRows32[] = {
    PG_ROW_32(exp, 0.93, 20),  PG_ROW_32(exp2, 0.9, 19), PG_ROW_32(log, 0.95, 27),
    PG_ROW_32(log2, 0.97, 29), PG_ROW_32(sin, 1.2, 91),  PG_ROW_32(cos, 1.2, 91),
    PG_ROW_32(tanh, 1.4, 29),  PG_ROW_32(erf, 1.4, 26),  PG_ROW_32(tan, 1.8, 93),
};
const Row<double, long double> kRows64[] = {
    PG_ROW_64(exp, 1, 25),    PG_ROW_64(exp2, 1, 24),   PG_ROW_64(log, 1.5, 37),
    PG_ROW_64(log2, 1.4, 39), PG_ROW_64(sin, 1.2, 145), PG_ROW_64(cos, 1.2, 145),
    PG_ROW_64(tanh, 2.7, 26), PG_ROW_64(erf, 1.2, 57),  PG_ROW_64(tan, 1.9, 149),
};
constexpr double kPowBound32 = 3.3, kPowBound64 = 1.2;
constexpr int kPowOps32 = 96, kPowOps64 = 122;

// Where something changes or goes wrong: ends of ranges, splits, ends of reductions; and for the
// trigonometric functions the floats next to multiples of pi/2, found by trying all.
// clang-format off
constexpr double kHard[] = {
    0x1p-149, 0x1p-126, 0x1p-64, 0x1p-24, 0x1p-12, 0.1, 0.25, 0.35, 0.5, 0.625, 0.75, 1, 1.125, 1.5, 2, 3.9,
    4, 9, 10, 0.70710678118654752, 1.4142135623730950, 0.78539816339744831, 1.5707963267948966,
    2.3561944901923449, 3.1415926535897932, 6.2831853071795865, 100.53096491487338, 87.336544750553109,
    88.722839111672999, 103.97207708399179, 104, 126, 127, 128, 149, 150, 708.39641853226410,
    709.78271289338400, 745.13321910194110, 1022, 1024, 1074, 1075, 0x1p24, 0x1p63, 0x1p127, 0x1.fffffep127,
    0x1.2d97c8p+2, 0x1.f9cbe2p+7, 0x1.4665d2p+25, 0x1.47d0fep+34, 0x1.628d4cp+40, 0x1.0f79ap+57,
    0x1.13093p+76, 0x1.32ede2p+85, 0x1.abb4bp+89, 0x1.f37c8ap+95, 0x1.b08c4ap+111, 0x1.6ac5b262ca1ffp+849,
    0x1.fffffffffffffp1023,
};
// clang-format on

constexpr double kSpecial[] = {0.0, -0.0, 1, -1, kInf, -kInf, kNan};

std::uint64_t float_stride() { return std::getenv("PG_EVERY_FLOAT") ? 1 : 4099; }

template <class F>
F from_bits(std::uint64_t bits) {
  if constexpr (sizeof(F) == 4)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else
    return std::bit_cast<double>(bits);
}

/// Calls f with the special values, and with 2 n + 1 neighbours of each hard place and of its negative.
template <class F>
void around_hard_places(int n, auto f) {
  for (double x : kSpecial) f(static_cast<F>(x));
  for (double x : kHard) {
    if (std::isinf(static_cast<F>(x))) continue;
    auto center = bitcast_i64(Host<double>{x}).v;
    if constexpr (sizeof(F) == 4) center = bitcast_i32(Host<float>{static_cast<float>(x)}).v;
    for (int i = -n; i <= n; ++i) {
      F v = from_bits<F>(static_cast<std::uint64_t>(std::max<std::int64_t>(center + i, 0)));
      f(v), f(-v);
    }
  }
}

template <class F, class R>
void expect_within_bound(const Row<F, R>& row, const Worst<F>& worst) {
  std::printf("%-9s %7.4f ULP at %.17g\n", row.name, worst.error, static_cast<double>(worst.x));
  EXPECT_LE(worst.error, row.bound) << row.name << " of " << worst.x << " gave " << worst.got << ", not "
                                    << static_cast<double>(row.reference(worst.x));
}

TEST(Functions, EachIsWithinItsBoundInF32) {
  for (const auto& row : kRows32) {
    Worst<float> worst;
    auto see = [&](float x) {
      float y = row.run(x);
      worst.see(error_in_ulp(y, row.reference(x)), x, 0, y);
    };
    around_hard_places<float>(300, see);
    for (std::uint64_t b = 0; b < std::uint64_t{1} << 32; b += float_stride()) see(from_bits<float>(b));
    expect_within_bound(row, worst);
  }
}

TEST(Functions, EachIsWithinItsBoundInF64) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "nothing wider to compare with";
  for (const auto& row : kRows64) {
    Worst<double> worst;
    auto see = [&](double x) {
      double y = row.run(x);
      worst.see(error_in_ulp(y, row.reference(x)), x, 0, y);
    };
    around_hard_places<double>(30, see);
    std::mt19937_64 random(1);
    for (int i = 0; i < 8000; ++i) {
      see(from_bits<double>(random()));
      for (double scale : {1.0, 3.0, 30.0, 800.0})
        see(std::ldexp(static_cast<double>(random()), -63) * scale - scale);
    }
    expect_within_bound(row, worst);
  }
}

/// pow where it is hardest: all kinds of bases, exponents that bring the result to the ends of the range,
/// integers.
template <class F, class R>
void check_pow(F (*pow)(F, F), int n, double bound, double lowest, double highest) {
  Worst<F> worst;
  auto see = [&](F x, F y) {
    F z = pow(x, y);
    // Not in R where no digits are at stake: some C libraries are wrong there, for (-inf)^(-2^63) say.
    bool exact = std::isinf(x) || x == 0;
    R want = exact ? static_cast<R>(std::pow(x, y)) : std::pow(static_cast<R>(x), static_cast<R>(y));
    worst.see(error_in_ulp(z, want), x, y, z);
  };
  around_hard_places<F>(0, [&](F x) { around_hard_places<F>(1, [&](F y) { see(x, y); }); });
  std::mt19937_64 random(1);
  auto in = [&](double lo, double hi) {
    return lo + (hi - lo) * std::ldexp(static_cast<double>(random()), -64);
  };
  auto any = [&] { return from_bits<F>(random() & (sizeof(F) == 4 ? 0xffffffff : ~std::uint64_t{0})); };
  for (int i = 0; i < n; ++i) {
    see(any(), any());
    see(std::fabs(any()), static_cast<F>(in(-3, 3)));
    see(static_cast<F>(-in(0, 4)), static_cast<F>(std::trunc(in(-60, 60))));
    for (F x :
         {std::fabs(any()), static_cast<F>(in(0.5, 2)), static_cast<F>(std::exp(std::exp(in(-30, 0))))}) {
      double log = std::log(static_cast<double>(x));
      see(x, static_cast<F>(in(lowest, highest) / log));
      see(x, static_cast<F>(in(0.98, 1.01) * (i % 2 ? lowest : highest) / log));
    }
  }
  std::printf("pow_f%d   %7.4f ULP at %.17g, %.17g\n", static_cast<int>(sizeof(F) * 8), worst.error,
              static_cast<double>(worst.x), static_cast<double>(worst.y));
  EXPECT_LE(worst.error, bound) << worst.x << " ^ " << worst.y << " gave " << worst.got;
}

float pow_32(float x, float y) { return fn::pow_f32(Host<float>{x}, Host<float>{y}).v; }
double pow_64(double x, double y) { return fn::pow_f64(Host<double>{x}, Host<double>{y}).v; }

TEST(Functions, PowIsWithinItsBoundInF32) { check_pow<float, double>(pow_32, 40000, kPowBound32, -104, 89); }
TEST(Functions, PowIsWithinItsBoundInF64) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "nothing wider to compare with";
  check_pow<double, long double>(pow_64, 20000, kPowBound64, -746, 710);
}

TEST(Functions, PowFollowsAnnexF) {
  const struct {
    double x, y, want;
  } kCases[] = {
      {0.0, 3, 0.0},       {-0.0, 3, -0.0},       {-0.0, 2, 0.0},      {-0.0, 2.5, 0.0},   {0.0, -3, kInf},
      {-0.0, -3, -kInf},   {-0.0, -2, kInf},      {-0.0, -0.5, kInf},  {-1, kInf, 1},      {-1, -kInf, 1},
      {1, kNan, 1},        {1, kInf, 1},          {1, -7, 1},          {kNan, 0.0, 1},     {kNan, -0.0, 1},
      {kInf, 0.0, 1},      {0.0, 0.0, 1},         {-2, 0.5, kNan},     {-0.5, -1.5, kNan}, {0.5, -kInf, kInf},
      {-0.5, -kInf, kInf}, {2, -kInf, 0.0},       {0.5, kInf, 0.0},    {-2, kInf, kInf},   {2, kInf, kInf},
      {-kInf, -3, -0.0},   {-kInf, -2, 0.0},      {-kInf, -0.5, 0.0},  {-kInf, 3, -kInf},  {-kInf, 2, kInf},
      {-kInf, 0.5, kInf},  {kInf, -1, 0.0},       {kInf, 1, kInf},     {0.0, kInf, 0.0},   {0.0, -kInf, kInf},
      {-0.0, kInf, 0.0},   {-0.0, -kInf, kInf},   {kNan, 1, kNan},     {2, kNan, kNan},    {-1, kNan, kNan},
      {0.0, kNan, kNan},   {kNan, kNan, kNan},    {-2, 3, -8},         {-1, 16777215, -1}, {-1, 16777216, 1},
      {-1, 8388607, -1},   {-1, 8388607.5, kNan}, {2, -149, 0x1p-149},
  };
  for (auto [x, y, want] : kCases) {
    EXPECT_EQ(error_in_ulp(pow_32(static_cast<float>(x), static_cast<float>(y)), want), 0) << x << " ^ " << y;
    EXPECT_EQ(error_in_ulp(pow_64(x, y), static_cast<long double>(want)), 0) << x << " ^ " << y;
  }
}

/// One dynamically typed value computes the same bits; ops are counted on the way.
template <class F>
int check_trace(auto run, auto trace) {
  int ops = 0;
  around_hard_places<F>(0, [&](F x) {
    Trace::get().clear();
    Traced y = trace(constant("x", Host<F>{x}));
    F want = run(x), got = std::get<Host<F>>(Trace::get().value(y)).v;
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
        << x;
    ops = Trace::get().ops();
  });
  return ops;
}

TEST(Functions, DynamicValuesAgreeAndCostWhatTheTableSays) {
  auto check = [](const char* name, int ops, int expected) {
    std::printf("%-9s %4d ops\n", name, ops);
    EXPECT_EQ(ops, expected) << name;
  };
  for (const auto& row : kRows32) check(row.name, check_trace<float>(row.run, row.trace), row.ops);
  for (const auto& row : kRows64) check(row.name, check_trace<double>(row.run, row.trace), row.ops);
  auto y = [](auto v) { return constant("y", Host<decltype(v)>{v}); };
  check("pow_f32",
        check_trace<float>([](float x) { return pow_32(x, 2.5F); },
                           [&](Traced x) { return fn::pow_f32(x, y(2.5F)); }),
        kPowOps32);
  check("pow_f64",
        check_trace<double>([](double x) { return pow_64(x, -3.0); },
                            [&](Traced x) { return fn::pow_f64(x, y(-3.0)); }),
        kPowOps64);
}

/// The decompositions of nodes: over a constant they fold to the bits that Host values give.
TEST(Functions, NodesFoldToTheSameBits) {
  GraphScope scope;
  Target bare;
  auto folds_to = [&](Op op, DType t, double want, std::initializer_list<double> args) {
    std::vector<Ref> srcs;
    for (double x : args) srcs.push_back(float_const(t, x));
    Ref y = rewrite(alu(op, srcs), rules::decompose(), {.name = "decompose", .ctx = &bare});
    ASSERT_TRUE(y.is_const()) << info(op).name;
    double got = y.f();
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
        << info(op).name << " of " << *args.begin() << " is " << want << ", folded to " << got;
  };
  constexpr Op kOps[] = {Op::Exp, Op::Exp2, Op::Log,  Op::Log2,
                         Op::Sin, Op::Cos,  Op::Tanh, Op::Erf};  // as the rows
  for (double x : {0.0, -0.0, 1.0, kInf, -kInf, kNan, 0x1p-140, 0x1p-1060, 0.3, -0.8, 1.5, -7.0, 88.5,
                   0x1p100, 0x1p900}) {
    float narrow = static_cast<float>(x);
    for (std::size_t i = 0; i < std::size(kOps); ++i) {
      folds_to(kOps[i], f32, kRows32[i].run(narrow), {narrow});
      folds_to(kOps[i], f64, kRows64[i].run(x), {x});
    }
    for (double y : {0.0, 3.0, -2.5, kInf, kNan}) {
      folds_to(Op::Pow, f32, pow_32(narrow, static_cast<float>(y)), {narrow, y});
      folds_to(Op::Pow, f64, pow_64(x, y), {x, y});
    }
  }
}

}  // namespace
}  // namespace pg::test
