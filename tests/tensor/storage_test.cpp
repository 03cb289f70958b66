// Cells, versions and writes: the cases of the design with known answers. What a program reads is what it
// would have read had every line run when it was reached; what it computes, and where, is counted where a
// case speaks of it.
#include "runtime/device.h"
#include "tensor/helpers.h"
#include <pangrad/jit.h>

namespace pg {
namespace {

Tensor numbers(std::initializer_list<int> list) { return Tensor::of(list); }

// --- values, layouts, keeping
// --------------------------------------------------------------------------------------

TEST(Storage, ACloneIsKeptOnceAReaderRan) {
  Tensor x = (numbers({1, 2, 3}).realize() + 1).clone();
  Tensor y = (x * 2).realize();
  EXPECT_EQ(y.to_vector<int>(), (Ints64{4, 6, 8}));
  auto before = kernels();
  EXPECT_EQ(x.to_vector<int>(), (Ints64{2, 3, 4}));
  EXPECT_EQ(kernels(), before);
}

TEST(Storage, ContiguousReservesNothing) {
  Tensor a = numbers({1, 2, 3});
  Tensor x = (a + 1).contiguous();
  Tensor y = (x * 2).realize();
  EXPECT_EQ(storage(x), nullptr);
  EXPECT_EQ(y.to_vector<int>(), (Ints64{4, 6, 8}));
}

TEST(Storage, ASliceOfABufferIsAViewOfIt) {
  Tensor x = numbers({1, 2, 3, 4}).realize();
  auto before = kernels();
  Tensor y = x[Slice{0, 2}].contiguous_backward().contiguous() + 1;
  EXPECT_EQ(y.to_vector<int>(), (Ints64{2, 3}));
  EXPECT_EQ(kernels(), before + 1);
  Tensor part = x[Slice{1, 3}].contiguous().realize();
  EXPECT_EQ(memory(part), memory(x));
  EXPECT_EQ(kernels(), before + 1);
}

TEST(Storage, ContiguousOfADetachedFlipKeepsItsValue) {
  for (bool backward : {false, true}) {
    Tensor x = numbers({1, 2}).realize();
    Tensor y = x.flip(0).detach();
    y = (backward ? y.contiguous_backward() : y.contiguous()).realize();
    x.assign(0).realize();
    EXPECT_EQ(y.to_vector<int>(), (Ints64{2, 1}));
  }
}

TEST(Storage, EqualValuesShareABufferUntilOneIsWritten) {
  Tensor a = numbers({1, 2, 3});
  Tensor x = a + 1, y = x.contiguous_backward(), z = x.contiguous();
  auto before = kernels();
  realize({x, y, z, x});
  EXPECT_EQ(kernels(), before + 1);
  EXPECT_EQ(memory(x), memory(y));
  EXPECT_EQ(memory(x), memory(z));
  z[0] = 9;
  EXPECT_EQ(z.to_vector<int>(), (Ints64{9, 3, 4}));
  EXPECT_EQ(x.to_vector<int>(), (Ints64{2, 3, 4}));
  EXPECT_EQ(y.to_vector<int>(), (Ints64{2, 3, 4}));
}

TEST(Storage, ConstantsAllocateNothing) {
  auto allocated = engine::counters().allocated;
  auto before = kernels();
  Tensor x(2.0);
  x.realize();
  EXPECT_EQ(storage(x), nullptr);
  EXPECT_EQ(engine::counters().allocated, allocated);
  EXPECT_EQ(x.item<float>(), 2.f);
  Tensor e = Tensor::empty({2}).realize();
  EXPECT_NE(storage(e), nullptr);
  EXPECT_EQ(kernels(), before);
  EXPECT_EQ(Tensor::empty({}).numel(), 1);
}

TEST(Storage, ASymbolicViewKeepsItsSymbols) {
  Dim start = Variable("start", 0, 4).bind(2), size = Variable("size", 1, 4).bind(3);
  Tensor t = Tensor::arange(8)[Slice{start, start + size}].clone();
  t.realize();
  EXPECT_TRUE(t.size(0).is_symbolic());
  EXPECT_EQ(t.to_vector<int>(), (Ints64{2, 3, 4}));
  EXPECT_EQ(t.to_vector<int>(), (Ints64{2, 3, 4}));
}

TEST(Storage, NothingDrawnMovesNoGenerator) {
  Tensor::manual_seed(7);
  Floats want = Tensor::rand({3}).to_vector<float>();
  Tensor::manual_seed(7);
  Tensor::rand({0, 2}).realize();
  cat({Tensor::rand({0, 2}), Tensor::rand({0, 2})}).realize();
  EXPECT_EQ(Tensor::rand({3}).to_vector<float>(), want);
}

// --- writes
// --------------------------------------------------------------------------------------------------------

TEST(Storage, AValueBuiltBeforeAWriteKeepsWhatItRead) {
  for (bool reader_first : {false, true}) {
    Tensor x = numbers({1, 2});
    Tensor y = x + 10;
    x[0] = 9;
    if (reader_first) {
      EXPECT_EQ(y.to_vector<int>(), (Ints64{11, 12}));
    }
    EXPECT_EQ(x.to_vector<int>(), (Ints64{9, 2}));
    EXPECT_EQ(y.to_vector<int>(), (Ints64{11, 12}));
  }
}

TEST(Storage, ACloneHasStorageOfItsOwn) {
  Tensor x = numbers({1, 2});
  Tensor y = x.clone();
  x.assign(0);
  realize({y, x});
  EXPECT_EQ(y.to_vector<int>(), (Ints64{1, 2}));
  EXPECT_EQ(x.to_vector<int>(), (Ints64{0, 0}));
  EXPECT_NE(memory(x), memory(y));
}

TEST(Storage, EqualGraphsAreNotOneStorage) {
  Tensor a = numbers({1, 2}), b = numbers({3, 4});
  Tensor v = a + b;
  Tensor w = v[Slice{0, 1}];
  Tensor u = a + b;
  v.assign(0);
  EXPECT_EQ(w.to_vector<int>(), (Ints64{0}));
  EXPECT_EQ(u.to_vector<int>(), (Ints64{4, 6}));
}

TEST(Storage, WritingThroughDetach) {
  for (bool realized : {false, true}) {
    Tensor base = numbers({1, 2, 3});
    if (realized) base.realize();
    Tensor d = base.detach();
    d.assign(d + 1);
    EXPECT_EQ(d.to_vector<int>(), (Ints64{2, 3, 4}));
    EXPECT_EQ(base.to_vector<int>(), (Ints64{2, 3, 4}));
  }
}

TEST(Storage, AWriteThroughAnyViewChangesTheBase) {
  auto make = [] { return Tensor::of({{1, 2, 3}, {4, 5, 6}}); };
  {
    Tensor t = make();
    t.detach()[{1, 2}] = 5;
    EXPECT_EQ(t.to_vector<int>(), (Ints64{1, 2, 3, 4, 5, 5}));
    t.detach()[Slice{}] = 5;
    EXPECT_EQ(t.to_vector<int>(), (Ints64{5, 5, 5, 5, 5, 5}));
  }
  {
    Tensor t = make(), row = t[1];
    t.permute({1, 0})[0] = Tensor::of({7, 8});
    EXPECT_EQ(t.to_vector<int>(), (Ints64{7, 2, 3, 8, 5, 6}));
    EXPECT_EQ(row.to_vector<int>(), (Ints64{8, 5, 6}));
  }
  {
    Tensor t = make();
    t.flip(1)[{0, 0}] = 9;
    EXPECT_EQ(t.to_vector<int>(), (Ints64{1, 2, 9, 4, 5, 6}));
  }
  {
    Tensor t = make();
    t.reshape({3, 2})[1] = 0;
    EXPECT_EQ(t.to_vector<int>(), (Ints64{1, 2, 0, 0, 5, 6}));
  }
  {
    Tensor t = make();
    t[{Slice{}, Slice{.step = 2}}] = 0;
    EXPECT_EQ(t.to_vector<int>(), (Ints64{0, 2, 0, 0, 5, 0}));
  }
  {
    Tensor t = make();
    t[{Slice{}, Slice{.step = -2}}] = Tensor::of({10, 20});
    EXPECT_EQ(t.to_vector<int>(), (Ints64{20, 2, 10, 20, 5, 10}));
  }
  {
    Tensor t = Tensor::of({1.f, 2.f});
    t.bitcast(i32)[0] = 0x40800000;
    EXPECT_EQ(t.to_vector<float>(), (Floats{4, 2}));
  }
  {
    Tensor t = make();
    t.diagonal().assign(0);
    EXPECT_EQ(t.to_vector<int>(), (Ints64{0, 2, 3, 4, 0, 6}));
  }
}

TEST(Storage, ClonesAndContiguousAreNoViews) {
  for (int way = 0; way < 3; ++way) {
    Tensor t = Tensor::of({{1, 2}, {3, 4}});
    Tensor c = way == 1 ? t.permute({1, 0}).contiguous() : t.permute({1, 0}).clone();
    if (way == 2)
      c.detach()[{Slice{}, Slice{1, 2}}] = 1;
    else
      c[{Slice{}, Slice{1, 2}}] = 1;
    EXPECT_EQ(c.to_vector<int>(), (Ints64{1, 1, 2, 1}));
    EXPECT_EQ(t.to_vector<int>(), (Ints64{1, 2, 3, 4}));
  }
}

TEST(Storage, AWriteReadsItsSourceFirst) {
  Tensor x = numbers({1, 2, 3, 4}).realize();
  x.assign(x.flip(0));
  EXPECT_EQ(x.to_vector<int>(), (Ints64{4, 3, 2, 1}));
  x[Slice{0, 2}].assign(x[Slice{2, 4}]);
  EXPECT_EQ(x.to_vector<int>(), (Ints64{2, 1, 2, 1}));
  x = numbers({1, 2, 3, 4}).realize();
  x[Slice{1}].assign(x[Slice{.stop = -1}]);
  EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 1, 2, 3}));
}

