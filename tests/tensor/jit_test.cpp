// Recordings: they are used only where they are faithful, and see and do what the body would.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tensor/helpers.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

TEST(Jit, ReplaysOnTheTensorsItIsGiven) {
  int calls = 0;
  auto f = jit([&](const Tensor& x) {
    ++calls;
    return x * 2 + 1;
  });
  for (float v : {1.f, 2.f, 3.f, 4.f})
    EXPECT_EQ(f(Tensor::of({v, v + 1})).to_vector<float>(), (Floats{2 * v + 1, 2 * v + 3}));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(f.captures(), 1u);
}

TEST(Jit, AnotherShapeDtypeOrNumberIsRecordedAnew) {
  auto f = jit([](const Tensor& x, int n) { return x + n; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(Tensor::of({1.f, 2.f}), 1).to_vector<float>(), (Floats{2, 3}));
    EXPECT_EQ(f(Tensor::of({1.f}), 1).to_vector<float>(), (Floats{2}));
    EXPECT_EQ(f(Tensor::of({1.f}), 5).to_vector<float>(), (Floats{6}));
    EXPECT_EQ(f(Tensor::of({1}), 5).to_vector<int>(), (std::vector<int>{6}));
  }
  EXPECT_EQ(f.captures(), 4u);
}

TEST(Jit, AKeptResultKeepsItsValue) {
  Tensor count = Tensor::zeros({1}).clone().realize();
  auto f = jit([&](const Tensor& x) {
    count += 1;
    return x + count;
  });
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(f(Tensor::of({10.f})));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(kept[static_cast<std::size_t>(i)].item<float>(), 11.f + static_cast<float>(i));
  EXPECT_EQ(count.item<float>(), 5);
}

TEST(Jit, SeesWhatWasAssignedInBetween) {
  Tensor w = Tensor::of({2.f, 3.f}).realize();
  auto f = jit([&](const Tensor& x) { return x * w; });
  Tensor x = Tensor::of({1.f, 1.f});
  for (int i = 0; i < 3; ++i) f(x).realize();
  w.assign(Tensor::of({5.f, 7.f}));
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{5, 7}));
  w[0] = 1;
  EXPECT_EQ(f(x).to_vector<float>(), (Floats{1, 7}));
}

TEST(Jit, AViewKeptOverAReplayKeepsWhatItShows) {
  Tensor w = Tensor::of({1.f, 2.f}).realize();
  auto f = jit([&](const Tensor& x) { w += x; });
  Tensor x = Tensor::of({1.f, 1.f});
  for (int i = 0; i < 3; ++i) f(x);
  Tensor before = w + 0;
  f(x);
  EXPECT_EQ(before.to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(w.to_vector<float>(), (Floats{5, 6}));
}

TEST(Jit, RandomNumbersGoOn) {
  auto draw = [](const Tensor& x) { return Tensor::rand({4}) + x; };
  Tensor zero = Tensor::zeros({1}).clone().realize();
  Tensor::manual_seed(7);
  std::vector<Floats> want;
  for (int i = 0; i < 5; ++i) want.push_back(draw(zero).to_vector<float>());
  Tensor::manual_seed(7);
  auto f = jit(draw);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(zero).to_vector<float>(), want[static_cast<std::size_t>(i)]) << i;
}

TEST(Jit, AValueReadInsideIsAnError) {
  auto f = jit([](const Tensor& x) { return x * x.sum().item<float>(); });
  Tensor x = Tensor::of({1.f, 2.f});
  f(x);
  EXPECT_THROW(f(x), CaptureError);
}

TEST(Jit, SlicesOfAnArgument) {
  auto f = jit([](const Tensor& x) { return (x[{1}] * 2).sum() + x[Slice{0, 1}].sum(); });
  for (float v : {1.f, 2.f, 3.f, 4.f})
    EXPECT_EQ(f(Tensor::of({{v, v}, {10 * v, v}})).item<float>(), 2 * 11 * v + 2 * v);
}

