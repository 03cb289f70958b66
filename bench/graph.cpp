// What building, scheduling and replaying graphs costs, arithmetic aside.
#include <vector>

#include "engine/engine.h"
#include "figure.h"
#include "resnet.h"
#include "tensor/cell.h"
#include <pangrad/jit.h>
#include <pangrad/tensor.h>

namespace pg::bench {
namespace {

UOp node_of(const Tensor& x) {
  GraphScope scope;
  return detail::read(x, "bench").node;
}

// The least a realize can cost here: one call of a kernel that adds 1 to 16 numbers in memory that is there.
double bare_loop_seconds() {
  std::vector<float> from(16, 1), to(16);
  return median_seconds(1001, [&] {
    for (std::size_t i = 0; i < 16; ++i) to[i] = from[i] + 1;
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

}  // namespace

void graph() {
  {
    std::vector<float> ones(16, 1);
    Tensor x = Tensor::of(std::span<const float>(ones)).realize(), y;
    double s = median_seconds(2001, [&] { y = (x + 1).realize(); }, [&] { y = Tensor(); });
    print({"x + 1 of 16 floats, realized, same shape again", s * 1e3, "ms", 0.05, true, "limit",
           bare_loop_seconds() * 1e3});
  }
  {
    Tensor x = Tensor::zeros({16}).clone().realize();
    auto step = jit([&](const Tensor& in) {
      Tensor h = in;
      for (int i = 0; i < 100; ++i) h = (h + 1).contiguous().realize();
      return h;
    });
    for (int i = 0; i < 3; ++i) step(x).realize();
    Tensor out;
    double s = median_seconds(501, [&] { out = step(x); });
    print({"replay of 100 captured tiny kernels", s * 1e3, "ms", 0.1, true, "limit",
           100 * bare_loop_seconds() * 1e3});
  }
  {
    ResNet50 net;
    for (Tensor t : parameters(net)) t.realize();
    Tensor x = Tensor::empty({64, 3, 224, 224});
    NoGrad no_grad;
    std::uint64_t kernels = 0;
    double trace = median_seconds(5, [&] { net(x); });
    double both = median_seconds(5, [&] {
      UOp root = node_of(net(x));
      schedule::Schedule s = engine::plan({&root, 1});
      kernels = s.linear->nsrc;
    });
    print({"ResNet-50 forward, batch 64: trace", trace * 1e3, "ms", 10, true});
    print({"ResNet-50 forward, batch 64: trace and schedule, no caches", both * 1e3, "ms", 50, true});
    print({"ResNet-50 forward: kernels", static_cast<double>(kernels), "kernels", 60, true});
  }
}

}  // namespace pg::bench
