// Kernels that run through the same elements become one: what one of them stores the other has at hand, and
// what both read is read once. The loops of the smaller are the outer loops of the larger: a row is summed
// up, and then, while it is in the cache, normalised.
#include "schedule/merge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rewrite/rewrite.h"
#include "rules/gates.h"

namespace pg::schedule {
namespace {

constexpr std::size_t kReach = 48;          // calls between two that may become one
constexpr std::size_t kEnds = 8;            // stores of a kernel
constexpr std::int64_t kWorkOfOne = 32768;  // iterations that one thread does alone

using Pairs = absl::InlinedVector<std::pair<Ref, Ref>, 8>;

bool has(const Slots& slots, std::int64_t s) {
  return std::find(slots.begin(), slots.end(), s) != slots.end();
}
bool meet(const Slots& a, const Slots& b) {
  return std::any_of(a.begin(), a.end(), [&](std::int64_t s) { return has(b, s); });
}
void add(Slots& slots, std::int64_t s) {
  if (!has(slots, s)) slots.push_back(s);
}

// Whether the order of two calls matters.
bool ordered(const Work& a, const Work& b) {
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

Ref store_of(Ref end) { return end.src(0); }
std::int64_t slot_of(Ref index) { return index.src(0).i(); }
std::span<Node* const> loops_of(Ref end) { return end.srcs().subspan(1); }
bool contains(std::span<Node* const> loops, Node* r) {
  return std::find(loops.begin(), loops.end(), r) != loops.end();
}
std::int64_t turns(std::span<Node* const> loops) {
  std::int64_t n = 1;
  for (Node* r : loops)
    n = std::min<std::int64_t>(n * std::max<std::int64_t>(1, Ref(r).hi() + 1), std::int64_t{1} << 40);
  return n;
}

// The End of the most loops: those of the others are among them.
Ref longest(Ref root) {
  Ref best = root.src(0);
  for (Node* e : root.srcs())
    if (Ref(e).nsrc() > best.nsrc()) best = e;
  return best;
}

// An offset as a sum of ranges, each times a number.
bool linear(Ref n, std::int64_t factor, Strides& out) {
  if (n.is(Op::Range)) {
    out.emplace_back(n.node(), factor);
    return true;
  }
  if (n.is_const()) return true;
  if (n.is(Op::Add)) return linear(n.src(0), factor, out) && linear(n.src(1), factor, out);
  if (n.is(Op::Mul) && n.src(1).is_const()) return linear(n.src(0), factor * n.src(1).i(), out);
  return false;
}

class Merger {
 public:
  Merger(std::vector<Work>& works, const TargetOf& targets) : works_(works), targets_(targets) {}

  void run() {
    for (std::size_t j = 1; j < works_.size(); ++j)
      for (bool again = true; again;) {
        again = false;
        std::size_t first = j > kReach ? j - kReach : 0;
        for (std::size_t i = j; i-- > first && !again;)
          if (std::optional<std::size_t> at = merge(i, j)) {
            again = true;
            j = *at;
            if (j == 0) break;
          }
      }
    std::erase_if(works_, [](const Work& w) { return !w.root; });
  }

 private:
  // Makes one of two calls, where the earlier or the later stands; returns its place.
  std::optional<std::size_t> merge(std::size_t i, std::size_t j) {
    Work &a = works_[i], &b = works_[j];
    if (!a.root || !b.root || !a.root.is(Op::Sink) || !b.root.is(Op::Sink) || a.device != b.device) return {};
    if (!meet(a.writes, b.reads) && !meet(a.reads, b.reads)) return {};
    if (a.own_loops || b.own_loops || meet(a.writes, b.writes)) return {};
    if (static_cast<std::size_t>(a.root.nsrc() + b.root.nsrc()) > kEnds ||
        a.next_range + b.next_range > kMostRanges)
      return {};
    bool down = true, up = true;
    for (std::size_t k = i + 1; k < j && (down || up); ++k) {
      if (!works_[k].root) continue;
      down = down && !ordered(a, works_[k]);
      up = up && !ordered(b, works_[k]);
    }
    if (!down && !up) return {};
    Ref root = merged(a, b);
    if (!root) return {};
    Work one{.root = root, .device = a.device, .next_range = a.next_range + b.next_range};
    collect(one);
    std::size_t at = down ? j : i;
    works_[down ? i : j] = {};
    works_[at] = std::move(one);
    return at;
  }

  // Which loop of b each loop of a is.
  bool match(const Work& a, const Work& b, Pairs& same_loop) const {
    Ref la = longest(a.root), lb = longest(b.root);
    auto of_a = loops_of(la), of_b = loops_of(lb);
    auto taken = [&](Node* r) {
      return std::any_of(same_loop.begin(), same_loop.end(), [&](auto& p) { return p.second.node() == r; });
    };
    // What a stores and b reads says it: the access that moves with the most of them.
    Ref end;
    for (Node* e : a.root.srcs())
      if (has(b.reads, slot_of(store_of(e).src(0))) && (!end || Ref(e).nsrc() > end.nsrc())) end = e;
    if (end) {
      Ref stored = store_of(end).src(0);
      Strides to;
      if (stored.nsrc() > 2 || !linear(stored.src(1), 1, to)) return false;
      for (Ref load : b.loads) {
        Strides from;
        if (slot_of(load) != slot_of(stored) || !linear(load.src(1), 1, from)) continue;
        Pairs found;
        for (Node* r : loops_of(end))
          if (Node* f = moves_like(r, to, from); f && contains(of_b, f)) found.emplace_back(r, f);
        if (found.size() > same_loop.size()) same_loop = found;
      }
    }
    // The rest, if there is any on both sides, in order.
    absl::InlinedVector<Node*, 8> rest_a, rest_b;
    for (Node* r : of_a)
      if (std::none_of(same_loop.begin(), same_loop.end(), [&](auto& p) { return p.first.node() == r; }))
        rest_a.push_back(r);
    for (Node* r : of_b)
      if (!taken(r)) rest_b.push_back(r);
    if (!end && rest_a.size() != rest_b.size()) return false;
    if (rest_a.empty() || rest_b.empty()) return true;
    if (rest_a.size() != rest_b.size()) return false;
    for (std::size_t k = 0; k < rest_a.size(); ++k) {
      if (rest_a[k]->src[0] != rest_b[k]->src[0]) return false;
      same_loop.emplace_back(rest_a[k], rest_b[k]);
    }
    return true;
  }

  Ref merged(const Work& a, const Work& b) const {
    Pairs renamed;
    if (!match(a, b, renamed)) return nullptr;
    auto of_a = loops_of(longest(a.root)), of_b = loops_of(longest(b.root));
    bool equal = renamed.size() == of_a.size() && renamed.size() == of_b.size();
    absl::InlinedVector<Node*, 8> shared;
    for (auto& [from, to] : renamed) shared.push_back(to.node());
    if (!equal && !rows_pay(a, b, renamed, shared)) return nullptr;
    // Other ranges of a get numbers that b does not use.
    for (Ref n : toposort(a.root))
      if (n.is(Op::Range) &&
          std::none_of(renamed.begin(), renamed.end(), [&](auto& p) { return same(p.first, n); }))
        renamed.emplace_back(n, range(n.range_id() + b.next_range, n.range_kind(), n.src(0)));
    Ref first = substitute(a.root, renamed);

    // What a stored, b has at hand, or computes again for another element of the same row.
    Pairs values;
    for (Ref load : b.loads)
      for (Node* e : first.srcs()) {
        if (slot_of(store_of(e).src(0)) != slot_of(load)) continue;
        Ref value = value_at(e, load, shared);
        if (!value) return nullptr;
        values.emplace_back(make(Op::Load, load.dtype(), {load}), value);
      }
    Ref second = substitute(b.root, values);
    // What is written in place is read where it is written, and before.
    for (Node* e : b.root.srcs()) {
      Ref at = store_of(e).src(0);
      if (!has(a.reads, slot_of(at))) continue;
      for (Ref n : toposort(first))
        if (n.is(Op::Load) && n.src(0).src(0).is(Op::Param) && slot_of(n.src(0)) == slot_of(at) &&
            !same(n.src(0).src(1), at.src(1)))
          return nullptr;
    }
    // Loops of the most stores outermost; every store stands in a number of the outermost loops.
    absl::InlinedVector<Ref, 8> ends, order;
    for (Ref root : {first, second})
      for (Node* e : root.srcs())
        ends.insert(std::find_if(ends.begin(), ends.end(), [&](Ref x) { return x.nsrc() > Ref(e).nsrc(); }),
                    e);
    for (Ref& e : ends) {
      for (Ref o : order)
        if (!contains(loops_of(e), o.node())) return nullptr;
      for (Node* r : loops_of(e))
        if (std::none_of(order.begin(), order.end(), [&](Ref o) { return o.node() == r; }))
          order.emplace_back(r);
      absl::InlinedVector<Ref, 8> srcs{e.src(0)};
      srcs.insert(srcs.end(), order.begin(), order.end());
      e = make(Op::End, DType::Void, 1, srcs);
    }
    return rewrite(sink(ends), rules::kernels(), {.name = "simplify merged"});
  }

  // The range that an access moves with as another one does with r.
  static Node* moves_like(Node* r, const Strides& one, const Strides& other) {
    auto t = std::find_if(one.begin(), one.end(), [&](auto& s) { return s.first == r; });
    if (t == one.end()) return nullptr;
    auto f = std::find_if(other.begin(), other.end(),
                          [&](auto& s) { return s.second == t->second && s.first->src[0] == r->src[0]; });
    return f == other.end() ? nullptr : f->first;
  }

  // What an End stores, where `load` reads it: in the same turns of the shared loops.
  static Ref value_at(Ref end, Ref load, std::span<Node* const> shared) {
    Ref stored = store_of(end).src(0), value = store_of(end).src(1);
    if (load.nsrc() > 2 || stored.nsrc() > 2) return nullptr;
    if (same(stored, load)) return value;
    Strides to, from;
    if (!linear(stored.src(1), 1, to) || !linear(load.src(1), 1, from)) return nullptr;
    Pairs moved;
    absl::flat_hash_set<Node*> inner;
    for (Node* r : loops_of(end)) {
      Node* f = moves_like(r, to, from);
      if (!f || (contains(shared, r) && f != r)) return nullptr;
      if (f == r) continue;
      moved.emplace_back(r, f);
      inner.insert(r);
    }
    if (!same(substitute(stored, moved), load)) return nullptr;
    // A sum for each element is not made again.
    for (Ref n : toposort(value)) {
      if (std::any_of(n.srcs().begin(), n.srcs().end(), [&](Node* s) { return inner.contains(s); })) {
        if (n.is(Op::Reduce)) return nullptr;
        inner.insert(n.node());
      }
    }
    return substitute(value, moved);
  }

  // Whether a kernel should run row by row: there are rows enough for all threads, or little work in all, and
  // what a row holds lies together.
  bool rows_pay(const Work& a, const Work& b, const Pairs& renamed, std::span<Node* const> shared) const {
    const Target& target = targets_(a.device);
    if (target.has_groups) return false;
    std::int64_t rows = turns(shared);
    if (rows < 2 * target.cores && std::max(a.turns, b.turns) >= kWorkOfOne) return false;
    bool b_is_longer = loops_of(longest(b.root)).size() > shared.size();
    Ref store = store_of(longest(b_is_longer ? b.root : a.root));
    Strides strides;
    if (!linear(store.src(0).src(1), 1, strides)) return false;
    for (auto& [r, stride] : strides) {
      bool outer = b_is_longer ? contains(shared, r)
                               : std::any_of(renamed.begin(), renamed.end(),
                                             [&, x = r](auto& p) { return p.first.node() == x; });
      if (stride == 1 && outer) return false;
    }
    return true;
  }

  std::vector<Work>& works_;
  const TargetOf& targets_;
};

}  // namespace

void collect(Work& work) {
  std::int64_t most = 0;
  for (Ref n : toposort(work.root)) {
    if (n.is(Op::Load) && n.src(0).src(0).is(Op::Param)) {
      work.loads.push_back(n.src(0));
      add(work.reads, slot_of(n.src(0)));
    } else if (n.is(Op::Reduce)) {
      std::int64_t inner = turns(n.srcs().subspan(1));
      most = std::max(most, inner);
      Ref value = n.src(0);
      while (value.is(Op::Cast) || value.is(Op::Where)) value = value.src(value.is(Op::Where) ? 1 : 0);
      if (n.reduce_op() == Op::Add && value.is(Op::Mul)) {
        // A product of two tables: each moves with a loop that the other does not.
        auto loops_in = [](Ref x) {
          absl::flat_hash_set<Node*> found;
          for (Ref m : toposort(x))
            if (m.is(Op::Range)) found.insert(m.node());
          return found;
        };
        auto x = loops_in(value.src(0)), y = loops_in(value.src(1));
        auto alone = [](const auto& p, const auto& q) {
          return std::any_of(p.begin(), p.end(), [&](Node* r) { return !q.contains(r); });
        };
        work.own_loops |= alone(x, y) && alone(y, x);
      }
    }
  }
  for (Node* e : work.root.srcs()) {
    add(work.writes, slot_of(store_of(e).src(0)));
    work.turns = std::max(work.turns, turns(loops_of(e)) * std::max<std::int64_t>(1, most));
  }
}

void merge_kernels(std::vector<Work>& works, const TargetOf& targets) { Merger(works, targets).run(); }

void drop_dead_stores(std::vector<Work>& works, absl::flat_hash_set<std::int64_t> read) {
  for (std::size_t k = works.size(); k-- > 0;) {
    Work& w = works[k];
    if (w.root.is(Op::Sink)) {
      absl::InlinedVector<Ref, 8> ends;
      for (Node* e : w.root.srcs())
        if (read.contains(slot_of(store_of(e).src(0)))) ends.emplace_back(e);
      if (ends.empty()) {
        w = {};
        continue;
      }
      if (static_cast<int>(ends.size()) < w.root.nsrc()) {
        w = {.root = sink(ends), .device = w.device, .next_range = w.next_range};
        collect(w);
      }
    }
    read.insert(w.reads.begin(), w.reads.end());
  }
  std::erase_if(works, [](const Work& w) { return !w.root; });
}

}  // namespace pg::schedule
