// Options change how a kernel runs, never what it gives: each kind, and lists of them drawn at random,
// against the kernel without any, on the interpreter and both renderers of the CPU. Data are small whole
// numbers, so sums are exact in any order.
#include "codegen/options.h"

#include <random>

#include "codegen/choose.h"
#include "codegen/compile.h"
#include "codegen/kernel.h"
#include "codegen/scatter.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "programs/run.h"

namespace pg::codegen {
namespace {

using test::Array;

struct Case {
  const char* name;
  const char* text;
  std::vector<std::size_t> sizes;  // of buffers by slot; the first is written
};

const Case kCases[] = {
    {"elementwise",
     R"(
      p0 = Param.f32[0]((120,))
      p1 = Param.f32[1]((120,))
      r0 = Range[0, loop](12)
      r1 = Range[1, loop](10)
      Sink(End(Store(Index(p0, r0*10 + r1), Load(Index(p1, r1*12 + r0))*2.0 + 1.0), r0, r1)))",
     {120, 120}},
    {"sum of rows",
     R"(
      p0 = Param.f32[0]((12,))
      p1 = Param.f32[1]((228,))
      r0 = Range[0, loop](12)
      r1 = Range[1, reduce](19)
      Sink(End(Store(Index(p0, r0), Reduce[Add](Load(Index(p1, r0*19 + r1)), r1)*3.0), r0)))",
     {12, 228}},
    {"product of matrices",
     R"(
      p0 = Param.f32[0]((168,))
      p1 = Param.f32[1]((108,))
      p2 = Param.f32[2]((126,))
      r0 = Range[0, loop](12)
      r1 = Range[1, loop](14)
      r2 = Range[2, reduce](9)
      v = Load(Index(p1, r0*9 + r2))*Load(Index(p2, r2*14 + r1))
      Sink(End(Store(Index(p0, r0*14 + r1), Reduce[Add](v, r2)), r0, r1)))",
     {168, 108, 126}},
    {"maximum of a window with a border",
     R"(
      p0 = Param.f32[0]((16,))
      p1 = Param.f32[1]((16,))
      r0 = Range[0, loop](16)
      r1 = Range[1, reduce](5)
      at = r0 + r1 - 2
      in = 1 < r0 + r1 & r0 + r1 < 18
      v = Load(Index(p1, at, in), -9.0:f32)
      Sink(End(Store(Index(p0, r0), Reduce[Max](v, r1)), r0)))",
     {16, 16}},
    {"convolution with a border",
     R"(
      p0 = Param.f32[0]((168,))
      p1 = Param.f32[1]((144,))
      p2 = Param.f32[2]((54,))
      r0 = Range[0, loop](2)
      r1 = Range[1, loop](3)
      r2 = Range[2, loop](4)
      r3 = Range[3, loop](7)
      r4 = Range[4, reduce](2)
      r5 = Range[5, reduce](3)
      r6 = Range[6, reduce](3)
      y = r2*2 + r5
      x = r3 + r6
      in = 0 < y & y < 7 & 0 < x & x < 7
      v = Load(Index(p1, r0*72 + r4*36 + y*6 + x - 7, in))*Load(Index(p2, r1*18 + r4*9 + r5*3 + r6))
      Sink(End(Store(Index(p0, ((r0*3 + r1)*4 + r2)*7 + r3), Reduce[Add](v, r4, r5, r6)), r0, r1, r2, r3)))",
     {168, 144, 54}},
    {"sums of which some add up nothing",
     R"(
      p0 = Param.f32[0]((24,))
      p1 = Param.f32[1]((96,))
      r0 = Range[0, loop](6)
      r1 = Range[1, loop](4)
      r2 = Range[2, reduce](8)
      in = r1 < 2
      v = Where(in, Load(Index(p1, r0*16 + r1*8 + r2, in)), 0.0:f32)
      Sink(End(Store(Index(p0, r0*4 + r1), Reduce[Add](v, r2)*3.0), r0, r1)))",
     {24, 96}},
    {"two sums of integers",
     R"(
      p0 = Param.i32[0]((6,))
      p1 = Param.i32[1]((288,))
      r0 = Range[0, loop](6)
      r1 = Range[1, reduce](8)
      r2 = Range[2, reduce](6)
      v = Load(Index(p1, (r0*8 + r1)*6 + r2))
      Sink(End(Store(Index(p0, r0), Reduce[Add](v + Cast.i32(r2), r1, r2)), r0)))",
     {6, 288}},
    {"product with scaled bytes",
     R"(
      p0 = Param.f32[0]((168,))
      p1 = Param.f32[1]((108,))
      p2 = Param.i8[2]((126,))
      p3 = Param.f32[3]((42,))
      r0 = Range[0, loop](12)
      r1 = Range[1, loop](14)
      r2 = Range[2, reduce](9)
      w = Cast.f32(Load(Index(p2, r2*14 + r1)))*Load(Index(p3, r2/3*14 + r1))
      Sink(End(Store(Index(p0, r0*14 + r1), Reduce[Add](Load(Index(p1, r0*9 + r2))*w, r2)), r0, r1)))",
     {168, 108, 126, 42}},
    {"product of bytes",
     R"(
      p0 = Param.i32[0]((168,))
      p1 = Param.i8[1]((228,))
      p2 = Param.i8[2]((266,))
      r0 = Range[0, loop](12)
      r1 = Range[1, loop](14)
      r2 = Range[2, reduce](19)
      v = Cast.i32(Load(Index(p1, r0*19 + r2)))*Cast.i32(Load(Index(p2, r2*14 + r1)))
      Sink(End(Store(Index(p0, r0*14 + r1), Reduce[Add](v, r2)), r0, r1)))",
     {168, 228, 266}},
};

