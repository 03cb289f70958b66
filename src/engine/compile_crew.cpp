#include "engine/compile_crew.h"

#include <algorithm>
#include <system_error>

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pg::engine {
namespace {

void lower_priority() {
#ifdef __linux__
  constexpr int kNice = 5;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
#endif
}

std::size_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace

CompileCrew::~CompileCrew() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void CompileCrew::add(std::shared_ptr<Kernel> kernel) {
  bool hire;
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(kernel);
    waiting_.push_back(std::move(kernel));
    hire = all_.size() > 1 && threads_.size() < std::min(all_.size(), cores()) - 1;
  }
  if (hire) try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // No thread to be had: the caller compiles.
    }
  changed_.notify_one();
}

std::shared_ptr<Kernel> CompileCrew::take() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Kernel> kernel = std::move(waiting_.front());
  waiting_.pop_front();
  return kernel;
}

void CompileCrew::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::shared_ptr<Kernel> kernel = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      kernel->compile();
    } catch (...) {
      // The caller meets the error again where it needs the kernel.
    }
    lock.lock();
  }
}

runtime::Program& CompileCrew::program(Kernel& kernel) {
  while (!kernel.ready() && !kernel.compile()) {
    std::shared_ptr<Kernel> other = take();
    if (!other) break;
    try {
      other->compile();
    } catch (...) {
      // It is met again where it is needed.
    }
  }
  return kernel.program();
}

void CompileCrew::finish() {
  for (const auto& kernel : all_) program(*kernel);
}

}  // namespace pg::engine
