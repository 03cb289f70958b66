// Scopes that change what operations of this thread mean while one lives.
#pragma once

#include <pangrad/error.h>

namespace pg {

/// Dropout and batch statistics are on while one lives (of this thread); Training off{false} turns them off
/// within.
class PG_API Training {
 public:
  explicit Training(bool on = true);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  /// Whether it is on here.
  static bool enabled();

 private:
  bool before_;
};

/// What is computed while one lives (of this thread) has no history: marks are not seen and no gradient flows
/// through it.
class PG_API NoGrad {
 public:
  explicit NoGrad(bool on = true);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool enabled();

 private:
  bool before_;
};

}  // namespace pg
