#include "base/strings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace pg {
namespace {

// Three significant digits, but no exponent.
std::string three_digits(double value) {
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (std::abs(value) >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    unit++;
  }
  return fmt::format("{}{} {}", value < 0 ? "-" : "", three_digits(std::abs(value)), kUnits[unit]);
}

std::string format_seconds(double seconds) {
  struct Unit {
    const char* name;
    double factor;
  };
  constexpr std::array kUnits = {Unit{"ns", 1e9}, Unit{"us", 1e6}, Unit{"ms", 1e3}};
  double size = std::abs(seconds);
  const char* sign = seconds < 0 ? "-" : "";
  for (const auto& [name, factor] : kUnits) {
    if (size * factor < 999.5) return fmt::format("{}{} {}", sign, three_digits(size * factor), name);
  }
  return fmt::format("{}{} s", sign, three_digits(size));
}

std::string format_clock(double seconds) {
  auto whole = static_cast<int64_t>(std::max(0.0, std::round(seconds)));
  int64_t hours = whole / 3600;
  int64_t minutes = whole / 60 % 60;
  if (hours) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace pg
