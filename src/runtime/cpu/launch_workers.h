// The threads that run kernels. A loop of n independent steps is offered to the workers while the caller
// works on it too, so any number of threads may run loops at once, also from inside a loop; who runs which
// step never shows in a result, since a step knows only its index.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <pthread.h>

#include "runtime/fork.h"

namespace pg::runtime {

class LaunchWorkers {
 public:
  /// Step `index` of a loop, run by `participant`: each number below participants() is at most one thread at
  /// a time in one loop.
  using Step = void (*)(void* context, int64_t index, int participant) noexcept;

  /// The pool of the process: THREADS threads with the caller, or one for each core this process may run on.
  /// Never destroyed.
  static LaunchWorkers& get();

  /// A pool of its own; for tests. `threads` counts the caller: 1 to 1024.
  explicit LaunchWorkers(int threads);
  /// Ends its threads; no loop may be running.
  ~LaunchWorkers();
  LaunchWorkers(const LaunchWorkers&) = delete;
  LaunchWorkers& operator=(const LaunchWorkers&) = delete;

  /// The most threads that work on one loop, the caller included.
  int participants() const { return threads_; }

  /// Runs step(context, i, participant) once for each i in [0, count) and returns when all are done. Steps
  /// have the FloatEnvironment of kernels and must not throw. Threads are started by the first loop that
  /// needs them; where the system refuses some, the rest do the work.
  void run(int64_t count, Step step, void* context) noexcept;

 private:
  // A place where one running loop is offered. Places are never freed, so a worker may look at one whose loop
  // has just ended.
  struct alignas(128) Place {
    // Low to high: kOpen, kWaiting, workers inside (15 bits), workers that ever came in (15 bits).
    std::atomic<uint32_t> state{0};
    std::atomic<bool> taken{false};
    // Written while nobody is inside.
    Step step = nullptr;
    void* context = nullptr;
    std::atomic<int64_t> count{0};
    // The CPUs that the caller and the last worker to come in were on. Who finds the other on its own CPU
    // must not spin: the other waits for just this CPU.
    std::atomic<int> caller_cpu{-1};
    std::atomic<int> worker_cpu{-1};
    // Which steps are claimed: one bit each up to 64 of them, so that a worker gets the same step in loop
    // after loop and finds its data in its own cache; else how many.
    alignas(64) std::atomic<uint64_t> claimed{0};
  };
  static constexpr int kPlaces = 16;

  static void reset_after_fork(bool in_child);
  static void* thread_main(void* argument);

  void start_threads() noexcept;
  void work(int worker) noexcept;
  bool help(Place& place, int worker, int& caller_cpu) noexcept;
  void run_steps(Place& place, int participant) noexcept;
  static int64_t unclaimed(const Place& place) noexcept;
  void wake(int64_t wanted) noexcept;

  const int threads_;
  std::array<Place, kPlaces> places_;
  alignas(128) std::atomic<uint32_t> offers_{0};  // grows with each loop offered; workers sleep on it
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(128) std::atomic<bool> started_{false};
  ForkSafeMutex start_mutex_;
  std::vector<pthread_t> handles_;
};

}  // namespace pg::runtime
