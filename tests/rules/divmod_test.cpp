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
  // A numerator whose multiples went elsewhere is still the same one.
  EXPECT_EQ(simplified((x * 5 / 4) * 4 + (x * 5) % 4), "(r0*5)");
  EXPECT_EQ(simplified(((x * 6 + r(1, 4)) / 4) * 4 + (x * 6 + r(1, 4)) % 4), "((r0*6)+r1)");
}

TEST_F(DivMod, FlippedAxesSplitLikeOthers) {
  Ref x = r(0, 24), flipped = idx(23) - x;
  EXPECT_EQ(simplified(flipped / 4), "(((r0/4)*-1)+5)");
  EXPECT_EQ(simplified(flipped % 4), "(((r0%4)*-1)+3)");
  EXPECT_EQ(simplified((flipped / 4) * 4 + flipped % 4), "((r0*-1)+23)");
  EXPECT_EQ(simplified((idx(7) - x % 8) / 8), "0");
}

// An index into a shape, from one into another shape of as many elements.
using Index = std::vector<Ref>;
using Sizes = std::vector<std::int64_t>;
Ref flat(const Index& at, const Sizes& shape) {
  Ref out = idx(0);
  for (std::size_t i = 0; i < shape.size(); ++i) out = out * shape[i] + at[i];
  return out;
}
Index reshaped(const Index& at, const Sizes& from, const Sizes& to) {
  Index out(to.size());
  std::int64_t stride = 1;
  for (std::size_t i = to.size(); i-- > 0; stride *= to[i]) out[i] = flat(at, from) / stride % to[i];
  return out;
}

TEST_F(DivMod, ChainsOfReshapesEndWhereTheyBegan) {
  Sizes a = {4, 6, 5}, b = {8, 15}, c = {2, 3, 4, 5}, d = {120};
  Index at = {r(0, 4), r(1, 6), r(2, 5)};
  EXPECT_EQ(simplified(flat(reshaped(at, a, b), b)), simplified(flat(at, a)));
  EXPECT_EQ(simplified(flat(reshaped(reshaped(reshaped(at, a, b), b, c), c, d), d)), simplified(flat(at, a)));
  Index back = reshaped(reshaped(reshaped(at, a, c), c, b), b, a);
  EXPECT_EQ(simplified(back[0]), "r0");
  EXPECT_EQ(simplified(back[1]), "r1");
  EXPECT_EQ(simplified(back[2]), "r2");
  // Axes that do not mix need no division.
  Index split = reshaped(at, a, {2, 2, 6, 5});
  EXPECT_EQ(simplified(split[0]), "(r0/2)");
  EXPECT_EQ(simplified(split[1]), "(r0%2)");
  EXPECT_EQ(simplified(split[3]), "r2");
}

TEST_F(DivMod, AFusedLoopReadsAsManyAxes) {
  // One loop over (4, 6, 5), of an input that was permuted.
  Ref i = r(0, 120);
  Index at = {i / 30, i / 5 % 6, i % 5};
  EXPECT_EQ(simplified(flat(at, {4, 6, 5})), "r0");
  EXPECT_EQ(simplified(flat({at[1], at[2]}, {6, 5})), "(r0%30)");
  EXPECT_EQ(simplified(flat({at[0], at[1]}, {4, 6})), "(r0/5)");
  EXPECT_EQ(simplified(flat({at[0], at[1], at[2]}, {4, 6, 5}) / 30), "(r0/30)");
}

TEST_F(DivMod, WindowsOfAConvolutionAreSums) {
  // Windows by repeating, cutting, reshaping: k windows of a row of n, which become k rows of n + step.
  Ref k = r(0, 3), o = r(1, 26);
  EXPECT_EQ(simplified((k * 29 + o) % 28), "(r0+r1)");
  Ref o2 = r(1, 13), stride2 = k * 29 + o2 * 2;
  EXPECT_EQ(simplified(stride2 % 28), "(r0+(r1*2))");
  Ref k5 = r(0, 5), dilated = k5 * 30 + r(1, 20);
  EXPECT_EQ(simplified(dilated % 28), "((r0*2)+r1)");
  // Rows and columns at once: (ky, y, kx, x) of an image of 28 x 28.
  Ref ky = r(0, 3), y = r(1, 26), kx = r(2, 3), x = r(3, 26);
  Ref row = (ky * 29 + y) % 28, column = (kx * 29 + x) % 28;
  EXPECT_EQ(simplified((row * 28 + column) / 28), "(r0+r1)");
  EXPECT_EQ(simplified((row * 28 + column) % 28), "(r2+r3)");
}

