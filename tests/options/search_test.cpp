// The search finds what its trials say is best, within its limits; with BEAM a program gives what it gives
// without.
#include "codegen/search.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "codegen/options.h"
#include "engine/engine.h"
#include "ir/parse.h"
#include <pangrad/pangrad.h>

namespace pg::codegen {
namespace {

constexpr const char* kProduct = R"(
  p0 = Param.f32[0]((4096,))
  p1 = Param.f32[1]((4096,))
  p2 = Param.f32[2]((4096,))
  r0 = Range[0, loop](64)
  r1 = Range[1, loop](64)
  r2 = Range[2, reduce](64)
  v = Load(Index(p1, r0*64 + r2))*Load(Index(p2, r2*64 + r1))
  Sink(End(Store(Index(p0, r0*64 + r1), Reduce[Add](v, r2)), r0, r1)))";

UOp product() {
  GraphScope scope;
  return parse(kProduct);
}

// Pretends that a kernel is the faster the closer its copies are to 20.
double pretended(const UOp& kernel, const std::vector<Opt>& options) {
  GraphScope scope;
  try {
    Ref k = kernel;
    for (const Opt& o : options) k = apply(k, o, Target::host_cpu());
  } catch (const ValueError&) {
    return std::numeric_limits<double>::infinity();
  }
  double copies = 1;
  for (const Opt& o : options)
    if (o.kind == OptKind::Upcast) copies *= static_cast<double>(o.amount);
  return 1 + std::abs(copies - 20);
}

TEST(Search, EndsWhereNoStepIsBetter) {
  UOp kernel = product();
  int trials = 0;
  SearchResult r = search(kernel, Target::host_cpu(), {.width = 3}, [&](const std::vector<Opt>& options) {
    ++trials;
    return pretended(kernel, options);
  });
  EXPECT_EQ(r.seconds, 1);
  EXPECT_GE(r.first, r.seconds);
  EXPECT_EQ(r.trials, trials);
  EXPECT_EQ(pretended(kernel, r.options), 1);
}

TEST(Search, KeepsTheFirstWhenItsTimeIsUp) {
  UOp kernel = product();
  SearchResult r = search(kernel, Target::host_cpu(), {.seconds = 0},
                          [&](const std::vector<Opt>& options) { return pretended(kernel, options); });
  EXPECT_EQ(r.trials, 1);
  EXPECT_EQ(r.seconds, r.first);
}

TEST(Search, ABetterListGivesTheSameValues) {
  Tensor::manual_seed(3);
  Tensor a = Tensor::randint({96, 80}, {.low = -4, .high = 5}).cast(f32).realize(),
         b = Tensor::randint({80, 112}, {.low = -4, .high = 5}).cast(f32).realize();
  auto give = [&] { return (a.matmul(b) + 1).relu().sum(0).to_vector<float>(); };
  std::vector<float> plain = give();
  ScopedFlag width("BEAM", 2), memory_only("CACHE", 1);
  cache::trim();
  EXPECT_EQ(give(), plain);
  cache::trim();
}

}  // namespace
}  // namespace pg::codegen
