#include "rewrite/rewrite.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "base/flags.h"
#include "rewrite/trace.h"

namespace pg {
namespace {

__extension__ typedef __int128 Wide;
constexpr Wide kWidest = ~(Wide{1} << 127);
Wide floor_mod(Wide a, Wide b) {
  if (b == 0) return 0;
  Wide r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

// Interprets patterns. Prefix order makes a pattern's end known only by walking it, so each step returns
// where it stopped.
class Matcher {
 public:
  Matcher(Match& m) : m_(m) {}

  bool match(const Pat& pattern, Ref node) {
    int at = 0;
    return step(pattern, at, node);
  }

  // Value of a condition, as a number, wide enough for products of bounds.
  Wide value(const Pat& pattern, int& at) const {
    const PatNode& p = pattern.nodes[at++];
    switch (p.kind) {
      case PatNode::Literal:
        return static_cast<std::int64_t>(p.value);
      case PatNode::Lo:
        return low(m_.slots_[p.slot]);
      case PatNode::Hi:
        return high(m_.slots_[p.slot]);
      case PatNode::Node: {
        Wide a = value(pattern, at), b = p.nsrc > 1 ? value(pattern, at) : 0;
        switch (p.op) {
          case Op::Neg:
            return -a;
          case Op::Add:
            return a + b;
          case Op::Sub:
            return a - b;
          case Op::Mul: {
            Wide r;
            if (__builtin_mul_overflow(a, b, &r)) r = (a < 0) == (b < 0) ? kWidest : -kWidest;
            return r;
          }
          case Op::FloorDiv:
            return b == 0 ? 0 : (a - floor_mod(a, b)) / b;
          case Op::FloorMod:
            return floor_mod(a, b);
          case Op::And:
            return a & b;
          case Op::Or:
            return a | b;
          case Op::CmpLt:
            return a < b;
          case Op::CmpEq:
            return a == b;
          case Op::CmpNe:
            return a != b;
          case Op::Max:
            return std::max(a, b);
          case Op::Min:
            return std::min(a, b);
          default:
            throw InternalError("[rule] " + std::string(info(p.op).name) + " in a condition");
        }
      }
      default: {
        Ref c = constant(m_.slots_[p.slot]);
        if (!c) return 0;
        return c.dtype() == u64 ? Wide{static_cast<std::uint64_t>(c.i())} : Wide{c.i()};
      }
    }
  }

  Ref build(const Pat& pattern, int& at, Ref like) const {
    const PatNode& p = pattern.nodes[at++];
    switch (p.kind) {
      case PatNode::Literal:
        return const_like(like, p.value);
      case PatNode::Node:
        break;
      default:
        return m_.slots_[p.slot];
    }
    // Literals take the dtype of a sibling, so siblings are built first: skip them, then come back.
    absl::InlinedVector<Ref, 3> srcs(p.nsrc);
    Ref sibling;
    int start = at;
    for (int k = 0; k < p.nsrc; ++k) {
      bool literal = pattern.nodes[at].kind == PatNode::Literal;
      bool condition = p.op == Op::Where && k == 0;
      if (literal) {
        ++at;
      } else {
        srcs[k] = build(pattern, at, like);
        if (!condition) sibling = srcs[k];
      }
    }
    if (!sibling) sibling = like;
    at = start;
    for (int k = 0; k < p.nsrc; ++k) {
      if (pattern.nodes[at].kind == PatNode::Literal)
        srcs[k] = const_like(sibling, pattern.nodes[at++].value);
      else
        skip(pattern, at);
    }
    return alu(p.op, srcs);
  }

  static void skip(const Pat& pattern, int& at) {
    int open = 1;
    while (open--) {
      const PatNode& p = pattern.nodes[at++];
      if (p.kind == PatNode::Node) open += p.nsrc;
    }
  }

 private:
  bool step(const Pat& pattern, int& at, Ref node) {
    const PatNode& p = pattern.nodes[at++];
    switch (p.kind) {
      case PatNode::Bool:
        if (node.dtype() != DType::Bool) return false;
        return capture(p.slot, node);
      case PatNode::Constant:
        if (!constant(node)) return false;
        return capture(p.slot, node);
      case PatNode::Any:
        return capture(p.slot, node);
      case PatNode::Literal: {
        Ref c = constant(node);
        return c && c.is_const(p.value);
      }
      case PatNode::AnyArity:
        return node.is(p.op);
      case PatNode::Node:
        if (!node.is(p.op) || node.nsrc() != p.nsrc) return false;
        for (int k = 0; k < p.nsrc; ++k)
          if (!step(pattern, at, node.src(k))) return false;
        return true;
      default:
        return false;
    }
  }

  bool capture(int at, Ref node) {
    Ref& slot = m_.slots_[at];
    if (slot) return same(slot, node);
    slot = node;
    return true;
  }

  // Bounds of u64 that did not fit the node are those of the dtype.
  static bool unknown(Ref x) { return x.dtype() == u64 && x.lo() < 0; }
  static Wide low(Ref x) { return unknown(x) ? 0 : x.lo(); }
  static Wide high(Ref x) { return unknown(x) ? Wide{~std::uint64_t{0}} : x.hi(); }

  Match& m_;
};

// A rule in one of the orders its commutative operands may stand in.
struct RuleSet::Candidate {
  Pat left;
  const Rule* rule;
  std::size_t place;         // in the set
  std::int16_t second = -1;  // op the second source must have
};

struct RuleSet::Index {
  // Candidates by op of the root and op of the first source (last column: no source).
  std::array<std::vector<Candidate>, static_cast<std::size_t>(kOpCount) * (kOpCount + 1)> lists;
};

namespace {

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
  if (root.kind != PatNode::Node || which >= root.nsrc) return -1;
  int at = 1;
  for (int k = 0; k < which; ++k) Matcher::skip(pattern, at);
  const PatNode& p = pattern.nodes[at];
  return p.kind == PatNode::Node || p.kind == PatNode::AnyArity ? static_cast<int>(p.op) : -1;
}

bool in_domain(Domain domain, Ref node) {
  if (domain == Domain::Any) return true;
  DType t = node.has(kComparison) ? node.src(0).dtype() : node.dtype();
  switch (domain) {
    case Domain::Ints:
      return is_int(t);
    case Domain::Floats:
      return is_float(t);
    case Domain::Bools:
      return t == DType::Bool;
    case Domain::Indices:
      return t == DType::WeakInt;
    default:
      return is_int(t) || t == DType::Bool;
  }
}

struct Totals {
  std::atomic<std::uint64_t> passes{0}, nodes{0}, attempts{0}, fired{0};
};
Totals g_totals;
thread_local PassObserver t_observer;

// Counts of the pass being run by this thread.
struct Running {
  std::uint64_t attempts = 0, fired = 0;
  absl::flat_hash_map<const Rule*, std::uint64_t>* by_rule = nullptr;
};
thread_local Running* t_running = nullptr;

// The rules of the last steps before a pass is given up: those that undo each other are among them.
constexpr std::uint64_t kWatched = 1000;

[[noreturn]] void endless(const RewriteOptions& options, const Running& running) {
  std::vector<std::pair<std::uint64_t, const Rule*>> last;
  if (running.by_rule)
    for (auto [rule, n] : *running.by_rule) last.emplace_back(n, rule);
  std::sort(last.begin(), last.end(), std::greater<>());
  std::string text =
      std::string("[rewrite] the pass \"") + options.name + "\" does not come to an end; last fired:";
  for (std::size_t i = 0; i < std::min<std::size_t>(last.size(), 6); ++i)
    text += " " + std::string(last[i].second->file) + ":" + std::to_string(last[i].second->line);
  throw InternalError(text);
}

}  // namespace

RuleSet::RuleSet(std::span<const Rule> rules) {
  std::vector<const Rule*> list;
  for (const Rule& r : rules) list.push_back(&r);
  *this = RuleSet(std::move(list));
}

RuleSet::RuleSet(std::vector<const Rule*> rules) : rules_(std::move(rules)) {
  auto index = std::make_shared<Index>();
  for (std::size_t place = 0; place < rules_.size(); ++place) {
    std::vector<Pat> variants;
    orders(rules_[place]->left, 0, variants);
    for (const Pat& left : variants) {
      int first = child_op(left, 0);
      Candidate c{left, rules_[place], place, static_cast<std::int16_t>(child_op(left, 1))};
      int root = static_cast<int>(left.nodes[0].op);
      for (int f = 0; f <= kOpCount; ++f)
        if (first < 0 || f == first)
          index->lists[static_cast<std::size_t>(root * (kOpCount + 1) + f)].push_back(c);
    }
  }
  index_ = std::move(index);
}

RuleSet operator+(const RuleSet& a, const RuleSet& b) {
  std::vector<const Rule*> all(a.rules_);
  all.insert(all.end(), b.rules_.begin(), b.rules_.end());
  return RuleSet(std::move(all));
}

Ref RuleSet::apply(Ref node, void* ctx) const {
  if (!index_) return nullptr;
  int first = node.nsrc() ? static_cast<int>(node.src(0).op()) : kOpCount;
  int second = node.nsrc() > 1 ? static_cast<int>(node.src(1).op()) : -1;
  for (const Candidate& c :
       index_->lists[static_cast<std::size_t>(static_cast<int>(node.op()) * (kOpCount + 1) + first)]) {
    if (c.second >= 0 && c.second != second) continue;
    if (!in_domain(c.rule->domain, node)) continue;
    if (t_running) ++t_running->attempts;
    Match m(ctx);
    m.root = node;
    Matcher matcher(m);
    if (!matcher.match(c.left, node)) continue;
    int at = 0;
    if (!c.rule->condition.empty() && !matcher.value(c.rule->condition, at)) continue;
    at = 0;
    Ref result = c.rule->function ? c.rule->function(m) : matcher.build(c.rule->right, at, node);
    if (!result || same(result, node)) continue;
    if (t_running) {
      ++t_running->fired;
      if (t_running->by_rule) ++(*t_running->by_rule)[c.rule];
    }
    return result;
  }
  return nullptr;
}

Ref rewrite(Ref root, const RuleSet& rules, const RewriteOptions& options) {
  if (options.optional && flags::skips(options.name)) return root;
  absl::flat_hash_map<const Rule*, std::uint64_t> by_rule;
  Running running, *outer = t_running;
  const bool watched = t_observer || detail::tracing();
  if (watched) running.by_rule = &by_rule;
  t_running = &running;
  struct Restore {
    Running* outer;
    ~Restore() { t_running = outer; }
  } restore{outer};
  auto start = watched ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};

