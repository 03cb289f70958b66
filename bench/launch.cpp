// What it costs to get the launch workers to work, and to launch a kernel that does nothing.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "figure.h"
#include "runtime/cpu/launch_workers.h"
#include "runtime/device.h"

namespace pg::bench {
namespace {

using runtime::LaunchWorkers;

// A loop whose first step ends when its last has begun: how long until another thread is at work.
struct Meeting {
  std::atomic<int> arrived{0};
};
void meet(void* context, std::int64_t index, int) noexcept {
  auto& meeting = *static_cast<Meeting*>(context);
  if (index != 0)
    meeting.arrived.store(1);
  else
    while (meeting.arrived.load() == 0) {
    }
}
void run_meeting() {
  Meeting meeting;
  LaunchWorkers::get().run(2, meet, &meeting);
}

// One core telling another something and hearing back, which no loop can do without.
double round_trip_seconds() {
  constexpr int kTrips = 100000;
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < kTrips; ++i) {
      while (ball.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      ball.store(2 * i + 2, std::memory_order_release);
    }
  });
  const double begin = now();
  for (int i = 0; i < kTrips; ++i) {
    ball.store(2 * i + 1, std::memory_order_release);
    while (ball.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
  const double seconds = (now() - begin) / kTrips;
  other.join();
  return seconds;
}

}  // namespace

void launch() {
  if (LaunchWorkers::get().participants() > 1) {
    constexpr int kLoops = 2000;
    const double limit = round_trip_seconds();
    const double awake = median_seconds(21, [] {
      for (int i = 0; i < kLoops; ++i) run_meeting();
    });
    print({"loop of two threads, workers awake", awake / kLoops * 1e6, "us", 1, true, "limit", limit * 1e6});
    const auto let_them_sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    print({"loop of two threads, workers asleep", median_seconds(301, run_meeting, let_them_sleep) * 1e6,
           "us", 10, true, "limit", limit * 1e6});
  }
  runtime::Device& cpu = runtime::device("CPU");
  const auto nothing =
      cpu.load({.code = cpu.compiler("llvm").compile("define void @nothing(ptr %buffers, ptr %variables, "
                                                     "i64 %thread, ptr %scratch) {\n  ret void\n}\n"),
                .signature = {.name = "nothing", .buffers = 3}});
  const std::vector<runtime::Buffer> buffers(3, cpu.allocate(64));
  constexpr int kLaunches = 10000;
  const auto each = [](double seconds) { return seconds / kLaunches * 1e9; };
  void (*volatile call)() = [] {};
  const double bare = median_seconds(21, [&] {
    for (int i = 0; i < kLaunches; ++i) call();
  });
  print({"launch of one thread",
         each(median_seconds(21,
                             [&] {
                               for (int i = 0; i < kLaunches; ++i) nothing->launch(buffers);
                             })),
         "ns", 100, true, "limit", each(bare)});
  std::vector<runtime::Command> commands(kLaunches, runtime::Launch{.program = nothing, .buffers = buffers});
  const auto list = cpu.prepare(std::move(commands));
  print({"launch of one thread, in a prepared list", each(median_seconds(21, [&] { list->run(); })), "ns", 50,
         true, "limit", each(bare)});
}

}  // namespace pg::bench