std::vector<Array> data(Ref kernel, const Case& c, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<DType> types(c.sizes.size(), f32);
  for (Ref n : toposort(kernel))
    if (n.is(Op::Param)) types[static_cast<std::size_t>(n.i())] = n.dtype();
  std::vector<Array> out;
  for (std::size_t b = 0; b < c.sizes.size(); ++b) {
    std::vector<double> values;
    for (std::size_t i = 0; i < c.sizes[b]; ++i) values.push_back(static_cast<double>(random() % 17) - 8);
    out.push_back(Array::of(types[b], values));
  }
  return out;
}

// What the kernel gives on the interpreter.
std::vector<Array> interpreted(Ref kernel, const std::vector<Opt>& options, const std::vector<Array>& buffers,
                               const Target& target) {
  Ref linear = lower_with(kernel, options, target);
  rules::verify(linear, rules::Stage::Program, "test");
  auto run = test::interp_backend().load(linear, program_info(linear, "kernel", target), target);
  test::Memories memories;
  for (const Array& a : buffers) memories.push_back(std::make_unique<test::GuardedMemory>(a, false));
  run(memories, {});
  std::vector<Array> out = buffers;
  for (std::size_t b = 0; b < out.size(); ++b) memories[b]->read(out[b]);
  return out;
}

std::string text(const std::vector<Opt>& options) {
  std::string out;
  for (const Opt& o : options) out += to_string(o) + " ";
  return out;
}

// One that fits the kernel with the options so far; none if the draw does not.
bool draw(std::mt19937& random, Ref& kernel, std::vector<Opt>& options, bool groups) {
  Target target = groups ? Target::interp_gpu() : Target::host_cpu();
  Kernel k(kernel);
  std::size_t loop = random() % k.loops.size();
  Opt o{OptKind::Split, k.loops[loop].range_id(), static_cast<std::int64_t>(1 << (1 + random() % 3))};
  if (random() % 4 == 0) o.amount = 3;
  switch (random() % (groups ? 8 : 6)) {
    case 0:
      o.kind = OptKind::Split;
      break;
    case 1:
      o.kind = k.is_reduce(loop) ? OptKind::Unroll : OptKind::Upcast;
      break;
    case 2:
      o.kind = OptKind::Lane;
      o.amount = 1 << (1 + random() % 3);
      break;
    case 3:
      o.kind = groups ? OptKind::Local : OptKind::Thread;
      break;
    case 4:
      o.kind = OptKind::PadTo;
      break;
    case 6:
      o.kind = OptKind::Group;
      break;
    case 7:
      o.kind = OptKind::Local;
      break;
    default:
      o = {OptKind::Reorder, o.loop, 0};
  }
  try {
    kernel = apply(kernel, o, target);
  } catch (const ValueError&) {
    return false;
  }
  options.push_back(o);
  return true;
}

class Options : public testing::TestWithParam<Case> {
 protected:
  // On a CPU, or on a device with groups, threads of a warp and a matrix unit.
  void expect_same(const std::vector<Opt>& options, bool groups = false) {
    GraphScope scope;
    SCOPED_TRACE(text(options));
    UOp kernel = parse(GetParam().text);
    rules::verify(kernel, rules::Stage::Kernel, "test");
    Target target = Target::host_cpu();
    std::vector<Array> buffers = data(kernel, GetParam(), 1);
    std::vector<Array> plain = interpreted(kernel, {}, buffers, target);
    if (!groups)
      return test::expect_all(lower_with(kernel, options, target), buffers, plain, {}, false, target);
    std::vector<Array> got = interpreted(kernel, options, buffers, Target::interp_gpu());
    for (std::size_t b = 0; b < got.size(); ++b) EXPECT_EQ(got[b].bits, plain[b].bits) << "buffer " << b;
  }
};

TEST_P(Options, EachKindAlone) {
  std::vector<Opt> singles;
  {
    GraphScope scope;
    UOp kernel = parse(GetParam().text);
    Kernel k(kernel);
    for (std::size_t i = 0; i < k.loops.size(); ++i) {
      std::int64_t id = k.loops[i].range_id();
      singles.push_back({OptKind::Split, id, 4});
      singles.push_back({k.is_reduce(i) ? OptKind::Unroll : OptKind::Upcast, id, 4});
      singles.push_back({OptKind::Lane, id, 4});
      singles.push_back({OptKind::PadTo, id, 8});
      singles.push_back({OptKind::Reorder, id, 0});
      if (!k.is_reduce(i)) singles.push_back({OptKind::Thread, id, 3});
    }
  }
  for (const Opt& o : singles) expect_same({o});
}

