// NULL takes everything and gives nothing.
#include "runtime/null/null_device.h"

#include <gtest/gtest.h>

#include <pangrad/error.h>

namespace pg::runtime {
namespace {

constexpr size_t kTiB = size_t{1} << 40;

TEST(NullDevice, CompilesAnythingAndCountsLaunches) {
  NullDevice null("NULL:test");
  const auto program = null.load({.code = null.compiler("any language").compile("whatever"),
                                  .signature = {.name = "f", .buffers = 1, .variables = 1}});
  const Buffer buffer = null.allocate(8 * kTiB);
  const int64_t variable = 3;
  EXPECT_EQ(program->launch({&buffer, 1}, {&variable, 1}), 1U);
  EXPECT_EQ(program->launch({&buffer, 1}, {&variable, 1}), 2U);
  EXPECT_EQ(null.submitted(), 2U);
  null.synchronize();
}

TEST(NullDevice, AccountsMemoryItDoesNotHave) {
  NullDevice null("NULL:test");
  {
    const Buffer buffer = null.allocate(8 * kTiB);
    EXPECT_EQ(buffer.host(), nullptr);
    EXPECT_EQ(null.memory().in_use, 8 * kTiB);
  }
  EXPECT_EQ(null.memory().in_use, 0U);
  EXPECT_EQ(null.memory().peak, 8 * kTiB);
  null.set_memory_limit(kTiB);
  EXPECT_THROW(null.allocate(2 * kTiB), OutOfMemory);
}

TEST(NullDevice, CopiesGoInAndNotOut) {
  NullDevice null("NULL:test");
  const Buffer a = null.allocate(16);
  const Buffer b = null.allocate(16);
  const Buffer host = device("CPU").allocate(16);
  char bytes[16] = {};
  null.copy_in(a, bytes);
  copy(a, host);
  copy(b, a);
  EXPECT_THROW(null.copy_out(bytes, a), DeviceError);
  EXPECT_THROW(copy(host, a), DeviceError);
  EXPECT_THROW(null.map(host), DeviceError);
  EXPECT_THROW(device("CPU").map(a), DeviceError);
}

}  // namespace
}  // namespace pg::runtime
