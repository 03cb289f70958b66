// Where pangrad's log goes. The library prints nothing unless DEBUG asks for it; then lines go to standard
// error, or to the sink a program sets here.
#pragma once

#include <functional>
#include <string_view>

#include <pangrad/error.h>

namespace pg {

/// What a line is about. Its number is the DEBUG value from which it is produced.
enum class LogLevel {
  Summary = 1,   ///< schedules, captures, devices opened, caches disabled
  Kernels = 2,   ///< one line for each kernel run
  Options = 3,   ///< the options chosen for each kernel
  Code = 4,      ///< generated code
  Graphs = 5,    ///< graphs between passes
  Rewrites = 6,  ///< the rules that fired in each pass
};

/// Receives a message, which may have several lines but no newline at its end.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Sends what is logged from now on to `sink`; an empty one restores standard error. The sink is called by
/// whichever thread logs, several at a time, and never while the library holds a lock. What it throws is
/// dropped.
PG_API void set_log_sink(LogSink sink);

}  // namespace pg
