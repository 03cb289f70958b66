// The process-wide graph: interning table, node memory, ownership and freeing.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include "ir/facts.h"
#include "ir/node.h"

namespace pg {

const OpInfo kOps[kOpCount] = {
#define OP(name, nsrc, arg, flags) {#name, nsrc, ArgKind::arg, flags},
#include "ir/ops.def"
#undef OP
};

Op parse_op(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (kOps[i].name == name) return static_cast<Op>(i);
  throw ValueError("[parse] there is no op named \"" + std::string(name) + "\"");
}

std::string_view name(RangeKind kind) {
  constexpr std::string_view kNames[] = {"device", "thread", "global", "warp",   "local", "loop",
                                         "group",  "reduce", "upcast", "unroll", "lane"};
  return kNames[static_cast<int>(kind)];
}

namespace {

constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 32);
}

bool has_payload(Op op, Arg arg) {
  ArgKind kind = info(op).arg;
  return arg.p && (kind == ArgKind::Ints || kind == ArgKind::Str || kind == ArgKind::Object);
}

// Memory for nodes: blocks of one size class, freed nodes chained. Nodes with many sources come from the heap.
class NodePool {
 public:
  void* take(std::uint32_t nsrc) {
    if (nsrc >= kClasses) return ::operator new(sizeof(Node) + nsrc * sizeof(Node*));
    Free*& list = free_[nsrc];
    if (!list) refill(nsrc);
    Free* node = list;
    list = node->next;
    return node;
  }
  void give(void* memory, std::uint32_t nsrc) {
    if (nsrc >= kClasses) return ::operator delete(memory);
    free_[nsrc] = new (memory) Free{free_[nsrc]};
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::uint32_t kClasses = 9;
  static constexpr std::size_t kBlock = std::size_t{1} << 16;

  void refill(std::uint32_t nsrc) {
    std::size_t bytes = sizeof(Node) + nsrc * sizeof(Node*);
    auto* block = static_cast<std::byte*>(::operator new(kBlock));
    blocks_.push_back(block);
    for (std::size_t at = (kBlock / bytes) * bytes; at >= bytes; at -= bytes) give(block + at - bytes, nsrc);
  }

  std::array<Free*, kClasses> free_{};
  std::vector<std::byte*> blocks_;
};

struct SpanHash {
  std::size_t operator()(const std::vector<std::int64_t>& v) const {
    std::uint64_t h = v.size();
    for (auto x : v) h = mix(h, static_cast<std::uint64_t>(x));
    return h;
  }
};

class Graph {
 public:
  // Never destroyed: handles in static objects may outlive any order of destruction.
  static Graph& get() {
    static Graph* graph = new Graph;
    return *graph;
  }

  void enter() {
    if (depth_ == 0) mutex_.lock();
    ++depth_;
  }
  void leave() {
    if (depth_ > 1) {
      --depth_;
      return;
    }
    sweep();
    std::vector<Payload*> released;
    released.swap(released_);
    depth_ = 0;
    mutex_.unlock();
    for (Payload* p : released) p->release();
  }
  static bool held() { return depth_ > 0; }

  Ref intern(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg) {
    assert(held() && "nodes are made inside a GraphScope");
    std::uint64_t id = mix(static_cast<std::uint64_t>(op) << 32 | static_cast<std::uint64_t>(dtype) << 24 | static_cast<std::uint64_t>(lanes),
                           static_cast<std::uint64_t>(arg.i));
    for (Ref s : srcs) id = mix(id, reinterpret_cast<std::uintptr_t>(s.node()) >> 3);
    auto tag = static_cast<std::uint32_t>(id ^ id >> 32);
    std::size_t mask = slots_.size() - 1, at = tag & mask, hole = slots_.size();
    for (; slots_[at].node || slots_[at].tag; at = (at + 1) & mask) {
      Node* n = slots_[at].node;
      if (!n) {
        if (hole == slots_.size()) hole = at;
        continue;
      }
      if (slots_[at].tag == tag && n->op == op && n->dtype == dtype && n->lanes == lanes && n->nsrc == srcs.size() &&
          n->arg.i == arg.i && std::equal(srcs.begin(), srcs.end(), n->src, [](Ref a, Node* b) { return a.node() == b; })) {
        ++stats_.hits;
        return n;
      }
    }
    Node* n = create(op, dtype, lanes, srcs, arg);
    if (hole == slots_.size()) {
      hole = at;
      ++used_;
    }
    slots_[hole] = {n, tag};
    n->mark = 0;
    if (used_ * 4 > slots_.size() * 3) rehash();
    return n;
  }

