// The log: silent unless asked, lazily formatted, and never under a lock.
#include "base/log.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/flags.h"

namespace pg {
namespace {

using Lines = std::vector<std::string>;

// Collects what is logged while it lives.
class Capture {
 public:
  Capture() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      std::lock_guard lock(mutex_);
      lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(message));
    });
  }
  ~Capture() { set_log_sink(nullptr); }

  Lines lines;

 private:
  std::mutex mutex_;
};

// Counts how often it is formatted.
struct Counted {
  int* count;
};

}  // namespace
}  // namespace pg

template <>
struct fmt::formatter<pg::Counted> : fmt::formatter<int> {
  auto format(const pg::Counted& counted, fmt::format_context& context) const {
    return fmt::formatter<int>::format(++*counted.count, context);
  }
};

namespace pg {
namespace {

TEST(Log, NothingIsPrintedUnlessAsked) {
  ScopedFlag quiet("DEBUG", 0);
  testing::internal::CaptureStderr();
  log(LogLevel::Summary, "one {}", 1);
  log_text(LogLevel::Code, "two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, StandardErrorIsTheDefault) {
  ScopedFlag debug("DEBUG", 1);
  testing::internal::CaptureStderr();
  log(LogLevel::Summary, "one {}", 1);
  log_text(LogLevel::Summary, "{braces}");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "one 1\n{braces}\n");
}

TEST(Log, ALevelTooHighIsNotEvenFormatted) {
  ScopedFlag debug("DEBUG", 2);
  Capture capture;
  int count = 0;
  log(LogLevel::Options, "{}", Counted{&count});
  EXPECT_EQ(count, 0);
  log(LogLevel::Kernels, "{}", Counted{&count});
  EXPECT_EQ(count, 1);
  EXPECT_EQ(capture.lines, Lines{"2 1"});
}

TEST(Log, DeferredMessagesComeInOrderWhenTheOutermostScopeEnds) {
  ScopedFlag debug("DEBUG", 2);
  Capture capture;
  {
    DeferLog outer;
    log_text(LogLevel::Summary, "a");
    {
      DeferLog inner;
      log_text(LogLevel::Summary, "b");
    }
    EXPECT_TRUE(capture.lines.empty());
    std::thread([] { log_text(LogLevel::Kernels, "of another thread"); }).join();
    EXPECT_EQ(capture.lines, Lines{"2 of another thread"});
  }
  EXPECT_EQ(capture.lines, (Lines{"2 of another thread", "1 a", "1 b"}));
}

TEST(Log, ASinkMayLogSetSinksAndThrow) {
  ScopedFlag debug("DEBUG", 1);
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view message) {
    calls++;
    if (message == "again") {
      set_log_sink(nullptr);
      throw std::runtime_error("from the sink");
    }
    log_text(LogLevel::Summary, "again");
  });
  log_text(LogLevel::Summary, "first");
  EXPECT_EQ(calls, 2);
  testing::internal::CaptureStderr();
  log_text(LogLevel::Summary, "third");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "third\n");
}

}  // namespace
}  // namespace pg