TEST(Storage, AReplacedWholeGoesBack) {
  Tensor base = Tensor::arange(16).reshape({4, 4}).clone().realize();
  Tensor flat = base.reshape({16}).clone();
  flat[Tensor::of({1, 3})] = 99;
  auto before = kernels();
  base.assign(flat.reshape({4, 4})).realize();
  EXPECT_LE(kernels(), before + 2);
  Ints64 want;
  for (int i = 0; i < 16; ++i) want.push_back(i == 1 || i == 3 ? 99 : i);
  EXPECT_EQ(base.to_vector<int>(), want);
}

TEST(Storage, OldAndNewInOneExpression) {
  Tensor x = numbers({1, 2}).realize();
  Tensor old = x + 0;
  x += 1;
  EXPECT_EQ((old + x).to_vector<int>(), (Ints64{3, 5}));

  Tensor a = numbers({1, 2}).realize(), b = numbers({10, 20}).realize();
  Tensor a0 = a.clone();
  a.assign(b + 1);
  b.assign(a0 + 1);
  realize({a, b});
  EXPECT_EQ(a.to_vector<int>(), (Ints64{11, 21}));
  EXPECT_EQ(b.to_vector<int>(), (Ints64{2, 3}));
}

TEST(Storage, TheValueIsBroadcastAndCast) {
  Tensor x = Tensor::zeros({2, 3}, {.dtype = i32});
  x.assign(Tensor::of({1, 2, 3}));
  EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 2, 3, 1, 2, 3}));
  x.assign(1.5);
  EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 1, 1, 1, 1, 1}));
  EXPECT_THROW(x.assign(Tensor::of({1.f, 2.f, 3.f})), DTypeError);
  EXPECT_THROW(x[0].assign(x), ShapeError);
}

