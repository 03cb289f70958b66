#include <gtest/gtest.h>

#include "rewrite/fuzz.h"
#include "rules/symbolic.h"

namespace pg {
namespace {

class DivMod : public testing::Test {
 protected:
  std::string simplified(Ref x) { return expression_text(rewrite(x, rules::symbolic(), {.name = "test"})); }
  Ref r(int id, std::int64_t extent) { return range(id, RangeKind::Loop, idx(extent)); }
  GraphScope scope;
};

TEST_F(DivMod, AFlattenedIndexSplitsIntoItsRanges) {
  Ref i = r(0, 6), j = r(1, 4);
  EXPECT_EQ(simplified((i * 4 + j) / 4), "r0");
  EXPECT_EQ(simplified((i * 4 + j) % 4), "r1");
  EXPECT_EQ(simplified((i * 4 + j) / 8), "(r0/2)");
  EXPECT_EQ(simplified((i * 4 + j) % 8), "(((r0%2)*4)+r1)");
  EXPECT_EQ(simplified((i * 4 + j) / 24), "0");
  EXPECT_EQ(simplified((i * 4 + j) % 24), "((r0*4)+r1)");
  EXPECT_EQ(simplified((i * 4 + j) / 2), "((r1/2)+(r0*2))");
  EXPECT_EQ(simplified((i * 4 + j) % 2), "(r1%2)");
}

TEST_F(DivMod, ASplitIndexFlattensAgain) {
  Ref x = r(0, 24);
  EXPECT_EQ(simplified((x / 4) * 4 + x % 4), "r0");
  EXPECT_EQ(simplified((x / 8) * 8 + (x / 4 % 2) * 4 + x % 4), "r0");
  EXPECT_EQ(simplified((x / 12) * 12 + (x / 4 % 3) * 4 + (x / 2 % 2) * 2 + x % 2), "r0");
  EXPECT_EQ(simplified((x / 4 % 3) * 4 + x % 4), "(r0%12)");
  EXPECT_EQ(simplified(((x + 3) / 4) * 4 + (x + 3) % 4), "(r0+3)");
}

}  // namespace
}  // namespace pg