  void drop_from_handle(Node* node) {
    // The last count is only given up under the lock, so that an intern hit can never meet a node half gone.
    if (held()) {
      release(node);
      return;
    }
    std::uint32_t refs = node->refs.load(std::memory_order_relaxed);
    while (refs > 1)
      if (node->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_release)) return;
    std::lock_guard lock(dead_mutex_);
    dead_.push_back(node);
  }

  Payload* ints(std::span<const std::int64_t> values) {
    key_.assign(values.begin(), values.end());
    auto [it, fresh] = ints_.try_emplace(key_, nullptr);
    if (fresh) {
      auto* p = new IntsPayload;
      p->values = key_;
      p->hash = SpanHash{}(key_);
      it->second = p;
      young_payloads_.push_back(p);
    }
    return it->second;
  }
  Payload* str(std::string_view value) {
    auto [it, fresh] = strs_.try_emplace(std::string(value), nullptr);
    if (fresh) {
      auto* p = new StrPayload;
      p->value = value;
      p->hash = value.size();
      for (char c : value) p->hash = mix(p->hash, static_cast<unsigned char>(c));
      it->second = p;
      young_payloads_.push_back(p);
    }
    return it->second;
  }
  Payload* object(Payload* fresh) {
    young_payloads_.push_back(fresh);
    return fresh;
  }

  GraphStats stats() {
    stats_.live = live_;
    return stats_;
  }

 private:
  struct Slot {
    Node* node = nullptr;
    std::uint32_t tag = 0;  // with no node: 1 where one was removed, 0 where none ever was
  };

  Graph() : slots_(1 << 12) {}

  Node* create(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg) {
    auto nsrc = static_cast<std::uint32_t>(srcs.size());
    Node* n = new (pool_.take(nsrc)) Node{};
    n->nsrc = nsrc;
    n->lanes = static_cast<std::uint16_t>(lanes);
    n->dtype = dtype;
    n->op = op;
    n->arg = arg;
    std::uint64_t h = mix(static_cast<std::uint64_t>(op) << 16 | static_cast<std::uint64_t>(dtype), static_cast<std::uint64_t>(lanes));
    h = mix(h, has_payload(op, arg) ? arg.p->hash : static_cast<std::uint64_t>(arg.i));
    for (std::uint32_t k = 0; k < nsrc; ++k) {
      Node* s = srcs[k].node();
      n->src[k] = s;
      s->refs.fetch_add(1, std::memory_order_relaxed);
      h = mix(h, s->hash);
    }
    n->hash = h;
    if (has_payload(op, arg)) arg.p->refs.fetch_add(1, std::memory_order_relaxed);
    set_bounds(n);
    young_.push_back(n);
    ++stats_.made;
    ++live_;
    stats_.bytes += sizeof(Node) + nsrc * sizeof(Node*);
    return n;
  }

  void release(Node* n) {
    if (n->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) young_.push_back(n);
  }