TEST(Storage, IndexTensorsWrapOnceAndTheLastWins) {
  Tensor x = numbers({0, 0, 0, 0}).realize();
  x[Tensor::of({1, -1, 1, 9})] = Tensor::of({5, 6, 7, 8});
  EXPECT_EQ(x.to_vector<int>(), (Ints64{0, 7, 0, 6}));
  x[{Tensor::of({0, 2})}] += 3;
  EXPECT_EQ(x.to_vector<int>(), (Ints64{3, 7, 3, 6}));
  EXPECT_EQ(x[Tensor::of({1, -1, 9})].to_vector<int>(), (Ints64{7, 6, 0}));
}

// --- devices
// -------------------------------------------------------------------------------------------------------

TEST(Storage, ACopyOnAnotherDeviceIsItsOwn) {
  Tensor a = numbers({1, 2});
  Tensor b = a.to("CPU:1");
  Tensor c = Tensor::empty({2}, {.dtype = i32, .device = "CPU:1"}).assign(b).realize();
  a.assign(0).realize();
  EXPECT_EQ(b.to_vector<int>(), (Ints64{1, 2}));
  EXPECT_EQ(c.to_vector<int>(), (Ints64{1, 2}));
  b.assign(3).realize();
  EXPECT_EQ(c.to_vector<int>(), (Ints64{1, 2}));
}