TEST_P(Options, EachKindOfGroupsAlone) {
  std::vector<Opt> singles;
  {
    GraphScope scope;
    UOp kernel = parse(GetParam().text);
    Kernel k(kernel);
    for (std::size_t i = 0; i < k.loops.size(); ++i)
      for (std::int64_t amount : {2, 5, 8})
        singles.push_back({k.is_reduce(i) ? OptKind::Group : OptKind::Local, k.loops[i].range_id(), amount});
  }
  for (const Opt& o : singles) expect_same({o}, true);
}

// Panels of what a reduction reads, alone and after other options, for all of the kernel and within each
// loop.
TEST_P(Options, Panels) {
  std::mt19937 random(11);
  int staged = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<Opt> options;
    {
      GraphScope scope;
      UOp keep = parse(GetParam().text);
      Ref kernel = keep;
      for (int tries = 0; tries < round && options.size() < 4; ++tries) draw(random, kernel, options, false);
      Kernel k(kernel);
      for (std::int64_t slot = 1; slot < static_cast<std::int64_t>(GetParam().sizes.size()); ++slot) {
        std::size_t at = random() % (k.outputs + 1);
        bool whole = at == k.outputs || k.loops[at].range_kind() != RangeKind::Loop;
        Opt o{OptKind::Stage, whole ? kWholeKernel : k.loops[at].range_id(), slot};
        try {
          kernel = apply(kernel, o, Target::host_cpu());
          options.push_back(o);
          ++staged;
        } catch (const ValueError&) {
          continue;
        }
      }
    }
    expect_same(options);
  }
  EXPECT_GT(staged, 0);
}

TEST_P(Options, ListsDrawnAtRandom) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    bool groups = round % 2;
    std::vector<Opt> options;
    {
      GraphScope scope;
      UOp keep = parse(GetParam().text);
      Ref kernel = keep;
      for (int tries = 0; tries < 12 && options.size() < 4; ++tries) draw(random, kernel, options, groups);
    }
    expect_same(options, groups);
  }
}

TEST_P(Options, ThoseTheCostModelChooses) {
  for (bool groups : {false, true}) {
    std::vector<Opt> options;
    {
      GraphScope scope;
      UOp keep = parse(GetParam().text);
      options = choose_options(keep, groups ? Target::interp_gpu() : Target::host_cpu());
    }
    expect_same(options, groups);
  }
}

// On a machine with caches so small, and cores so many, that small kernels get the blocks, panels and chunks
// of large ones.
TEST(Panels, OfManyCoresWithSmallCaches) {
  bool split = false, staged = false;
  for (std::int64_t m : {61, 112, 200, 400})
    for (std::int64_t n : {33, 64, 160}) {
      std::int64_t k = 40000 / (m * n) + 17;
      for (int cores : {1, 2, 3, 8})
        for (bool transposed : {false, true}) {
          GraphScope scope;
          Ref p0 = param(0, f32, shape_node(Dims(std::array{m * n}))),
              p1 = param(1, f32, shape_node(Dims(std::array{m * k}))),
              p2 = param(2, f32, shape_node(Dims(std::array{k * n})));
          Ref i = range(0, RangeKind::Loop, idx(m)), j = range(1, RangeKind::Loop, idx(n)),
              l = range(2, RangeKind::Reduce, idx(k));
          auto read = [](Ref p, Ref at) {
            return make(Op::Load, p.dtype(), {make(Op::Index, p.dtype(), {p, at})});
          };
          Ref product =
              read(p1, transposed ? l * m + i : i * k + l) * read(p2, transposed ? j * k + l : l * n + j);
          Ref sum = make(Op::Reduce, f32, {product, l}, reduce_arg(Op::Add));
          Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, i * n + j}), sum});
          UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
          Case c{"",
                 "",
                 {static_cast<std::size_t>(m * n), static_cast<std::size_t>(m * k),
                  static_cast<std::size_t>(k * n)}};
          Target small = Target::host_cpu();
          small.l1 = 1 << 10, small.l2 = 1 << 13, small.cores = cores;
          std::vector<Opt> options = choose_options(kernel, small);
          for (const Opt& o : options) {
            split |= o.kind == OptKind::Split;
            staged |= o.kind == OptKind::Stage;
          }
          SCOPED_TRACE(text(options));
          std::vector<Array> buffers = data(kernel, c, 4),
                             plain = interpreted(kernel, {}, buffers, Target::host_cpu()),
                             got = interpreted(kernel, options, buffers, Target::host_cpu());
          EXPECT_EQ(got[0].bits, plain[0].bits) << m << " " << n << " " << k << " " << cores;
        }
    }
  EXPECT_TRUE(split && staged) << "no kernel was blocked";
}

