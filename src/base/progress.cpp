#include "base/progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strings.h"

namespace pg {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int64_t kPlainLines = 10;
constexpr int kBarWidth = 24;
constexpr int kPlainWidth = 1000;

int width_of(std::FILE* terminal) {
  winsize size{};
  constexpr int kUsual = 80;
  return ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

Progress::Progress(int64_t total, Options options)
    : total_(std::max<int64_t>(total, 0)),
      options_(std::move(options)),
      terminal_(isatty(fileno(options_.out)) == 1),
      start_(Clock::now()) {
  if (terminal_) show(start_);
}

Progress::~Progress() {
  if (shown_ != done_) show(Clock::now());
  if (terminal_) std::fputc('\n', options_.out);
  std::fflush(options_.out);
}

void Progress::advance(std::string_view note, int64_t steps) {
  auto now = Clock::now();
  if (done_ == 0) {
    first_end_ = now;
    first_steps_ = steps;
  }
  done_ += steps;
  note_ = note;
  auto tenth = [&](int64_t steps_done) { return steps_done * kPlainLines / std::max<int64_t>(total_, 1); };
  bool due = terminal_ ? now - last_shown_ >= kRedraw : tenth(done_) != tenth(shown_);
  if (due || done_ == total_) show(now);
}

void Progress::show(Clock::time_point now) {
  shown_ = done_;
  last_shown_ = now;
  // On a terminal: back to the margin, the line, and clear what a longer one left. The last column stays
  // free, or the line would wrap.
  std::string text = terminal_ ? fmt::format("\r{}\x1b[K", line(now, width_of(options_.out) - 1))
                               : fmt::format("{}\n", line(now, kPlainWidth));
  std::fputs(text.c_str(), options_.out);
  std::fflush(options_.out);
}

std::string Progress::line(Clock::time_point now, int width) const {
  using Seconds = std::chrono::duration<double>;
  std::string text = options_.label.empty() ? "" : options_.label + " ";
  if (terminal_) {
    auto filled = static_cast<int>(total_ ? std::min(done_, total_) * kBarWidth / total_ : kBarWidth);
    text += fmt::format("[{:=<{}}{:{}}] ", "", filled, "", kBarWidth - filled);
  }
  text += fmt::format("{}/{}", done_, total_);
  if (!note_.empty()) text += "  " + note_;
  bool warm = done_ > first_steps_;
  double seconds = Seconds(now - (warm ? first_end_ : start_)).count();
  int64_t steps = warm ? done_ - first_steps_ : done_;
  if (steps > 0 && seconds > 0) {
    double rate = static_cast<double>(steps) / seconds;
    text += fmt::format("  {:.3g} {}/s", rate * options_.units_per_step, options_.unit);
    if (done_ < total_)
      text += fmt::format("  {} left", format_clock(static_cast<double>(total_ - done_) / rate));
  }
  if (done_ >= total_) text += fmt::format("  {}", format_clock(Seconds(now - start_).count()));
  return text.substr(0, static_cast<size_t>(std::max(width, 0)));
}

}  // namespace pg
