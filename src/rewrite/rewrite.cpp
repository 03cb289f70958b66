#include "rewrite/rewrite.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>

#include <absl/container/inlined_vector.h>

#include "base/flags.h"
#include "base/log.h"
#include "rewrite/running.h"
#include "rewrite/trace.h"

namespace pg {
namespace {

RewriteStats g_totals;  // under the graph's lock
thread_local PassObserver t_observer;

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

// What nodes became. A node's mark is its place here; as other walks set marks too (a rule may start one),
// the place is checked, and where a walk has begun since, marks are set anew before a node counts as unknown.
class Becomes {
 public:
  void clear() {
    entries_.clear();
    walk_ = new_walk();
  }
  Node* find(Node* n) {
    if (n->mark < entries_.size() && entries_[n->mark].key == n) return entries_[n->mark].value;
    return walk_ == last_walk() ? nullptr : find_anew(n);
  }
  void set(Node* n, Node* value) {
    n->mark = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({n, value});
  }
  std::size_t size() const { return entries_.size(); }
  /// After a very large graph: small ones should not hold on to what it needed.
  void trim() {
    if (entries_.capacity() > kKept) std::vector<Entry>().swap(entries_);
  }
  static constexpr std::size_t kKept = std::size_t{1} << 20;

 private:
  struct Entry {
    Node* key;
    Node* value;
  };

  Node* find_anew(Node* n) {
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].key->mark = static_cast<std::uint32_t>(i);
    walk_ = new_walk();
    return n->mark < entries_.size() && entries_[n->mark].key == n ? entries_[n->mark].value : nullptr;
  }

  std::vector<Entry> entries_;
  std::uint64_t walk_ = 0;
};

struct Frame {
  Node* node;           // what was asked for
  Node* built;          // the same with rewritten sources, once they are there
  Node* next;           // what a rule made of it, being rewritten
  std::uint32_t child;  // sources before this one are rewritten
};

// Memory of passes, by how deep they are nested: reused, so that small passes allocate nothing.
struct Scratch {
  Becomes becomes;
  std::vector<Frame> stack;

  void trim() {
    becomes.trim();
    if (stack.capacity() > Becomes::kKept) std::vector<Frame>().swap(stack);
  }
};
struct Nesting {
  std::vector<std::unique_ptr<Scratch>> scratch;
  std::size_t depth = 0;
};
thread_local Nesting t_nesting;

class Driver {
 public:
  Driver(const RuleSet& rules, const RewriteOptions& options, Running& running, Scratch& scratch)
      : rules_(rules),
        options_(options),
        running_(running),
        becomes_(scratch.becomes),
        stack_(scratch.stack),
        sees_(rules.sees()),
        memory_(options.ctx || options.top_down ? nullptr : rules.memory()) {
    becomes_.clear();
    stack_.clear();
    if (memory_) memory_->refresh();
  }

  Ref run(Ref root) {
    if (Node* n = recalled(root.node())) return n;
    stack_.push_back({root.node(), nullptr, nullptr, 0});
    while (!stack_.empty()) {
      if (++steps_ > 10 * options_.budget) endless(options_, running_);
      options_.top_down ? down(stack_.back()) : up(stack_.back());
    }
    return known(root.node());
  }

 private:
  // What a node became, or null. Leaves that no rule is about are what they are.
  Node* known(Node* n) {
    if (n->nsrc == 0 && !sees_[static_cast<std::size_t>(n->op)]) return n;
    return becomes_.find(n);
  }

  // The same, also from earlier passes.
  Node* recalled(Node* n) {
    Node* became = known(n);
    if (became || !memory_) return became;
    became = memory_->find(n);
    if (became) becomes_.set(n, became);
    return became;
  }
  void remember(Node* n, Node* became) {
    becomes_.set(n, became);
    if (memory_) memory_->put(n, became);
  }

  Ref applied(Node* n) {
    if (!sees_[static_cast<std::size_t>(n->op)]) return nullptr;
    if (running_.fired + kWatched > options_.budget) {
      if (running_.fired > options_.budget) endless(options_, running_);
      running_.by_rule = running_.by_rule ? running_.by_rule : &last_;
    }
    return rules_.apply(n, options_.ctx, running_);
  }

