// Laziness is invisible: random programs read what an eager model of them reads. FUZZ_SECONDS and FUZZ_SEED
// lengthen the search and move its beginning.
#include "fuzz/storage_fuzz.h"

#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

namespace pg::fuzz {
namespace {

double number_of(const char* variable, double fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtod(text, nullptr) : fallback;
}

void fuzz(Reader read) {
  auto seconds = std::chrono::duration<double>(number_of("FUZZ_SECONDS", 4));
  auto first = static_cast<std::uint64_t>(number_of("FUZZ_SEED", 1));
  auto end = std::chrono::steady_clock::now() + seconds;
  std::uint64_t seed = first;
  for (; seed < first + 400 || (std::getenv("FUZZ_SECONDS") && std::chrono::steady_clock::now() < end);
       ++seed) {
    Program program = random_program(seed);
    if (run(program, read).wrong.empty()) {
      if (std::chrono::steady_clock::now() > end) break;
      continue;
    }
    Outcome least = run(shrink(program, read), read);
    FAIL() << "seed " << seed << ": " << least.wrong << "\n" << least.source;
  }
  testing::Test::RecordProperty("programs", static_cast<int>(seed - first));
}

TEST(StorageFuzz, ComputedAnswersAreEager) { fuzz(read_computed); }

}  // namespace
}  // namespace pg::fuzz
