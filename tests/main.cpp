// The main of every test executable. Tests check each pass against its spec and must not depend on what
// earlier runs left on disk, so they run with SPEC=1 and the caches in memory only, unless the environment
// says otherwise.
#include <cstdlib>

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kKeepIfSet = 0;
  setenv("SPEC", "1", kKeepIfSet);
  setenv("CACHE", "1", kKeepIfSet);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
