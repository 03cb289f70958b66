// The search finds what its trials say is best, within its limits; with BEAM a program gives what it gives
// without.
#include "codegen/search.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

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

std::vector<double> pretended(const UOp& kernel, std::span<const std::vector<Opt>> lists) {
  std::vector<double> out;
  for (const auto& options : lists) out.push_back(pretended(kernel, options));
  return out;
}

TEST(Search, EndsWhereNoStepIsBetter) {
  UOp kernel = product();
  int trials = 0;
  auto trial = [&](std::span<const std::vector<Opt>> lists) {
    trials += static_cast<int>(lists.size());
    return pretended(kernel, lists);
  };
  SearchResult r = search(kernel, Target::host_cpu(), {.width = 3, .batch = 5}, trial);
  EXPECT_EQ(r.seconds, 1);
  EXPECT_GE(r.first, r.seconds);
  EXPECT_EQ(r.trials, trials);
  EXPECT_EQ(pretended(kernel, r.options), 1);
}

TEST(Search, KeepsTheFirstWhenItsTimeIsUp) {
  UOp kernel = product();
  SearchResult r = search(kernel, Target::host_cpu(), {.seconds = 0},
                          [&](std::span<const std::vector<Opt>> lists) { return pretended(kernel, lists); });
  EXPECT_EQ(r.trials, 1);
  EXPECT_EQ(r.seconds, r.first);
}

// What an interrupted search found is where the next one begins.
TEST(Search, GoesOnWhereItWasInterrupted) {
  UOp kernel = product();
  auto trial = [&](std::span<const std::vector<Opt>> lists) { return pretended(kernel, lists); };
  SearchResult whole = search(kernel, Target::host_cpu(), {.width = 2}, trial);
  EXPECT_TRUE(whole.finished);
  SearchLimits none{.width = 2, .until = std::chrono::steady_clock::now()};
  SearchResult cut = search(kernel, Target::host_cpu(), none, trial);
  EXPECT_FALSE(cut.finished);
  EXPECT_EQ(cut.trials, 1);
  EXPECT_EQ(cut.seconds, cut.first);
  SearchResult on = search(kernel, Target::host_cpu(), none, trial, &whole.options);
  EXPECT_EQ(on.trials, 2);
  EXPECT_EQ(on.seconds, whole.seconds) << "no worse than what was found before";
  EXPECT_EQ(on.first, cut.first);
}

// Without any time kernels are those of the cost model, right all the same, and not kept as found: a search
// with time finds better ones afterwards, and those are.
TEST(Search, WithNoTimeLeavesTheRestForTheNextOne) {
  std::string file = testing::TempDir() + "/search_test." + std::to_string(::getpid()) + ".db";
  std::remove(file.c_str());
  {
    ScopedFlag where("CACHEDB", file), on("CACHE", 2), width("BEAM", 2);
    Tensor::manual_seed(5);
    Tensor a = Tensor::randint({256, 256}, {.high = 5}).cast(f32).realize(),
           b = Tensor::randint({256, 256}, {.high = 5}).cast(f32).realize();
    auto give = [&](const char* seconds) {
      ScopedFlag limit("BEAM_SECONDS", seconds);
      cache::trim();
      auto before = engine::counters().compiled;
      std::vector<float> values = (a.matmul(b) - 3).to_vector<float>();
      return std::pair(values, engine::counters().compiled - before);
    };
    auto [hasty, few] = give("0");
    auto [patient, many] = give("60");
    auto [again, none] = give("60");
    EXPECT_EQ(hasty, patient);
    EXPECT_EQ(again, patient);
    EXPECT_LE(few, 2u) << "the cost model's choice, tried once and compiled once";
    EXPECT_GT(many, few) << "the search goes on";
    EXPECT_EQ(none, 0u) << "and is over";
  }
  cache::trim();
  std::remove(file.c_str());
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
