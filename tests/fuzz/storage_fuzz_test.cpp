// Laziness is invisible: random programs read what an eager model of them reads. FUZZ_SECONDS lengthens the
// search, FUZZ_SEED moves its beginning, FUZZ_FAILURES lets it go on until so many different ones are found.
#include "fuzz/storage_fuzz.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

namespace pg::fuzz {
namespace {

double number_of(const char* variable, double fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtod(text, nullptr) : fallback;
}

// A crash names its program before it takes the process with it.
std::uint64_t running = 0;
void name_seed(int signal) {
  std::fprintf(stderr, "seed %llu raised signal %d\n", static_cast<unsigned long long>(running), signal);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// At least 400 programs unless time runs out; more where time was asked for.
void fuzz(Reads reads) {
  using Clock = std::chrono::steady_clock;
  for (int signal : {SIGSEGV, SIGFPE, SIGABRT}) std::signal(signal, name_seed);
  auto end = Clock::now() + std::chrono::duration<double>(number_of("FUZZ_SECONDS", 4));
  bool go_on = std::getenv("FUZZ_SECONDS");
  auto first = static_cast<std::uint64_t>(number_of("FUZZ_SEED", 1)), seed = first;
  auto most = static_cast<std::size_t>(number_of("FUZZ_FAILURES", 1));
  std::set<std::string> kinds;
  for (; Clock::now() < end && (go_on || seed < first + 400) && kinds.size() < most; ++seed) {
    running = seed;
    Program program = random_program(seed);
    Outcome first_time = run(program, reads);
    if (first_time.wrong.empty() || !kinds.insert(kind_of(first_time.wrong)).second) continue;
    Outcome least = run(shrink(program, reads), reads);
    // What fails once and not again is shown as it was.
    if (least.wrong.empty()) least = {"(not again) " + first_time.wrong, first_time.source};
    ADD_FAILURE() << "seed " << seed << ": " << least.wrong << "\n" << least.source;
  }
  testing::Test::RecordProperty("programs", static_cast<int>(seed - first));
}

TEST(StorageFuzz, GraphsAreEager) { fuzz(Reads::Evaluated); }
TEST(StorageFuzz, ComputedAnswersAreEager) { fuzz(Reads::Computed); }

}  // namespace
}  // namespace pg::fuzz
