// Runs a hand-built program through every renderer and the interpreter, on memory that ends at a page nobody
// may touch.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ir/scalar.h"
#include "render/program.h"
#include "rules/spec.h"
#include "runtime/device.h"
#include "runtime/interp/code.h"

namespace pg::test {

/// Elements by their bits.
struct Array {
  DType dtype;
  std::vector<std::uint64_t> bits;

  Array(DType t, std::size_t n) : dtype(t), bits(n) {}
  Array(DType t, std::vector<std::uint64_t> b) : dtype(t), bits(std::move(b)) {}
  /// The numbers in dtype t.
  static Array of(DType t, const std::vector<double>& values) {
    Array a(t, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) a.set(i, cast_scalar(float_scalar(values[i]), f64, t));
    return a;
  }
  Scalar operator[](std::size_t i) const { return from_bits(dtype, bits[i]); }
  void set(std::size_t i, Scalar v) { bits[i] = to_bits(dtype, v); }
  std::size_t size() const { return bits.size(); }
  /// Equal bit for bit, but that one NaN is as good as another.
  bool same(std::size_t i, const Array& other) const {
    if (is_float(dtype) && std::isnan((*this)[i].f) && std::isnan(other[i].f)) return true;
    return bits[i] == other.bits[i];
  }
};

/// Memory in which an Array lies for one run, its end (or, if `low`, its beginning) at a page that faults.
class GuardedMemory {
 public:
  GuardedMemory(const Array& a, bool low) : element_(itemsize(a.dtype)), bytes_(a.size() * element_) {
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    inner_ = (bytes_ + page - 1) / page * page;
    whole_ = inner_ + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (inner_) mprotect(base_ + page, inner_, PROT_READ | PROT_WRITE);
    data_ = base_ + page + (low ? 0 : inner_ - bytes_);
    for (std::size_t i = 0; i < a.size(); ++i) std::memcpy(data_ + i * element_, &a.bits[i], element_);
  }
  ~GuardedMemory() { munmap(base_, whole_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void read(Array& a) const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a.bits[i] = 0;
      std::memcpy(&a.bits[i], data_ + i * element_, element_);
    }
  }

 private:
  std::size_t element_, bytes_, inner_ = 0, whole_ = 0;
  std::byte *base_ = nullptr, *data_ = nullptr;
};

using Memories = std::vector<std::unique_ptr<GuardedMemory>>;

struct Backend {
  std::string name;
  using Run = std::function<void(const Memories&, const std::vector<std::int64_t>&)>;
  /// Compiles once and gives what runs it.
  std::function<Run(Ref linear, const ProgramInfo& info, const Target& target)> load;
};

inline runtime::Signature signature_of(const ProgramInfo& info) {
  runtime::Signature s;
  s.name = info.name;
  s.buffers = info.buffers;
  s.variables = info.scalars;
  s.size.global = {info.threads, 1, 1};
  s.scratch_bytes = static_cast<std::size_t>(info.scratch_bytes);
  return s;
}

inline Backend cpu_backend(std::string language,
                           std::string (*render)(Ref, const ProgramInfo&, const Target&)) {
  return {language, [language, render](Ref linear, const ProgramInfo& info, const Target& target) {
            runtime::Device& cpu = runtime::device("CPU");
            std::string text = render(linear, info, target);
            SCOPED_TRACE(text);
            auto program = cpu.load({cpu.compiler(language).compile(text), signature_of(info)});
            return [&cpu, program](const Memories& memories, const std::vector<std::int64_t>& scalars) {
              std::vector<runtime::Buffer> buffers;
              for (auto& m : memories) buffers.push_back(cpu.borrow(m->data(), m->bytes(), {}, true));
              cpu.wait(program->launch(buffers, scalars));
            };
          }};
}

inline Backend interp_backend() {
  return {"interp", [](Ref linear, const ProgramInfo& info, const Target&) {
            auto code = std::make_shared<runtime::interp::Code>(runtime::interp::decode(linear, info.name));
            return [code, info](const Memories& memories, const std::vector<std::int64_t>& scalars) {
              std::vector<runtime::interp::Memory> buffers;
              for (auto& m : memories)
                buffers.push_back({m->data(), static_cast<std::int64_t>(m->bytes()), true});
              runtime::interp::Grid grid{.threads = info.threads};
              std::copy_n(info.global.begin(), 3, grid.groups);
              std::copy_n(info.local.begin(), 3, grid.items);
              runtime::interp::execute(*code, buffers, scalars, grid);
            };
          }};
}

inline const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{interp_backend(), cpu_backend("llvm", render_llvm),
                                        cpu_backend("c", render_c)};
  return all;
}

