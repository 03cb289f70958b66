// Laziness is invisible: random programs read what an eager model of them reads.
#include "fuzz/storage_fuzz.h"

#include <set>

#include <gtest/gtest.h>

#include "fuzz/seeds.h"

namespace pg::fuzz {
namespace {

// At least 400 programs unless time runs out; more where time was asked for.
void fuzz(Reads reads) {
  Seeds seeds(4, 400);
  std::set<std::string> kinds;
  while (seeds.more()) {
    std::uint64_t seed = seeds.next();
    Program program = random_program(seed);
    Outcome first_time = run(program, reads);
    if (first_time.wrong.empty() || !kinds.insert(kind_of(first_time.wrong)).second) continue;
    seeds.failed();
    Outcome least = run(shrink(program, reads), reads);
    // What fails once and not again is shown as it was.
    if (least.wrong.empty()) least = {"(not again) " + first_time.wrong, first_time.source};
    ADD_FAILURE() << "seed " << seed << ": " << least.wrong << "\n" << least.source;
  }
  testing::Test::RecordProperty("programs", static_cast<int>(seeds.done()));
}

TEST(StorageFuzz, GraphsAreEager) { fuzz(Reads::Evaluated); }
TEST(StorageFuzz, ComputedAnswersAreEager) { fuzz(Reads::Computed); }

}  // namespace
}  // namespace pg::fuzz
