// Checks of rules by trying them: every rule alone on random instances of its left side, and whole sets on
// random expressions. Used by tests. Values come from eval_scalar, node by node, so a wrong rule has nothing
// to hide behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "rewrite/rewrite.h"

namespace pg {

/// What leaves stand for.
using Values = absl::flat_hash_map<Node*, Scalar>;

/// The value of a scalar expression of exact elementwise ops over constants and the given leaves; null where
/// something else occurs in it.
std::optional<Scalar> evaluate(Ref root, const Values& leaves);

/// The same value, bit for bit; NaNs are alike.
bool same_value(DType t, Scalar a, Scalar b);

/// Short text of an expression, for reports and expectations: ((r0*4)+r1), (a<3), Where(p, a, b).
std::string expression_text(Ref root);

struct FuzzOptions {
  std::uint64_t seed = 1;
  /// Instances that must have fired, per rule; graphs, per call of fuzz_graphs.
  int rounds = 200;
  /// How deep random expressions are.
  int depth = 5;
  /// What rules with a context are given.
  void* ctx = nullptr;
};

struct FuzzReport {
  /// A wrong rule by file and line, an instance, and both values.
  std::vector<std::string> faults;
  /// Rules no instance of which applied: functions that need a context, or conditions that never hold.
  std::vector<const Rule*> unfired;
  std::uint64_t fired = 0, points = 0;
};

/// Tries each rule alone, in every dtype of its domain: constants from sets of interesting ones, captures
/// with honest bounds, values at their ends and at random. Rules that look at more than elementwise ops are
/// left out.
FuzzReport fuzz_rules(const RuleSet& rules, const FuzzOptions& options = {});

/// What random expressions are made of.
enum class FuzzKind : std::uint8_t {
  Indices,   // weak integers over ranges and variables, and bools of them
  Reshapes,  // indices that went through chains of reshapes, permutations, flips, strides and pads
  Data,      // every dtype, over parameters
};

/// Rewrites random expressions: the value must stay at many points, bounds must be honest, a second rewrite
/// must change nothing.
FuzzReport fuzz_graphs(const RuleSet& rules, FuzzKind kind, const FuzzOptions& options = {});

/// Random expressions of a kind, for benchmarks and other checks. Within a GraphScope.
std::vector<Ref> random_expressions(FuzzKind kind, const FuzzOptions& options);

}  // namespace pg