  struct Frame {
    Node* node;   // what was asked for
    Node* built;  // the same with rewritten sources
    Node* next;   // what a rule made of it, being rewritten
    bool entered;
  };
  absl::flat_hash_map<Node*, Node*> becomes;
  std::vector<Frame> stack{{root.node(), nullptr, nullptr, false}};
  absl::InlinedVector<Ref, 8> srcs;
  std::uint64_t steps = 0;
  auto known = [&](Node* n) { return becomes.contains(n); };

  while (!stack.empty()) {
    if (++steps > 10 * options.budget || running.fired > options.budget) endless(options, running);
    if (running.fired + kWatched > options.budget) running.by_rule = &by_rule;
    Frame& top = stack.back();
    if (!top.entered) {
      if (known(top.node)) {
        stack.pop_back();
        continue;
      }
      top.entered = true;
      Node* n = top.node;
      if (options.top_down) {
        while (Ref r = rules.apply(n, options.ctx)) n = r.node();
        top.next = n;
      }
      std::size_t frame = stack.size() - 1;
      for (std::uint32_t k = n->nsrc; k-- > 0;)
        if (!known(n->src[k])) stack.push_back({n->src[k], nullptr, nullptr, false});
      if (stack.size() - 1 > frame) continue;
    }
    Frame& now = stack.back();
    if (options.top_down || !now.next) {
      Node* n = options.top_down ? now.next : now.node;
      bool changed = false;
      srcs.clear();
      for (std::uint32_t k = 0; k < n->nsrc; ++k) {
        Node* s = becomes.find(n->src[k])->second;
        changed |= s != n->src[k];
        srcs.emplace_back(s);
      }
      now.built = changed ? with_srcs(n, srcs).node() : n;
      if (options.top_down) {
        becomes[now.node] = now.built;
        stack.pop_back();
        continue;
      }
      if (changed) {
        auto it = becomes.find(now.built);
        if (it != becomes.end()) {
          Node* result = it->second;
          becomes[now.node] = result;
          stack.pop_back();
          continue;
        }
      }
      Ref r = rules.apply(now.built, options.ctx);
      if (!r) {
        becomes[now.node] = now.built;
        becomes[now.built] = now.built;
        stack.pop_back();
        continue;
      }
      now.next = r.node();
      if (!known(r.node())) {
        stack.push_back({r.node(), nullptr, nullptr, false});
        continue;
      }
    }
    Node* result = becomes.find(now.next)->second;
    becomes[now.node] = result;
    becomes[now.built] = result;
    stack.pop_back();
  }

  Ref result = becomes.find(root.node())->second;
  g_totals.passes += 1;
  g_totals.nodes += becomes.size();
  g_totals.attempts += running.attempts;
  g_totals.fired += running.fired;
  if (watched) {
    std::vector<std::pair<const Rule*, std::uint64_t>> fired(by_rule.begin(), by_rule.end());
    std::sort(fired.begin(), fired.end(), [](auto& a, auto& b) {
      return std::tuple(b.second, a.first->line) < std::tuple(a.second, b.first->line);
    });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    PassRecord record{options.name,   root,    result,          running.attempts,
                      becomes.size(), seconds, std::move(fired)};
    if (t_observer) t_observer(record);
    if (detail::tracing()) detail::trace_pass(record);
  }
  return result;
}

PassObserver observe_passes(PassObserver observer) { return std::exchange(t_observer, std::move(observer)); }

RewriteStats rewrite_stats() { return {g_totals.passes, g_totals.nodes, g_totals.attempts, g_totals.fired}; }

}  // namespace pg
