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
  std::string by = {};      // who or what the reference is: "OpenBLAS"
  std::string reason = {};  // why there is nothing to compare with, so that it is not met
  std::string bound = {};   // what bounds it, said where it is not met
  // Of rivals: the same ratio of the best runs, which others on the machine disturb less than the medians; 0
  // if none.
  double ratio_of_best = 0;
  // How many cores other programs took meanwhile: figures of a busy machine say little.
  double others_busy = 0;
};
/// One JSON object on a line of standard output. "ratio" is how many times as good as the reference the value
/// is.
void print(const Figure& figure);
/// The same without a target: a part of a figure that follows.
void print_part(const Figure& figure);
/// A line about the run itself: versions, threads. `json` is the inside of an object.
void print_fact(const std::string& json);
/// Text as a JSON string, quotes included.
std::string json_text(const std::string& text);

/// What `./run bench group part` names besides the group: rows whose name does not contain it are left out.
extern std::string only_rows;
inline bool wanted(const std::string& name) { return name.find(only_rows) != std::string::npos; }

void demo();
void graph();
void kernels();
void launch();
void pipelines();
void rules();
void steady();

}  // namespace pg::bench
