// Gradients: each operation against finite differences in f64, the laws of marks and histories, and writes.
#include <functional>

#include "eval/evaluate.h"
#include "tensor/helpers.h"

namespace pg {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

// Values away from ties and kinks.
Tensor sample(const Shape& shape, double low = -1.7, double high = 1.9) {
  std::vector<double> v;
  auto n = static_cast<std::size_t>(shape.numel().max());
  for (std::size_t i = 0; i < n; ++i) {
    double u = std::fmod(0.5 + static_cast<double>(i) * 0.61803398875, 1.0);
    v.push_back(low + (high - low) * u);
  }
  return Tensor::of(v, shape);
}

void check(const char* what, const Function& f, const Tensor& at, double tolerance = 1e-5) {
  SCOPED_TRACE(what);
  // A random direction through the result makes one number of it.
  auto loss = [&](const Tensor& x) {
    Tensor y = f(x);
    return (y * sample(y.shape(), 0.3, 1.7)).sum();
  };
  Tensor x = at.clone().requires_grad();
  std::vector<double> got = loss(x).gradient({x})[0].to_vector<double>();
  std::vector<double> v = at.to_vector<double>();
  ASSERT_EQ(got.size(), v.size());
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < v.size(); ++i) {
    auto moved = [&](double by) {
      std::vector<double> w = v;
      w[i] += by;
      return loss(Tensor::of(w, at.shape()).requires_grad()).item<double>();
    };
    double want = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR(got[i], want, tolerance * std::max(1.0, std::abs(want))) << "element " << i;
  }
}

TEST(Gradient, Elementwise) {
  Tensor x = sample({3, 2}), positive = sample({3, 2}, 0.2, 2.5), inside = sample({3, 2}, -0.9, 0.9);
  Tensor y = sample({2}, 0.4, 2.0);
  check("add", [&](const Tensor& t) { return t + y; }, x);
  check("sub", [&](const Tensor& t) { return y - t; }, x);
  check("mul", [&](const Tensor& t) { return t * y * t; }, x);
  check("div", [&](const Tensor& t) { return t / y + y / t; }, positive);
  check("neg", [](const Tensor& t) { return -t; }, x);
  check("maximum", [&](const Tensor& t) { return t.maximum(y).minimum(y * 1.5); }, x);
  check("clamp", [](const Tensor& t) { return t.clamp(-1, 1); }, x);
  check("where", [](const Tensor& t) { return (t > 0).where(t * t, t * 3); }, x);
  check("pow", [&](const Tensor& t) { return t.pow(y) + t.pow(2) + t.pow(2.5) + t.pow(-1); }, positive);
  check("exponent", [&](const Tensor& t) { return y.pow(t); }, x);
  check("sqrt", [](const Tensor& t) { return t.sqrt() + t.rsqrt() + t.reciprocal(); }, positive);
  check("exp", [](const Tensor& t) { return t.exp() + t.exp2(); }, x);
  check("log", [](const Tensor& t) { return t.log() + t.log2() + t.log10(); }, positive);
  check("sin", [](const Tensor& t) { return t.sin() + t.cos() * 2; }, x);
  check("tan", [](const Tensor& t) { return t.tan(); }, inside);
  check("tanh", [](const Tensor& t) { return t.tanh() + t.sinh() + t.cosh(); }, x);
  check("erf", [](const Tensor& t) { return t.erf(); }, x);
  check("arcs", [](const Tensor& t) { return t.asin() + t.acos() * 2 + t.atan() + t.atanh(); }, inside);
  check("asinh", [](const Tensor& t) { return t.asinh(); }, x);
  check("acosh", [](const Tensor& t) { return (t + 1.2).acosh(); }, positive);
  check("abs", [](const Tensor& t) { return t.abs(); }, x);
  check("relu", [](const Tensor& t) { return t.relu() + t.leaky_relu() + t.relu6(); }, x);
  check("elu", [](const Tensor& t) { return t.elu() + t.celu(2) + t.selu(); }, x);
  check("gelu", [](const Tensor& t) { return t.gelu() + t.gelu(Gelu::Erf) + t.quick_gelu(); }, x);
  check("sigmoid", [](const Tensor& t) { return t.sigmoid() + t.silu() + t.logsigmoid(); }, x);
  check("softplus", [](const Tensor& t) { return t.softplus() + t.mish() + t.softsign(); }, x);
  check("hard", [](const Tensor& t) { return t.hardswish() + t.hardsigmoid() + t.hardtanh(); }, x);
  check("logaddexp", [&](const Tensor& t) { return t.logaddexp(y); }, x);
  check("lerp", [&](const Tensor& t) { return t.lerp(y, 0.3); }, x);
  check("copysign", [&](const Tensor& t) { return t.copysign(-y); }, x);
  check("masked_fill", [](const Tensor& t) { return t.masked_fill(t > 0.5, 2); }, x);
}