  // Frees every node without references, in any order of death, without recursion. A node may stand in young_ more
  // than once; the marks below keep it from being freed twice.
  void sweep() {
    {
      std::lock_guard lock(dead_mutex_);
      for (Node* n : dead_)
        if (n->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) young_.push_back(n);
      dead_.clear();
    }
    // Each node once: duplicates are removed by giving every entry's node its position and keeping the first.
    for (std::size_t i = 0; i < young_.size(); ++i) young_[i]->mark = static_cast<std::uint32_t>(i);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < young_.size(); ++i)
      if (young_[i]->mark == i) young_[kept++] = young_[i];
    young_.resize(kept);
    for (Node* n : young_) n->mark = kInYoung;
    while (!young_.empty()) {
      Node* n = young_.back();
      young_.pop_back();
      n->mark = 0;
      if (n->refs.load(std::memory_order_acquire) == 0) destroy(n);
    }
    std::sort(young_payloads_.begin(), young_payloads_.end());
    young_payloads_.erase(std::unique(young_payloads_.begin(), young_payloads_.end()), young_payloads_.end());
    for (Payload* p : young_payloads_)
      if (p->refs.load(std::memory_order_relaxed) == 0) destroy(p);
    young_payloads_.clear();
  }

  void destroy(Node* n) {
    unlink(n);
    auto lose = [this](Node* s) {
      if (s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1 && s->mark != kInYoung) {
        s->mark = kInYoung;
        young_.push_back(s);
      }
    };
    for (std::uint32_t k = 0; k < n->nsrc; ++k) lose(n->src[k]);
    if (n->shape && n->shape != n) lose(const_cast<Node*>(n->shape));
    if (n->cold) {
      if (Node* m = Ref(n->cold->materialized).node()) {
        lose(m);
        new (&n->cold->materialized) UOp();  // its count was given up above
      }
      delete n->cold;
    }
    if (has_payload(n->op, n->arg) && n->arg.p->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) young_payloads_.push_back(n->arg.p);
    stats_.bytes -= sizeof(Node) + n->nsrc * sizeof(Node*);
    --live_;
    pool_.give(n, n->nsrc);
  }

  void destroy(Payload* p) {
    if (auto* v = dynamic_cast<IntsPayload*>(p)) {
      ints_.erase(v->values);
      delete v;
    } else if (auto* s = dynamic_cast<StrPayload*>(p)) {
      strs_.erase(s->value);
      delete s;
    } else {
      released_.push_back(p);
    }
  }

  void unlink(Node* n) {
    std::uint64_t id = mix(static_cast<std::uint64_t>(n->op) << 32 | static_cast<std::uint64_t>(n->dtype) << 24 | n->lanes,
                           static_cast<std::uint64_t>(n->arg.i));
    for (std::uint32_t k = 0; k < n->nsrc; ++k) id = mix(id, reinterpret_cast<std::uintptr_t>(n->src[k]) >> 3);
    std::size_t mask = slots_.size() - 1, at = static_cast<std::uint32_t>(id ^ id >> 32) & mask;
    while (slots_[at].node != n) at = (at + 1) & mask;
    slots_[at] = {nullptr, 1};
  }

  void rehash() {
    std::vector<Slot> old(slots_.size() < live_ * 3 ? slots_.size() * 2 : slots_.size());
    old.swap(slots_);
    used_ = 0;
    std::size_t mask = slots_.size() - 1;
    for (const Slot& s : old) {
      if (!s.node) continue;
      std::size_t at = s.tag & mask;
      while (slots_[at].node) at = (at + 1) & mask;
      slots_[at] = s;
      ++used_;
    }
  }

  static constexpr std::uint32_t kInYoung = 0xFFFFFFFF;

  std::mutex mutex_;
  static thread_local int depth_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;  // slots that hold or held a node
  std::uint64_t live_ = 0;
  NodePool pool_;
  std::vector<Node*> young_;
  std::vector<Payload*> young_payloads_, released_;
  std::mutex dead_mutex_;
  std::vector<Node*> dead_;
  std::vector<std::int64_t> key_;
  std::unordered_map<std::vector<std::int64_t>, IntsPayload*, SpanHash> ints_;
  std::unordered_map<std::string, StrPayload*> strs_;
  GraphStats stats_;
};

thread_local int Graph::depth_ = 0;

}  // namespace

void UOp::drop(Node* node) { Graph::get().drop_from_handle(node); }

GraphScope::GraphScope() { Graph::get().enter(); }
GraphScope::~GraphScope() { Graph::get().leave(); }

GraphStats graph_stats() {
  GraphScope scope;
  return Graph::get().stats();
}

Ref intern(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg) {
  return Graph::get().intern(op, dtype, lanes, srcs, arg);
}

Payload* ints_payload(std::span<const std::int64_t> values) { return Graph::get().ints(values); }
Payload* str_payload(std::string_view value) { return Graph::get().str(value); }
Payload* object_payload(Payload* fresh) { return Graph::get().object(fresh); }

Cold& cold(Ref node) {
  if (!node->cold) node->cold = new Cold;
  return *node->cold;
}

std::vector<Ref> toposort(std::span<const Ref> roots) {
  // A node is done once order[mark - 1] is it: marks of other walks never pass that test.
  std::vector<Ref> order;
  struct Frame {
    Node* node;
    std::uint32_t next;
  };
  std::vector<Frame> stack;
  auto done = [&](Node* n) { return n->mark - 1 < order.size() && order[n->mark - 1].node() == n; };
  for (Ref root : roots) {
    if (done(root.node())) continue;
    stack.push_back({root.node(), 0});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.node->nsrc) {
        Node* s = top.node->src[top.next++];
        if (!done(s)) stack.push_back({s, 0});
        continue;
      }
      Node* n = top.node;
      stack.pop_back();
      if (done(n)) continue;
      order.emplace_back(n);
      n->mark = static_cast<std::uint32_t>(order.size());
    }
  }
  return order;
}

}  // namespace pg
