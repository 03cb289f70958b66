#include "figure.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace pg::bench {

std::string only_rows;

double median_seconds(int runs, const std::function<void()>& f, const std::function<void()>& before) {
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {
    if (before) before();
    double start = now();
    f();
    if (i) times.push_back(now() - start);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + '"';
}

namespace {

// JSON has no infinities.
std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.6g}", x) : "null"; }

void print(const Figure& f, bool has_target) {
  bool met = f.reason.empty() && (f.lower_is_better ? f.value <= f.target : f.value >= f.target);
  std::string line = fmt::format("{{\"name\": {}, \"value\": {}, \"unit\": \"{}\"", json_text(f.name),
                                 number(f.value), f.unit);
  if (has_target) line += fmt::format(", \"target\": {}, \"met\": {}", number(f.target), met);
  if (!f.reference_kind.empty() && f.reason.empty()) {
    double ratio = f.lower_is_better ? f.reference / f.value : f.value / f.reference;
    line += fmt::format(", \"{}\": {}, \"ratio\": {}", f.reference_kind, number(f.reference),
                        std::isfinite(ratio) ? fmt::format("{:.4g}", ratio) : "null");
  }
  if (f.ratio_of_best > 0 && f.reason.empty())
    line += fmt::format(", \"ratio_of_best\": {:.4g}", f.ratio_of_best);
  if (!f.by.empty()) line += fmt::format(", \"by\": {}", json_text(f.by));
  if (!f.reason.empty()) line += fmt::format(", \"reason\": {}", json_text(f.reason));
  if (!f.bound.empty() && !met && has_target) line += fmt::format(", \"bound\": {}", json_text(f.bound));
  constexpr double kQuiet = 0.1;  // cores
  if (f.others_busy > kQuiet) line += fmt::format(", \"others_busy\": {:.2f}", f.others_busy);
  fmt::print("{}}}\n", line);
  std::fflush(stdout);
}

}  // namespace

void print(const Figure& f) { print(f, true); }
void print_part(const Figure& f) { print(f, false); }
void print_fact(const std::string& json) {
  fmt::print("{{{}}}\n", json);
  std::fflush(stdout);
}

}  // namespace pg::bench