TEST(Gradient, Movement) {
  Tensor x = sample({2, 3, 4});
  check("reshape", [](const Tensor& t) { return t.reshape({4, 6}); }, x);
  check("permute", [](const Tensor& t) { return t.permute({2, 0, 1}); }, x);
  check("expand", [](const Tensor& t) { return t.unsqueeze(1).expand({2, 5, 3, 4}); }, x);
  check("flip", [](const Tensor& t) { return t.flip({0, 2}); }, x);
  check("shrink", [](const Tensor& t) { return t.shrink({{0, 2}, {1, 3}, {0, 2}}); }, x);
  check("pad", [](const Tensor& t) { return t.pad({{1, 0}, {0, 2}, {1, 1}}, {.value = 3}); }, x);
  check(
      "pad reflect",
      [](const Tensor& t) { return t.pad({{0, 0}, {1, 2}, {2, 1}}, {.mode = PadMode::Reflect}); }, x);
  check(
      "pad circular",
      [](const Tensor& t) { return t.pad({{0, 0}, {1, 2}, {2, 1}}, {.mode = PadMode::Circular}); }, x);
  check(
      "pad replicate",
      [](const Tensor& t) { return t.pad({{0, 0}, {1, 2}, {-1, 1}}, {.mode = PadMode::Replicate}); }, x);
  check("cat", [](const Tensor& t) { return cat({t, t * 2, t}, 1); }, x);
  check("stack", [](const Tensor& t) { return stack({t, t * t}, -1); }, x);
  check(
      "repeat",
      [](const Tensor& t) { return t.repeat({2, 1, 3}) + t.repeat_interleave(2, 0).repeat({1, 1, 3}); }, x);
  check("roll", [](const Tensor& t) { return t.roll({1, -1}, {0, 2}); }, x);
  check("diagonal", [](const Tensor& t) { return t.diagonal(1, 1, 2); }, x);
  check("triangles", [](const Tensor& t) { return t.tril() + t.triu(1) * 2; }, x);
  check("unfold", [](const Tensor& t) { return t.unfold(2, 2, 1); }, x);
  check("slices", [](const Tensor& t) { return t[{Slice{}, Slice{.step = -2}, Slice{1, 4, 2}}]; }, x);
}

