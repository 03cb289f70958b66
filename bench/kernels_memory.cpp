// What memory bounds: elementwise chains, reductions, softmax and the normalisations.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels.h"
#include "measure.h"

namespace pg::bench {
namespace {

constexpr std::int64_t kSide = 4096;
constexpr double kBytes = 4.0 * kSide * kSide;

void reductions() {
  Tensor x = Tensor::randn({kSide, kSide}).realize();
  const struct {
    const char* name;
    Tensor (*f)(const Tensor&, const Axes&);
  } reductions[] = {
      {"sum", [](const Tensor& t, const Axes& a) { return t.sum(a); }},
      {"max", [](const Tensor& t, const Axes& a) { return t.max(a); }},
      {"mean", [](const Tensor& t, const Axes& a) { return t.mean(a); }},
      {"var", [](const Tensor& t, const Axes& a) { return t.var(a); }},
  };
  const struct {
    const char* name;
    Axes axes;
  } ways[] = {{"rows", 1}, {"columns", 0}, {"all", {}}};
  for (const auto& r : reductions)
    for (const auto& w : ways)
      measure({.name = fmt::format("{} of {} of 64 MB", r.name, w.name),
               .bytes = kBytes,
               .inputs = {x},
               .ours = [&](const std::vector<Tensor>& in) { return std::vector{r.f(in[0], w.axes)}; }},
              {Goal::read(0.85)});
}

// One of rows of 4096 elements, forward and both ways.
void rows_of(const char* name, const char* rival_name, std::vector<Tensor> parameters, bool scalar,
             Tensor (*f)(const std::vector<Tensor>&)) {
  std::vector<Tensor> inputs{Tensor::randn({kSide, kSide}).realize()};
  for (const Tensor& p : parameters) inputs.push_back(p.realize());
  double result = scalar ? 0 : kBytes;
  measure({.name = fmt::format("{} of 4096 x 4096, forward", name),
           .bytes = kBytes + result,
           .inputs = inputs,
           .ours = [f](const std::vector<Tensor>& in) { return std::vector{f(in)}; },
           .rival_work = fmt::format("rows {} forward {} {}", rival_name, kSide, kSide)},
          {Goal::copy(0.75), Goal::beat(Rival::torch(), 1.5)});
  std::vector<Tensor> targets;
  for (const Tensor& t : inputs)
    if (t.is_floating_point()) targets.push_back(t.requires_grad());
  auto n = targets.size();
  if (!scalar) inputs.push_back(Tensor::randn({kSide, kSide}));
  measure(
      {.name = fmt::format("{} of 4096 x 4096, forward and backward", name),
       .bytes = 2 * kBytes + 2 * result,  // x and the gradient of the result in, the result and that of x out
       .inputs = inputs,
       .ours =
           [=](const std::vector<Tensor>& in) {
             Tensor y = f(in);
             std::vector<Tensor> to(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n)), out{y};
             for (Tensor& g : scalar ? y.gradient(to) : y.gradient(to, in.back())) out.push_back(g);
             return out;
           },
       .rival_work = fmt::format("rows {} both {} {}", rival_name, kSide, kSide)},
      {Goal::copy(0.75), Goal::beat(Rival::torch(), 1.5)});
}

}  // namespace

void memory_bound() {
  measure({.name = "elementwise chain of 8 over 64 MB",
           .bytes = 2 * kBytes,
           .inputs = {Tensor::randn({kSide * kSide})},
           .ours =
               [](const std::vector<Tensor>& in) {
                 const Tensor& x = in[0];
                 return std::vector{((x * 2 + 1) * x - 3) * (x + 1) * 0.5 + x};
               }},
          {Goal::copy(0.9)});
  reductions();
  rows_of("softmax", "softmax", {}, false, [](const std::vector<Tensor>& in) { return in[0].softmax(-1); });
  rows_of("layer norm", "layernorm", {Tensor::randn({kSide}), Tensor::randn({kSide})}, false,
          [](const std::vector<Tensor>& in) { return in[0].layernorm() * in[1] + in[2]; });
  rows_of("RMS norm", "rmsnorm", {Tensor::randn({kSide})}, false, [](const std::vector<Tensor>& in) {
    return in[0] * (in[0].square().mean(-1, {.keepdim = true}) + 1e-6).rsqrt() * in[1];
  });
  rows_of("cross entropy", "crossentropy", {Tensor::randint({kSide}, {.high = kSide})}, true,
          [](const std::vector<Tensor>& in) { return in[0].sparse_categorical_crossentropy(in[1]); });
}

}  // namespace pg::bench
