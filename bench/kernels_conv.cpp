// Convolutions of ResNet-50's shapes, depthwise convolution, pooling.
#include <vector>

#include <fmt/format.h>

#include "figure.h"
#include "kernels.h"
#include "measure.h"

namespace pg::bench {
namespace {

struct Conv {
  std::int64_t in, size, out, kernel, stride = 1, groups = 1;
  std::int64_t padding() const { return kernel / 2; }
  std::int64_t to() const { return (size + 2 * padding() - kernel) / stride + 1; }
};

// Each shape once.
constexpr Conv kResNet50[] = {
    {3, 224, 64, 7, 2},     {64, 56, 64, 1},    {64, 56, 64, 3},       {64, 56, 256, 1},
    {256, 56, 64, 1},       {256, 56, 128, 1},  {128, 56, 128, 3, 2},  {128, 28, 512, 1},
    {256, 56, 512, 1, 2},   {512, 28, 128, 1},  {128, 28, 128, 3},     {512, 28, 256, 1},
    {256, 28, 256, 3, 2},   {256, 14, 1024, 1}, {512, 28, 1024, 1, 2}, {1024, 14, 256, 1},
    {256, 14, 256, 3},      {1024, 14, 512, 1}, {512, 14, 512, 3, 2},  {512, 7, 2048, 1},
    {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1},  {512, 7, 512, 3},
};

Work conv(const Conv& c, std::int64_t batch, bool gradients) {
  ConvOptions options{.stride = c.stride, .padding = c.padding(), .groups = c.groups};
  double products = static_cast<double>(batch * c.out * c.to() * c.to()) *
                    static_cast<double>(c.in / c.groups * c.kernel * c.kernel);
  Tensor x = Tensor::randn({batch, c.in, c.size, c.size}),
         w = Tensor::randn({c.out, c.in / c.groups, c.kernel, c.kernel}),
         g = Tensor::randn({batch, c.out, c.to(), c.to()});
  auto bytes = static_cast<double>(x.nbytes() + w.nbytes());
  Work work{.name = fmt::format("conv2d {}x{}x{}x{} by {} {}x{}{}{}", batch, c.in, c.size, c.size, c.out,
                                c.kernel, c.kernel, c.stride > 1 ? fmt::format(" stride {}", c.stride) : "",
                                gradients ? ", gradients" : ""),
            .flops = (gradients ? 4 : 2) * products,
            .bytes = (gradients ? 2 : 1) * bytes + static_cast<double>(g.nbytes()),
            .rival_work = fmt::format("conv {} {} {} {} {} {} {} {} {}", gradients ? "backward" : "forward",
                                      batch, c.in, c.size, c.out, c.kernel, c.stride, c.padding(), c.groups)};
  if (gradients) {
    work.inputs = {x.realize().requires_grad(), w.realize().requires_grad(), g};
    work.ours = [options](const std::vector<Tensor>& in) {
      return in[0].conv2d(in[1], options).gradient({in[0], in[1]}, in[2]);
    };
  } else {
    work.inputs = {x, w};
    work.ours = [options](const std::vector<Tensor>& in) {
      return std::vector{in[0].conv2d(in[1], options)};
    };
  }
  return work;
}

Work pool(bool max, bool gradient) {
  constexpr std::int64_t kBatch = 16, kChannels = 64, kSize = 112;
  PoolOptions options{.stride = {2, 2}, .padding = {1, 1}};
  Tensor x = Tensor::randn({kBatch, kChannels, kSize, kSize});
  Tensor g = Tensor::randn({kBatch, kChannels, kSize / 2, kSize / 2});
  auto f = [=](const Tensor& t) {
    return max ? t.max_pool2d({3, 3}, options) : t.avg_pool2d({3, 3}, options);
  };
  auto bytes = static_cast<double>(x.nbytes() + g.nbytes());
  Work work{.name = fmt::format("{}_pool2d 3x3 stride 2 of {}x{}x{}x{}{}", max ? "max" : "avg", kBatch,
                                kChannels, kSize, kSize, gradient ? ", forward and backward" : ""),
            .bytes = gradient ? 2 * bytes : bytes,
            .rival_work = fmt::format("pool {} {} {} {} {} 3 2 1", max ? "max" : "avg",
                                      gradient ? "both" : "forward", kBatch, kChannels, kSize)};
  if (gradient) {
    work.inputs = {x.realize().requires_grad(), g};
    work.ours = [f](const std::vector<Tensor>& in) {
      Tensor y = f(in[0]);
      return std::vector{y, y.gradient({in[0]}, in[1])[0]};
    };
  } else {
    work.inputs = {x};
    work.ours = [f](const std::vector<Tensor>& in) { return std::vector{f(in[0])}; };
  }
  return work;
}

}  // namespace

void convolutions() {
  Rival& torch = Rival::torch();
  for (std::int64_t batch : {1, 16})
    for (bool gradients : {false, true})
      for (Rival* rival : {&torch, &Rival::onednn()}) {
        Mean mean(
            fmt::format("conv2d of ResNet-50, batch {}, {}", batch, gradients ? "gradients" : "forward"),
            *rival, gradients ? 1.0 : 1.1);
        for (const Conv& c : kResNet50) mean.add(conv(c, batch, gradients));
        mean.print();
      }
  Mean depthwise("depthwise conv2d", torch, 1.2), pooling("pooling", torch, 1.2);
  for (Conv c : {Conv{32, 112, 32, 3, 1, 32}, Conv{384, 14, 384, 3, 1, 384}}) {
    depthwise.add(conv(c, 16, false));
    depthwise.add(conv(c, 16, true));
  }
  depthwise.print();
  for (bool max : {true, false})
    for (bool gradient : {false, true}) pooling.add(pool(max, gradient));
  pooling.print();
}

}  // namespace pg::bench