TEST(Storage, AConstantMovesAndIsWritten) {
  for (bool detached : {false, true}) {
    Tensor t = Tensor::zeros({2, 2});
    Tensor c = t.to("CPU:1");
    if (detached)
      c.detach()[{Slice{}, Slice{1, 2}}] = 1;
    else
      c[{Slice{}, Slice{1, 2}}] = 1;
    EXPECT_EQ(floats_of(c), (Floats{0, 1, 0, 1}));
    EXPECT_EQ(c.device(), "CPU:1");
    EXPECT_EQ(storage(c.realize())->device, "CPU:1");
    EXPECT_EQ(floats_of(t), (Floats{0, 0, 0, 0}));
  }
}

TEST(Storage, HostDataOutlivesItsFirstHandle) {
  Tensor x = numbers({1, 2, 3});
  Tensor r = x.reshape({1, 3}), s = x + 1;
  Tensor d = Tensor::empty({3}, {.dtype = i32}).assign(x);
  x = Tensor();
  d.realize();
  d.assign(0).realize();
  EXPECT_EQ(r.to_vector<int>(), (Ints64{1, 2, 3}));
  EXPECT_EQ(s.to_vector<int>(), (Ints64{2, 3, 4}));
}

// --- sharing, identity, versions
// -----------------------------------------------------------------------------------

TEST(Storage, SharedWorkInEitherOrder) {
  for (bool b_first : {false, true}) {
    Tensor x = numbers({1, 2});
    Tensor a = (x + 1).sum(), b = a * 2;
    if (b_first)
      b.realize(), a.realize();
    else
      a.realize(), b.realize();
    x.assign(0);
    EXPECT_EQ(a.item<int>(), 5);
    EXPECT_EQ(b.item<int>(), 10);
  }
}

// A function called twice: equal graphs, four storages.
TEST(Storage, ResultsOfAFunctionAreTheCallers) {
  auto f = [](const Tensor& x) { return std::pair(x + 1, (x * 2).sum()); };
  Tensor x = numbers({1, 2}).realize();
  auto [a, b] = f(x);
  auto [c, d] = f(x);
  a.assign(0);
  b.assign(7);
  EXPECT_EQ(c.to_vector<int>(), (Ints64{2, 3}));
  EXPECT_EQ(d.item<int>(), 6);
  auto before = kernels();
  EXPECT_EQ(c.to_vector<int>(), (Ints64{2, 3}));
  EXPECT_EQ(kernels(), before);
  x.assign(0);
  EXPECT_EQ(a.to_vector<int>(), (Ints64{0, 0}));
  EXPECT_EQ(b.item<int>(), 7);
  EXPECT_EQ(d.item<int>(), 6);

  Tensor constant = Tensor::ones({2}) + 1;
  constant[0] = 5;
  EXPECT_EQ(constant.to_vector<float>(), (Floats{5, 2}));
}