// Products of a batch of images and one matrix of weights: panels hold a block of an image, or an image, not
// the batch.
TEST(Panels, OfABatchOfImages) {
  bool blocks = false, images = false;
  struct Size {
    std::int64_t batch, filters, pixels, channels;
  };
  for (auto [b, f, p, c] : {Size{3, 24, 160, 17}, Size{4, 37, 49, 32}, Size{5, 16, 33, 48},
                            Size{2, 64, 14, 96}, Size{6, 30, 7, 128}})
    for (std::int64_t step : {1, 2})
      for (int cores : {1, 2, 3}) {
        GraphScope scope;
        std::int64_t image = c * p * step;
        Ref p0 = param(0, f32, shape_node(Dims(std::array{b * f * p}))),
            p1 = param(1, f32, shape_node(Dims(std::array{b * image}))),
            p2 = param(2, f32, shape_node(Dims(std::array{f * c})));
        Ref i = range(0, RangeKind::Loop, idx(b)), j = range(1, RangeKind::Loop, idx(f)),
            k = range(2, RangeKind::Loop, idx(p)), l = range(3, RangeKind::Reduce, idx(c));
        auto read = [](Ref from, Ref at) {
          return make(Op::Load, from.dtype(), {make(Op::Index, from.dtype(), {from, at})});
        };
        Ref product = read(p1, i * image + l * (p * step) + k * step) * read(p2, j * c + l);
        Ref sum = make(Op::Reduce, f32, {product, l}, reduce_arg(Op::Add));
        Ref at = i * (f * p) + j * p + k;
        Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, at}), sum});
        UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j, k})});
        Case sizes{"",
                   "",
                   {static_cast<std::size_t>(b * f * p), static_cast<std::size_t>(b * image),
                    static_cast<std::size_t>(f * c)}};
        Target small = Target::host_cpu();
        small.l1 = 1 << 10, small.l2 = 1 << 13, small.cores = cores;
        std::vector<Opt> options = choose_options(kernel, small);
        for (const Opt& o : options) {
          blocks |= o.kind == OptKind::Stage && o.amount == 1 && o.loop == 2;
          images |= o.kind == OptKind::Stage && o.amount == 1 && o.loop == 0;
        }
        SCOPED_TRACE(text(options));
        std::vector<Array> buffers = data(kernel, sizes, 4),
                           plain = interpreted(kernel, {}, buffers, Target::host_cpu()),
                           got = interpreted(kernel, options, buffers, Target::host_cpu());
        EXPECT_EQ(got[0].bits, plain[0].bits) << b << " " << f << " " << p << " " << c << " " << cores;
      }
  EXPECT_TRUE(blocks && images) << "no panel of a part of the batch";
}

// A box with its border of zeros, alone and under other options.
TEST(Windows, GiveWhatTheGatesGive) {
  const Case& c = *std::find_if(std::begin(kCases), std::end(kCases), [](const Case& each) {
    return each.name == std::string("convolution with a border");
  });
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    GraphScope scope;
    UOp kernel = parse(c.text);
    Target target = Target::host_cpu();
    std::vector<Array> buffers = data(kernel, c, 2), plain = interpreted(kernel, {}, buffers, target);
    std::vector<Opt> options{{OptKind::Window, 0, 1}};
    Ref so_far = apply(kernel, options[0], target);
    for (Ref n : toposort(so_far))
      EXPECT_FALSE(n.is(Op::Reduce) && n.src(0).is(Op::Where)) << "the gate is still there";
    for (int tries = 0; tries < round; ++tries) draw(random, so_far, options, false);
    SCOPED_TRACE(text(options));
    test::expect_all(lower_with(kernel, options, target), buffers, plain, {}, false, target);
  }
  GraphScope scope;
  EXPECT_THROW(apply(parse(c.text), {OptKind::Window, 0, 2}, Target::host_cpu()), ValueError);
}

// Stores past the caches: into memory that is aligned for them and into memory that is not, by both
// renderers.
TEST(Streams, GiveWhatStoresGive) {
  for (std::int64_t beyond :
       {0, 3}) {  // elements behind those stored, so that the end of a page is no end of a line
    GraphScope scope;
    constexpr std::int64_t kRows = 6, kColumns = 64;
    Ref p0 = param(0, f32, shape_node(Dims(std::array{kRows * kColumns + beyond}))),
        p1 = param(1, f32, shape_node(Dims(std::array{kRows * kColumns})));
    Ref i = range(0, RangeKind::Loop, idx(kRows)), j = range(1, RangeKind::Loop, idx(kColumns));
    Ref x = make(Op::Load, f32, {make(Op::Index, f32, {p1, i * kColumns + j})});
    Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, i * kColumns + j}), x * x});
    UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
    Case c{"", "", {static_cast<std::size_t>(kRows * kColumns + beyond), kRows * kColumns}};
    Target target = Target::host_cpu();
    std::vector<Array> buffers = data(kernel, c, 6), plain = interpreted(kernel, {}, buffers, target);
    for (std::int64_t lanes : {4, 16, 64}) {
      std::vector<Opt> options{{OptKind::Lane, 1, lanes}, {OptKind::Thread, 0, 2}, {OptKind::Stream, 0, 0}};
      SCOPED_TRACE(text(options));
      Ref linear = lower_with(kernel, options, target);
      EXPECT_NE(render_llvm(linear, program_info(linear, "kernel", target), target).find("!nontemporal"),
                std::string::npos);
      test::expect_all(linear, buffers, plain, {}, false, target);
    }
    EXPECT_THROW(apply(kernel, {OptKind::Stream, 0, 1}, target), ValueError) << "it is read";
    EXPECT_THROW(apply(kernel, {OptKind::Stream, 0, 2}, target), ValueError) << "it is not there";
  }
}