TEST(Gradient, Indexing) {
  Tensor x = sample({3, 4});
  check("rows", [](const Tensor& t) { return t[Tensor::of({2, 0, 2, -1})]; }, x);
  check("columns", [](const Tensor& t) { return t[{Slice{}, Tensor::of({{1, 1}, {3, 0}})}]; }, x);
  check("both", [](const Tensor& t) { return t[{Tensor::of({2, 0, 2}), Tensor::of({1, 1, 3})}]; }, x);
  check("gather", [](const Tensor& t) { return t.gather(1, Tensor::of({{0, 0}, {3, 1}, {2, 2}})); }, x);
  check(
      "scatter", [](const Tensor& t) { return t.scatter(1, Tensor::of({{0, 0}, {3, 1}, {2, 2}}), t * 3); },
      x);
  check(
      "scatter_reduce",
      [](const Tensor& t) {
        Tensor i = Tensor::of({{0, 0}, {3, 1}, {2, 2}});
        return t.scatter_reduce(1, i, t * 3, Scatter::Sum) + t.scatter_reduce(1, i, t, Scatter::Mean) +
               t.scatter_reduce(1, i, t, Scatter::Amax);
      },
      x);
  check(
      "setitem",
      [](const Tensor& t) {
        Tensor y = t.clone();
        y[Tensor::of({0, 2})] = t[Slice{0, 2}] * 5;
        y[{1, Slice{1, 3}}] = t[{0, Slice{0, 2}}] * 2;
        return y;
      },
      x);
}

TEST(Gradient, Reductions) {
  Tensor x = sample({3, 4}), positive = sample({3, 4}, 0.3, 2);
  check("sum", [](const Tensor& t) { return t.sum(1); }, x);
  check("mean", [](const Tensor& t) { return t.mean(0); }, x);
  check("max", [](const Tensor& t) { return t.max(1) + t.min(1); }, x);
  check("prod", [](const Tensor& t) { return t.prod(1); }, x);
  check("var", [](const Tensor& t) { return t.var(1) + t.std(1); }, x);
  check("softmax", [](const Tensor& t) { return t.softmax(1); }, x);
  check("log_softmax", [](const Tensor& t) { return t.log_softmax(0); }, x);
  check("logsumexp", [](const Tensor& t) { return t.logsumexp(1); }, x);
  check("cumsum", [](const Tensor& t) { return t.cumsum(1) + t.cumprod(1); }, x);
  check("cummax", [](const Tensor& t) { return t.cummax(1).first; }, x);
  check("logcumsumexp", [](const Tensor& t) { return t.logcumsumexp(1); }, x);
  check("sort", [](const Tensor& t) { return t.sort(1).first + t.topk(4, 1).first; }, x);
  check("normalize", [](const Tensor& t) { return t.normalize() + t.normalize(3, 0); }, positive);
  check("layernorm", [](const Tensor& t) { return t.layernorm(); }, x);
}

TEST(Gradient, ProductOfZeros) {
  Tensor x = Tensor::of({{0.f, 2.f, 3.f}, {0.f, 0.f, 4.f}, {1.f, 2.f, 3.f}}).requires_grad();
  EXPECT_EQ(floats_of(x.prod(1).sum().gradient({x})[0]), (Floats{6, 0, 0, 0, 0, 0, 6, 3, 2}));
}

TEST(Gradient, Products) {
  Tensor a = sample({2, 3}), b = sample({3, 4}, -1.2, 1.4);
  check("matmul left", [&](const Tensor& t) { return t.matmul(b); }, a);
  check("matmul right", [&](const Tensor& t) { return a.matmul(t); }, b);
  check("batched", [&](const Tensor& t) { return t.reshape({2, 1, 3}).matmul(b.unsqueeze(0)); }, a);
  check("einsum", [&](const Tensor& t) { return einsum("ij,jk->ki", {t, b}); }, a);
  Tensor q = sample({2, 3, 4});
  check(
      "attention",
      [&](const Tensor& t) {
        return t.scaled_dot_product_attention(t * 0.5, t + 1, {}, {.is_causal = true});
      },
      q);
}