// Turning a graph into a call makes no storage; its parameters are the buffers it reads, each once; and work
// of equal structure is one call.
TEST(Storage, ACallIsItsBuffersAndItsStructure) {
  Tensor a = numbers({1, 2}).realize(), b = numbers({3, 4}).realize(), c = numbers({5, 6}).realize();
  auto make = [](const Tensor& x, const Tensor& y) { return (x + y) * x; };
  auto allocated = engine::counters().allocated;
  Tensor first = make(a, b), second = make(c, a);
  auto plan = [](const Tensor& t) {
    UOp node;
    {
      GraphScope scope;
      node = detail::read(t, "test").node;
    }
    return engine::plan({&node, 1});
  };
  schedule::Schedule one = plan(first), two = plan(second);
  EXPECT_EQ(one.params, 2u);
  EXPECT_EQ(one.linear.ref().node(), two.linear.ref().node());
  EXPECT_EQ(engine::counters().allocated, allocated);
  first.realize();
  auto schedules = engine::counters().schedules;
  EXPECT_EQ(second.to_vector<int>(), (Ints64{30, 48}));
  EXPECT_EQ(engine::counters().schedules, schedules);
}

// A function that returns nothing and only writes.
TEST(Storage, AFunctionThatOnlyWrites) {
  for (Shape shape : {Shape{6}, Shape{2, 3}}) {
    Tensor x = Tensor::arange(6).reshape(shape).contiguous().realize();
    Tensor a = Tensor::empty(shape, {.dtype = i32}).realize(),
           b = Tensor::empty(shape, {.dtype = i32}).realize();
    a.assign(0).realize(), b.assign(0).realize();
    const void *at_a = memory(a), *at_b = memory(b);
    auto body = [](const Tensor& in, Tensor out1, Tensor out2) {
      out1.assign(in + 1);
      out2.assign(in * 2);
    };
    auto captured = jit(body);
    for (int i = 0; i < 4; ++i) {
      if (i == 0)
        body(x, a, b);
      else
        captured(x, a, b);
      realize({a, b});
      EXPECT_EQ(a.to_vector<int>(), (Ints64{1, 2, 3, 4, 5, 6})) << i;
      EXPECT_EQ(b.to_vector<int>(), (Ints64{0, 2, 4, 6, 8, 10})) << i;
      EXPECT_EQ(memory(a), at_a);
      EXPECT_EQ(memory(b), at_b);
      realize({a.assign(-1), b.assign(-1)});
    }
    // Into a slice of an argument: that slice alone.
    auto part = jit([](const Tensor& in, Tensor out) { out.assign(in + 10); });
    for (int i = 0; i < 4; ++i) {
      a.assign(0).realize();
      Tensor flat = a.reshape({6});
      part(x.reshape({6})[Slice{0, 2}], flat[Slice{2, 4}]);
      EXPECT_EQ(a.to_vector<int>(), (Ints64{0, 0, 10, 11, 0, 0})) << i;
      EXPECT_EQ(memory(a), at_a) << i;
    }
  }
}

// The same work on ranges of one buffer that are apart, and on such that overlap.
TEST(Storage, RangesThatOverlapAndRangesThatDoNot) {
  auto move = [](Tensor& x, int from, int to) { x[Slice{to, to + 4}].assign(x[Slice{from, from + 4}] + 1); };
  auto captured = jit([](const Tensor& from, Tensor to) { to.assign(from + 1); });
  for (int i = 0; i < 4; ++i) {
    Tensor x = Tensor::arange(8).contiguous().realize(), y = Tensor::arange(8).contiguous().realize();
    move(x, 0, 4);
    x.realize();
    EXPECT_EQ(x.to_vector<int>(), (Ints64{0, 1, 2, 3, 1, 2, 3, 4}));
    move(x, 0, 2);
    EXPECT_EQ(x.to_vector<int>(), (Ints64{0, 1, 1, 2, 3, 4, 3, 4}));
    captured(y[Slice{0, 4}], y[Slice{4, 8}]);
    EXPECT_EQ(y.to_vector<int>(), (Ints64{0, 1, 2, 3, 1, 2, 3, 4})) << i;
    captured(y[Slice{0, 4}], y[Slice{2, 6}]);
    EXPECT_EQ(y.to_vector<int>(), (Ints64{0, 1, 1, 2, 3, 4, 3, 4})) << i;
  }
}

