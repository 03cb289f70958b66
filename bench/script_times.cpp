#include "script_times.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace pg::bench {

ScriptTimes::ScriptTimes(const std::string& script) {
  const char* python = std::getenv("PANGRAD_RIVAL_PYTHON");
  if (!python || !*python) return;
  std::string command = fmt::format("'{}' -B '{}/{}'", python, PANGRAD_RIVALS, script);
  std::FILE* out = ::popen(command.c_str(), "r");
  if (!out) return;
  char name[128];
  double seconds;
  while (std::fscanf(out, " %127[^\t] %lf", name, &seconds) == 2) seconds_[name] = seconds;
  ::pclose(out);
}

void ScriptTimes::print(Figure figure, const std::string& name, double scale) const {
  if (auto it = seconds_.find(name); it != seconds_.end()) {
    figure.reference_kind = "rival";
    figure.reference = it->second * scale;
    figure.by = "tinygrad";
  }
  bench::print(figure);
}

}  // namespace pg::bench