TEST(Gradient, Convolutions) {
  Tensor x = sample({2, 2, 5, 4}), w = sample({4, 1, 3, 2}, -1, 1), image = sample({1, 2, 5, 5}),
         dense = sample({3, 2, 3, 3}, -1, 1);
  check("conv input", [&](const Tensor& t) { return t.conv2d(w, {.padding = 1, .groups = 2}); }, x);
  check("conv weight", [&](const Tensor& t) { return x.conv2d(t, {.padding = 1, .groups = 2}); }, w);
  check(
      "conv strided",
      [&](const Tensor& t) { return t.conv2d(dense, {.stride = {2, 1}, .padding = {1, 0, 2, 1}}); }, image);
  check("conv dilated", [&](const Tensor& t) { return t.conv2d(dense, {.dilation = 2}); }, image);
  check("conv plain", [&](const Tensor& t) { return t.conv2d(dense); }, image);
  check(
      "conv 1d", [&](const Tensor& t) { return t.conv2d(sample({2, 2, 3}), {.stride = 2}); },
      sample({1, 2, 8}));
  check(
      "conv transpose",
      [&](const Tensor& t) {
        return t.conv_transpose2d(sample({2, 3, 3, 2}), {.stride = 2, .padding = 1, .output_padding = 1});
      },
      sample({1, 2, 3, 3}));
  check("max pool", [](const Tensor& t) { return t.max_pool2d(); }, x);
  check(
      "max pool overlapping", [](const Tensor& t) { return t.max_pool2d(3, {.stride = 1, .padding = 1}); },
      x);
  check(
      "avg pool",
      [](const Tensor& t) {
        return t.avg_pool2d(2, {.stride = 1}) + t.avg_pool2d(2, {.stride = 1, .count_include_pad = false});
      },
      x);
  check("interpolate", [](const Tensor& t) { return t.interpolate({3, 7}); }, x);
}

TEST(Gradient, Losses) {
  Tensor x = sample({3, 4}), classes = Tensor::of({1, 3, 0}), p = sample({3, 4}, 0.1, 0.9);
  check(
      "cross entropy", [&](const Tensor& t) { return t.cross_entropy(classes, {.label_smoothing = 0.1}); },
      x);
  check(
      "cross entropy of probabilities",
      [&](const Tensor& t) { return t.cross_entropy(p, {.reduction = Reduction::None}); }, x);
  check(
      "sparse",
      [&](const Tensor& t) { return t.sparse_categorical_crossentropy(classes, {.label_smoothing = 0.2}); },
      x);
  check(
      "nll",
      [&](const Tensor& t) {
        return t.log_softmax(1).nll_loss(classes, Tensor::of({1., 2., 3., 4.}, {.dtype = f64}));
      },
      x);
  check("binary", [&](const Tensor& t) { return t.binary_crossentropy(sample({3, 4}, 0, 1)); }, p);
  check(
      "binary of logits",
      [&](const Tensor& t) {
        return t.binary_crossentropy_logits(p, Tensor::of({2., 1., 1., 3.}, {.dtype = f64}));
      },
      x);
}

TEST(Gradient, SecondOrder) {
  check("of a cube", [](const Tensor& t) { return (t * t * t).sum().gradient({t})[0]; }, sample({3}));
  check("of exp sin", [](const Tensor& t) { return t.sin().exp().sum().gradient({t})[0]; }, sample({3}));
  check(
      "of a product", [](const Tensor& t) { return t.matmul(t).tanh().sum().gradient({t})[0]; },
      sample({2, 2}));
  check(
      "of a convolution",
      [](const Tensor& t) { return t.conv2d(sample({1, 1, 2, 2})).square().sum().gradient({t})[0]; },
      sample({1, 1, 3, 3}));
}

// --- accumulation dtypes, ties, masks
// ------------------------------------------------------------------------------