// Memory runs out in the middle; once there is some, what did not happen happens, and once.
TEST(Storage, OutOfMemoryAppliesNothingTwice) {
  runtime::Device& device = runtime::device(engine::default_device());
  std::size_t limit = device.memory().limit;
  Tensor w = Tensor::of({1.f, 2.f}).realize(), g = Tensor::of({1.f, 1.f}).realize();
  auto step = jit([&](const Tensor& grad) {
    (w -= grad).realize();
    return (grad.reshape({2, 1}).expand({2, 1 << 20}) * 2).contiguous();
  });
  for (int i = 0; i < 3; ++i) step(g);
  EXPECT_EQ(w.to_vector<float>(), (Floats{-2, -1}));
  device.trim();
  device.set_memory_limit(device.memory().in_use + (1 << 20));
  w -= g;
  Tensor big = (w.reshape({2, 1}).expand({2, 1 << 20}) + 0.5).contiguous();
  std::string why = message<OutOfMemory>([&] { realize({w, big}); });
  EXPECT_NE(why.find("in use"), std::string::npos) << why;
  EXPECT_THROW(realize({w, big}), OutOfMemory);
  EXPECT_THROW(step(g), OutOfMemory);
  device.set_memory_limit(limit);
  realize({w, big});
  // One step outside; the one inside either ran before the memory was gone, or not at all.
  Floats got = w.to_vector<float>();
  EXPECT_TRUE(got == (Floats{-3, -2}) || got == (Floats{-4, -3})) << got[0];
  float before = got[0];
  step(g);
  EXPECT_EQ(w.to_vector<float>()[0], before - 1);
}

// The copy of a row is a storage of its own: a place in it is not the place in the table that the row had.
TEST(Storage, AFlippedCopyOfARowIsWrittenInItself) {
  Tensor table = Tensor::of({1.f, 2.f, 3.f, 4.f}).reshape({2, 2}).realize();
  Tensor row = table[1].detach().clone().requires_grad(), copy = row.clone();
  Tensor half = Tensor::full({2}, 0.5).contiguous().requires_grad();
  copy.flip(0).flatten().assign(half);
  (copy * 2).sum().backward();
  EXPECT_EQ(copy.to_vector<float>(), (Floats{0.5f, 0.5f}));
  EXPECT_EQ(half.grad().to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(row.grad().to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{3, 4}));
  EXPECT_EQ(table.to_vector<float>(), (Floats{1, 2, 3, 4}));
}

TEST(Storage, ARowOfAProductIsOneRow) {
  Tensor h = Tensor::of(Floats(16 * 8, 1.f), {16, 8}), w = Tensor::of(Floats(8 * 8, 1.f), {8, 8});
  double before = engine::counters().flops;
  Tensor row = h.matmul(w)[-1].realize();
  double cost = engine::counters().flops - before;
  EXPECT_EQ(cost, 2 * 8 * 8);
  EXPECT_EQ(row.to_vector<float>(), Floats(8, 8.f));
}

TEST(Storage, EqualExpressionsOverOtherContentsAreOtherNodes) {
  Tensor x = numbers({1, 2}).realize();
  Tensor y = (x + 10).realize();
  x[0] = 9;
  x.realize();
  Tensor z = x + 10;
  EXPECT_EQ(z.to_vector<int>(), (Ints64{19, 12}));
  EXPECT_EQ(y.to_vector<int>(), (Ints64{11, 12}));
}

TEST(Storage, TwoParametersOfEqualContentsStayTwo) {
  Tensor a = Tensor::ones({2}).requires_grad(), b = Tensor::ones({2}).requires_grad();
  (3 * a + 5 * b).sum().backward();
  EXPECT_EQ(floats_of(a.grad()), (Floats{3, 3}));
  EXPECT_EQ(floats_of(b.grad()), (Floats{5, 5}));
}