/// What each backend makes of the program must be `expected`, buffer by buffer, wherever the buffers lie.
inline void expect_all(Ref linear, const std::vector<Array>& buffers, const std::vector<Array>& expected,
                       const std::vector<std::int64_t>& scalars = {}, bool distinct = false,
                       const Target& target = Target::host_cpu()) {
  rules::verify(linear, rules::Stage::Program, "test");
  ProgramInfo info = program_info(linear, "kernel", target);
  info.distinct = distinct;
  for (const Backend& backend : backends()) {
    auto run = backend.load(linear, info, target);
    for (bool low : {false, true}) {
      Memories memories;
      for (const Array& a : buffers) memories.push_back(std::make_unique<GuardedMemory>(a, low));
      run(memories, scalars);
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        Array got = buffers[b];
        memories[b]->read(got);
        int wrong = 0;
        for (std::size_t i = 0; i < got.size() && wrong < 5; ++i)
          if (!got.same(i, expected[b]))
            ADD_FAILURE() << backend.name << ": buffer " << b << " of " << name(got.dtype) << ", element "
                          << i << " is " << std::hex << got.bits[i] << ", not " << expected[b].bits[i]
                          << (++wrong == 5 ? " ..." : "");
      }
    }
  }
}

/// Numbers worth trying in dtype t: the extremes, what lies around powers of two, and some at random.
inline std::vector<std::uint64_t> interesting(DType t, std::size_t random = 24) {
  std::vector<std::uint64_t> bits;
  auto add = [&](double v) {
    bits.push_back(
        to_bits(t, is_float(t) ? float_scalar(round_to(t, v)) : cast_scalar(float_scalar(v), f64, t)));
  };
  if (t == DType::Bool) return {0, 1};
  for (double v : {0.0, 1.0, -1.0, 2.0, 3.0, 7.0, -7.0}) add(v);
  std::size_t width = itemsize(t) * 8;
  std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (is_float(t)) {
    double inf = HUGE_VAL;
    for (double v : {-0.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     0.1,
                     255.0,
                     256.0,
                     65504.0,
                     65520.0,
                     65536.0,
                     -32768.5,
                     2147483647.0,
                     2147483648.0,
                     -2147483649.0,
                     4294967296.0,
                     9223372036854775808.0,
                     -9223372036854775808.0,
                     18446744073709551616.0,
                     1e-8,
                     6e-8,
                     1e-40,
                     1e-310,
                     3.4e38,
                     inf,
                     -inf,
                     std::nan("")})
      add(v);
    // Halfway between neighbours of narrower formats.
    for (double v : {1 + 0x1p-11, 1 + 0x1p-8, 1 + 3 * 0x1p-11, 1 + 0x1p-24, 1 + 0x1p-11 + 0x1p-40,
                     1 + 0x1p-8 + 0x1p-30, 0x1.8p-25, 0x1p-25, 0x1p-134, 0x1.8p-134})
      add(v);
  } else {
    for (std::uint64_t v :
         {mask >> 1, (mask >> 1) + 1, mask, mask - 1, std::uint64_t{8}, std::uint64_t{31}, std::uint64_t{32},
          std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{65535}, (std::uint64_t{1} << 24) + 1,
          (std::uint64_t{1} << 53) + 1, (std::uint64_t{1} << 62) + (std::uint64_t{1} << 54) + 1})
      bits.push_back(v & mask);
  }
  std::mt19937_64 random_bits(static_cast<unsigned>(t));
  for (std::size_t i = 0; i < random; ++i) bits.push_back(random_bits() & mask);
  return bits;
}

}  // namespace pg::test
