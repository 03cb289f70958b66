#include "ir/target.h"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace pg {
namespace {

constexpr DTypeSet kNumbers = kIntegers | DTypeSet{boolean, f32, f64};
constexpr DTypeSet kStored = kNumbers | DTypeSet{f16, bf16};

int available_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::int64_t cache_bytes([[maybe_unused]] int level, std::int64_t otherwise) {
#if defined(__linux__) && defined(_SC_LEVEL1_DCACHE_SIZE)
  constexpr int kNames[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  long bytes = sysconf(kNames[level - 1]);
  if (bytes > 0) return bytes;
#endif
  return otherwise;
}

#if defined(__x86_64__)
void instruction_set(Target& t) {
  t.isa = "x86-64";
  auto has = [&t](bool there, const char* name) {
    if (there) t.isa += std::string(" ") + name;
    return there;
  };
  t.vector_bytes = 16;
  t.vector_registers = 16;
  if (!has(__builtin_cpu_supports("sse4.1"), "sse4.1")) t.ops.remove(Op::Trunc);
  // Without the instruction a fused multiply-add would be a call.
  if (!has(__builtin_cpu_supports("fma"), "fma")) t.ops.remove(Op::MulAcc);
  // bf16 is not among them: the instruction of avx512bf16 flushes subnormal numbers.
  if (has(__builtin_cpu_supports("f16c"), "f16c")) t.converts.add(f16);
  if (has(__builtin_cpu_supports("avx2"), "avx2")) {
    t.vector_bytes = 32;
    t.masked_bytes = t.gather_bytes = 4;
    t.mul_acc_per_cycle = 2;
    t.l1_bytes_per_cycle = 64;
  }
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has(wide, "avx512")) {
    t.vector_bytes = 64;
    t.vector_registers = 32;
    t.masked_bytes = 1;
    t.l1_bytes_per_cycle = 128;
    t.l2_bytes_per_cycle = 32;
    if (has(__builtin_cpu_supports("avx512fp16"), "avx512fp16")) t.computes.add(f16);
    has(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
    has(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  }
}
#elif defined(__aarch64__)
void instruction_set(Target& t) {
  t.isa = "aarch64 neon";
  t.vector_bytes = 16;
  t.vector_registers = 32;
  t.mul_acc_per_cycle = 2;
}
#else
void instruction_set(Target& t) { t.isa = "generic"; }
#endif

Target find_host() {
  Target t;
  t.device = "CPU";
  t.language = "llvm";
  t.computes = kNumbers;
  t.stores = kStored;
  t.ops = kExactOps - OpSet{Op::Threefry};
  t.max_lanes = 64;
  t.index = i64;  // what addresses are made of
  t.cores = available_cores();
  t.l1 = cache_bytes(1, 32 << 10);
  t.l2 = cache_bytes(2, 512 << 10);
  t.l3 = cache_bytes(3, 8 << 20);
  instruction_set(t);
  // A store reads the line it changes first, and throws out another: twice the traffic of a line written
  // past the caches. Less than the caches hold is read from there by the next kernel.
  t.stream_bytes = std::max(8 * t.cores * t.l2, t.l3 / 8);
  return t;
}

}  // namespace

std::string Target::key() const {
  std::string s = device + "|" + language + "|" + isa + "|" + computes.text() + "|" + stores.text() + "|" +
                  converts.text() + "|" + ops.text();
  auto add = [&s](auto v) { s += "|" + std::to_string(v); };
  add(vector_bytes), add(vector_registers), add(max_lanes), add(masked_bytes), add(gather_bytes);
  add(static_cast<int>(index)), add(l1), add(l2), add(l3), add(cores), add(stream_bytes);
  add(mul_acc_per_cycle), add(l1_bytes_per_cycle), add(l2_bytes_per_cycle), add(l3_bytes_per_cycle);
  add(memory_bytes_per_cycle), add(cycles_per_launch), add(cycles_per_thread);
  add(has_groups), add(local_bytes), add(max_group), add(warp);
  for (auto v : max_global) add(v);
  for (auto v : max_local) add(v);
  for (const TensorCore& c : tensor_cores)
    add(c.m), add(c.n), add(c.k), add(static_cast<int>(c.in)), add(static_cast<int>(c.out));
  return s;
}

const Target& Target::host_cpu() {
  static const Target* host = new Target(find_host());
  return *host;
}

Target Target::interp() {
  Target t;
  t.device = "INTERP";
  t.language = "program";
  t.isa = "nodes";
  t.computes = t.stores = t.converts = kStored;
  t.ops = kExactOps;
  t.vector_bytes = 64;
  t.vector_registers = 32;
  t.max_lanes = 64;
  t.masked_bytes = t.gather_bytes = 1;
  t.index = i64;
  t.l1 = 32 << 10;
  t.l2 = 512 << 10;
  t.l3 = 8 << 20;
  t.stream_bytes = 8 << 20;
  t.cores = 4;  // run one after the other; there to see the code for many
  return t;
}

Target Target::interp_gpu() {
  Target t = interp();
  t.device = "INTERP:gpu";
  t.vector_bytes = 16;
  t.vector_registers = 64;
  t.max_lanes = 16;
  t.index = i32;
  t.cores = 1;
  t.has_groups = true;
  t.local_bytes = 32 << 10;
  t.max_group = 256;
  t.warp = 32;
  t.max_global = {2147483647, 65535, 65535};
  t.max_local = {256, 256, 64};
  t.tensor_cores = {{16, 16, 16, f16, f32}};
  return t;
}

Target Target::null() {
  Target t = host_cpu();
  t.device = "NULL";
  return t;
}

}  // namespace pg
