// The CPU device as the engine drives it.
#include "runtime/cpu/cpu_device.h"

#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cpu/launch_workers.h"
#include "runtime/kernels.h"
#include "runtime/sanitizers.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

Buffer floats(Device& device, const std::vector<float>& values) {
  Buffer buffer = device.allocate(values.size() * sizeof(float));
  device.copy_in(buffer, values.data());
  return buffer;
}
std::vector<float> values_of(const Buffer& buffer) {
  std::vector<float> values(buffer.bytes / sizeof(float));
  buffer.device().copy_out(values.data(), buffer);
  return values;
}

std::shared_ptr<Program> compile(Device& device, const std::string& text, const Signature& signature) {
  return device.load({.code = device.compiler("llvm").compile(text), .signature = signature});
}

LaunchSize threads(int64_t n) { return {.global = {n, 1, 1}}; }

// out[thread] += vars[0], for each thread one float.
std::shared_ptr<Program> add_variable(Device& device) {
  return compile(device,
                 kernels::ir_begin("add_variable", 1) +
                     "  %v = load i64, ptr %vars\n  %f = sitofp i64 %v to float\n"
                     "  %a = getelementptr float, ptr %p0, i64 %thread\n  %x = load float, ptr %a\n"
                     "  %y = fadd float %x, %f\n  store float %y, ptr %a\n  ret void\n}\n",
                 {.name = "add_variable", .buffers = 1, .variables = 1});
}

TEST(CpuDevice, LaunchesRunEveryThread) {
  Device& cpu = device("CPU");
  std::vector<float> a(64 * 40), b(a.size(), 0.5F);
  std::iota(a.begin(), a.end(), 0.0F);
  const Buffer buffers[] = {cpu.allocate(a.size() * sizeof(float)), floats(cpu, a), floats(cpu, b)};
  const auto add = compile(cpu, kernels::ir_add("add", 64), {.name = "add", .buffers = 3});
  const uint64_t before = cpu.submitted();
  const uint64_t number = add->launch(buffers, {}, {.global = {8, 5, 1}});
  EXPECT_GT(number, before);
  cpu.wait(number);
  EXPECT_GE(cpu.completed(), number);
  const std::vector<float> out = values_of(buffers[0]);
  for (size_t i = 0; i < out.size(); i++) ASSERT_EQ(out[i], a[i] + 0.5F);
}

TEST(CpuDevice, ASizeMayComeFromTheSignatureAndBeNothing) {
  Device& cpu = device("CPU");
  const Buffer buffer = floats(cpu, {1, 2, 3, 4});
  const auto text =
      cpu.load({.code = cpu.compiler("llvm").compile(kernels::ir_begin("zero", 1) +
                                                     "  %a = getelementptr float, ptr %p0, i64 %thread\n"
                                                     "  store float 0.0, ptr %a\n  ret void\n}\n"),
                .signature = {.name = "zero", .buffers = 1, .size = threads(3)}});
  text->launch({&buffer, 1}, {}, threads(0));
  EXPECT_EQ(values_of(buffer), (std::vector<float>{1, 2, 3, 4}));
  text->launch({&buffer, 1});
  EXPECT_EQ(values_of(buffer), (std::vector<float>{0, 0, 0, 4}));
}

TEST(CpuDevice, LaunchesAreChecked) {
  Device& cpu = device("CPU");
  const auto program = add_variable(cpu);
  const Buffer buffer = cpu.allocate(64), other = device("CPU:1").allocate(64), none;
  const int64_t variable = 1;
  EXPECT_THROW(program->launch({}, {&variable, 1}), ValueError);
  EXPECT_THROW(program->launch({&buffer, 1}, {}), ValueError);
  EXPECT_THROW(program->launch({&none, 1}, {&variable, 1}), ValueError);
  EXPECT_THROW(program->launch({&other, 1}, {&variable, 1}), DeviceError);
  EXPECT_THROW(program->launch({&buffer, 1}, {&variable, 1}, threads(-1)), ValueError);
  EXPECT_THROW(program->launch({&buffer, 1}, {&variable, 1}, {.global = {1LL << 40, 1LL << 40, 1}}),
               ValueError);
}

