// The floating-point state that kernels run in: round to nearest, denormals kept, no traps. A host may have
// set another on some of its threads, and a result must not depend on which thread computed it.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace pg::runtime {

/// Sets the state of this thread while it lives.
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  FloatEnvironment() : before_(_mm_getcsr()) {
    if (differs()) _mm_setcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (differs()) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80;
  // Without the flags of what has been raised so far: most threads have raised something, and setting the
  // register costs more than a launch.
  static constexpr unsigned kControl = 0xffc0;
  bool differs() const { return (before_ & kControl) != kDefault; }
  unsigned before_;
#elif defined(__aarch64__)
  FloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != 0) asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~FloatEnvironment() {
    if (before_ != 0) asm volatile("msr fpcr, %0" ::"r"(before_));
  }

 private:
  uint64_t before_;
#else
#error "kernels run on x86-64 and aarch64"
#endif

 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

}  // namespace pg::runtime
