// A progress bar: one line redrawn in place on a terminal, and now and then a plain line anywhere else. Used
// by the command and by whatever a user asks to show its progress; the library shows none by itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace pg {

class Progress {
 public:
  struct Options {
    std::string label;           ///< before the bar
    std::string unit = "steps";  ///< of the rate
    double units_per_step = 1;   ///< samples in a batch, say
    std::FILE* out = stderr;
  };

  /// Progress towards `total` steps. Whether `out` is a terminal is asked once, here.
  explicit Progress(int64_t total) : Progress(total, Options()) {}
  Progress(int64_t total, Options options);
  /// Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts steps that are done, and shows `note` (a loss, say) from now on. Not to be called from two
  /// threads at once.
  void advance(std::string_view note, int64_t steps = 1);

 private:
  using Clock = std::chrono::steady_clock;

  void show(Clock::time_point now);
  std::string line(Clock::time_point now, int width) const;

  const int64_t total_;
  const Options options_;
  const bool terminal_;
  const Clock::time_point start_;
  int64_t done_ = 0;
  int64_t shown_ = 0;  // what the last line said was done
  std::string note_;
  Clock::time_point last_shown_;
  Clock::time_point first_end_;  // of the first advance, which warms up and would spoil the rate
  int64_t first_steps_ = 0;
};

}  // namespace pg