// Past the caches goes what is too large for them, and what the kernel does not read.
TEST(Streams, AreChosenForLargeOutputs) {
  Target target = Target::host_cpu();
  target.stream_bytes = 1 << 20;
  for (std::int64_t n : {1 << 18, 1 << 17})
    for (bool reads : {false, true}) {
      GraphScope scope;
      Ref p0 = param(0, f32, shape_node(Dims(std::array{n}))),
          p1 = param(1, f32, shape_node(Dims(std::array{n})));
      Ref i = range(0, RangeKind::Loop, idx(n));
      auto read = [&](Ref p) { return make(Op::Load, f32, {make(Op::Index, f32, {p, i})}); };
      Ref x = reads ? read(p1) + read(p0) : read(p1) * read(p1);
      Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, i}), x});
      UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i})});
      std::vector<Opt> options = choose_options(kernel, target);
      EXPECT_EQ(
          std::any_of(options.begin(), options.end(), [](const Opt& o) { return o.kind == OptKind::Stream; }),
          n == 1 << 18 && !reads)
          << text(options);
    }
}

// Elements that values name, in order: some twice, some not at all, some out of range; whole rows, with what
// was there before; by threads that share out either loop.
const Case kNamed[] = {
    {"rows",
     R"(
      p0 = Param.f32[0]((704,))
      p1 = Param.i32[1]((40,))
      p2 = Param.f32[2]((1280,))
      r0 = Range[0, loop](22)
      r1 = Range[1, loop](32)
      r2 = Range[2, reduce](40)
      v = Where(Cast.i32(r0) == Load(Index(p1, r2)), Load(Index(p2, r2*32 + r1)), 0.0:f32)
      Sink(End(Store(Index(p0, r0*32 + r1), Reduce[Add](v, r2)), r0, r1)))",
     {704, 40, 1280}},
    {"rows that begin with others",
     R"(
      p0 = Param.f32[0]((147,))
      p1 = Param.i32[1]((40,))
      p2 = Param.f32[2]((280,))
      p3 = Param.f32[3]((147,))
      r0 = Range[0, loop](21)
      r1 = Range[1, loop](7)
      r2 = Range[2, reduce](40)
      v = Where(Cast.i32(r0) == Load(Index(p1, r2)), Load(Index(p2, r2*7 + r1)), 0.0:f32)
      Sink(End(Store(Index(p0, r0*7 + r1), Load(Index(p3, r0*7 + r1)) + Reduce[Add](v, r2)), r0, r1)))",
     {147, 40, 280, 147}},
    {"in place, where something else holds as well",
     R"(
      p0 = Param.i32[0]((51,))
      p1 = Param.i32[1]((51,))
      r0 = Range[0, loop](51)
      r1 = Range[1, reduce](51)
      n = Load(Index(p1, r1))
      v = Where(Cast.i32(r0) == n*2 & r1 < 40, n + Cast.i32(r1), 0)
      Sink(End(Store(Index(p0, r0), Load(Index(p0, r0)) + Reduce[Add](v, r1)), r0)))",
     {51, 51}},
    {"the last of each",
     R"(
      p0 = Param.i32[0]((60,))
      p1 = Param.i32[1]((90,))
      r0 = Range[0, loop](3)
      r1 = Range[1, loop](20)
      r2 = Range[2, reduce](30)
      v = Where(Cast.i32(r1) == Load(Index(p1, r0*30 + r2)), Cast.i32(r2), -1)
      Sink(End(Store(Index(p0, r0*20 + r1), Reduce[Max](v, r2)), r0, r1)))",
     {60, 90}},
    {"whether any",
     R"(
      p0 = Param.bool[0]((33,))
      p1 = Param.i32[1]((19,))
      r0 = Range[0, loop](33)
      r1 = Range[1, reduce](19)
      Sink(End(Store(Index(p0, r0), Reduce[Max](Cast.i32(r0) == Load(Index(p1, r1)), r1)), r0)))",
     {33, 19}},
};
TEST(Scatters, GiveWhatComparingGives) {
  for (const Case& c : kNamed) {
    GraphScope scope;
    UOp kernel = parse(c.text);
    Target target = Target::host_cpu();
    std::vector<Array> buffers = data(kernel, c, 8), plain = interpreted(kernel, {}, buffers, target);
    Ref loop = named_loop(kernel);
    ASSERT_TRUE(loop) << c.name;
    std::vector<std::vector<Opt>> lists{{}, {{OptKind::Thread, loop.range_id(), 2}}};
    Kernel k(kernel);
    for (std::size_t i = 0; i < k.outputs; ++i)
      if (!same(k.loops[i], loop)) {
        std::int64_t id = k.loops[i].range_id();
        lists.push_back({{OptKind::Thread, id, 2}});
        lists.push_back({{OptKind::Lane, id, 4}, {OptKind::Thread, loop.range_id(), 3}});
        lists.push_back({{OptKind::Lane, id, 2}, {OptKind::Upcast, id, 2}});
      }
    for (std::vector<Opt> options : lists) {
      options.push_back({OptKind::Scatter, loop.range_id(), 0});
      SCOPED_TRACE(c.name + (": " + text(options)));
      test::expect_all(lower_with(kernel, options, target), buffers, plain, {}, false, target);
    }
    Target large = target;
    large.stream_bytes = 1;
    std::vector<Opt> chosen = choose_options(kernel, large);
    EXPECT_EQ(chosen.back().kind, OptKind::Scatter) << c.name;
    SCOPED_TRACE(text(chosen));
    test::expect_all(lower_with(kernel, chosen, large), buffers, plain, {}, false, large);
  }
}

