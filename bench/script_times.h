// What another library takes for the same work, measured by a script of its own in this run: for work that
// has no place in a server of cases (rival.h), such as building graphs and starting processes.
#pragma once

#include <map>
#include <string>

#include "figure.h"

namespace pg::bench {

/// Seconds by name, as a script in rivals/ prints them (name, tab, seconds). Empty without an interpreter,
/// which the environment variable PANGRAD_RIVAL_PYTHON names.
class ScriptTimes {
 public:
  explicit ScriptTimes(const std::string& script);
  /// Prints the figure with the rival's seconds beside it, times `scale` (the figure's unit in seconds,
  /// inverted), if they are known.
  void print(Figure figure, const std::string& name, double scale) const;

 private:
  std::map<std::string, double> seconds_;
};

}  // namespace pg::bench
