// Compiling while the caller goes on: each kernel once, errors where the kernel is needed, nothing half done.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "engine/engine.h"
#include "runtime/interp/interp_device.h"
#include "tensor/cell.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

// The interpreter with a compiler that takes its time, counts, and refuses on demand.
class SlowCompiler : public runtime::Compiler {
 public:
  explicit SlowCompiler(runtime::Compiler& inner) : inner_(inner) {}
  std::string key() const override { return "slow"; }
  std::vector<std::byte> compile(std::string_view text) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!refuse.empty() && text.find(refuse) != std::string_view::npos)
      throw DeviceError("[compile] refused");
    ++compiled;
    return inner_.compile(text);
  }
  std::string disassemble(std::string_view text) override { return std::string(text); }

  static inline std::atomic<int> compiled{0};
  static inline std::string refuse;

 private:
  runtime::Compiler& inner_;
};

class SlowDevice : public runtime::InterpDevice {
 public:
  explicit SlowDevice(const std::string& name) : InterpDevice(name, Target::interp()) {}
  runtime::Compiler& compiler(std::string_view language) override {
    static SlowCompiler compiler(InterpDevice::compiler(language));
    return compiler;
  }
};

class Compile : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static bool once = [] {
      runtime::register_device({.name = "SLOW", .open = [](const std::string& name, const std::string&) {
                                  return std::make_unique<SlowDevice>(name);
                                }});
      return true;
    }();
    (void)once;
  }
  void SetUp() override {
    cache::trim();
    SlowCompiler::compiled = 0;
    SlowCompiler::refuse = "";
  }
  ScopedFlag device_{"DEV", "SLOW"}, memory_only_{"CACHE", 1};
};

TEST_F(Compile, EqualKernelsCompileOnce) {
  std::vector<Tensor> all;
  for (int i = 0; i < 12; ++i)
    all.push_back((Tensor::of({1.f, 2.f + static_cast<float>(i)}) * 3).contiguous());
  realize(all);
  EXPECT_EQ(SlowCompiler::compiled, 1);
  for (const Tensor& t : all) (t + 1).realize();
  EXPECT_EQ(SlowCompiler::compiled, 2);
}

TEST_F(Compile, EqualKernelsCompileOnceInManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Tensor x = Tensor::of({1.f, 2.f});
      for (int k = 0; k < 5; ++k) x = (x * (k + 2.f)).realize();
      right += x.to_vector<float>() == std::vector<float>{720, 1440};
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(SlowCompiler::compiled, 5);
}

TEST_F(Compile, ManyKernelsOfOneCallAreRight) {
  std::vector<Tensor> all;
  Tensor x = Tensor::arange(25).cast(f32).realize();
  // Of different sizes, so that none of them becomes part of another.
  for (std::int64_t i = 1; i <= 20; ++i) all.push_back((x.shrink({{0, 4 + i}}) * i + i).contiguous());
  realize(all);
  for (int i = 1; i <= 20; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i) - 1].to_vector<float>()[4], static_cast<float>(5 * i));
  EXPECT_EQ(SlowCompiler::compiled, 21);  // with the one of x
}

TEST_F(Compile, AnErrorArrivesAndOverwritesNothing) {
  // One call: x += 1 in place, and a kernel that does not compile.
  Tensor x = Tensor::of({1.f, 2.f}).realize(), y = Tensor::of({5.f, 7.f}).realize();
  x.assign(x + 1);
  Tensor root = y.sqrt();
  SlowCompiler::refuse = "Sqrt";
  for (int i = 0; i < 2; ++i) EXPECT_THROW(realize({x, root}), DeviceError);
  SlowCompiler::refuse = "";
  realize({x, root});
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{5, 7}));
  EXPECT_FLOAT_EQ(root.to_vector<float>()[0], 2.236068f);
}

TEST_F(Compile, KernelsThatDidCompileAreKept) {
  Tensor x = Tensor::of({1.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f}).realize();
  std::vector<Tensor> all;
  for (std::int64_t i = 0; i < 6; ++i) all.push_back((x.shrink({{0, i + 3}}) + i + 1).contiguous());
  all.push_back(x.shrink({{0, 2}}).sqrt());
  SlowCompiler::refuse = "Sqrt";
  EXPECT_THROW(realize(all), DeviceError);
  SlowCompiler::refuse = "";
  realize(all);
  EXPECT_EQ(SlowCompiler::compiled, 7);
  EXPECT_EQ(all.back().to_vector<float>(), (std::vector<float>{1, 2}));
}

// What was asked to be compiled ahead is not compiled again.
TEST_F(Compile, AheadOfTime) {
  Tensor x = Tensor::of({1.f, 4.f}).realize(), y = x * 2 + 1;
  {
    UOp root;
    {
      GraphScope scope;
      root = detail::read(y, "test").node;
    }
    engine::compile({&root, 1});
  }
  EXPECT_EQ(SlowCompiler::compiled, 1);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 9}));
  EXPECT_EQ(SlowCompiler::compiled, 1);
}

}  // namespace
}  // namespace pg
