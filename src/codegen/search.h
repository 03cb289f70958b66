// The search for better options (BEAM): lists one step from the best so far are tried out and timed. What a
// trial costs is the caller's; nothing here compiles or runs.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "codegen/options.h"

namespace pg::codegen {

struct SearchLimits {
  std::size_t width = 1;  // lists kept from one round to the next
  double seconds = 2;     // no further trial after that,
  double runs = 500;      // nor after this many times what the kernel takes
  double worth = 0.01;    // a round that gains less than this share is the last
  std::size_t batch = 1;  // lists tried out at a time
  /// A search that is still going on then is interrupted.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};
struct SearchResult {
  std::vector<Opt> options;
  double seconds = 0, first = 0;  // of the kernel with these options, and with those it began from
  int trials = 0;
  bool finished = true;  // not interrupted
};

/// Seconds that a kernel takes with each of these lists of options; infinity where they do not fit. Called
/// outside GraphScopes.
using Trial = std::function<std::vector<double>(std::span<const std::vector<Opt>>)>;

/// From the cost model's choice on, and from the best of an interrupted search if `so_far` is one. `kernel`
/// is what choose_options() saw. Outside GraphScopes.
SearchResult search(const UOp& kernel, const Target& target, const SearchLimits& limits, const Trial& trial,
                    const std::vector<Opt>* so_far = nullptr);

/// Lists that differ by one step: an amount, an option more or less, another loop for the lanes. Some may not
/// fit.
std::vector<std::vector<Opt>> one_step_from(const std::vector<Opt>& options, Ref kernel,
                                            const Target& target);

}  // namespace pg::codegen
