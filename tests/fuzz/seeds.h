// What the fuzzers share: random choices, and the search through seeds. FUZZ_SECONDS lengthens a search,
// FUZZ_SEED moves its beginning, FUZZ_FAILURES lets it go on until so many failures are found.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace pg::fuzz {

/// A stream of random choices; the same for the same seed.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  std::int64_t below(std::int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(n));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// The seeds of one search: at most `programs` unless more time was asked for, within `seconds` unless it
/// was. A crash names its seed before it takes the process with it.
class Seeds {
 public:
  Seeds(double seconds, std::uint64_t programs)
      : seed_(static_cast<std::uint64_t>(number_of("FUZZ_SEED", 1))),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(number_of("FUZZ_SECONDS", seconds)))),
        failures_(static_cast<std::uint64_t>(number_of("FUZZ_FAILURES", 1))),
        programs_(std::getenv("FUZZ_SECONDS") ? UINT64_MAX : programs) {
    for (int signal : {SIGSEGV, SIGFPE, SIGABRT}) std::signal(signal, name_seed);
  }
  bool more() const { return Clock::now() < end_ && done_ < programs_ && failures_ > 0; }
  std::uint64_t next() { return ++done_, running = seed_++; }
  void failed() { --failures_; }
  /// How many were drawn.
  std::uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double number_of(const char* variable, double fallback) {
    const char* text = std::getenv(variable);
    return text ? std::strtod(text, nullptr) : fallback;
  }
  static void name_seed(int signal) {
    std::fprintf(stderr, "seed %llu raised signal %d\n", static_cast<unsigned long long>(running), signal);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  static inline std::uint64_t running = 0;

  std::uint64_t seed_;
  Clock::time_point end_;
  std::uint64_t failures_, programs_, done_ = 0;
};

}  // namespace pg::fuzz
