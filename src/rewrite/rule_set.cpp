// Dispatch: which rules may apply to a node, by its op and those of its first two sources.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "rewrite/match.h"
#include "rewrite/rewrite.h"
#include "rewrite/running.h"

namespace pg {
namespace {

constexpr int kNoOp = -1;

// A rule in one of the orders its commutative operands may stand in.
struct Candidate {
  const PatNode* left;  // null where any node of the op matches
  const Rule* rule;
  std::int16_t second;  // op the second source must have, or kNoOp
  std::uint8_t domain;  // bit of its Domain
};

constexpr std::uint8_t bit(Domain domain) { return static_cast<std::uint8_t>(1 << static_cast<int>(domain)); }

// Bits of the domains that an op on operands of this dtype is in.
constexpr auto kDomains = [] {
  std::array<std::uint8_t, kDTypeCount> out{};
  for (int i = 0; i < kDTypeCount; ++i) {
    auto t = static_cast<DType>(i);
    out[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(
        bit(Domain::Any) | (is_int(t) ? bit(Domain::Ints) | bit(Domain::IntsAndBools) : 0) |
        (is_float(t) ? bit(Domain::Floats) : 0) |
        (t == DType::Bool ? bit(Domain::Bools) | bit(Domain::IntsAndBools) : 0) |
        (t == DType::WeakInt ? bit(Domain::Indices) : 0));
  }
  return out;
}();

// Every order of the operands of commutative ops in a pattern, the pattern itself first.
void orders(const Pat& pattern, int at, std::vector<Pat>& out) {
  for (int i = at; i < pattern.n; ++i) {
    const PatNode& p = pattern.nodes[i];
    if (p.kind != PatNode::Node || !(info(p.op).flags & kCommutative)) continue;
    int mid = i + 1, end;
    Matcher::skip(pattern, mid);
    end = mid;
    Matcher::skip(pattern, end);
    Pat swapped = pattern;
    int o = i + 1;
    for (int k = mid; k < end; ++k) swapped.nodes[o++] = pattern.nodes[k];
    for (int k = i + 1; k < mid; ++k) swapped.nodes[o++] = pattern.nodes[k];
    orders(pattern, i + 1, out);
    // Constants stand last in made nodes, so the other order cannot occur where the second operand is one.
    const PatNode& second = pattern.nodes[mid];
    if (second.kind != PatNode::Constant && second.kind != PatNode::Literal) orders(swapped, i + 1, out);
    return;
  }
  out.push_back(pattern);
}

int child_op(const Pat& pattern, int which) {
  const PatNode& root = pattern.nodes[0];
  if (root.kind != PatNode::Node || which >= root.nsrc) return kNoOp;
  int at = 1;
  for (int k = 0; k < which; ++k) Matcher::skip(pattern, at);
  const PatNode& p = pattern.nodes[at];
  return p.kind == PatNode::Node || p.kind == PatNode::AnyArity ? static_cast<int>(p.op) : kNoOp;
}

}  // namespace

struct RuleSet::Index {
  // Candidates for one op of the root, by the op of its first source (the last column: it has none), in the
  // order of the rules.
  static constexpr std::size_t kColumns = kOpCount + 1;
  struct Root {
    std::array<std::uint32_t, kColumns + 1> begin{};
    std::vector<Candidate> candidates;
  };

  std::vector<const Rule*> rules;
  std::array<bool, kOpCount> sees{};

  explicit Index(std::vector<const Rule*> list) : rules(std::move(list)) {
    for (const Rule* rule : rules) sees[static_cast<std::size_t>(rule->left.nodes[0].op)] = true;
  }

  // Made when the op is first met: a short program meets few. Under the graph's lock, like all rewriting.
  const Root& root(Op op) const {
    auto& root = roots_[static_cast<std::size_t>(op)];
    if (!root) root = make(op);
    return *root;
  }