TEST(Jit, GradientsAreThoseOfTheLastCall) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  auto f = jit([&](const Tensor& x) {
    w.zero_grad();
    Tensor loss = (w * w * x).sum();
    loss.backward();
    return loss;
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    EXPECT_EQ(f(Tensor::of({v, v})).item<float>(), 5 * v);
    EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2 * v, 4 * v}));
  }
}

// --- where a recording holds

// What is written to an argument is written to the argument of each call.
TEST(Jit, WritesToItsArgument) {
  auto f = jit([](const Tensor& x) {
    Tensor t = x;
    t += 1;
    return t * 2;
  });
  for (int i = 0; i < 4; ++i) {
    float v = static_cast<float>(i);
    Tensor x = Tensor::of({v}).realize();
    EXPECT_EQ(f(x).item<float>(), 2 * (v + 1));
    EXPECT_EQ(x.item<float>(), v + 1) << i;
    Tensor base = Tensor::of({v, v}).realize();
    f(base[Slice{1}]);
    EXPECT_EQ(base.to_vector<float>(), (Floats{v, v + 1})) << i;
  }
  EXPECT_EQ(f.captures(), 2u);
}

// Contents in between take the storage of those before: a value that waits to read them is not lost.
TEST(Jit, APendingReaderOfWhatIsWrittenTwice) {
  Tensor b = Tensor::of({7.f, 8.f}).realize();
  auto f = jit([](const Tensor& x, const Tensor& y) {
    Tensor t = x;
    t.assign(y);
    t += y;
    return t + 1;
  });
  for (int i = 0; i < 5; ++i) {
    Tensor a = Tensor::of({1.f, 2.f}), before = a + 100;
    EXPECT_EQ(f(a, b).to_vector<float>(), (Floats{15, 17})) << i;
    EXPECT_EQ(before.to_vector<float>(), (Floats{101, 102})) << i;
    EXPECT_EQ(a.to_vector<float>(), (Floats{14, 16})) << i;
  }
}

TEST(Jit, OneStorageInTwoShapes) {
  Tensor t = Tensor::arange(4).cast(f32).reshape({2, 2}).contiguous().realize();
  auto f = jit([view = t.reshape({4})](const Tensor& x) {
    Tensor v = view;
    v += x;
    v.realize();
  });
  for (int i = 1; i < 6; ++i) {
    f(Tensor::of({1.f}).realize());
    EXPECT_EQ(t.shape(), (Shape{2, 2})) << i;
    EXPECT_EQ(t.to_vector<float>()[3], static_cast<float>(3 + i));
  }
}

TEST(Jit, ArgumentsThatShareStorageAreAnotherCase) {
  auto f = jit([](const Tensor& x, const Tensor& y) {
    Tensor t = x;
    t += 1;
    return x * 10 + y;
  });
  for (int i = 0; i < 4; ++i) {
    Tensor a = Tensor::of({1.f}).realize(), b = Tensor::of({5.f}).realize();
    EXPECT_EQ(f(a, a).item<float>(), 22) << i;
    EXPECT_EQ(f(a, b).item<float>(), 35) << i;
    EXPECT_EQ(f(b, a.contiguous()).item<float>(), 63) << i;
  }
}

