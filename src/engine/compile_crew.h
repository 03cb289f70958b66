// Threads that compile kernels while the thread that wants them goes on: lowers the next ones, launches the
// first.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/kernel.h"

namespace pg::engine {

/// Belongs to one realize, and its threads go with it, so that none is left when the process ends or forks.
/// Their priority is low: the caller works too. A kernel is compiled once, also where several crews want it.
class CompileCrew {
 public:
  CompileCrew() = default;
  /// Waits for what is being compiled and leaves the rest.
  ~CompileCrew();
  CompileCrew(const CompileCrew&) = delete;
  CompileCrew& operator=(const CompileCrew&) = delete;

  /// One more kernel to compile. The first is left to the caller: a crew of one has no threads.
  void add(std::shared_ptr<Kernel> kernel);
  /// The kernel's program; works on others while somebody else compiles it. Throws as Kernel::compile().
  runtime::Program& program(Kernel& kernel);
  /// Returns once every kernel is ready. Throws as Kernel::compile().
  void finish();

 private:
  std::shared_ptr<Kernel> take();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Kernel>> waiting_;
  std::vector<std::shared_ptr<Kernel>> all_;
  std::vector<std::thread> threads_;
  bool stop_ = false;
};

}  // namespace pg::engine
