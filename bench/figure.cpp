#include "figure.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace pg::bench {

double median_seconds(int runs, const std::function<void()>& f, const std::function<void()>& before) {
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {
    if (before) before();
    double start = now();
    f();
    if (i) times.push_back(now() - start);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

void print(const Figure& f) {
  bool met = f.lower_is_better ? f.value <= f.target : f.value >= f.target;
  std::string reference = f.reference_kind.empty()
                              ? ""
                              : fmt::format(", \"{}\": {:.6g}, \"ratio\": {:.4g}", f.reference_kind,
                                            f.reference, f.reference ? f.value / f.reference : 0);
  fmt::print("{{\"name\": \"{}\", \"value\": {:.6g}, \"unit\": \"{}\", \"target\": {:.6g}, \"met\": {}{}}}\n",
             f.name, f.value, f.unit, f.target, met, reference);
  std::fflush(stdout);
}

namespace {

void on_all_cores(const std::function<void()>& f) {
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(f);
  f();
  for (auto& t : threads) t.join();
}

#if defined(__x86_64__)
using V16 = float __attribute__((vector_size(64)));
__attribute__((target("avx512f"), noinline)) float chains_512(int n) {
  V16 a[12], b = V16{} + 1.0001f, c = V16{} + 1e-6f;
  for (auto& v : a) v = c;
  for (int i = 0; i < n; ++i)
    for (auto& v : a) asm("vfmadd213ps %2, %1, %0" : "+v"(v) : "v"(b), "v"(c));
  V16 s{};
  for (auto& v : a) s += v;
  return s[0];
}
using V8 = float __attribute__((vector_size(32)));
__attribute__((target("avx2,fma"), noinline)) float chains_256(int n) {
  V8 a[12], b = V8{} + 1.0001f, c = V8{} + 1e-6f;
  for (auto& v : a) v = c;
  for (int i = 0; i < n; ++i)
    for (auto& v : a) asm("vfmadd213ps %2, %1, %0" : "+x"(v) : "x"(b), "x"(c));
  V8 s{};
  for (auto& v : a) s += v;
  return s[0];
}
#endif

}  // namespace

double peak_gflops() {
#if defined(__x86_64__)
  bool wide = __builtin_cpu_supports("avx512f");
  constexpr int kTimes = 2'000'000;
  double seconds = median_seconds(5, [&] {
    on_all_cores([&] {
      volatile float sink = wide ? chains_512(kTimes) : chains_256(kTimes);
      (void)sink;
    });
  });
  return 2.0 * 12 * (wide ? 16 : 8) * kTimes * std::max(1u, std::thread::hardware_concurrency()) / seconds *
         1e-9;
#else
  return 0;
#endif
}

double peak_gbytes() {
  std::size_t n = std::size_t{64} << 20, cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<char> from(n, 1), to(n, 2);
  double seconds = median_seconds(7, [&] {
    std::vector<std::thread> threads;
    std::size_t part = n / cores;
    auto work = [&](std::size_t i) { std::memcpy(to.data() + i * part, from.data() + i * part, part); };
    for (std::size_t i = 1; i < cores; ++i) threads.emplace_back(work, i);
    work(0);
    for (auto& t : threads) t.join();
  });
  return 2.0 * static_cast<double>(n) / seconds * 1e-9;
}

}  // namespace pg::bench