TEST(Jit, AnArgumentThatIsAlsoCaptured) {
  Tensor w = Tensor::of({100.f}).realize();
  auto f = jit([&](const Tensor& x) { return x + w; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(w).item<float>(), 200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor::of({1.f})).item<float>(), 101);
  EXPECT_EQ(f(w).item<float>(), 200);

  // Equal contents in one storage, too, are two tensors.
  Tensor same = w.contiguous();
  auto g = jit([&](const Tensor& x) { return x + w; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(g(same).item<float>(), 200);
  EXPECT_EQ(g(Tensor::of({1.f})).item<float>(), 101);
}

TEST(Jit, WhatWasComputedBeforeIsNotKept) {
  Tensor w = Tensor::of({1.f, 2.f}).realize();
  Tensor doubled = w * 2, pending = doubled + 1;
  doubled.realize();
  auto f = jit([&] { return w * 2; });
  for (float v : {1.f, 3.f, 5.f, 7.f}) {
    w.assign(v);
    EXPECT_EQ(f().to_vector<float>(), (Floats{2 * v, 2 * v}));
  }
  EXPECT_EQ(pending.to_vector<float>(), (Floats{3, 5}));
}

TEST(Jit, ConstantsAsArguments) {
  auto f = jit([](const Tensor& x, const Tensor& rate) { return x * rate; });
  for (float v : {1.f, 2.f, 3.f, 4.f})
    EXPECT_EQ(f(Tensor::full({2}, v), Tensor(v + 1)).to_vector<float>(), Floats(2, v * (v + 1)));
  EXPECT_EQ(f.captures(), 1u);
}

TEST(Jit, NumbersOfAnotherTypeAreAnotherCase) {
  auto f = jit([](const Tensor& x, auto n) { return x / 2 + n; });
  auto g = jit([](const Tensor& x, auto n) { return x + n; });
  Tensor x = Tensor::of({3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(x, 0).dtype(), f32);
    EXPECT_EQ(g(x, 0).dtype(), i32);
    EXPECT_EQ(g(x, 0.f).dtype(), f32);
  }
}

TEST(Jit, ASymbolicSizeTakesOtherValues) {
  Tensor data = Tensor::arange(16).cast(f32).realize();
  Variable n("n", 1, 16);
  auto f = jit([&](const Dim& size) { return (data[Slice{.stop = size}] * 2).sum(); });
  for (int v : {3, 4, 5, 9, 16, 1}) EXPECT_EQ(f(n.bind(v)).item<float>(), static_cast<float>(v * (v - 1)));
  EXPECT_EQ(f.captures(), 1u);

  auto g = jit([](const Tensor& x) { return x + 1; });
  for (int v : {3, 4, 5, 9}) {
    Tensor out = g(data[Slice{.stop = n.bind(v)}]);
    EXPECT_EQ(out.size(0).value(), v);
    Floats want;
    for (int i = 0; i < v; ++i) want.push_back(static_cast<float>(i + 1));
    EXPECT_EQ(out.to_vector<float>(), want);
  }
  EXPECT_EQ(g.captures(), 1u);
  auto h = jit([](const Dim& size) { return Tensor::ones({size.value()}) + 1; });
  h(n.bind(2));
  EXPECT_THROW(h(n.bind(2)), CaptureError);
}

TEST(Jit, MarksThatChangeAreSeen) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad(), v = Tensor::of({3.f, 4.f}).requires_grad();
  auto f = jit([&] {
    w.zero_grad();
    v.zero_grad();
    (w * v).sum().backward();
  });
  for (int i = 0; i < 4; ++i) f();
  EXPECT_EQ(v.grad().to_vector<float>(), (Floats{1, 2}));
  v.requires_grad(false);
  for (int i = 0; i < 3; ++i) {
    f();
    EXPECT_FALSE(v.grad().defined());
    EXPECT_EQ(w.grad().to_vector<float>(), (Floats{3, 4}));
  }
}

TEST(Jit, GradientsAccumulateAsTheyWould) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  auto f = jit([&](const Tensor& x) { (w * x).sum().backward(); });
  Tensor x = Tensor::of({1.f, 10.f}).realize();
  for (int i = 1; i < 6; ++i) {
    f(x);
    float n = static_cast<float>(i);
    EXPECT_EQ(w.grad().to_vector<float>(), (Floats{n, 10 * n})) << i;
  }
  w.zero_grad();
  for (int i = 1; i < 4; ++i) {
    f(x);
    EXPECT_EQ(w.grad().to_vector<float>()[0], static_cast<float>(i)) << i;
  }
}

// The gradients that a step reads are those that are there, not those that were.
TEST(Jit, ReadsTheGradientsOfTheMoment) {
  Tensor w = Tensor::of({0.f}).requires_grad();
  auto step = jit([&] {
    NoGrad off;
    w -= w.grad();
  });
  float want = 0;
  for (int i = 1; i < 6; ++i) {
    w.zero_grad();
    (w * static_cast<float>(i)).sum().backward();
    step();
    want -= static_cast<float>(i);
    EXPECT_EQ(w.item<float>(), want) << i;
  }
}

