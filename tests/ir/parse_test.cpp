// Text to graph: what is printed reads back as the same node, what people write means what it says, and what
// is wrong is refused with its place.
#include "ir/parse.h"

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/print.h"

namespace pg {
namespace {

Ref shape_of_sizes(std::initializer_list<std::int64_t> sizes) {
  return shape_node(Dims(sizes.begin(), sizes.size()));
}

constexpr ParseOptions kCanonical{.canonical = true};

void expect_round_trip(Ref n) {
  for (std::size_t width : {0u, 60u, 400u}) {
    std::string text = print(n, {.inline_width = width});
    Ref back;
    try {
      back = parse(text);
    } catch (const ValueError& e) {
      FAIL() << e.what() << "\n" << text;
    }
    ASSERT_TRUE(same(back, n)) << text << "reads as\n" << print(back);
  }
}

// Arguments that are read back by this reader: interned, as payloads whose text stands for them must be.
struct Note final : Payload {
  std::string body;
  std::string text() const override { return "note{" + body + '}'; }
  void release() override {}
};
Payload* note(std::string_view body) {
  static auto& notes = *new std::map<std::string, Note*, std::less<>>;
  auto it = notes.find(body);
  if (it == notes.end()) {
    it = notes.emplace(std::string(body), new Note).first;
    it->second->body = body;
  }
  return it->second;
}
struct Storage final : Payload {
  std::string text() const override { return "#buffer3"; }
};

std::string error_of(std::string_view text) {
  GraphScope scope;
  try {
    parse(text);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "no error";
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  std::uint64_t bits() { return engine_(); }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<std::int64_t>(of.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// Any node at all: also those that no stage would allow, since text is how one looks at them.
Ref random_node(Random& random, Op op, const std::vector<Ref>& pool, Ref shape) {
  const OpInfo& row = info(op);
  auto nsrc = static_cast<int>(row.nsrc >= 0 ? row.nsrc : random.below(5));
  bool first_is_shape = op == Op::Buffer || op == Op::Param || op == Op::Arange;
  if (first_is_shape && nsrc == 0) nsrc = 1;
  std::vector<Ref> srcs;
  for (int k = 0; k < nsrc; ++k)
    srcs.push_back(pool[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(pool.size())))]);
  if (first_is_shape) srcs[0] = shape;
  if (op == Op::Reshape || op == Op::Expand || op == Op::Pad || op == Op::Shrink)
    for (std::size_t k = 1; k < srcs.size(); ++k) srcs[k] = shape;
  auto type = static_cast<DType>(random.below(kDTypeCount));
  int lanes = random.pick({1, 1, 1, 2, 4, 8, 3});
  if (!srcs.empty() && random.below(3)) {
    type = srcs.back().dtype();
    lanes = srcs.back().lanes();
  }
  Arg arg;
  auto raw = static_cast<std::int64_t>(random.bits());
  switch (row.arg) {
    case ArgKind::None:
      arg.i = random.below(8) ? 0 : raw;
      break;
    case ArgKind::Int:
      arg.i = random.below(2) ? random.below(8) : raw;
      break;
    case ArgKind::Value:
      arg.i = random.pick(
          {raw, random.below(9),
           static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(static_cast<double>(raw) / 7))});
      break;
    case ArgKind::Range:
      arg.i = random.below(2) ? random.below(9) << 8 | random.below(11) : raw;
      break;
    case ArgKind::Reduce:
      arg = random.below(2)
                ? reduce_arg(random.pick({Op::Add, Op::Max}), static_cast<std::uint64_t>(random.below(9)))
                : Arg{.i = raw};
      break;
    case ArgKind::Ints: {
      std::vector<std::int64_t> values;
      for (int i = 0; i < random.below(4); ++i)
        values.push_back(random.below(2) ? random.below(9) : static_cast<std::int64_t>(random.bits()));
      arg.p = op == Op::Shape && !srcs.empty() && random.below(4) ? nullptr : ints_payload(values);
      break;
    }
    case ArgKind::Str:
      arg.p = str_payload(random.pick({"n", "CPU:0", "a \"b\"\n\\\x01", "", "inf", "v3"}));
      break;
    case ArgKind::Object:
      arg.p = random.below(2) ? note(random.pick({"", "a: [1, 2], s: \"}]\"", "two\nlines"})) : nullptr;
      break;
  }
  return intern(op, type, lanes, srcs, arg);
}

TEST(Parse, EveryOpWithAnyArgumentRoundTrips) {
  register_object("note", note);
  for (unsigned seed = 0; seed < 300; ++seed) {
    GraphScope scope;
    Random random(seed);
    Ref shape = shape_of_sizes({4, 2});
    std::vector<Ref> pool{idx(3), shape};
    for (int k = 0; k < 60; ++k) {
      Ref n = random_node(random, static_cast<Op>(random.below(kOpCount)), pool, shape);
      pool.push_back(n);
      if (n.is(Op::Shape) && random.below(2)) shape = n;
    }
    for (Ref n : pool) {
      expect_round_trip(n);
      if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
}

TEST(Parse, EveryOpAppearsInTheRandomGraphs) {
  GraphScope scope;
  Random random(1);
  register_object("note", note);
  Ref shape = shape_of_sizes({4, 2});
  for (int op = 0; op < kOpCount; ++op)
    for (int k = 0; k < 20; ++k)
      expect_round_trip(random_node(random, static_cast<Op>(op), {idx(3), int_const(i32, 1), shape}, shape));
}

TEST(Parse, ConstantsOfEveryTypeKeepTheirBits) {
  GraphScope scope;
  const double inf = std::numeric_limits<double>::infinity();
  for (DType t : {f16, bf16, f32, f64, DType::WeakFloat})
    for (double v : {0.0, -0.0, 0.1, -1.5, 1e-40, 5e-324, 65504.0, 3.4e38, 1.7976931348623157e308, inf, -inf,
                     std::nan("")}) {
      Ref c = float_const(t, v);
      expect_round_trip(c);
      expect_round_trip(splat(c, 4));
    }
  Random random(3);
  for (int k = 0; k < 2000; ++k) {
    expect_round_trip(float_const(
        f32, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(random.bits())))));
    expect_round_trip(float_const(f64, std::bit_cast<double>(random.bits())));
    for (DType t : {boolean, DType::WeakInt, i8, u8, i16, u16, i32, u32, i64, u64})
      expect_round_trip(int_const(t, static_cast<std::int64_t>(random.bits())));
  }
  expect_round_trip(intern(Op::Const, f32, 1, {}, Arg{.f = 0.1}));  // not a value of its type
  expect_round_trip(intern(Op::Const, i8, 1, {}, Arg{.i = 300}));
  expect_round_trip(intern(Op::Const, f64, 1, {}, Arg{.i = 0x7ff8000000000001}));
  expect_round_trip(idx(std::numeric_limits<std::int64_t>::min()));
}

TEST(Parse, OperatorsBindAsInCpp) {
  GraphScope scope;
  std::map<std::string, Ref, std::less<>> names;
  Ref a = names["a"] = range(0, RangeKind::Loop, idx(8)), b = names["b"] = range(1, RangeKind::Loop, idx(8));
  Ref x = names["x"] = param(0, f32, shape_of_sizes({}));
  auto read = [&](std::string_view text) { return parse(text, {.canonical = true, .names = &names}); };
  EXPECT_TRUE(same(read("a*4 + b % 8"), a * 4 + b % 8));
  EXPECT_TRUE(same(read("a - b - 1"), a - b - 1));
  EXPECT_TRUE(same(read("a + 1 << 2 | b"), ((a + 1) << idx(2)) | b));
  EXPECT_TRUE(same(read("a < 4 & b < 3"), (a < 4) & (b < 3)));
  EXPECT_TRUE(same(read("a > b"), b < a));
  EXPECT_TRUE(same(read("a >= b"), ge(a, b)));
  EXPECT_TRUE(same(read("a <= 3"), ge(idx(3), a)));
  EXPECT_TRUE(same(read("!(a == b)"), logical_not(eq(a, b))));
  EXPECT_TRUE(same(read("-a*-2"), (-a) * -2));
  EXPECT_TRUE(same(read("a / 2"), a / 2));
  EXPECT_TRUE(same(read("x / 2"), x / const_like(x, 2)));
  EXPECT_TRUE(same(read("Where(a < 3, x, 0)"), where(a < 3, x, const_like(x, 0))));
  EXPECT_TRUE(same(read("(2*4, 8)"), shape_of_sizes({8, 8})));
  EXPECT_TRUE(same(read("1 + 2"), idx(3)));
}

TEST(Parse, PeopleMayWriteItLoosely) {
  GraphScope scope;
  Ref n = parse(
      "# a comment\n\n"
      "  p = Param.f32[0](  # another\n"
      "        (4,\n"
      "         8,))  \r\n"
      "axes = (8, 4); Permute[1, 0](p)\n\n",
      kCanonical);
  EXPECT_TRUE(
      same(n, permute(param(0, f32, shape_of_sizes({4, 8})), Dims(std::array<std::int64_t, 2>{1, 0}))));
}

TEST(Parse, NamesGoInAndOut) {
  GraphScope scope;
  std::map<std::string, Ref, std::less<>> names{{"n", var("n", 1, 9)}};
  parse("m = n * 2\nk = m + 1", {.canonical = true, .names = &names});
  EXPECT_TRUE(same(parse("k - m", {.names = &names}), names["k"] - names["m"]));
}

TEST(Parse, ErrorsSayWhere) {
  EXPECT_EQ(error_of(""), "[parse] 1:1: expected a graph, found nothing");
  EXPECT_EQ(error_of("a = 1\na + b"), "[parse] 2:5: nothing is named \"b\"");
  EXPECT_EQ(error_of("a = 1\na = 2"), "[parse] 2:1: \"a\" is defined twice");
  EXPECT_EQ(error_of("Foo(1)"), "[parse] 1:1: there is no op named \"Foo\"");
  EXPECT_EQ(error_of("Where(true, 1)"), "[parse] 1:1: Where takes 3 sources, not 2");
  EXPECT_EQ(error_of("Cast(1)"), "[parse] 1:1: Cast needs a type: Cast.f32");
  EXPECT_EQ(error_of("Cast.f33(1)"), "[parse] 1:6: expected a type such as f32 or i32x8, found \"f33\"");
  EXPECT_EQ(error_of("1:i32 + 1.5"), "[parse] 1:9: 1.5 is no constant of type i32");
  EXPECT_EQ(error_of("256:u8"), "[parse] 1:1: the number is out of range");
  EXPECT_EQ(error_of("1e40:f32"), "[parse] 1:1: the number is out of range");
  EXPECT_EQ(error_of("(1, 2"), "[parse] 1:6: expected ')', found the end");
  EXPECT_EQ(error_of("1 2"), "[parse] 1:3: expected an operator or the end of the line");
  EXPECT_EQ(error_of("Reshape(1:f32,\n 4)"), "[parse] 1:1: source 1 of Reshape must be a shape");
  EXPECT_EQ(error_of("Range[0, loup](4)"), "[parse] 1:10: expected a kind of range, such as loop or reduce");
  EXPECT_EQ(error_of("Range(4)"), "[parse] 1:6: Range needs an argument in [ ]");
  EXPECT_EQ(error_of("Var[\"n](1, 2)"), "[parse] 1:5: the string does not end on its line");
  EXPECT_EQ(error_of("12ab"), "[parse] 1:3: a number cannot go on like this");
  EXPECT_EQ(error_of("\n\n  Sink(1,\n  2,\n  @)"), "[parse] 5:3: expected a node, found '@'");
  EXPECT_EQ(error_of(std::string(100000, '(')), "[parse] 1:302: nested too deep");
  EXPECT_EQ(error_of(std::string(100000, '-')), "[parse] 1:302: nested too deep");
}

TEST(Parse, StorageCannotBeRead) {
  GraphScope scope;
  Ref buffer = make(Op::Buffer, f32, {shape_of_sizes({4})}, Arg{.p = object_payload(new Storage)});
  EXPECT_EQ(print(buffer), "Buffer.f32[#buffer3]((4,))\n");
  EXPECT_EQ(error_of(print(buffer)),
            "[parse] 1:12: an argument like #buffer3 cannot be read from text: it stands for something of "
            "this process, or no "
            "reader is registered for it");
}

TEST(Parse, AReadersErrorGetsAPlace) {
  register_object("fussy", [](std::string_view) -> Payload* { throw ValueError("[fussy] no"); });
  EXPECT_EQ(error_of("\n Sink[fussy{1}]()"), "[parse] 2:7: [fussy] no");
}

// Damaged text is refused or means something; it never does harm. What it means prints and reads back.
TEST(Parse, DamagedTextIsRefusedOrRead) {
  register_object("note", note);
  const char* seeds[] = {
      R"(p0 = Param.f32[0]((32,))
r0 = Range[0, global](8)
r1 = Range[1, reduce](4)
v0 = Reduce[Add](Load(Index(p0, r0*4 + r1)), r1)
Sink[note{a: [1]}](End(Store(Index(p0, r0), v0 + 1.0), r0)))",
      "n = Var[\"n\"](1, 10)\nx = Param.f64[0]((n, 8))\nPad(Permute[1, 0](x), (8, n + 2), (0, 1))\n",
      "a = Iota.i32x8\nWhere(a < 3 & !(a == 4), Cast.f32x8(a)*-inf, 2.5e-3) / 3\n",
      "(1:u64 << 3) % 7 ^ Shr(-9223372036854775808, 2) / -1\nConst.f32[0x7fc00001]\n",
      R"(q = Param.i32[4294967296]((9223372036854775807, 9223372036854775807), Device["CPU"])
Arange.i32((9223372036854775807,)))",
  };
  const char* pieces[] = {"(",
                          ")",
                          "[",
                          "]",
                          ",",
                          "=",
                          "\n",
                          "-",
                          "!",
                          "0",
                          "9223372036854775807",
                          "-9223372036854775808",
                          "1e308",
                          "nan",
                          "true",
                          ":i32x8",
                          ":u64",
                          ".f16",
                          "Range[1, loop]",
                          "Shape",
                          "Sqrt",
                          "Splat.f32x4",
                          "CDiv",
                          "#",
                          "\"",
                          "r0",
                          "{",
                          "()"};
  int read = 0, refused = 0;
  for (unsigned seed = 0; seed < 8000; ++seed) {
    Random random(seed);
    std::string text = seeds[seed % std::size(seeds)];
    for (std::int64_t k = 0, n = 1 + random.below(4); k < n; ++k) {
      auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())));
      switch (random.below(5)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, static_cast<std::size_t>(random.below(12)));
          break;
        case 2:
          text.insert(
              at,
              pieces[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(std::size(pieces))))]);
          break;
        case 3:
          text.insert(
              at, text.substr(static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size()))),
                              10));
          break;
        default:
          text[at] = static_cast<char>('0' + random.below(10));
          break;
      }
      if (text.empty()) text = "1";
    }
    GraphScope scope;
    for (bool canonical : {false, true}) {
      try {
        Ref n = parse(text, {.canonical = canonical});
        ++read;
        expect_round_trip(n);
        if (HasFatalFailure()) FAIL() << "seed " << seed;
      } catch (const ValueError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(Parse, AVeryDeepGraphRoundTrips) {
  GraphScope scope;
  Ref a = range(0, RangeKind::Loop, idx(8)), deep = a;
  for (int k = 0; k < 100'000; ++k) deep = (deep ^ a) + idx(k);
  std::string text = print(deep);
  auto start = std::chrono::steady_clock::now();
  Ref back = parse(text);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_TRUE(same(back, deep));
  RecordProperty("megabytes_per_second", std::to_string(static_cast<double>(text.size()) / 1e6 / seconds));
}

}  // namespace
}  // namespace pg