// What is no such reduction: the element depends on what is compared, or on something that the sum changes.
TEST(Scatters, AreNotTakenForMore) {
  for (const char* text : {R"(
      p0 = Param.f32[0]((32,))
      p1 = Param.i32[1]((40,))
      r0 = Range[0, loop](32)
      r1 = Range[1, reduce](40)
      v = Where(Cast.i32(r0*2) == Load(Index(p1, r1)), 1.0:f32, 0.0:f32)
      Sink(End(Store(Index(p0, r0), Reduce[Add](v, r1)), r0)))",
                           R"(
      p0 = Param.f32[0]((32,))
      p1 = Param.i32[1]((40,))
      r0 = Range[0, loop](32)
      r1 = Range[1, reduce](40)
      v = Where(Cast.i32(r0) == Load(Index(p1, r1)), 1.0:f32, 2.0:f32)
      Sink(End(Store(Index(p0, r0), Reduce[Add](v, r1)), r0)))",
                           R"(
      p0 = Param.f32[0]((32,))
      p1 = Param.i32[1]((40,))
      r0 = Range[0, loop](32)
      r1 = Range[1, reduce](40)
      v = Where(Cast.i32(r0) == Load(Index(p1, r1)), 1.0:f32, 0.0:f32)
      Sink(End(Store(Index(p0, r0), Reduce[Add](v, r1)*2.0), r0)))",
                           R"(
      p0 = Param.i32[0]((300,))
      p1 = Param.u8[1]((40,))
      r0 = Range[0, loop](300)
      r1 = Range[1, reduce](40)
      v = Where(Cast.u8(r0) == Load(Index(p1, r1)), 1, 0)
      Sink(End(Store(Index(p0, r0), Reduce[Add](v, r1)), r0)))",
                           R"(
      p0 = Param.f32[0]((40,))
      r0 = Range[0, loop](40)
      r1 = Range[1, reduce](40)
      v = Where(Cast.f32(r0) == Load(Index(p0, r1)), 1.0:f32, 0.0:f32)
      Sink(End(Store(Index(p0, r0), Reduce[Add](v, r1)), r0)))"}) {
    GraphScope scope;
    UOp kernel = parse(text);
    EXPECT_FALSE(named_loop(kernel)) << text;
    EXPECT_THROW(apply(kernel, {OptKind::Scatter, 0, 0}, Target::host_cpu()), ValueError);
  }
}

// Results in memory while the reduction's loop passes: sums, products and maxima, by lanes, copies and
// threads.
TEST(Sweeps, GiveWhatTheLoopsGive) {
  const Case cases[] = {
      {"columns",
       R"(
      p0 = Param.f32[0]((48,))
      p1 = Param.f32[1]((1152,))
      r0 = Range[0, loop](48)
      r1 = Range[1, reduce](24)
      Sink(End(Store(Index(p0, r0), Reduce[Max](Load(Index(p1, r1*48 + r0)), r1)*3.0 + 1.0), r0)))",
       {48, 1152}},
      {"a row times matrices",
       R"(
      p0 = Param.f32[0]((144,))
      p1 = Param.f32[1]((24,))
      p2 = Param.f32[2]((3456,))
      r0 = Range[0, loop](3)
      r1 = Range[1, loop](48)
      r2 = Range[2, reduce](24)
      v = Load(Index(p1, r2))*Load(Index(p2, r0*1152 + r2*48 + r1))
      Sink(End(Store(Index(p0, r0*48 + r1), Reduce[Add](v, r2)), r0, r1)))",
       {144, 24, 3456}},
  };
  for (const Case& c : cases) {
    GraphScope scope;
    UOp kernel = parse(c.text);
    Target target = Target::host_cpu();
    std::vector<Array> buffers = data(kernel, c, 9), plain = interpreted(kernel, {}, buffers, target);
    Kernel k(kernel);
    std::int64_t row = k.loops[k.outputs].range_id(), column = k.loops[k.outputs - 1].range_id();
    for (std::int64_t rows : {1, 3, 8, 24})
      for (const std::vector<Opt>& before :
           {std::vector<Opt>{{OptKind::Thread, 0, 3}},
            std::vector<Opt>{{OptKind::Lane, column, 8}, {OptKind::Thread, 0, 3}},
            std::vector<Opt>{
                {OptKind::Lane, column, 4}, {OptKind::Upcast, column, 3}, {OptKind::Thread, 0, 3}}}) {
        std::vector<Opt> options = before;
        options.push_back({OptKind::Sweep, row, rows});
        SCOPED_TRACE(c.name + (": " + text(options)));
        test::expect_all(lower_with(kernel, options, target), buffers, plain, {}, false, target);
      }
    EXPECT_THROW(apply(kernel, {OptKind::Sweep, row, 5}, target), ValueError) << "24 rows by fives";
    EXPECT_THROW(apply(kernel, {OptKind::Sweep, column, 8}, target), ValueError) << "no reduction";
    // Chosen where pages lie between the rows of what the caches do not hold.
    Target small = target;
    small.l2 = 1 << 12;
    bool swept = false;
    for (const Opt& o : choose_options(kernel, small)) swept |= o.kind == OptKind::Sweep;
    EXPECT_FALSE(swept) << "rows of 192 bytes";
  }
  GraphScope scope;
  UOp wide = parse(R"(
      p0 = Param.f32[0]((2048,))
      p1 = Param.f32[1]((49152,))
      r0 = Range[0, loop](2048)
      r1 = Range[1, reduce](24)
      Sink(End(Store(Index(p0, r0), Reduce[Add](Load(Index(p1, r1*2048 + r0)), r1)), r0)))");
  Target target = Target::host_cpu();
  target.l2 = 1 << 14, target.cores = 2;
  std::vector<Opt> options = choose_options(wide, target);
  EXPECT_EQ(options.back().kind, OptKind::Sweep) << text(options);
  Case c{"", "", {2048, 49152}};
  std::vector<Array> buffers = data(wide, c, 10), plain = interpreted(wide, {}, buffers, target);
  test::expect_all(lower_with(wide, options, target), buffers, plain, {}, false, target);
}

