#include "runtime/cpu/launch_workers.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <csignal>
#include <new>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/flags.h"
#include "runtime/cpu/float_environment.h"

namespace pg::runtime {
namespace {

constexpr uint32_t kOpen = 1;
constexpr uint32_t kWaiting = 2;  // the caller sleeps until nobody is inside
constexpr uint32_t kInside = 1 << 2;
constexpr uint32_t kInsideMask = 0x7fff << 2;
constexpr uint32_t kCame = 1U << 17;
constexpr int kCameShift = 17;

// How long a thread looks for work before it sleeps. A wake-up costs several microseconds, and the next loop
// of a list follows sooner than that.
constexpr auto kSpin = std::chrono::microseconds(50);
// A thread that is woken wakes this many more: one thread waking all would keep it from its own work.
constexpr int kWakeAtOnce = 4;

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int most) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until ready() for kSpin at most; whether it became so. Yields now and then: on a busy machine whom we
// wait for may want this very core.
template <class Ready>
bool spin_until(Ready ready) noexcept {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; i++) {
      if (ready()) return true;
      pause_briefly();
    }
    sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

int cores_of_this_process() {
  // Machines may have more CPUs than cpu_set_t has bits; the kernel says EINVAL until the set is large
  // enough.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int failed = sched_getaffinity(0, bytes, set);
    const int count = failed != 0 ? 0 : CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (failed == 0) return std::max(count, 1);
  }
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

LaunchWorkers* process_pool = nullptr;

}  // namespace

LaunchWorkers& LaunchWorkers::get() {
  static auto* pool = [] {
    const int threads = flags::threads() != 0 ? flags::threads() : std::min(cores_of_this_process(), 1024);
    process_pool = new LaunchWorkers(threads);
    after_fork(reset_after_fork);
    return process_pool;
  }();
  return *pool;
}

LaunchWorkers::LaunchWorkers(int threads) : threads_(threads) {}

LaunchWorkers::~LaunchWorkers() {
  stop_.store(true);
  offers_.fetch_add(1);
  futex_wake(offers_, INT_MAX);
  for (const pthread_t thread : handles_) pthread_join(thread, nullptr);
}

// A child has none of the threads and none of the loops that ran in others.
void LaunchWorkers::reset_after_fork(bool in_child) {
  if (!in_child) return;
  LaunchWorkers& pool = *process_pool;
  for (Place& place : pool.places_) {
    place.state.store(0);
    place.taken.store(false);
  }
  pool.sleepers_.store(0);
  pool.handles_.clear();
  pool.started_.store(false);
}

namespace {
struct Start {
  LaunchWorkers* pool;
  int worker;
};
}  // namespace

void* LaunchWorkers::thread_main(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  start.pool->work(start.worker);
  return nullptr;
}

void LaunchWorkers::start_threads() noexcept {
  const std::lock_guard lock(start_mutex_);
  if (started_.load(std::memory_order_relaxed)) return;
  // The host's signals are for the host's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    handles_.reserve(static_cast<size_t>(threads_ - 1));
    for (int worker = 1; worker < threads_; worker++) {
      auto* start = new Start{this, worker};
      pthread_t thread{};
      if (pthread_create(&thread, nullptr, thread_main, start) != 0) {
        delete start;
        break;
      }
      pthread_setname_np(thread, "pangrad-cpu");
      handles_.push_back(thread);
    }
  } catch (const std::bad_alloc&) {
    // Those that were started do the work, or the caller alone.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_.store(true, std::memory_order_release);
}

int64_t LaunchWorkers::unclaimed(const Place& place) noexcept {
  const int64_t count = place.count.load(std::memory_order_relaxed);
  const uint64_t claimed = place.claimed.load(std::memory_order_relaxed);
  return count - (count > 64 ? static_cast<int64_t>(claimed) : std::popcount(claimed));
}