// Every value that is kept in a loop is of the past: none may make a write copy.
TEST(Storage, KeptLossesCostNothing) {
  Tensor w = Tensor::ones({4}).clone().realize().requires_grad();
  Tensor x = Tensor::of({1.f, 2.f, 3.f, 4.f}).realize();
  std::vector<Tensor> losses, olds;
  const void* place = nullptr;
  std::size_t resident = 0;
  for (int i = 0; i < 10; ++i) {
    Tensor loss = (w * x).sum();
    loss.backward();
    losses.push_back(loss);
    olds.push_back((w + 0).realize());
    {
      NoGrad off;
      w -= w.grad() * 0.1;
    }
    w.realize();
    w.zero_grad();
    if (i == 2) place = memory(w);
    if (i > 2) {
      EXPECT_EQ(memory(w), place) << "step " << i;
    }
  }
  (void)resident;
  EXPECT_NEAR(losses[0].item<float>(), 10.f, 1e-5);
  EXPECT_NEAR(losses[1].item<float>(), 10.f - 3.f, 1e-5);
  EXPECT_EQ(floats_of(olds[0]), (Floats{1, 1, 1, 1}));
  expect_close(olds[1], {0.9f, 0.8f, 0.7f, 0.6f});
}

TEST(Storage, AReaderOfAReleasedValueKeepsIt) {
  Tensor a = numbers({1, 2}).realize();
  Tensor x = a + 1, z = x * 2;
  x.realize();
  a.assign(0).realize();
  x = Tensor();
  EXPECT_EQ(z.to_vector<int>(), (Ints64{4, 6}));
}

TEST(Storage, ValuesAreNoViews) {
  Tensor x = numbers({1, 2}).realize();
  x.repeat(2)[0] = 5;
  x.contiguous()[0] = 5;
  x.cast(i32)[0] = 5;
  (x + 0)[0] = 5;
  x.roll(0)[0] = 5;
  EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 2}));
  EXPECT_THROW(x.expand({3, 2}).assign(1), ShapeError);
  EXPECT_EQ(x.to(x.device()).impl(), x.impl());
}

TEST(Storage, ABitcastToSmallerElementsIsAView) {
  Tensor f = Tensor::of({1.0f, 2.0f});
  f.bitcast(u8)[3] = 0x40;
  EXPECT_EQ(f.to_vector<float>(), (Floats{4, 2}));
}

// Between bitcasts of several sizes elements may lie anywhere.
TEST(Storage, WritesThroughBitcastsAndMovements) {
  auto bytes = [] { return Tensor::of(std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7}).realize(); };
  using Bytes = std::vector<std::uint8_t>;
  Tensor word = Tensor::of(std::vector<std::uint32_t>{0x0D0C0B0A});
  {
    Tensor t = bytes();
    t.bitcast(u32)[Slice{1}] = word;
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{0, 1, 2, 3, 10, 11, 12, 13}));
  }
  {
    Tensor t = bytes();
    t[Slice{1, 5}].bitcast(u32).assign(word);
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{0, 10, 11, 12, 13, 5, 6, 7}));
  }
  {
    Tensor t = bytes();
    t.flip(0).bitcast(u32)[0] = word[0];
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{0, 1, 2, 3, 13, 12, 11, 10}));
  }
  {
    Tensor t = bytes();
    t.bitcast(u32).flip(0).bitcast(u16)[Slice{.step = 2}] =
        Tensor::of(std::vector<std::uint16_t>{0x0B0A, 0x0D0C});
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{12, 13, 2, 3, 10, 11, 6, 7}));
  }
  {
    Tensor t = bytes();
    t.bitcast(u16).flip(0).bitcast(u32)[1] = word[0];
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{12, 13, 10, 11, 4, 5, 6, 7}));
  }
  {
    Tensor t = bytes();
    t.bitcast(u16).flip(0).bitcast(u32).flip(0).bitcast(u8)[Slice{1, 3}] =
        Tensor::of(std::vector<std::uint8_t>{20, 21});
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{21, 1, 2, 20, 4, 5, 6, 7}));
  }
  {
    Tensor t = bytes();
    Tensor all = t.bitcast(u16).flip(0).bitcast(u64);
    all.assign(Tensor::of(std::vector<std::uint64_t>{0x0706050403020100}));
    EXPECT_EQ(t.to_vector<std::uint8_t>(), (Bytes{6, 7, 4, 5, 2, 3, 0, 1}));
  }
}