TEST(Gradient, AtTies) {
  Tensor x = Tensor::of({0.f, 1.f, -1.f}).requires_grad();
  EXPECT_EQ(floats_of(x.relu().sum().gradient({x})[0]), (Floats{0, 1, 0}));
  EXPECT_EQ(floats_of(x.abs().sum().gradient({x})[0]), (Floats{0, 1, -1}));
  EXPECT_EQ(floats_of(x.maximum(Tensor::of({0.f, 2.f, -2.f})).sum().gradient({x})[0]), (Floats{0.5, 0, 1}));
  EXPECT_EQ(floats_of(Tensor::of({1.f, 3.f, 3.f}).clone().requires_grad().max().gradient({x})[0]),
            (Floats{0, 0, 0}));
  Tensor y = Tensor::of({1.f, 3.f, 3.f}).requires_grad();
  EXPECT_EQ(floats_of(y.max().gradient({y})[0]), (Floats{0, 0.5, 0.5}));
}

TEST(Gradient, AMaskHoldsToTheEndOfItsBranch) {
  Tensor x = Tensor::of({0.f, 4.f}).requires_grad();
  EXPECT_EQ(floats_of((x == 0).where(0, x * x.sqrt()).sum().gradient({x})[0]), (Floats{0, 3}));
  EXPECT_EQ(floats_of((x == 0).where(0, 1.0 / x).sum().gradient({x})[0]), (Floats{0, -0.0625}));
  EXPECT_EQ(floats_of((x == 0).where(0, x.reshape({2, 1}).log().reshape({2})).sum().gradient({x})[0]),
            (Floats{0, 0.25}));
}

TEST(Gradient, FarOut) {
  Tensor x = Tensor::of({-200.f, 0.f, 200.f}).requires_grad();
  EXPECT_EQ(floats_of(x.sigmoid().sum().gradient({x})[0]), (Floats{0, 0.25, 0}));
  expect_close(x.softplus().sum().gradient({x})[0], {0, 0.5, 1});
  expect_close(x.logsigmoid().sum().gradient({x})[0], {1, 0.5, 0});
}

TEST(Gradient, NarrowFloatsSumInF32) {
  Tensor x = Tensor::ones({1}, {.dtype = f16}).clone().requires_grad();
  Tensor y = (x * Tensor::ones({5000}, {.dtype = f16})).sum();
  Tensor g = y.gradient({x}, Tensor::ones({}, {.dtype = f16}))[0];
  EXPECT_EQ(g.dtype(), f16);
  EXPECT_EQ(g.cast(f32).item<float>(), 5000.f);
}

// --- marks and histories
// -------------------------------------------------------------------------------------------

TEST(Gradient, AddsUp) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  (w * 2).sum().backward();
  (w * w).sum().backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{4, 6}));
  w.zero_grad();
  EXPECT_FALSE(w.grad().defined());
}

TEST(Gradient, DetachStopsIt) {
  Tensor w = Tensor::of({3.f}).requires_grad();
  (w * w.detach()).sum().backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{3}));
}

TEST(Gradient, NothingUnderNoGrad) {
  Tensor w = Tensor::of({3.f}).requires_grad(), y;
  {
    NoGrad off;
    y = w * 2;
  }
  (w * y).sum().backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{6}));
  Tensor h = w * 5;
  {
    NoGrad off;
    y = h + 1;
  }
  EXPECT_THROW(y.sum().backward(), ValueError);
}

TEST(Gradient, RetainedOrNot) {
  Tensor w = Tensor::of({3.f}).requires_grad(), loss = (w * w).sum();
  loss.backward({.retain = true});
  loss.backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{12}));
  EXPECT_EQ(loss.item<float>(), 9.f);
}

TEST(Gradient, OfAValueThatIsNoScalar) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  (w * w).backward({.gradient = Tensor::of({1.f, 10.f})});
  EXPECT_EQ(floats_of(w.grad()), (Floats{2, 40}));
}

TEST(Gradient, ThroughViewsOfAParameter) {
  Tensor w = Tensor::of({{1.f, 2.f}, {3.f, 4.f}}).requires_grad();
  (w.T()[0] * Tensor::of({5.f, 7.f})).sum().backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{5, 0, 7, 0}));
}