// Options that do not fit say so, and change nothing.
TEST_P(Options, WhatDoesNotFitIsRefused) {
  GraphScope scope;
  UOp keep = parse(GetParam().text);
  Kernel k(keep);
  Target target = Target::host_cpu();
  std::int64_t output = k.loops[0].range_id();
  EXPECT_THROW(apply(keep, {OptKind::Local, output, 2}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::TensorCore, output, 0}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::Stage, kWholeKernel, 17}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::Unroll, output, 2}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::Split, 99, 2}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::Split, output, 0}, target), ValueError);
  EXPECT_THROW(apply(keep, {OptKind::Upcast, output, -1}, target), ValueError);
  if (k.loops.size() > k.outputs) {
    EXPECT_THROW(apply(keep, {OptKind::Thread, k.loops.back().range_id(), 2}, target), ValueError);
    EXPECT_THROW(apply(keep, {OptKind::Upcast, k.loops.back().range_id(), 2}, target), ValueError);
  }
}

// A product of f16 matrices with a bias, on the matrix unit: with sizes it divides, and padded.
TEST(MatrixUnit, GivesWhatTheLoopsGive) {
  for (bool padded : {false, true}) {
    std::int64_t m = padded ? 21 : 32, n = padded ? 35 : 16, k = padded ? 24 : 48;
    GraphScope scope;
    Ref p0 = param(0, f32, shape_node(Dims(std::array{m * n}))),
        p1 = param(1, f16, shape_node(Dims(std::array{m * k}))),
        p2 = param(2, f16, shape_node(Dims(std::array{k * n}))),
        p3 = param(3, f32, shape_node(Dims(std::array{n})));
    Ref i = range(0, RangeKind::Loop, idx(m)), j = range(1, RangeKind::Loop, idx(n)),
        l = range(2, RangeKind::Reduce, idx(k));
    auto read = [](Ref p, Ref at) {
      return make(Op::Load, p.dtype(), {make(Op::Index, p.dtype(), {p, at})});
    };
    Ref product = cast(read(p1, i * k + l), f32) * cast(read(p2, l * n + j), f32);
    Ref sum = make(Op::Reduce, f32, {product, l}, reduce_arg(Op::Add));
    Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, i * n + j}), sum + read(p3, j)});
    UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
    Case c{"",
           "",
           {static_cast<std::size_t>(m * n), static_cast<std::size_t>(m * k), static_cast<std::size_t>(k * n),
            static_cast<std::size_t>(n)}};
    std::vector<Array> buffers = data(kernel, c, 3);
    std::vector<Array> plain = interpreted(kernel, {}, buffers, Target::host_cpu());
    Target gpu = Target::interp_gpu();
    std::vector<Opt> options = choose_options(kernel, gpu);
    EXPECT_TRUE(std::any_of(options.begin(), options.end(),
                            [](const Opt& o) { return o.kind == OptKind::TensorCore; }));
    Ref linear = lower_with(kernel, options, gpu);
    EXPECT_TRUE(
        std::any_of(linear.srcs().begin(), linear.srcs().end(), [](Node* x) { return x->op == Op::Wmma; }));
    EXPECT_EQ(interpreted(kernel, options, buffers, gpu)[0].bits, plain[0].bits) << text(options);
  }
}