void LaunchWorkers::run_steps(Place& place, int participant) noexcept {
  const FloatEnvironment kernels;
  const int64_t count = place.count.load(std::memory_order_relaxed);
  if (count > 64) {
    for (;;) {
      const uint64_t index = place.claimed.fetch_add(1, std::memory_order_relaxed);
      if (index >= static_cast<uint64_t>(count)) return;
      place.step(place.context, static_cast<int64_t>(index), participant);
    }
  }
  // Everyone begins at its own share of the steps and goes up from there, then round the end.
  const uint64_t all = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  const auto first = count >= threads_ ? participant * count / threads_ : participant;
  for (;;) {
    const uint64_t free = all & ~place.claimed.load(std::memory_order_relaxed);
    if (free == 0) return;
    const uint64_t above = free >> first << first;
    const uint64_t bit = uint64_t{1} << std::countr_zero(above != 0 ? above : free);
    if ((place.claimed.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) continue;
    place.step(place.context, std::countr_zero(bit), participant);
  }
}

// Works on a place's loop if it has work left; whether it did, and for whom.
bool LaunchWorkers::help(Place& place, int worker, int& caller_cpu) noexcept {
  // With fewer steps than threads, those who come are numbered as they come, so that there is scratch for as
  // many as can have work. `state` may be of another loop than `count` here; what counts is looked at again
  // inside.
  const auto number = [this](uint32_t state, int64_t count) -> int64_t {
    const int64_t came = (state >> kCameShift) + 1;
    return count < threads_ && came >= count ? -1 : came;
  };
  if (unclaimed(place) <= 0) return false;
  uint32_t state = place.state.load(std::memory_order_relaxed);
  do {
    if ((state & kOpen) == 0 || number(state, place.count.load(std::memory_order_relaxed)) < 0) return false;
  } while (!place.state.compare_exchange_weak(state, state + kInside + kCame, std::memory_order_acquire,
                                              std::memory_order_relaxed));
  // The loop cannot end while we are inside.
  const int64_t count = place.count.load(std::memory_order_relaxed);
  const int64_t came = number(state, count);
  if (came >= 0) {
    caller_cpu = place.caller_cpu.load(std::memory_order_relaxed);
    place.worker_cpu.store(sched_getcpu(), std::memory_order_relaxed);
    const int64_t others = unclaimed(place) - 1;
    if (others > 0) wake(others);
    run_steps(place, count >= threads_ ? worker : static_cast<int>(came));
  }
  const uint32_t before = place.state.fetch_sub(kInside, std::memory_order_acq_rel);
  if ((before & kWaiting) != 0 && (before & kInsideMask) == kInside) futex_wake(place.state, 1);
  return came >= 0;
}

void LaunchWorkers::work(int worker) noexcept {
  int caller_cpu = -1;  // of the loop helped last
  for (;;) {
    const uint32_t seen = offers_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    bool helped = false;
    // Workers look first at different places, so that concurrent loops share them out.
    for (int i = 0; i < kPlaces; i++)
      helped |= help(places_[static_cast<size_t>((worker + i) % kPlaces)], worker, caller_cpu);
    if (helped) continue;
    const auto offered = [&] { return offers_.load(std::memory_order_relaxed) != seen; };
    if (sched_getcpu() != caller_cpu && spin_until(offered)) continue;
    caller_cpu = -1;
    sleepers_.fetch_add(1);
    futex_wait(offers_, seen);
    sleepers_.fetch_sub(1);
  }
}

void LaunchWorkers::wake(int64_t wanted) noexcept {
  const int asleep = sleepers_.load();
  if (asleep > 0) futex_wake(offers_, static_cast<int>(std::min<int64_t>({wanted, kWakeAtOnce, asleep})));
}

void LaunchWorkers::run(int64_t count, Step step, void* context) noexcept {
  if (count <= 0) return;
  Place* place = nullptr;
  if (count > 1 && threads_ > 1) {
    if (!started_.load(std::memory_order_acquire)) start_threads();
    for (Place& p : places_) {
      if (!p.taken.load(std::memory_order_relaxed) && !p.taken.exchange(true, std::memory_order_acquire)) {
        place = &p;
        break;
      }
    }
  }
  if (place == nullptr) {  // alone, or more loops at once than places
    const FloatEnvironment kernels;
    for (int64_t i = 0; i < count; i++) step(context, i, 0);
    return;
  }
  place->step = step;
  place->context = context;
  place->count.store(count, std::memory_order_relaxed);
  place->claimed.store(0, std::memory_order_relaxed);
  place->caller_cpu.store(sched_getcpu(), std::memory_order_relaxed);
  place->worker_cpu.store(-1, std::memory_order_relaxed);
  place->state.store(kOpen, std::memory_order_release);
  offers_.fetch_add(1);
  wake(count - 1);
  run_steps(*place, 0);

  uint32_t state = place->state.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto empty = [&] { return (state & kInsideMask) == 0; };
  if (!empty()) {
    const auto look = [&] {
      state = place->state.load(std::memory_order_acquire);
      return empty();
    };
    if (sched_getcpu() == place->worker_cpu.load(std::memory_order_relaxed) || !spin_until(look)) {
      place->state.fetch_or(kWaiting, std::memory_order_relaxed);
      while (!look()) futex_wait(place->state, state);
    }
  }
  place->taken.store(false, std::memory_order_release);
}

}  // namespace pg::runtime