TEST_F(DivMod, AColumnMatrixOfPatchesReadsItsWeightsInOrder) {
  Ref g = r(0, 75), oc = r(1, 32);
  Index at = {oc, g / 25, g / 5 % 5, g % 5};
  EXPECT_EQ(simplified(flat(at, {32, 3, 5, 5})), "(r0+(r1*75))");
}

TEST_F(DivMod, PoolsByReshapeSplitEvenly) {
  // (28) as (14, 2): the window's index is the inner axis.
  Ref o = r(0, 14), k = r(1, 2), at = o * 2 + k;
  EXPECT_EQ(simplified(at / 2), "r0");
  EXPECT_EQ(simplified(at % 2), "r1");
  // Each element twice, by a repeated axis.
  Ref i = r(2, 56);
  EXPECT_EQ(simplified((i / 2 * 2 + i % 2) / 2 % 28), "(r2/2)");
  EXPECT_EQ(simplified((i / 2) / 7), "(r2/14)");
}

TEST_F(DivMod, SymbolicSizesDivideTheirOwnMultiples) {
  Ref n = var("n", 1, 100), i = range(0, RangeKind::Loop, n), j = r(1, 8), k = range(2, RangeKind::Loop, n);
  EXPECT_EQ(simplified((j * n + i) / n), "r1");
  EXPECT_EQ(simplified((j * n + i) % n), "r0");
  EXPECT_EQ(simplified((i * 8 + j) / (n * 8)), "0");
  EXPECT_EQ(simplified((i * 8 + j) % (n * 8)), "((r0*8)+r1)");
  EXPECT_EQ(simplified(((j * n + i) * n + k) / (n * n)), "r1");
  EXPECT_EQ(simplified(((j * n + i) * n + k) % (n * n)), simplified(i * n + k));
  EXPECT_EQ(simplified(((j * n + i) * n + k) / n % n), "r0");
  EXPECT_EQ(simplified((n * 4) / 4), "n");
  EXPECT_EQ(simplified(i < n), "true");
  EXPECT_EQ(simplified(i * 8 + j < n * 8), "true");
  EXPECT_EQ(simplified(n < i + 1), "false");
  EXPECT_EQ(simplified(n * (n + 1) - n * n), "n");
}

TEST_F(DivMod, DivisorsMayBeNegativeOrZero) {
  Ref x = r(0, 24);
  EXPECT_EQ(simplified(x / idx(0)), "0");
  EXPECT_EQ(simplified(x % idx(0)), "0");
  EXPECT_EQ(simplified((x * 4) / idx(-4)), "(r0*-1)");
  EXPECT_EQ(simplified((x * 4) % idx(-4)), "0");
  EXPECT_EQ(simplified(x / idx(-1)), "(r0*-1)");
}

TEST_F(DivMod, DataIsDividedOnlyWhereItCannotWrap) {
  Ref small = var("s", 0, 7, i32), any = param(0, i32, shape_node(Dims{}));
  EXPECT_EQ(simplified((small * 4) / int_const(i32, 4)), "s");
  EXPECT_EQ(simplified((any * 4) / int_const(i32, 4)), "((p0*4)/4)");
  EXPECT_EQ(simplified((any / int_const(i32, 4)) / int_const(i32, 3)), "(p0/12)");
  EXPECT_EQ(simplified((any % int_const(i32, 12)) % int_const(i32, 4)), "(p0%4)");
  EXPECT_EQ(simplified(any / int_const(i32, 4) * 4 + any % int_const(i32, 4)), "p0");
  EXPECT_EQ(simplified(alu(Op::CDiv, {small, int_const(i32, 2)})), "(s/2)");
  EXPECT_EQ(simplified(alu(Op::CDiv, {any, int_const(i32, 2)})), "CDiv(p0, 2)");
}

}  // namespace
}  // namespace pg
