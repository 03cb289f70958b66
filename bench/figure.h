// A figure of a benchmark: how it is measured and printed.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace pg::bench {

/// Seconds since some moment.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Median of the seconds of `runs` calls of f, after one that is not counted; `before` runs untimed before
/// each.
double median_seconds(int runs, const std::function<void()>& f, const std::function<void()>& before = {});

struct Figure {
  std::string name;
  double value;
  std::string unit;
  double target;
  bool lower_is_better = true;
  std::string reference_kind = {};  // "limit" or "rival": what `reference` is
  double reference = 0;
};
/// One JSON object on a line of standard output; ratio is value / reference.
void print(const Figure& figure);

/// GFLOP/s of independent chains of multiply-adds on all cores, and GB/s of copying 64 MB on all of them,
/// measured now.
double peak_gflops();
double peak_gbytes();

void demo();
void graph();
void kernels();
void launch();
void pipelines();
void rules();
void steady();

}  // namespace pg::bench