TEST(Gradient, TargetsMayBeUnrelated) {
  Tensor a = Tensor::of({1.f}).requires_grad(), b = Tensor::of({1.f, 2.f}).requires_grad();
  auto g = (a * 3).sum().gradient({a, b});
  EXPECT_EQ(floats_of(g[0]), (Floats{3}));
  EXPECT_EQ(floats_of(g[1]), (Floats{0, 0}));
  EXPECT_FALSE(a.grad().defined());
}

TEST(Gradient, AfterTheParameterWasRealized) {
  Tensor w = (Tensor::of({1.f, 2.f}) + 1).requires_grad();
  Tensor loss = (w * w).sum();
  w.realize();
  loss.backward();
  EXPECT_EQ(floats_of(w.grad()), (Floats{4, 6}));
}

TEST(Gradient, ATrainingStep) {
  Tensor w = Tensor::of({1.f, 2.f}).requires_grad();
  for (int i = 0; i < 3; ++i) {
    w.zero_grad();
    (w * w).sum().backward();
    NoGrad off;
    w -= w.grad() * 0.001;
    w.realize();
  }
  expect_close(w, {0.994012f, 1.988024f}, 1e-6);
}

TEST(Gradient, DeepGraphs) {
  Tensor w = Tensor::of({1.f}).requires_grad(), y = w;
  for (int i = 0; i < 20000; ++i) y = y + w;
  Tensor g = y.sum().gradient({w})[0];
  EXPECT_EQ(g.shape(), Shape{1});
}

// --- through writes
// ------------------------------------------------------------------------------------------------

TEST(Gradient, AnOverwrittenElementGetsNone) {
  Tensor x = Tensor::of({2.f, 3.f}).requires_grad();
  Tensor y = x.clone();
  y[Slice{0, 1}] = 4;
  EXPECT_EQ(floats_of(y.sum().gradient({x})[0]), (Floats{0, 1}));
}

TEST(Gradient, ThroughWritesIntoViews) {
  auto run = [](auto view, const Floats& want, const char* what) {
    SCOPED_TRACE(what);
    Tensor x = Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).requires_grad();
    Tensor y = x.clone();
    Tensor target = view(y);
    Tensor v = Tensor::full(target.shape(), 2.0).requires_grad();
    target.assign(v);
    auto g = y.sum().gradient({x, v});
    EXPECT_EQ(floats_of(g[0]), want);
    for (float e : floats_of(g[1])) EXPECT_EQ(e, 1);
  };
  run([](Tensor& y) { return Tensor(y.reshape({3, 2})[Slice{1}]); }, {1, 1, 0, 0, 0, 0}, "reshape");
  run([](Tensor& y) { return Tensor(y.permute({1, 0})[Slice{1}]); }, {1, 0, 0, 1, 0, 0}, "permute");
  run([](Tensor& y) { return Tensor(y.flip({0, 1})[Slice{.stop = 1}]); }, {1, 1, 1, 0, 0, 0}, "flip");
}

TEST(Gradient, AWholeAssignmentGoesToTheValue) {
  for (bool realized : {false, true}) {
    Tensor x = Tensor::of({1.f, 2.f}).requires_grad(), v = Tensor::of({3.f, 4.f}).requires_grad();
    Tensor y = x.clone();
    if (realized) y.realize();
    y.assign(v * 2);
    auto g = (y * y).sum().gradient({x, v});
    EXPECT_EQ(floats_of(g[0]), (Floats{0, 0}));
    EXPECT_EQ(floats_of(g[1]), (Floats{24, 32}));
  }
}

TEST(Gradient, AWriteIntoARealizedHistory) {
  Tensor x = Tensor::of({1.f, 2.f}).requires_grad();
  Tensor y = (x * x).realize();
  y[0] = 7;
  y.realize();
  y.sum().backward();
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 4}));
  EXPECT_EQ(floats_of(y), (Floats{7, 4}));
}

}  // namespace
}  // namespace pg
