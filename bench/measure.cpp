#include "measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <limits>

#include <fmt/format.h>

#include "engine/engine.h"
#include "figure.h"
#include "limits.h"
#include "runtime/device.h"

namespace pg::bench {
namespace {

constexpr int kRounds = 3;
constexpr double kSecondsEach = 0.06;  // of one side in one round, or one run
constexpr double kSlow = 0.4;          // runs that take longer are timed once
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> times) {
  if (times.empty()) return kNothing;
  auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Our side of a piece of work.
class Ours {
 public:
  explicit Ours(const Work& work) : work_(work), step_(jit(body())) {
    if (work.run) {
      work.run();
      slow_ = timed(false) > kSlow;
      return;
    }
    for (const Tensor& t : work.inputs) t.realize();
    for (int i = 0; i < 2; ++i) call();  // runs, records
    engine::Counters before = engine::counters();
    slow_ = timed(false) > kSlow;
    engine::Counters after = engine::counters();
    kernels_ = after.kernels - before.kernels;
    bytes_ = after.bytes - before.bytes;
    flops_ = after.flops - before.flops;
  }

  int rounds() const { return slow_ ? 1 : kRounds; }
  void round() {
    if (!slow_) call();
    double until = now() + kSecondsEach;
    do timed(true);
    while (now() < until && times_.size() < 3000);
  }
  double seconds() const { return median(times_); }

  // What bounds it, for figures under their target.
  std::string bound() const {
    std::string text = fmt::format("{:.2f} of {} threads busy", wall_ > 0 ? cpu_ / wall_ : 0.0, threads());
    if (kernels_) text += fmt::format("; {} kernels", kernels_);
    auto against = [&](const char* what, double got, double least, double unit, const char* name) {
      if (got > 0 && least > 0)
        text += fmt::format("; {} {:.4g} {} where {:.4g} would do", what, got / unit, name, least / unit);
    };
    against("touching", bytes_, work_.bytes, 1e6, "MB");
    against("issuing", flops_, work_.flops, 1e9, "GFLOP");
    return text;
  }

 private:
  using Step = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  Step body() const {
    return [this](const std::vector<Tensor>& inputs) { return work_.ours(inputs); };
  }
  double timed(bool counts) {
    auto& device = runtime::device(engine::default_device());
    results_.clear();
    double cpu = cpu_seconds(), start = now();
    call();
    device.synchronize();
    double seconds = now() - start;
    if (counts) times_.push_back(seconds), wall_ += seconds, cpu_ += cpu_seconds() - cpu;
    return seconds;
  }
  void call() {
    if (work_.run) return work_.run();
    results_.clear();
    results_ = step_(work_.inputs);
    if (!results_.empty()) realize(results_);
  }

  const Work& work_;
  Jit<Step> step_;
  std::vector<Tensor> results_;
  std::vector<double> times_;
  double wall_ = 0, cpu_ = 0, bytes_ = 0, flops_ = 0;
  std::uint64_t kernels_ = 0;
  bool slow_ = false;
};

// A rival's side, or that of a limit.
struct Other {
  double best = 0;            // of a limit
  std::vector<double> times;  // of a rival
  std::string problem;

  void round(const Goal& goal, const Work& work) {
    switch (goal.of) {
      case Goal::Of::Peak:
      case Goal::Of::Seconds:
        best = std::max(best, peak_gflops());
        return;
      case Goal::Of::Copy:
        best = std::max(best, copy_gbytes());
        return;
      case Goal::Of::Read:
        best = std::max(best, std::max(read_gbytes(), copy_gbytes()));
        return;
      case Goal::Of::Rival:
        if (!problem.empty()) return;
        Rival::Times t = goal.rival->time(work.rival_work, kSecondsEach);
        times.insert(times.end(), t.seconds.begin(), t.seconds.end());
        problem = t.problem;
    }
  }
};

}  // namespace

namespace {

// How a piece of work did against each goal: how many times as fast as a rival, or the share of a limit. NaN
// where there is nothing to compare with.
using Ratios = std::vector<double>;

// Times all sides and prints a figure for each goal, without a target if it is a part.
Ratios compare(const Work& work, const std::vector<Goal>& goals, bool part) {
  Ratios ratios;
  std::vector<Other> others(goals.size());
  std::string failure, bound;
  double ours = kNothing;
  try {
    Ours side(work);
    for (int i = 0; i < side.rounds(); ++i) {
      side.round();
      for (std::size_t k = 0; k < goals.size(); ++k) others[k].round(goals[k], work);
    }
    ours = side.seconds();
    bound = side.bound();
  } catch (const std::exception& e) {
    failure = e.what();
  }
  for (std::size_t k = 0; k < goals.size(); ++k) {
    const Goal& goal = goals[k];
    const Other& other = others[k];
    Figure figure{.name = work.name, .bound = bound};
    double ratio = kNothing;
    if (goal.of == Goal::Of::Rival) {
      double theirs = median(other.times);
      ratio = theirs / ours;
      figure.name += " against " + goal.rival->name();
      figure.value = ours * 1e3, figure.unit = "ms", figure.target = theirs / goal.share * 1e3;
      figure.reference_kind = "rival", figure.reference = theirs * 1e3, figure.by = goal.rival->name();
      figure.reason = !failure.empty() ? failure : other.problem;
    } else if (goal.of == Goal::Of::Seconds) {
      double least = work.flops / other.best * 1e-9;
      ratio = least / ours;
      figure.value = ours, figure.unit = "s", figure.target = goal.share;
      figure.reference_kind = "limit", figure.reference = least, figure.by = "multiply-adds";
      figure.reason = failure;
    } else {
      bool peak = goal.of == Goal::Of::Peak;
      double rate = (peak ? work.flops : work.bytes) / ours * 1e-9;
      ratio = rate / other.best;
      figure.value = rate, figure.unit = peak ? "GFLOP/s" : "GB/s", figure.target = goal.share * other.best;
      figure.lower_is_better = false;
      figure.reference_kind = "limit", figure.reference = other.best;
      figure.by = peak ? "multiply-adds" : goal.of == Goal::Of::Read ? "reading" : "copying";
      figure.reason = failure;
    }
    part ? print_part(figure) : print(figure);
    ratios.push_back(figure.reason.empty() ? ratio : kNothing);
  }
  return ratios;
}

}  // namespace

void measure(const Work& work, const std::vector<Goal>& goals) {
  if (wanted(work.name)) compare(work, goals, false);
}

void Mean::add(const Work& work) {
  if (!wanted(name_) && !wanted(work.name)) return;
  Ratios r = compare(work, {Goal::beat(rival_, 1)}, true);
  ++parts_;
  std::isfinite(r[0]) ? logs_ += std::log(r[0]) : ++failed_;
}

void Mean::print() const {
  if (!parts_) return;
  Figure f{.name = name_ + ", geometric mean against " + rival_.name()};
  f.unit = "times", f.target = target_, f.lower_is_better = false, f.by = rival_.name();
  f.value = failed_ ? 0 : std::exp(logs_ / parts_);
  if (failed_) f.reason = fmt::format("{} of {} parts could not be compared", failed_, parts_);
  bench::print(f);
}

}  // namespace pg::bench