TEST(Jit, AnotherSeedIsSeen) {
  Tensor zero = Tensor::zeros({1}).clone().realize();
  auto draw = [&] { return Tensor::rand({4}) + zero; };
  auto f = jit(draw);
  for (int i = 0; i < 3; ++i) f();
  for (int seed : {1, 2}) {
    Tensor::manual_seed(static_cast<std::uint64_t>(seed));
    Floats want = draw().to_vector<float>();
    Tensor::manual_seed(static_cast<std::uint64_t>(seed));
    EXPECT_EQ(f().to_vector<float>(), want);
  }
  auto seeding = jit([&] {
    Tensor::manual_seed(3);
    return draw();
  });
  seeding();
  EXPECT_THROW(seeding(), CaptureError);
}

struct OneWeight : nn::Module {
  Tensor w = Tensor::of({1.f}).realize();
  void fields(auto&& field) { field("w", w); }
};

TEST(Jit, AHandleReboundBetweenCallsIsSeen) {
  OneWeight net;
  std::vector<Tensor> list = {Tensor::of({10.f}).realize()};
  Tensor keep = net.w, kept = list[0];  // others still hold the old ones
  auto f = jit([&](const Tensor& x) { return x * net.w + list[0]; });
  Tensor x = Tensor::of({2.f}).realize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<float>(), 12);
  net.w = Tensor::of({5.f});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<float>(), 20);
  list.clear();
  list.push_back(Tensor::of({20.f}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<float>(), 30);
  OneWeight other = net;
  other.w = Tensor::of({7.f});
  net = other;
  EXPECT_EQ(f(x).item<float>(), 34);
  EXPECT_EQ(f.captures(), 1u);
}

TEST(Jit, ArgumentsMayBeRebound) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  Tensor x = Tensor::of({0.f});
  for (int i = 1; i < 6; ++i) {
    x = f(x);
    EXPECT_EQ(x.item<float>(), static_cast<float>(i));
  }
  auto before = engine::counters();
  x = f(x);
  EXPECT_EQ(engine::counters().schedule_hits, before.schedule_hits);  // a replay
}

TEST(Jit, ModulesAsArguments) {
  auto f = jit([](const OneWeight& net, const Tensor& x) { return net.w * x; });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    OneWeight net;
    net.w = Tensor::of({v});
    EXPECT_EQ(f(net, Tensor::of({10.f})).item<float>(), 10 * v);
  }
  EXPECT_EQ(f.captures(), 1u);
}

// --- results

TEST(Jit, ResultsKeepTheirForm) {
  auto f = jit([](const Tensor& x, const std::vector<Tensor>& more) {
    std::vector<Tensor> sums;
    for (const Tensor& t : more) sums.push_back(t + x);
    return std::tuple(sums, x * 2, std::pair(Tensor(), std::vector<Tensor>{x, x + 1}));
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    Tensor x = Tensor::of({v});
    auto [sums, twice, rest] = f(x, std::vector<Tensor>{Tensor::of({10.f}), Tensor::of({20.f})});
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[1].item<float>(), 20 + v);
    EXPECT_EQ(twice.item<float>(), 2 * v);
    EXPECT_FALSE(rest.first.defined());
    ASSERT_EQ(rest.second.size(), 2u);
    EXPECT_EQ(rest.second[0].impl(), x.impl());  // the argument itself
    EXPECT_EQ(rest.second[1].item<float>(), v + 1);
  }
}

TEST(Jit, ResultsAliasWhatTheyWould) {
  Tensor w = Tensor::of({1.f, 2.f}).realize();
  auto f = jit([&](const Tensor& x) {
    Tensor made = x * 2;
    return std::tuple(x[0], made, made[1], w[1], Tensor::zeros({2}));
  });
  for (int i = 0; i < 4; ++i) {
    Tensor x = Tensor::of({1.f, 2.f});
    auto [of_x, made, of_made, of_w, zeros] = f(x);
    of_x.assign(50);
    of_made.assign(60);
    of_w.assign(static_cast<float>(i));
    zeros += 1;
    EXPECT_EQ(x.to_vector<float>(), (Floats{50, 2})) << i;
    EXPECT_EQ(made.to_vector<float>(), (Floats{2, 60})) << i;
    EXPECT_EQ(w.to_vector<float>(), (Floats{1, static_cast<float>(i)})) << i;
    EXPECT_EQ(zeros.to_vector<float>(), (Floats{1, 1})) << i;
  }
}

