// What nodes and rules cost: making, finding, walking and simplifying, on one thread with the graph in cache.
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "figure.h"
#include "rewrite/fuzz.h"
#include "rules/symbolic.h"

namespace pg::bench {
namespace {

constexpr int kNodes = 500;  // as many as a kernel has

Ref leaf(int number) { return param(number, i32, shape_node(Dims{})); }

Ref chain(Ref n, Ref x) {
  for (int i = 0; i < kNodes; ++i) n = n - x;
  return n;
}

// Adding as many pointers to a set: the part of making nodes that no layout avoids.
double set_insert_seconds() {
  std::vector<int> things(kNodes);
  absl::flat_hash_set<const int*> set;
  set.reserve(2 * kNodes);
  return median_seconds(
             501,
             [&] {
               for (int& t : things) set.insert(&t);
             },
             [&] { set.clear(); }) /
         kNodes;
}

// Seconds to simplify what `make` makes, in a scope of its own each time, so that every node is new.
template <class F>
double simplify_seconds(F make) {
  constexpr int kTimes = 20'000;
  double total = 0;
  for (int i = 0; i < kTimes; ++i) {
    GraphScope scope;
    Ref x = make();
    double start = now();
    rewrite(x, rules::symbolic(), {.name = "bench"});
    total += now() - start;
  }
  return total / kTimes;
}

}  // namespace

void rules() {
  {
    GraphScope outer;
    UOp n = leaf(0), x = leaf(1);
    UOp kept = chain(n, x), root = kept;
    double hit = median_seconds(501, [&] { chain(n, x); }) / kNodes;
    double walk = median_seconds(501, [&] { toposort(root); }) / kNodes;
    print({"a node that is there already", hit * 1e6, "us", 0.02, true});
    print({"toposort, a node", walk * 1e6, "us", 0.02, true});
  }
  {
    double total = 0;
    constexpr int kRounds = 501;
    for (int i = 0; i < kRounds; ++i) {
      GraphScope scope;
      Ref n = leaf(0), x = leaf(1);
      double start = now();
      chain(n, x);
      total += now() - start;
    }
    print(
        {"a new node", total / kRounds / kNodes * 1e6, "us", 0.1, true, "limit", set_insert_seconds() * 1e6});
  }
  UOp x, y, i, j;
  {
    GraphScope scope;
    x = range(0, RangeKind::Loop, idx(100)), y = range(1, RangeKind::Loop, idx(100));
    i = range(2, RangeKind::Loop, idx(6)), j = range(3, RangeKind::Loop, idx(4));
  }
  double sum = simplify_seconds([&] { return (x * 2) + 5 + (x * 4) + (y * 2) + y.ref(); });
  double split = simplify_seconds([&] { return (i * 4 + j.ref()) / 8 * 8 + (i * 4 + j.ref()) % 8; });
  print({"(x*2)+5+(x*4)+(y*2)+y, simplified", sum * 1e6, "us", 2, true});
  print({"(i*4+j)/8*8 + (i*4+j)%8, simplified", split * 1e6, "us", 4, true});
  {
    GraphScope scope;
    std::vector<Ref> roots = random_expressions(FuzzKind::Reshapes, {.seed = 5, .rounds = 300});
    std::vector<Ref> more = random_expressions(FuzzKind::Indices, {.seed = 6, .rounds = 700, .depth = 6});
    roots.insert(roots.end(), more.begin(), more.end());
    Ref graph = sink(roots);
    auto nodes = static_cast<double>(toposort(graph).size());
    // A set of its own each time, so that nothing is remembered.
    RuleSet fresh;
    double s = median_seconds(
        21, [&] { rewrite(graph, fresh, {.name = "bench"}); },
        [&] { fresh = (rules::algebra() + rules::divmod()).remembering(); });
    double again = median_seconds(21, [&] { rewrite(graph, fresh, {.name = "bench"}); });
    print({"index arithmetic at random, simplified, a node", s / nodes * 1e6, "us", 0.5, true});
    print({"the same again, a node", again / nodes * 1e6, "us", 0.01, true});
  }
}

}  // namespace pg::bench
