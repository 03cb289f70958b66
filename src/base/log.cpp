#include "base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/flags.h"

namespace pg {
namespace {

struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogSink> current;  // null: standard error
};

// Never destroyed: threads may still log while the process exits.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

struct Deferred {
  int depth = 0;
  std::vector<std::pair<LogLevel, std::string>> messages;
};

Deferred& deferred() {
  thread_local Deferred instance;
  return instance;
}

void deliver(LogLevel level, std::string_view message) noexcept {
  try {
    std::shared_ptr<const LogSink> current;
    {
      std::lock_guard lock(sink().mutex);
      current = sink().current;
    }
    if (current) {
      (*current)(level, message);
    } else {
      // One call, so that lines of several threads do not mix.
      std::string line(message);
      line += '\n';
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): a message is not worth an exception, least of all a sink's
  }
}

}  // namespace

void set_log_sink(LogSink new_sink) {
  auto held = new_sink ? std::make_shared<const LogSink>(std::move(new_sink)) : nullptr;
  std::lock_guard lock(sink().mutex);
  sink().current.swap(held);  // the old one is destroyed, by whoever uses it last, after the lock
}

bool log_enabled(LogLevel level) noexcept {
  try {
    return static_cast<int>(level) <= flags::debug();
  } catch (const Error&) {
    return false;
  }
}

void log_text(LogLevel level, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  if (deferred().depth == 0) return deliver(level, message);
  try {
    deferred().messages.emplace_back(level, message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): as above
  }
}

DeferLog::DeferLog() { deferred().depth++; }

DeferLog::~DeferLog() {
  if (--deferred().depth > 0 || deferred().messages.empty()) return;
  // Moved out first: a sink may log in turn.
  auto messages = std::exchange(deferred().messages, {});
  for (auto& [level, message] : messages) deliver(level, message);
}

}  // namespace pg
