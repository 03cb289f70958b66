// The exceptions: what a host may rely on when it catches them.
#include <gtest/gtest.h>

#include <pangrad/error.h>

namespace pg {
namespace {

TEST(Error, EveryKindIsCaughtAsErrorAndKeepsItsMessage) {
  try {
    throw ShapeError("[reshape] 6 elements into (4,)");
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[reshape] 6 elements into (4,)");
  }
  EXPECT_THROW(throw InternalError("x"), std::runtime_error);
  EXPECT_THROW(throw FileError("x"), Error);
}

}  // namespace
}  // namespace pg
