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
  std::int16_t second;     // op the second source must have, or kNoOp
  std::uint8_t domain;     // bit of its Domain
  std::uint16_t captures;  // bits of the slots it binds
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
  std::vector<const Rule*> rules;
  std::deque<Pat> patterns;
  // Candidates by op of the root and of its first source (the last column: it has none), in the order of the
  // rules.
  static constexpr std::size_t kColumns = kOpCount + 1;
  std::array<std::uint32_t, kOpCount * kColumns + 1> begin{};
  std::vector<Candidate> candidates;
  std::array<bool, kOpCount> sees{};

  explicit Index(std::vector<const Rule*> list) : rules(std::move(list)) {
    std::vector<std::vector<Candidate>> lists(kOpCount * kColumns);
    for (const Rule* rule : rules) {
      std::vector<Pat> variants;
      orders(rule->left, 0, variants);
      for (const Pat& left : variants) {
        const PatNode& root = left.nodes[0];
        sees[static_cast<std::size_t>(root.op)] = true;
        Candidate c{nullptr, rule, static_cast<std::int16_t>(child_op(left, 1)), bit(rule->domain), 0};
        if (root.kind != PatNode::AnyArity) {
          patterns.push_back(left);
          c.left = patterns.back().nodes;
        }
        for (int i = 0; i < left.n; ++i)
          if (left.nodes[i].kind <= PatNode::Constant)
            c.captures |= static_cast<std::uint16_t>(1 << left.nodes[i].slot);
        int first = child_op(left, 0);
        for (int f = 0; f <= kOpCount; ++f)
          if (first == kNoOp || f == first)
            lists[static_cast<std::size_t>(root.op) * kColumns + static_cast<std::size_t>(f)].push_back(c);
      }
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      candidates.insert(candidates.end(), lists[i].begin(), lists[i].end());
      begin[i + 1] = static_cast<std::uint32_t>(candidates.size());
    }
  }
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
  std::size_t first = node.nsrc() ? static_cast<std::size_t>(node.src(0).op()) : kOpCount;
  std::size_t list = static_cast<std::size_t>(node.op()) * Index::kColumns + first;
  const Candidate* c = index_->candidates.data() + index_->begin[list];
  const Candidate* end = index_->candidates.data() + index_->begin[list + 1];
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
