// Generated kernels against what the machine does at best, measured in the same run.
#include <vector>

#include <fmt/format.h>

#include "figure.h"
#include <pangrad/tensor.h>

namespace pg::bench {
namespace {

// Seconds of realizing f(): its result goes back to the pool before each run.
template <class F>
double seconds_of(F f) {
  Tensor y;
  return median_seconds(7, [&] { y.realize(); }, [&] { y = Tensor(), y = f(); });
}

void compute(const std::string& name, double flops, double seconds, double share) {
  double peak = peak_gflops(), got = flops / seconds * 1e-9;
  print({name, got, "GFLOP/s", share * peak, false, "limit", peak});
}
void memory(const std::string& name, double bytes, double seconds, double share) {
  double peak = peak_gbytes(), got = bytes / seconds * 1e-9;
  print({name, got, "GB/s", share * peak, false, "limit", peak});
}

}  // namespace

void kernels() {
  Tensor::manual_seed(0);
  for (std::int64_t n : {256, 512, 1024, 2048}) {
    Tensor a = Tensor::randn({n, n}).realize(), b = Tensor::randn({n, n}).realize();
    double d = static_cast<double>(n);
    compute(fmt::format("f32 matmul {0} x {0}", n), 2 * d * d * d, seconds_of([&] { return a.matmul(b); }),
            0.3);
  }
  const struct {
    std::int64_t batch, in, size, kernel, out;
  } convs[] = {{512, 1, 28, 5, 32}, {512, 32, 24, 5, 32}, {512, 32, 10, 3, 64}, {512, 64, 8, 3, 64}};
  for (const auto& c : convs) {
    Tensor x = Tensor::randn({c.batch, c.in, c.size, c.size}).realize(),
           w = Tensor::randn({c.out, c.in, c.kernel, c.kernel}).realize();
    std::int64_t o = c.size - c.kernel + 1;
    double flops = 2.0 * static_cast<double>(c.batch * c.in * c.kernel * c.kernel * c.out * o * o);
    compute(fmt::format("conv2d {}x{}x{}x{} by {}x{}x{}", c.batch, c.in, c.size, c.size, c.out, c.kernel,
                        c.kernel),
            flops, seconds_of([&] { return x.conv2d(w); }), 0.2);
  }
  Tensor x = Tensor::randn({16 << 20}).realize();
  double bytes = 4.0 * (16 << 20);
  memory("elementwise chain of 8 over 64 MB", 2 * bytes,
         seconds_of([&] { return ((x * 2 + 1) * x - 3) * (x + 1) * 0.5 + x; }), 0.7);
  memory("sum of 64 MB", bytes, seconds_of([&] { return x.sum(); }), 0.3);
  Tensor rows = x.reshape({4096, 4096});
  memory("softmax of 4096 x 4096", 2 * bytes, seconds_of([&] { return rows.softmax(-1); }), 0.2);
}

}  // namespace pg::bench
