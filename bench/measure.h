// Pieces of work timed against the machine's limits and against rivals, all sides taking turns in one run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rival.h"
#include <pangrad/jit.h>
#include <pangrad/tensor.h>

namespace pg::bench {

/// What is to be timed. `ours` builds the graph of what is asked for from `inputs`; it is captured, and each
/// timed run computes new results in memory that was let go before.
struct Work {
  std::string name;
  double flops = 0;  // that it takes at least
  double bytes = 0;  // of each input read once and each output written once
  std::vector<Tensor> inputs = {};
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> ours = {};
  std::string rival_work = {};  // how rivals call it
  /// Instead of `ours`: one run.
  std::function<void()> run = {};
};

/// What a piece of work is held against.
struct Goal {
  enum class Of { Peak, Copy, Read, Seconds, Rival };
  Of of;
  double share;  // of the limit, or how many times as fast as the rival, or seconds
  Rival* rival = nullptr;
  static Goal peak(double share) { return {Of::Peak, share}; }
  static Goal copy(double share) { return {Of::Copy, share}; }
  static Goal read(double share) { return {Of::Read, share}; }
  /// Seconds; what its arithmetic takes at the peak is the limit that is shown.
  static Goal within(double seconds) { return {Of::Seconds, seconds}; }
  static Goal beat(Rival& rival, double times) { return {Of::Rival, times, &rival}; }
};

/// Times all sides and prints a figure for each goal, if the work is wanted. An error of ours or of a rival
/// is printed as the reason for not meeting it.
void measure(const Work& work, const std::vector<Goal>& goals);

/// The geometric mean of ratios over parts, against one rival.
class Mean {
 public:
  Mean(std::string name, Rival& rival, double target)
      : name_(std::move(name)), rival_(rival), target_(target) {}
  void add(const Work& work);
  void print() const;

 private:
  std::string name_;
  Rival& rival_;
  double target_, logs_ = 0, best_logs_ = 0, busy_ = 0;
  int parts_ = 0, failed_ = 0;
};

}  // namespace pg::bench