TEST(CpuDevice, ImagesAreChecked) {
  Device& cpu = device("CPU");
  EXPECT_THROW(cpu.load({.code = {}, .signature = {.name = "f"}}), DeviceError);
  EXPECT_THROW(cpu.compiler("cobol"), DeviceError);
  EXPECT_THROW(compile(cpu, kernels::ir_add("add", 64), {.name = "subtract", .buffers = 3}), DeviceError);
}

TEST(CpuDevice, ScratchBelongsToOneThreadWhileItRuns) {
  Device& cpu = device("CPU");
  // Writes its number all over its scratch, then sums it into the output: any sharing shows.
  const auto program =
      compile(cpu,
              kernels::ir_begin("scratch", 1) +
                  "  %f = sitofp i64 %thread to float\n  br label %fill\n"
                  "fill:\n  %i = phi i64 [0, %entry], [%i1, %fill]\n"
                  "  %a = getelementptr float, ptr %scratch, i64 %i\n  store volatile float %f, ptr %a\n"
                  "  %i1 = add i64 %i, 1\n  %m = icmp ult i64 %i1, 250\n  br i1 %m, label %fill, label %sum\n"
                  "sum:\n  %j = phi i64 [0, %fill], [%j1, %sum]\n  %s = phi float [0.0, %fill], [%s1, %sum]\n"
                  "  %b = getelementptr float, ptr %scratch, i64 %j\n  %x = load volatile float, ptr %b\n"
                  "  %s1 = fadd float %s, %x\n  %j1 = add i64 %j, 1\n  %n = icmp ult i64 %j1, 250\n"
                  "  br i1 %n, label %sum, label %done\n"
                  "done:\n  %o = getelementptr float, ptr %p0, i64 %thread\n  store float %s1, ptr %o\n"
                  "  ret void\n}\n",
              {.name = "scratch", .buffers = 1, .scratch_bytes = 1000});
  for (const int64_t n : {1, 2, 3, 50, 200}) {
    const Buffer out = cpu.allocate(static_cast<size_t>(n) * sizeof(float));
    program->launch({&out, 1}, {}, threads(n));
    const std::vector<float> sums = values_of(out);
    for (size_t i = 0; i < sums.size(); i++) ASSERT_EQ(sums[i], 250 * static_cast<float>(i));
  }
}