  // Asks for the next source of n that is not rewritten yet. False once there is none; then frame is no
  // longer valid.
  bool descend(Node* n, Frame& frame) {
    for (; frame.child < n->nsrc; ++frame.child) {
      Node* s = n->src[frame.child];
      if (recalled(s)) continue;
      ++frame.child;
      stack_.push_back({s, nullptr, nullptr, 0});
      return true;
    }
    return false;
  }

  // n on what its sources became.
  Node* rebuilt(Node* n) {
    srcs_.clear();
    bool changed = false;
    for (std::uint32_t k = 0; k < n->nsrc; ++k) {
      Node* s = known(n->src[k]);
      changed |= s != n->src[k];
      srcs_.emplace_back(s);
    }
    return changed ? with_srcs(n, srcs_).node() : n;
  }

  void finish(const Frame& frame, Node* result) {
    // The node may be known by now: a rule may have made it on the way to itself.
    if (frame.built != frame.node && frame.built != result && !known(frame.built))
      remember(frame.built, result);
    if (!known(frame.node)) remember(frame.node, result);
    stack_.pop_back();
  }

  // Sources first, then rules until none applies.
  void up(Frame& frame) {
    if (!frame.built) {
      if (descend(frame.node, frame)) return;
      frame.built = rebuilt(frame.node);
      if (frame.built != frame.node)
        if (Node* result = recalled(frame.built)) return finish(frame, result);
    } else if (frame.next) {
      return finish(frame, known(frame.next));
    }
    Ref r = applied(frame.built);
    if (!r) {
      if (frame.built != frame.node) remember(frame.built, frame.built);
      return finish(frame, frame.built);
    }
    frame.next = r.node();
    if (Node* result = recalled(frame.next)) return finish(frame, result);
    stack_.push_back({frame.next, nullptr, nullptr, 0});
  }

  // Rules first, then the sources of what they made.
  void down(Frame& frame) {
    if (!frame.next) {
      Node* n = frame.node;
      while (Ref r = applied(n)) n = r.node();
      frame.next = n;
    }
    if (descend(frame.next, frame)) return;
    frame.built = frame.node;
    finish(frame, rebuilt(frame.next));
  }

  const RuleSet& rules_;
  const RewriteOptions& options_;
  Running& running_;
  Becomes& becomes_;
  std::vector<Frame>& stack_;
  absl::InlinedVector<Ref, 8> srcs_;
  absl::flat_hash_map<const Rule*, std::uint64_t> last_;
  std::span<const bool, kOpCount> sees_;
  Memory* memory_;
  std::uint64_t steps_ = 0;
};

}  // namespace

Ref rewrite(Ref root, const RuleSet& rules, const RewriteOptions& options) {
  if (options.optional && flags::skips(options.name)) return root;
  Running running;
  absl::flat_hash_map<const Rule*, std::uint64_t> by_rule;
  const bool logged = log_enabled(LogLevel::Rewrites);
  const bool watched = t_observer || logged || detail::tracing();
  if (watched) running.by_rule = &by_rule;
  auto start = watched ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};

  Nesting& nesting = t_nesting;
  if (nesting.depth == nesting.scratch.size()) nesting.scratch.push_back(std::make_unique<Scratch>());
  Scratch& scratch = *nesting.scratch[nesting.depth++];
  struct Leave {
    Nesting& nesting;
    ~Leave() { nesting.scratch[--nesting.depth]->trim(); }
  } leave{nesting};
  Ref result = Driver(rules, options, running, scratch).run(root);

  g_totals.passes += 1;
  g_totals.nodes += scratch.becomes.size();
  g_totals.attempts += running.attempts;
  g_totals.fired += running.fired;
  if (watched) {
    std::vector<std::pair<const Rule*, std::uint64_t>> fired(by_rule.begin(), by_rule.end());
    std::sort(fired.begin(), fired.end(), [](auto& a, auto& b) {
      return std::tuple(b.second, a.first->line) < std::tuple(a.second, b.first->line);
    });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    PassRecord record{options.name,           root,    result,          running.attempts,
                      scratch.becomes.size(), seconds, std::move(fired)};
    if (t_observer) t_observer(record);
    if (logged) detail::log_pass(record);
    if (detail::tracing()) detail::trace_pass(record);
  }
  return result;
}

PassObserver observe_passes(PassObserver observer) { return std::exchange(t_observer, std::move(observer)); }

RewriteStats rewrite_stats() {
  GraphScope scope;
  return g_totals;
}

}  // namespace pg
