#include "limits.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "figure.h"
#include "runtime/cpu/launch_workers.h"
#include "runtime/device.h"

namespace pg::bench {
namespace {

// Seconds of the best of some runs of step(part) on every thread.
template <class F>
double best_seconds(int runs, F step) {
  auto call = [](void* context, std::int64_t index, int) noexcept { (*static_cast<F*>(context))(index); };
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    double start = now();
    runtime::LaunchWorkers::get().run(threads(), call, &step);
    best = std::min(best, now() - start);
  }
  return best;
}

constexpr std::size_t kBytes = std::size_t{64} << 20;

// Memory as kernels get it.
char* block(int which) {
  static const runtime::Buffer blocks[] = {runtime::device("CPU").allocate(kBytes),
                                           runtime::device("CPU").allocate(kBytes)};
  static const bool touched = [] {
    for (const auto& b : blocks) std::memset(b.host(), 1, kBytes);
    return true;
  }();
  (void)touched;
  return reinterpret_cast<char*>(blocks[which].host());
}

using V8 = float __attribute__((vector_size(32)));

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
__attribute__((target("avx2,fma"), noinline)) float chains_256(int n) {
  V8 a[12], b = V8{} + 1.0001f, c = V8{} + 1e-6f;
  for (auto& v : a) v = c;
  for (int i = 0; i < n; ++i)
    for (auto& v : a) asm("vfmadd213ps %2, %1, %0" : "+x"(v) : "x"(b), "x"(c));
  V8 s{};
  for (auto& v : a) s += v;
  return s[0];
}

// Copies and sums by the widest vectors there are; `n` is a multiple of 256.
__attribute__((target("avx512f"), noinline)) void stream_512(char* to, const char* from, std::size_t n) {
  for (std::size_t i = 0; i < n; i += sizeof(V16))
    __builtin_nontemporal_store(*reinterpret_cast<const V16*>(from + i), reinterpret_cast<V16*>(to + i));
  __builtin_ia32_sfence();
}
__attribute__((target("avx512f"), noinline)) float sum_512(const char* from, std::size_t n) {
  V16 s[4] = {};
  for (std::size_t i = 0; i < n; i += 4 * sizeof(V16))
    for (std::size_t k = 0; k < 4; ++k) s[k] += *reinterpret_cast<const V16*>(from + i + k * sizeof(V16));
  return (s[0] + s[1] + s[2] + s[3])[0];
}
__attribute__((target("avx2"), noinline)) void stream_256(char* to, const char* from, std::size_t n) {
  for (std::size_t i = 0; i < n; i += sizeof(V8))
    __builtin_nontemporal_store(*reinterpret_cast<const V8*>(from + i), reinterpret_cast<V8*>(to + i));
  __builtin_ia32_sfence();
}
__attribute__((target("avx2"), noinline)) float sum_256(const char* from, std::size_t n) {
  V8 s[4] = {};
  for (std::size_t i = 0; i < n; i += 4 * sizeof(V8))
    for (std::size_t k = 0; k < 4; ++k) s[k] += *reinterpret_cast<const V8*>(from + i + k * sizeof(V8));
  return (s[0] + s[1] + s[2] + s[3])[0];
}
bool wide() {
  static const bool is = __builtin_cpu_supports("avx512f");
  return is;
}
#endif

// The part of a block that a thread works on.
struct Part {
  std::size_t at, bytes;
};
Part part(std::int64_t index) {
  std::size_t each = kBytes / static_cast<std::size_t>(threads()) / 256 * 256;
  return {static_cast<std::size_t>(index) * each, each};
}
double all_parts() { return static_cast<double>(part(0).bytes) * threads(); }

}  // namespace

int threads() { return runtime::LaunchWorkers::get().participants(); }

double peak_gflops() {
#if defined(__x86_64__)
  constexpr int kTimes = 500'000;
  double seconds = best_seconds(3, [](std::int64_t) {
    volatile float sink = wide() ? chains_512(kTimes) : chains_256(kTimes);
    (void)sink;
  });
  return 2.0 * 12 * (wide() ? 16 : 8) * kTimes * threads() / seconds * 1e-9;
#else
  return 0;
#endif
}

double copy_gbytes() {
  char *from = block(0), *to = block(1);
  double seconds = best_seconds(2, [&](std::int64_t i) {
    auto [at, bytes] = part(i);
    std::memcpy(to + at, from + at, bytes);
  });
#if defined(__x86_64__)
  seconds = std::min(seconds, best_seconds(2, [&](std::int64_t i) {
                       auto [at, bytes] = part(i);
                       wide() ? stream_512(to + at, from + at, bytes) : stream_256(to + at, from + at, bytes);
                     }));
#endif
  return 2 * all_parts() / seconds * 1e-9;
}

double read_gbytes() {
#if defined(__x86_64__)
  const char* from = block(0);
  double seconds = best_seconds(3, [&](std::int64_t i) {
    auto [at, bytes] = part(i);
    volatile float sink = wide() ? sum_512(from + at, bytes) : sum_256(from + at, bytes);
    (void)sink;
  });
  return all_parts() / seconds * 1e-9;
#else
  return copy_gbytes();
#endif
}

}  // namespace pg::bench
