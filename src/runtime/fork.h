// Locks that survive fork(). A child has only the thread that forked, so a mutex that another thread held
// would stay locked there forever; these are all taken before the fork and free in the child.
#pragma once

#include <mutex>

namespace pg::runtime {

/// A mutex for objects that live as long as the process, or at least not across a fork. Law: code that holds
/// one takes no other, so that fork() can take them all in any order.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  friend struct ForkList;
  std::mutex mutex_;
  ForkSafeMutex* previous_ = nullptr;
  ForkSafeMutex* next_ = nullptr;
};

/// Calls `handler` in the parent and in the child after each fork(), with every ForkSafeMutex held. Handlers
/// are never removed; they take no lock and throw nothing. `in_child` tells which side it is.
void after_fork(void (*handler)(bool in_child));

}  // namespace pg::runtime
