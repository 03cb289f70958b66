// The flags: defaults, scopes, domains, and what a bad environment does.
#include "base/flags.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include <pangrad/error.h>

namespace pg {
namespace {

template <typename Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const ValueError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Flags, AScopeOverridesAndRestores) {
  int before = flags::beam();
  {
    ScopedFlag outer("BEAM", 4);
    EXPECT_EQ(flags::beam(), 4);
    {
      ScopedFlag inner("BEAM", "7");
      EXPECT_EQ(flags::beam(), 7);
    }
    EXPECT_EQ(flags::beam(), 4);
    int seen = 0;
    std::thread([&] { seen = flags::beam(); }).join();
    EXPECT_EQ(seen, 4);
  }
  EXPECT_EQ(flags::beam(), before);
}

TEST(Flags, TextIsTakenAsItIs) {
  ScopedFlag scope("DEBUG_SKIP", "late simplify,expand");
  EXPECT_EQ(flags::debug_skip(), "late simplify,expand");
}

TEST(Flags, SkippedPassesAreWholeNames) {
  EXPECT_FALSE(flags::skips(""));
  ScopedFlag scope("DEBUG_SKIP", "late simplify,expand");
  EXPECT_TRUE(flags::skips("late simplify"));
  EXPECT_TRUE(flags::skips("expand"));
  EXPECT_FALSE(flags::skips("simplify"));
  EXPECT_FALSE(flags::skips("late simplify,expand"));
  EXPECT_FALSE(flags::skips(""));
}

TEST(Flags, PresenceIsAnyValueButZeroAndNothing) {
  for (auto [value, on] : {std::pair("1", true), {"yes", true}, {"0", false}, {"", false}}) {
    ScopedFlag scope("NO_COLOR", value);
    EXPECT_EQ(flags::no_color(), on) << value;
  }
}

TEST(Flags, AValueOutsideItsDomainNamesTheFlag) {
  for (const char* value : {"x", "2x", " 1", "-1", "10", "99999999999", ""}) {
    EXPECT_THROW(ScopedFlag("DEBUG", value), ValueError) << value;
  }
  std::string message = message_of([] { ScopedFlag scope("DEBUG", "loud"); });
  EXPECT_EQ(message.substr(0, 58), "[flags] DEBUG=loud: expected an integer from 0 to 9 (print");
  EXPECT_EQ(message_of([] { ScopedFlag scope("BEEM", 1); }), "[flags] there is no flag BEEM");
}

TEST(Flags, EveryRowIsListed) {
  auto rows = flags::all();
  auto cache = std::ranges::find(rows, "CACHE", &flags::Info::name);
  ASSERT_NE(cache, rows.end());
  EXPECT_EQ(cache->fallback, "2");
  EXPECT_FALSE(cache->help.empty());
}

// The environment is read once a process, so these run in a process of their own.
TEST(FlagsDeathTest, ABadEnvironmentThrowsAtEveryUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    setenv("BEAM", "wide", 1);
    int thrown = 0;
    for (int i = 0; i < 2; i++) {
      if (message_of([] { (void)flags::debug(); }).starts_with("[flags] BEAM=wide: expected")) thrown++;
    }
    std::exit(thrown == 2 ? 42 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(42), "");
}

TEST(FlagsDeathTest, TheEnvironmentIsReadAtFirstUseAndEmptyIsUnset) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [] {
    setenv("BEAM", "3", 1);
    setenv("THREADS", "", 1);
    setenv("CACHEDB", "/some/where", 1);
    bool read = flags::beam() == 3 && flags::threads() == 0 && flags::cachedb() == "/some/where";
    setenv("BEAM", "4", 1);
    std::exit(read && flags::beam() == 3 ? 42 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(42), "");
}

TEST(Flags, ReadersAndWritersMayMeet) {
  std::thread writer([] {
    for (int i = 0; i < 1000; i++)
      ScopedFlag scope("TRACE", i % 2 ? "a.json" : "some/much/longer/name/of/a/trace.json");
  });
  for (int i = 0; i < 1000; i++) {
    std::string text = flags::trace();
    EXPECT_TRUE(text.empty() || text.ends_with(".json")) << text;
  }
  writer.join();
}

}  // namespace
}  // namespace pg
