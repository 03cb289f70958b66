// The launch workers: every step runs once, whoever starts loops, from wherever, and however many at once.
#include "runtime/cpu/launch_workers.h"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sanitizers.h"

namespace pg::runtime {
namespace {

// A loop given as a lambda.
template <class F>
void run(LaunchWorkers& workers, int64_t count, F step) {
  const auto call = [](void* context, int64_t index, int participant) noexcept {
    (*static_cast<F*>(context))(index, participant);
  };
  workers.run(count, call, &step);
}

class Loops : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Loops, testing::Values(1, 2, 4, 9));

TEST_P(Loops, EachStepRunsOnce) {
  LaunchWorkers workers(GetParam());
  for (const int64_t count : {0, 1, 2, 3, 8, 63, 64, 65, 1000}) {
    for (int repeat = 0; repeat < 50; repeat++) {
      auto runs = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(count));
      run(workers, count, [&](int64_t i, int) { runs[static_cast<size_t>(i)]++; });
      for (int64_t i = 0; i < count; i++) ASSERT_EQ(runs[static_cast<size_t>(i)], 1) << i << " of " << count;
    }
  }
}

TEST_P(Loops, AParticipantIsOneThreadAtATime) {
  LaunchWorkers workers(GetParam());
  for (const int64_t count : {2, 3, 5, 40, 300}) {
    for (int repeat = 0; repeat < 100; repeat++) {
      std::array<std::atomic<int>, 16> inside{};
      std::atomic<bool> wrong{false};
      run(workers, count, [&](int64_t, int participant) {
        if (participant < 0 || participant >= std::min<int64_t>(count, workers.participants())) wrong = true;
        if (inside[static_cast<size_t>(participant)]++ != 0) wrong = true;
        inside[static_cast<size_t>(participant)]--;
      });
      ASSERT_FALSE(wrong);
    }
  }
}

TEST_P(Loops, WorkDoneIsSeenByTheCaller) {
  LaunchWorkers workers(GetParam());
  std::vector<int64_t> squares(100);
  for (int64_t round = 1; round < 200; round++) {
    run(workers, 100, [&](int64_t i, int) { squares[static_cast<size_t>(i)] = i * i * round; });
    for (int64_t i = 0; i < 100; i++) ASSERT_EQ(squares[static_cast<size_t>(i)], i * i * round);
  }
}

TEST_P(Loops, LoopsMayNest) {
  LaunchWorkers workers(GetParam());
  for (int repeat = 0; repeat < 20; repeat++) {
    std::atomic<int64_t> sum{0};
    run(workers, 6, [&](int64_t i, int) {
      run(workers, 7,
          [&](int64_t j, int) { run(workers, 3, [&](int64_t k, int) { sum += 100 * i + 10 * j + k; }); });
    });
    EXPECT_EQ(sum, 100 * 15 * 21 + 10 * 21 * 18 + 3 * 42);
  }
}

TEST_P(Loops, ManyThreadsMayRunLoopsAtOnce) {
  LaunchWorkers workers(GetParam());
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 20; t++) {  // more than there are places
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; repeat++) {
        int64_t mine = 0;
        std::vector<int64_t> parts(10);
        run(workers, 10, [&](int64_t i, int) { parts[static_cast<size_t>(i)] = i + 1; });
        for (const int64_t part : parts) mine += part;
        sum += mine;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 20 * 100 * 55);
}

TEST(LaunchWorkers, SleepersWakeUp) {
  LaunchWorkers workers(4);
  for (int repeat = 0; repeat < 20; repeat++) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));  // long enough for all to sleep
    std::atomic<int> runs{0};
    run(workers, 4, [&](int64_t, int) { runs++; });
    EXPECT_EQ(runs, 4);
  }
}

TEST(LaunchWorkers, ALongStepIsWaitedForAsleep) {
  LaunchWorkers workers(2);
  std::atomic<bool> done{false};
  run(workers, 2, [&](int64_t i, int) {
    if (i == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
    }
  });
  EXPECT_TRUE(done);
}

// 1 and a bit: more than 1 only if additions round upwards.
float one_and_a_bit() {
  const volatile float one = 1, bit = 1e-10F;
  return one + bit;
}

TEST(LaunchWorkers, AllThreadsRoundAlikeWhateverTheHostSet) {
  LaunchWorkers workers(3);
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  std::vector<float> sums(64);
  run(workers, 64, [&](int64_t i, int) { sums[static_cast<size_t>(i)] = one_and_a_bit(); });
  const float mine = one_and_a_bit();
  std::fesetround(before);
  EXPECT_GT(mine, 1) << "the host's own state is back";
  EXPECT_EQ(sums, std::vector<float>(64, 1));
}

TEST(LaunchWorkers, TheProcessHasOnePoolOfItsCores) {
  EXPECT_GE(LaunchWorkers::get().participants(), 1);
  EXPECT_EQ(&LaunchWorkers::get(), &LaunchWorkers::get());
}

#if !PG_TSAN  // which ends a child that starts threads
TEST(LaunchWorkers, AForkedChildHasWorkersOfItsOwn) {
  LaunchWorkers& workers = LaunchWorkers::get();
  run(workers, 8, [](int64_t, int) {});
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) run(workers, 4, [](int64_t, int) {});
  });
  for (int repeat = 0; repeat < 20; repeat++) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::atomic<int64_t> sum{0};
      for (int i = 0; i < 100; i++) run(workers, 8, [&](int64_t k, int) { sum += k; });
      _exit(sum == 2800 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}
#endif

}  // namespace
}  // namespace pg::runtime