TEST(Storage, AWriteOfNothing) {
  for (const char* device : {"CPU", "INTERP"}) {
    Tensor x = Tensor::of({1, 2}, {.device = device}).realize();
    Tensor none = x[Slice{1, 1}];
    none.assign(none.flip(0));
    EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 2}));
    none.assign(7);
    EXPECT_EQ(x.realize().to_vector<int>(), (Ints64{1, 2}));
  }
}

// What no source places is computed where it is wanted, and stored in one place.
TEST(Storage, ValuesOfNoDeviceOnSeveral) {
  Tensor counted = Tensor::arange(4) + 1;
  Tensor there = counted.to("CPU:1"), also = (counted * 2).to("CPU:1");
  realize({counted, there, also});
  EXPECT_EQ(storage(counted)->device, "CPU");
  EXPECT_EQ(storage(there)->device, "CPU:1");
  EXPECT_EQ(counted.to_vector<int>(), (Ints64{1, 2, 3, 4}));
  EXPECT_EQ(also.to_vector<int>(), (Ints64{2, 4, 6, 8}));

  Tensor zeros = Tensor::zeros({4}, {.dtype = i32});
  zeros[Slice{2, 3}] = 9;
  Tensor copy = zeros.to("CPU:1");
  EXPECT_EQ(zeros.to_vector<int>(), (Ints64{0, 0, 9, 0}));
  EXPECT_EQ(copy.to_vector<int>(), (Ints64{0, 0, 9, 0}));

  Tensor c =
      cat({Tensor::zeros({2}, {.device = "CPU:1"}), Tensor::ones({2}, {.device = "CPU:1"})}).contiguous();
  c[Slice{0, 1}] = c[Slice{2, 3}];
  EXPECT_EQ(floats_of(c), (Floats{1, 0, 1, 1}));
  EXPECT_EQ(storage(c.realize())->device, "CPU:1");
}

TEST(Storage, WritesAtBoundPositions) {
  Tensor cache = Tensor::zeros({4}).clone().realize();
  Variable p("p", 0, 3);
  cache[p.bind(0)] = 1;
  cache[p.bind(1)] = 2;
  EXPECT_EQ(floats_of(cache), (Floats{1, 2, 0, 0}));
}

TEST(Storage, AHistorySurvivesRealize) {
  Tensor x = Tensor::of({1.f, 2.f}).requires_grad();
  Tensor y = x * 2;
  y.realize();
  y.sum().backward();
  EXPECT_EQ(floats_of(x.grad()), (Floats{2, 2}));
}

TEST(Storage, AWriteInPlaceKeepsItsBuffer) {
  Tensor x = numbers({1, 2, 3}).realize();
  const void* place = memory(x);
  for (int i = 0; i < 3; ++i) (x += 1).realize();
  x[1] = 7;
  x.realize();
  EXPECT_EQ(memory(x), place);
  EXPECT_EQ(x.to_vector<int>(), (Ints64{4, 7, 6}));
}

TEST(Storage, AViewSeesAWriteOfItsBase) {
  Tensor x = numbers({1, 2, 3}).realize();
  Tensor v = x[Slice{1}];
  EXPECT_EQ(v.to_vector<int>(), (Ints64{2, 3}));
  const void* place = memory(x);
  x.assign(numbers({4, 5, 6})).realize();
  EXPECT_EQ(v.to_vector<int>(), (Ints64{5, 6}));
  EXPECT_EQ(memory(x), place);  // a view is no reader of old contents
}

TEST(Storage, AHandleRebindsAndAnIndexWrites) {
  Tensor x = numbers({1, 2}), y = x;
  y = numbers({3, 4});
  EXPECT_EQ(x.to_vector<int>(), (Ints64{1, 2}));
  auto first = x[0];
  first += 5;
  EXPECT_EQ(x.to_vector<int>(), (Ints64{6, 2}));
  first = y[1];
  EXPECT_EQ(x.to_vector<int>(), (Ints64{6, 2}));
  EXPECT_EQ(first.item<int>(), 4);
}

}  // namespace
}  // namespace pg
