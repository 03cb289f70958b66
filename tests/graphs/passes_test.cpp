// Passes by name: an optional one can be skipped, and what is computed stays the same.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "rewrite/rewrite.h"
#include <pangrad/pangrad.h>

namespace pg {
namespace {

// A few programs that every pass has work in; their values, and the names of the passes that ran.
std::vector<double> values(std::set<std::string>& passes) {
  cache::trim();
  PassObserver former = observe_passes([&](const PassRecord& record) { passes.insert(record.name); });
  std::vector<double> out;
  auto add = [&](const Tensor& t) {
    for (double v : t.cast(f64).to_vector<double>()) out.push_back(v);
  };
  Tensor a = Tensor::arange(60).reshape({3, 4, 5}).realize(),
         b = (Tensor::arange(35).reshape({5, 7}) % 6).realize();
  add(a.matmul(b));
  add(a.permute({2, 0, 1}).reshape({5, 12}).flip(0).pad({{1, 0}, {0, 2}}).shrink({{1, 5}, {2, 13}}));
  add((a.cast(f32) / 7).exp().sum(1));
  add(a.floor_div(4) * 3 - a.mod(8));
  add(a[Tensor::of({2, 0})].max(2));
  add(a.cast(f32).reshape({1, 3, 4, 5}).conv2d(Tensor::ones({2, 3, 2, 2})));
  std::vector<Tensor> parts;
  for (int i = 0; i < 40; ++i) parts.push_back(a.shrink({{i % 3, i % 3 + 1}, {0, 2}, {0, 3}}));
  add(cat(parts));
  observe_passes(std::move(former));
  return out;
}

TEST(Passes, OptionalOnesCanBeSkippedByName) {
  std::set<std::string> all;
  std::vector<double> expected = values(all);
  for (const char* pass : {"simplify movement", "simplify kernel", "simplify expanded", "late"}) {
    SCOPED_TRACE(pass);
    EXPECT_TRUE(all.contains(pass));
    ScopedFlag skip("DEBUG_SKIP", pass);
    std::set<std::string> ran;
    EXPECT_EQ(values(ran), expected);
    EXPECT_FALSE(ran.contains(pass));
  }
  // What must run does, whatever is asked.
  ScopedFlag skip("DEBUG_SKIP", "decompose");
  std::set<std::string> ran;
  EXPECT_EQ(values(ran), expected);
  EXPECT_TRUE(ran.contains("decompose"));
}

TEST(Passes, AllOptionalOnesAtOnce) {
  std::set<std::string> all, ran;
  std::vector<double> expected = values(all);
  ScopedFlag skip("DEBUG_SKIP", "simplify movement,simplify kernel,simplify expanded,late");
  EXPECT_EQ(values(ran), expected);
  EXPECT_LT(ran.size(), all.size());
}

}  // namespace
}  // namespace pg
