// Numbers in messages: three digits, and the right unit at its edges.
#include "base/strings.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace pg {
namespace {

TEST(Strings, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(10 * 1024), "10.0 KiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(int64_t{300} << 30), "300 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8.00 EiB");
  EXPECT_EQ(format_bytes(-1536), "-1.50 KiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::min()), "-8.00 EiB");
}

TEST(Strings, Seconds) {
  EXPECT_EQ(format_seconds(0), "0.00 ns");
  EXPECT_EQ(format_seconds(1.5e-6), "1.50 us");
  EXPECT_EQ(format_seconds(0.0234), "23.4 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(120), "120 s");
  EXPECT_EQ(format_seconds(-0.5), "-500 ms");
}

TEST(Strings, Clock) {
  EXPECT_EQ(format_clock(6.6), "0:07");
  EXPECT_EQ(format_clock(59.7), "1:00");
  EXPECT_EQ(format_clock(12 * 60 + 34), "12:34");
  EXPECT_EQ(format_clock(3723), "1:02:03");
  EXPECT_EQ(format_clock(-1), "0:00");
}

}  // namespace
}  // namespace pg