TEST(CpuDevice, ThreadsMayLaunchAtOnce) {
  Device& cpu = device("CPU");
  const auto program = add_variable(cpu);
  std::vector<std::thread> callers;
  for (int t = 1; t <= 4; t++) {
    callers.emplace_back([&, t] {
      const Buffer mine = floats(cpu, std::vector<float>(8, 0));
      const int64_t variable = t;
      for (int i = 0; i < 200; i++) program->launch({&mine, 1}, {&variable, 1}, threads(8));
      EXPECT_EQ(values_of(mine), std::vector<float>(8, static_cast<float>(200 * t)));
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(CpuDevice, TimesAreTaken) {
  Device& cpu = device("CPU");
  const Buffer buffer = floats(cpu, {0});
  const int64_t variable = 1;
  Interval time;
  const double before = now_seconds();
  cpu.wait(add_variable(cpu)->launch({&buffer, 1}, {&variable, 1}, {}, &time));
  EXPECT_LE(before, time.begin);
  EXPECT_LE(time.begin, time.end);
  EXPECT_LE(time.end, now_seconds());
}

// --- lists
// -----------------------------------------------------------------------------------------------------------

TEST(LaunchLists, RunPatchedCommandsInOrder) {
  Device& cpu = device("CPU");
  const auto program = add_variable(cpu);
  const Buffer a = floats(cpu, {0, 0}), b = floats(cpu, {10, 10}), saved = cpu.allocate(8);
  const auto list =
      cpu.prepare({Launch{.program = program, .buffers = {a}, .variables = {1}, .size = threads(2)},
                   Copy{.to = saved, .from = a},
                   Launch{.program = program, .buffers = {a}, .variables = {5}, .size = threads(1)}});
  list->run();
  EXPECT_EQ(values_of(a), (std::vector<float>{6, 1}));
  EXPECT_EQ(values_of(saved), (std::vector<float>{1, 1}));

  list->set_buffer(0, 0, b);
  list->set_buffer(1, 1, b);
  list->set_variable(0, 0, 100);
  list->set_size(2, threads(2));
  std::vector<Interval> times(3);
  list->run(times);
  EXPECT_EQ(values_of(b), (std::vector<float>{110, 110}));
  EXPECT_EQ(values_of(saved), (std::vector<float>{110, 110}));
  EXPECT_EQ(values_of(a), (std::vector<float>{11, 6}));
  EXPECT_LE(times[0].end, times[2].begin);
}

TEST(LaunchLists, AreCheckedWhenPreparedAndPatched) {
  Device& cpu = device("CPU");
  const auto program = add_variable(cpu);
  const Buffer a = floats(cpu, {0, 0}), other = device("CPU:1").allocate(8), small = cpu.allocate(4);
  EXPECT_THROW(cpu.prepare({Launch{.program = program, .buffers = {a}}}), ValueError);
  EXPECT_THROW(cpu.prepare({Copy{.to = small, .from = a}}), ValueError);
  const auto list = cpu.prepare(
      {Launch{.program = program, .buffers = {a}, .variables = {1}}, Copy{.to = other, .from = a}});
  EXPECT_THROW(list->set_buffer(0, 1, a), IndexError);
  EXPECT_THROW(list->set_buffer(0, 0, other), DeviceError);
  EXPECT_THROW(list->set_buffer(1, 2, a), IndexError);
  EXPECT_THROW(list->set_buffer(1, 0, small), ValueError);
  EXPECT_THROW(list->set_buffer(2, 0, a), IndexError);
  EXPECT_THROW(list->set_variable(0, 1, 1), IndexError);
  EXPECT_THROW(list->set_variable(1, 0, 1), IndexError);
  EXPECT_THROW(list->set_size(0, threads(-2)), ValueError);
  std::vector<Interval> times(1);
  EXPECT_THROW(list->run(times), ValueError);
  list->run();
  EXPECT_EQ(values_of(a), (std::vector<float>{1, 0})) << "and goes on after every refusal";
}

TEST(LaunchLists, ASteadyListAllocatesNothing) {
  Device& cpu = device("CPU");
  const auto program = compile(cpu, kernels::ir_begin("nothing", 0) + "  ret void\n}\n",
                               {.name = "nothing", .scratch_bytes = 100000});
  const auto list = cpu.prepare(
      {Launch{.program = program, .size = threads(4)}, Launch{.program = program, .size = threads(2)}});
  list->run();
  const uint64_t acquired = cpu.memory().acquired;
  for (int i = 0; i < 100; i++) list->run();
  EXPECT_EQ(cpu.memory().acquired, acquired);
}

TEST(LaunchLists, OtherDevicesInheritALoop) {
  Device& null = device("NULL");
  const auto program = null.load({.code = {}, .signature = {.name = "f", .buffers = 1}});
  const Buffer buffer = null.allocate(16);
  const auto list =
      null.prepare({Launch{.program = program, .buffers = {buffer}}, Copy{.to = buffer, .from = buffer}});
  const uint64_t before = null.submitted();
  EXPECT_EQ(list->run(), before + 1);
  list->set_buffer(0, 0, null.allocate(32));
  EXPECT_EQ(list->run(), before + 2);
}

// --- memory
// ----------------------------------------------------------------------------------------------------------

TEST(CpuMemory, IsAlignedAndReused) {
  Device& cpu = device("CPU:2");
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, size_t{1} << 20, size_t{5} << 20}) {
    std::byte* first = nullptr;
    {
      const Buffer buffer = cpu.allocate(bytes);
      ASSERT_NE(buffer.host(), nullptr);
      EXPECT_EQ(
          reinterpret_cast<uintptr_t>(buffer.host()) % (bytes >= (size_t{2} << 20) ? size_t{2} << 20 : 64),
          0U);
      EXPECT_EQ(buffer.bytes, bytes);
      std::memset(buffer.host(), 1, bytes);
      first = buffer.host();
    }
    EXPECT_EQ(cpu.allocate(bytes).host(), first);
  }
  EXPECT_EQ(cpu.memory().in_use, 0U);
  cpu.trim();
  EXPECT_EQ(cpu.memory().cached, 0U);
}

TEST(CpuMemory, RunningOutNamesTheDeviceAndCanBeSurvived) {
  Device& cpu = device("CPU:3");
  const size_t before = cpu.memory().limit;
  cpu.set_memory_limit(size_t{1} << 20);
  const Buffer held = cpu.allocate(600 << 10);
  try {
    cpu.allocate(600 << 10);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("[allocate] CPU:3: out of memory: 600 KiB asked for"),
              std::string::npos)
        << error.what();
  }
  cpu.set_memory_limit(before);
  EXPECT_EQ(cpu.allocate(600 << 10).bytes, size_t{600} << 10);
  EXPECT_THROW(cpu.allocate(size_t{1} << 60), OutOfMemory);
  EXPECT_THROW(cpu.allocate(SIZE_MAX), OutOfMemory);
}

TEST(CpuMemory, ForeignMemoryComesWithADeleter) {
  Device& cpu = device("CPU:4");
  std::vector<float> theirs{1, 2, 3};
  int deleted = 0;
  {
    const Buffer buffer = cpu.borrow(theirs.data(), 12, [&] { deleted++; });
    EXPECT_FALSE(buffer.allocation->writable());
    EXPECT_EQ(cpu.memory().foreign, 12U);
    EXPECT_EQ(cpu.memory().in_use, 0U);
    EXPECT_EQ(values_of(buffer), theirs);
    EXPECT_THROW(cpu.copy_in(buffer, theirs.data()), DeviceError);
    const Buffer part = buffer.slice(4, 4);
    EXPECT_EQ(values_of(part), (std::vector<float>{2}));
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(cpu.memory().foreign, 0U);
  cpu.borrow(theirs.data(), 12, [] { throw 1; });  // breaks its promise, and nothing breaks
  EXPECT_THROW(cpu.borrow(nullptr, 4), ValueError);
}

TEST(CpuMemory, DevicesOfOneMachineSeeEachOthersMemory) {
  Device& one = device("CPU:5");
  Device& two = device("CPU:6");
  Buffer seen;
  {
    const Buffer owned = floats(one, {1, 2, 3});
    seen = two.map(owned);
    EXPECT_EQ(seen.host(), owned.host());
    EXPECT_EQ(&seen.device(), &two);
    EXPECT_EQ(one.map(owned).allocation, owned.allocation);
  }
  EXPECT_EQ(values_of(seen), (std::vector<float>{1, 2, 3})) << "kept by the map";
  EXPECT_NE(one.memory().in_use, 0U);
  seen = {};
  EXPECT_EQ(one.memory().in_use, 0U);

  const Buffer to = two.allocate(12);
  copy(to, floats(one, {4, 5, 6}));
  EXPECT_EQ(values_of(to), (std::vector<float>{4, 5, 6}));
  copy(to.slice(4, 8), to.slice(0, 8));
  EXPECT_EQ(values_of(to), (std::vector<float>{4, 4, 5})) << "overlapping ranges copy as if at once";
  EXPECT_THROW(one.copy_in(to, nullptr), DeviceError);
}

#if !PG_TSAN  // which ends a child that starts threads
TEST(CpuDevice, AForkedChildComputesAndCompiles) {
  Device& cpu = device("CPU");
  const auto program = add_variable(cpu);
  const Buffer buffer = floats(cpu, std::vector<float>(100, 1));
  const int64_t variable = 2;
  program->launch({&buffer, 1}, {&variable, 1}, threads(100));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    program->launch({&buffer, 1}, {&variable, 1}, threads(100));
    add_variable(cpu)->launch({&buffer, 1}, {&variable, 1}, threads(100));
    const Buffer more = cpu.allocate(1 << 22);
    std::memset(more.host(), 0, more.bytes);
    _exit(values_of(buffer) == std::vector<float>(100, 7) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(values_of(buffer), std::vector<float>(100, 3));
}
#endif

}  // namespace
}  // namespace pg::runtime