// Bytes of every sign and size in words of four, whatever their number, behind a gate and not.
TEST(Bytes, GiveAsWordsWhatTheyGiveAlone) {
  std::mt19937 random(9);
  Target target = Target::host_cpu();
  target.ops.add(Op::DotBytes);
  for (auto [left, right] : {std::pair(i8, i8), std::pair(u8, i8), std::pair(i8, u8)})
    for (std::int64_t k : {8, 19, 70})
      for (bool gate : {false, true}) {
        constexpr std::int64_t m = 5, n = 18;
        GraphScope scope;
        Ref p0 = param(0, i32, shape_node(Dims(std::array{m * n}))),
            p1 = param(1, left, shape_node(Dims(std::array{m * k}))),
            p2 = param(2, right, shape_node(Dims(std::array{k * n})));
        Ref i = range(0, RangeKind::Loop, idx(m)), j = range(1, RangeKind::Loop, idx(n)),
            l = range(2, RangeKind::Reduce, idx(k));
        auto read = [](Ref p, Ref at) {
          return cast(make(Op::Load, p.dtype(), {make(Op::Index, p.dtype(), {p, at})}), i32);
        };
        Ref product = read(p1, i * k + l) * read(p2, l * n + j);
        if (gate) product = where(i + j < l + 7, product, int_const(i32, 0));
        Ref sum = make(Op::Reduce, i32, {product, l}, reduce_arg(Op::Add));
        Ref stored = make(Op::Store, DType::Void, {make(Op::Index, i32, {p0, i * n + j}), sum});
        UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
        std::vector<Array> buffers{Array(i32, m * n), Array(left, static_cast<std::size_t>(m * k)),
                                   Array(right, static_cast<std::size_t>(k * n))};
        for (Array& a : buffers)
          for (std::uint64_t& bits : a.bits)
            bits = std::array<std::uint64_t, 5>{0, 127, 128, 255, random() % 256}[random() % 5];
        std::vector<Array> plain = interpreted(kernel, {}, buffers, target);
        for (int round = 0; round < 4; ++round) {
          std::vector<Opt> options{{OptKind::Dot, 2, 0}};
          if (round == 3) {
            options = choose_options(kernel, target);
            EXPECT_EQ(k >= 16, !options.empty() && options[0].kind == OptKind::Dot) << text(options);
          } else if (round > 0) {
            Ref so_far = apply(kernel, options[0], target);
            for (int tries = 0; tries < 2 * round; ++tries) draw(random, so_far, options, false);
            for (std::int64_t slot : {1, 2}) options.push_back({OptKind::Stage, kWholeKernel, slot});
          }
          SCOPED_TRACE(text(options));
          Ref linear = lower_with(kernel, options, target);
          bool dot = std::any_of(linear.srcs().begin(), linear.srcs().end(),
                                 [](Node* x) { return x->op == Op::DotBytes; });
          EXPECT_TRUE(dot || k < 16);
          test::expect_all(linear, buffers, plain, {}, false, target);
        }
      }
  GraphScope scope;
  Target without = target;
  without.ops.remove(Op::DotBytes);
  const Case& bytes = *std::find_if(std::begin(kCases), std::end(kCases), [](const Case& each) {
    return each.name == std::string("product of bytes");
  });
  UOp kernel = parse(bytes.text);
  EXPECT_THROW(apply(kernel, {OptKind::Dot, 2, 0}, without), ValueError);
  EXPECT_THROW(apply(parse(kCases[2].text), {OptKind::Dot, 2, 0}, target), ValueError);
}

// What moves with nothing but the loops of a factor is done once, in its panel: no bytes are made floats
// where they are multiplied.
TEST(Panels, HoldWhatIsMultiplied) {
  constexpr std::int64_t n = 256;
  for (bool scaled : {false, true}) {
    GraphScope scope;
    DType narrow = scaled ? i8 : bf16;
    Ref p0 = param(0, f32, shape_node(Dims(std::array{n * n}))),
        p1 = param(1, f32, shape_node(Dims(std::array{n * n}))),
        p2 = param(2, narrow, shape_node(Dims(std::array{n * n}))),
        p3 = param(3, f32, shape_node(Dims(std::array{n * n / 32})));
    Ref i = range(0, RangeKind::Loop, idx(n)), j = range(1, RangeKind::Loop, idx(n)),
        l = range(2, RangeKind::Reduce, idx(n));
    auto read = [](Ref p, Ref at) {
      return make(Op::Load, p.dtype(), {make(Op::Index, p.dtype(), {p, at})});
    };
    Ref weight = cast(read(p2, l * n + j), f32);
    if (scaled) weight = weight * read(p3, l / idx(32) * n + j);
    Ref sum = make(Op::Reduce, f32, {read(p1, i * n + l) * weight, l}, reduce_arg(Op::Add));
    Ref stored = make(Op::Store, DType::Void, {make(Op::Index, f32, {p0, i * n + j}), sum});
    UOp kernel = sink(std::vector<Ref>{make(Op::End, DType::Void, {stored, i, j})});
    Target target = Target::host_cpu();
    std::vector<Opt> options = choose_options(kernel, target);
    Ref linear = lower_with(kernel, options, target);
    // No loop has both a cast and a multiplication that joins a sum.
    std::vector<std::pair<int, int>> loops(1);
    for (Node* x : linear.srcs()) {
      if (x->op == Op::Range) loops.emplace_back(0, 0);
      if (x->op == Op::Cast && x->dtype == f32) ++loops.back().first;
      if (x->op == Op::MulAcc) ++loops.back().second;
      if (x->op != Op::End) continue;
      EXPECT_TRUE(!loops.back().first || !loops.back().second) << text(options);
      loops.pop_back();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Options, testing::ValuesIn(kCases), [](const auto& c) {
  std::string name = c.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace pg::codegen