TEST(Jit, ResultsHaveNoHistory) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  auto f = jit([&](const Tensor& x) { return (w * x).sum(); });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(message<ValueError>([&] { f(Tensor::of({1.f, 1.f})).backward(); }),
              "[backward] the history of this tensor ended with [jit], which returned it: call backward() "
              "inside the function");
}

// --- what is refused

TEST(Jit, RebindingAnOlderTensorIsAnError) {
  Tensor state = Tensor::of({1.f, 2.f}).realize();
  auto f = jit([&](const Tensor& x) {
    Tensor h = x;
    h = h + 1;  // a handle of the body's own
    state = state + h;
    return h;
  });
  Tensor x = Tensor::of({1.f, 1.f}).realize();
  f(x);
  EXPECT_EQ(message<CaptureError>([&] { f(x); }),
            "[jit] Tensor((2), f32, CPU), older than this call, was rebound to Tensor((2), f32, CPU) inside "
            "it, which a replay could not do: write to it with assign(), or return the new one");

  Tensor empty;
  auto g = jit([&](const Tensor& x) { empty = x + 1; });
  g(x);
  EXPECT_THROW(g(x), CaptureError);
  Tensor moved = Tensor::of({1.f}).realize();
  auto h = jit([&](bool on) { return on ? std::move(moved) + 1 : moved + 1; });
  h(false);
  EXPECT_EQ(h(false).item<float>(), 2);
  auto m = jit([&] {
    Tensor taken = std::move(moved);
    return taken + 1;
  });
  m();
  moved = Tensor::of({1.f});
  EXPECT_THROW(m(), CaptureError);

  // Put back, it is what it was.
  auto swap = jit([&](const Tensor& x) {
    Tensor before = state;
    state = x;
    Tensor y = state * 2;
    state = before;
    return y;
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) EXPECT_EQ(swap(Tensor::of({v})).item<float>(), 2 * v);
}

TEST(Jit, GradientsDoNotLeaveIt) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad(), v = Tensor::of({2.f, 2.f}).requires_grad();
  auto f = jit([&](const Tensor& h) {
    v.zero_grad();
    (h * v).sum().backward();
  });
  f(w * 2);
  EXPECT_THROW(f(w * 2), CaptureError);
  for (int i = 0; i < 3; ++i) {
    f((w * 2).detach());
    EXPECT_EQ(v.grad().to_vector<float>(), (Floats{2, 4}));
  }
  EXPECT_THROW(f(w * 2), CaptureError);
  // Without gradients a history outside is no matter, and stays.
  auto g = jit([](const Tensor& h) { return h + 1; });
  for (int i = 0; i < 4; ++i) {
    Tensor h = w * static_cast<float>(i);
    EXPECT_EQ(g(h).to_vector<float>()[1], static_cast<float>(2 * i + 1));
    w.zero_grad();
    h.sum().backward();
    EXPECT_EQ(w.grad().to_vector<float>()[0], static_cast<float>(i));
  }
}

TEST(Jit, LaunchesTheSameKernelsWithoutScheduling) {
  auto f = jit([](const Tensor& x) { return (x.exp() / x.exp().sum()).contiguous(); });
  Tensor x = Tensor::of({1.f, 2.f, 3.f}).realize();
  for (int i = 0; i < 2; ++i) f(x).realize();
  auto before = engine::counters();
  f(x);
  auto after = engine::counters();
  EXPECT_EQ(after.schedules, before.schedules);
  EXPECT_EQ(after.schedule_hits, before.schedule_hits);
  EXPECT_GT(after.kernels, before.kernels);
  EXPECT_EQ(after.compiled, before.compiled);
}

}  // namespace
}  // namespace pg
