#include "rival.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

namespace pg::bench {

Rival::Rival(const std::string& script) {
  const char* python = std::getenv("PANGRAD_RIVAL_PYTHON");
  if (!python || !*python) return;
  std::string command = fmt::format("'{}' -B '{}/bench/{}'", python, PG_SOURCE_DIR, script);
  std::FILE* out = ::popen(command.c_str(), "r");
  if (!out) return;
  char name[128];
  double seconds;
  while (std::fscanf(out, " %127[^\t] %lf", name, &seconds) == 2) seconds_[name] = seconds;
  ::pclose(out);
}

void Rival::print(Figure figure, const std::string& name, double scale) const {
  if (auto it = seconds_.find(name); it != seconds_.end()) {
    figure.reference_kind = "rival";
    figure.reference = it->second * scale;
  }
  bench::print(figure);
}

}  // namespace pg::bench
