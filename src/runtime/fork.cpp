#include "runtime/fork.h"

#include <vector>

#include <pthread.h>

namespace pg::runtime {

// All mutexes and handlers, behind a lock that is itself held across the fork. Never destroyed: static
// mutexes of other files may go after this file's.
struct ForkList {
  std::mutex mutex;
  ForkSafeMutex* head = nullptr;
  std::vector<void (*)(bool)> handlers;

  static ForkList& get() {
    static auto* list = [] {
      auto* made = new ForkList;
      pthread_atfork(prepare, [] { finish(false); }, [] { finish(true); });
      return made;
    }();
    return *list;
  }
  static void prepare() {
    ForkList& list = get();
    list.mutex.lock();
    for (ForkSafeMutex* m = list.head; m != nullptr; m = m->next_) m->mutex_.lock();
  }
  static void finish(bool in_child) {
    ForkList& list = get();
    for (auto* handler : list.handlers) handler(in_child);
    for (ForkSafeMutex* m = list.head; m != nullptr; m = m->next_) m->mutex_.unlock();
    list.mutex.unlock();
  }
  void insert(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    m->next_ = head;
    if (head != nullptr) head->previous_ = m;
    head = m;
  }
  void remove(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    (m->previous_ != nullptr ? m->previous_->next_ : head) = m->next_;
    if (m->next_ != nullptr) m->next_->previous_ = m->previous_;
  }
};

ForkSafeMutex::ForkSafeMutex() { ForkList::get().insert(this); }
ForkSafeMutex::~ForkSafeMutex() { ForkList::get().remove(this); }

void after_fork(void (*handler)(bool in_child)) {
  ForkList& list = ForkList::get();
  const std::lock_guard lock(list.mutex);
  list.handlers.push_back(handler);
}

}  // namespace pg::runtime