 private:
  std::unique_ptr<const Root> make(Op op) const {
    std::vector<std::pair<Candidate, int>> all;  // with the op of the first source, or kNoOp
    for (const Rule* rule : rules) {
      if (rule->left.nodes[0].op != op) continue;
      std::vector<Pat> variants;
      orders(rule->left, 0, variants);
      for (std::size_t i = 0; i < variants.size(); ++i) {
        const Pat& left = variants[i];
        Candidate c{nullptr, rule, static_cast<std::int16_t>(child_op(left, 1)), bit(rule->domain)};
        if (left.nodes[0].kind != PatNode::AnyArity)
          c.left = i == 0 ? rule->left.nodes : patterns_.emplace_back(left).nodes;
        all.emplace_back(c, child_op(left, 0));
      }
    }
    auto out = std::make_unique<Root>();
    for (int f = 0; f <= kOpCount; ++f) {
      for (auto& [candidate, first] : all)
        if (first == kNoOp || first == f) out->candidates.push_back(candidate);
      out->begin[static_cast<std::size_t>(f) + 1] = static_cast<std::uint32_t>(out->candidates.size());
    }
    return out;
  }

  mutable std::array<std::unique_ptr<const Root>, kOpCount> roots_;
  mutable std::deque<Pat> patterns_;
};

RuleSet::RuleSet(std::span<const Rule> rules) {
  std::vector<const Rule*> list;
  for (const Rule& r : rules) list.push_back(&r);
  index_ = std::make_shared<Index>(std::move(list));
}

RuleSet operator+(const RuleSet& a, const RuleSet& b) {
  if (!a.index_) return b;
  if (!b.index_) return a;
  // Joined once per pair, so that a pass may join its sets where it runs.
  static auto& mutex = *new std::mutex;
  static auto& joined =
      *new std::map<std::pair<std::shared_ptr<const RuleSet::Index>, std::shared_ptr<const RuleSet::Index>>,
                    std::shared_ptr<const RuleSet::Index>>;
  std::lock_guard lock(mutex);
  auto& index = joined[{a.index_, b.index_}];
  if (!index) {
    std::vector<const Rule*> all(a.index_->rules);
    all.insert(all.end(), b.index_->rules.begin(), b.index_->rules.end());
    index = std::make_shared<RuleSet::Index>(std::move(all));
  }
  RuleSet out;
  out.index_ = index;
  return out;
}

RuleSet RuleSet::remembering() const {
  RuleSet out = *this;
  out.memory_ = std::make_shared<Memory>();
  return out;
}

std::span<const Rule* const> RuleSet::rules() const {
  return index_ ? std::span<const Rule* const>(index_->rules) : std::span<const Rule* const>();
}

std::span<const bool, kOpCount> RuleSet::sees() const {
  static constexpr std::array<bool, kOpCount> kNothing{};
  return index_ ? index_->sees : kNothing;
}

Ref RuleSet::apply(Ref node, void* ctx) const {
  Running unwatched;
  return apply(node, ctx, unwatched);
}

Ref RuleSet::apply(Ref node, void* ctx, Running& running) const {
  if (!index_) return nullptr;
  const Index::Root& root = index_->root(node.op());
  std::size_t first = node.nsrc() ? static_cast<std::size_t>(node.src(0).op()) : kOpCount;
  const Candidate* c = root.candidates.data() + root.begin[first];
  const Candidate* end = root.candidates.data() + root.begin[first + 1];
  if (c == end) return nullptr;
  int second = node.nsrc() > 1 ? static_cast<int>(node.src(1).op()) : kNoOp;
  std::uint8_t domains =
      kDomains[static_cast<std::size_t>(node.has(kComparison) ? node.src(0).dtype() : node.dtype())];
  if (node.lo() == node.hi() && !is_float(node.dtype()) && node.dtype() != u64)
    domains |= bit(Domain::Decided);
  Match m(ctx);
  m.root = node;
  Matcher matcher(m);
  for (; c != end; ++c) {
    if (!(c->domain & domains) || (c->second != kNoOp && c->second != second)) continue;
    ++running.attempts;
    m.clear();
    if (c->left && !matcher.match(c->left, node)) continue;
    const Rule& rule = *c->rule;
    if (!rule.condition.empty() && !matcher.holds(rule.condition)) continue;
    Ref result = rule.function ? rule.function(m) : matcher.build(rule.right, node);
    if (!result || same(result, node)) continue;
    ++running.fired;
    if (running.by_rule) ++(*running.by_rule)[&rule];
    return result;
  }
  return nullptr;
}

}  // namespace pg
