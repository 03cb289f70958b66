#include "measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <fstream>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

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

// CPU seconds that all programs on this machine have used.
double machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double total = 0, ticks = 0;
  file >> word;
  // user, nice, system, idle, iowait, irq, softirq
  for (int i = 0; i < 7 && file >> ticks; ++i)
    if (i != 3 && i != 4) total += ticks;
  return total / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// How many cores programs other than this one and the rivals it asks take, from here on.
class Others {
 public:
  explicit Others(const std::vector<Goal>& goals) {
    for (const Goal& g : goals)
      if (g.rival) rivals_.insert(g.rival);
    start_ = now(), used_ = used();
  }
  double busy() const { return std::max(0.0, (used() - used_) / (now() - start_)); }

 private:
  double used() const {
    double seconds = machine_seconds() - cpu_seconds();
    for (const Rival* r : rivals_) seconds -= r->cpu_seconds();
    return seconds;
  }
  std::set<const Rival*> rivals_;
  double start_, used_;
};

double best(const std::vector<double>& times) {
  return times.empty() ? kNothing : *std::min_element(times.begin(), times.end());
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
  double best_seconds() const { return best(times_); }

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
  double most = 0;            // of a limit
  std::vector<double> times;  // of a rival
  std::string problem;

  void round(const Goal& goal, const Work& work) {
    switch (goal.of) {
      case Goal::Of::Peak:
      case Goal::Of::Seconds:
        most = std::max(most, peak_gflops());
        return;
      case Goal::Of::Copy:
        most = std::max(most, copy_gbytes());
        return;
      case Goal::Of::Read:
        most = std::max(most, std::max(read_gbytes(), copy_gbytes()));
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

// How a piece of work did against a goal: how many times as fast as a rival, or the share of a limit; NaN
// where there is nothing to compare with.
struct Outcome {
  double ratio, ratio_of_best, others_busy;
};

// Times all sides and prints a figure for each goal, without a target if it is a part.
std::vector<Outcome> compare(const Work& work, const std::vector<Goal>& goals, bool part) {
  std::vector<Outcome> outcomes;
  std::vector<Other> others(goals.size());
  std::string failure, bound;
  double ours = kNothing, ours_best = kNothing, busy = 0;
  try {
    Ours side(work);
    for (const Goal& g : goals)
      if (g.rival) g.rival->absent();  // started now
    Others disturb(goals);
    for (int i = 0; i < side.rounds(); ++i) {
      side.round();
      for (std::size_t k = 0; k < goals.size(); ++k) others[k].round(goals[k], work);
    }
    ours = side.seconds(), ours_best = side.best_seconds();
    busy = disturb.busy();
    bound = side.bound();
  } catch (const std::exception& e) {
    failure = e.what();
  }
  for (std::size_t k = 0; k < goals.size(); ++k) {
    const Goal& goal = goals[k];
    const Other& other = others[k];
    Figure figure{.name = work.name, .bound = bound, .others_busy = busy};
    double ratio = kNothing;
    if (goal.of == Goal::Of::Rival) {
      double theirs = median(other.times);
      ratio = theirs / ours;
      figure.ratio_of_best = best(other.times) / ours_best;
      figure.name += " against " + goal.rival->name();
      figure.value = ours * 1e3, figure.unit = "ms", figure.target = theirs / goal.share * 1e3;
      figure.reference_kind = "rival", figure.reference = theirs * 1e3, figure.by = goal.rival->name();
      figure.reason = !failure.empty() ? failure : other.problem;
    } else if (goal.of == Goal::Of::Seconds) {
      double least = work.flops / other.most * 1e-9;
      ratio = least / ours;
      figure.value = ours, figure.unit = "s", figure.target = goal.share;
      figure.reference_kind = "limit", figure.reference = least, figure.by = "multiply-adds";
      figure.reason = failure;
    } else {
      bool peak = goal.of == Goal::Of::Peak;
      double rate = (peak ? work.flops : work.bytes) / ours * 1e-9;
      ratio = rate / other.most;
      figure.value = rate, figure.unit = peak ? "GFLOP/s" : "GB/s", figure.target = goal.share * other.most;
      figure.lower_is_better = false;
      figure.reference_kind = "limit", figure.reference = other.most;
      figure.by = peak ? "multiply-adds" : goal.of == Goal::Of::Read ? "reading" : "copying";
      figure.reason = failure;
    }
    part ? print_part(figure) : print(figure);
    outcomes.push_back({figure.reason.empty() ? ratio : kNothing, figure.ratio_of_best, busy});
  }
  return outcomes;
}

}  // namespace

void measure(const Work& work, const std::vector<Goal>& goals) {
  if (wanted(work.name)) compare(work, goals, false);
}

void Mean::add(const Work& work) {
  if (!wanted(name_) && !wanted(work.name)) return;
  Outcome r = compare(work, {Goal::beat(rival_, 1)}, true)[0];
  ++parts_;
  busy_ = std::max(busy_, r.others_busy);
  if (std::isfinite(r.ratio))
    logs_ += std::log(r.ratio), best_logs_ += std::log(r.ratio_of_best);
  else
    ++failed_;
}

void Mean::print() const {
  if (!parts_) return;
  Figure f{.name = name_ + ", geometric mean against " + rival_.name()};
  f.unit = "times", f.target = target_, f.lower_is_better = false, f.by = rival_.name(),
  f.others_busy = busy_;
  f.value = failed_ ? 0 : std::exp(logs_ / parts_);
  f.ratio_of_best = failed_ ? 0 : std::exp(best_logs_ / parts_);
  if (failed_) f.reason = fmt::format("{} of {} parts could not be compared", failed_, parts_);
  bench::print(f);
}

}  // namespace pg::bench
