// Rule sets and the driver: a pass is one call of rewrite with a name, a graph and a set of rules. Sets are
// built once from lists (with + to join them) and never change; the driver uses an explicit stack, so depth
// is no limit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rewrite/pattern.h"

namespace pg {

/// An ordered set of rules, indexed by the op of the root and of its first source.
class RuleSet {
 public:
  RuleSet() = default;
  template <std::size_t N>
  RuleSet(const Rule (&rules)[N]) : RuleSet(std::span<const Rule>(rules)) {}
  explicit RuleSet(std::span<const Rule> rules);
  friend RuleSet operator+(const RuleSet& a, const RuleSet& b);

  /// The first rule that applies to the node, applied; null if none does.
  Ref apply(Ref node, void* ctx = nullptr) const;
  std::span<const Rule* const> rules() const { return rules_; }

 private:
  struct Candidate;
  struct Index;
  explicit RuleSet(std::vector<const Rule*> rules);
  std::vector<const Rule*> rules_;
  std::shared_ptr<const Index> index_;
};

struct RewriteOptions {
  /// Names the pass in traces, statistics and DEBUG output. An optional pass can be skipped by this name
  /// (DEBUG_SKIP).
  const char* name = "";
  void* ctx = nullptr;
  /// Rules see a node before its sources were rewritten, and again nothing of what they made; else after,
  /// until no rule applies.
  bool top_down = false;
  bool optional = false;
  /// Rules that may fire before the pass is given up as endless.
  std::uint64_t budget = 20'000'000;
};

/// Rewrites everything reachable from root. Throws InternalError, naming rules, if they do not come to an
/// end.
Ref rewrite(Ref root, const RuleSet& rules, const RewriteOptions& options);

// --- looking on
// ----------------------------------------------------------------------------------------------------

/// What one pass did, for the trace and the statistics.
struct PassRecord {
  const char* name;
  Ref before, after;
  std::uint64_t attempts;  // candidate rules tried
  std::uint64_t nodes;     // nodes visited
  double seconds;
  std::vector<std::pair<const Rule*, std::uint64_t>> fired;
};
/// Called after each pass of this thread, within the graph's scope; null to stop. Returns the former
/// observer.
using PassObserver = std::function<void(const PassRecord&)>;
PassObserver observe_passes(PassObserver observer);

/// Sums over all passes of this process.
struct RewriteStats {
  std::uint64_t passes = 0, nodes = 0, attempts = 0, fired = 0;
};
RewriteStats rewrite_stats();

}  // namespace pg
