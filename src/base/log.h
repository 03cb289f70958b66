// The log, as the rooms write to it. A message is formatted only if DEBUG asks for its level, and goes to the
// sink of <pangrad/log.h>.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include <pangrad/log.h>

namespace pg {

/// Whether messages of this level are wanted. False while the environment holds an invalid flag: that is
/// reported by whoever reads a flag, and logging never throws.
bool log_enabled(LogLevel level) noexcept;

/// Logs a message as it is.
void log_text(LogLevel level, std::string_view message) noexcept;

/// Logs a message in the manner of fmt::format.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}

/// Keeps back what this thread logs until the outermost one ends. Declare it before taking a lock that a
/// sink, being a user's code, must not be called under.
class DeferLog {
 public:
  DeferLog();
  ~DeferLog();
  DeferLog(const DeferLog&) = delete;
  DeferLog& operator=(const DeferLog&) = delete;
};

}  // namespace pg
