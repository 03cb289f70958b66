// Hashes: known answers, because caches on disk outlive a run, and how well they spread.
#include "base/hash.h"

#include <bit>

#include <absl/container/flat_hash_set.h>
#include <gtest/gtest.h>

namespace pg {
namespace {

TEST(Hash, IsTheSameInEveryRun) {
  EXPECT_EQ(hash_mix(1, 2), hash_mix(1, 2));
  EXPECT_EQ(hash_bytes(""), 0x2D06800538D394C2u);  // from the specification of XXH3
  EXPECT_EQ(to_string(Digester().finish()), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, TheOrderOfWordsMatters) {
  EXPECT_NE(hash_mix(1, 2), hash_mix(2, 1));
  EXPECT_NE(hash_mix(0, 0), hash_mix(0, 1));
  EXPECT_NE(hash_bytes("ab"), hash_bytes("ba"));
  EXPECT_NE(hash_bytes("ab", 1), hash_bytes("ab", 2));
}

TEST(Hash, SmallWordsDoNotCollideAndHalfTheBitsChange) {
  absl::flat_hash_set<uint64_t> seen;
  int64_t changed = 0;
  for (uint64_t a = 0; a < 256; a++) {
    for (uint64_t b = 0; b < 256; b++) {
      seen.insert(hash_mix(a, b));
      changed += std::popcount(hash_mix(a, b) ^ hash_mix(a, b + 1));
      changed += std::popcount(hash_mix(a, b) ^ hash_mix(a + 1, b));
    }
  }
  EXPECT_EQ(seen.size(), 256u * 256u);
  EXPECT_NEAR(static_cast<double>(changed) / (2 * 256 * 256), 32.0, 0.1);
}

TEST(Hash, ADigestKeepsValuesApart) {
  auto pair = [](std::string_view a, std::string_view b) { return Digester().add(a).add(b).finish(); };
  EXPECT_NE(pair("ab", "c"), pair("a", "bc"));
  EXPECT_NE(pair("", "a"), pair("a", ""));
  EXPECT_NE(Digester().add(0.0).finish(), Digester().add(-0.0).finish());
  EXPECT_EQ(Digester().add(int8_t{-1}).finish(), Digester().add(int64_t{-1}).finish());
}

TEST(Hash, DigestsNest) {
  Digest inner = Digester().add("inner").finish();
  EXPECT_EQ(Digester().add(inner).finish(), Digester().add(inner).finish());
  EXPECT_NE(Digester().add(inner).finish(), inner);
  absl::flat_hash_set<Digest> set = {inner};
  EXPECT_TRUE(set.contains(Digester().add("inner").finish()));
}

TEST(Hash, LongInputs) {
  std::string text(100000, 'x');
  Digest before = Digester().add(text).finish();
  text[99999] = 'y';
  EXPECT_NE(Digester().add(text).finish(), before);
}

}  // namespace
}  // namespace pg
