// The process-wide graph: interning table, node memory, ownership and freeing.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include <absl/container/flat_hash_set.h>
#include <sys/mman.h>

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

// Memory in pieces that are never given back. Small ones first; then such that the system can back them with
// huge pages, since a page fault may cost as much as a hundred nodes.
class Pages {
 public:
  static constexpr std::size_t kHuge = std::size_t{1} << 21;

  static void* take(std::size_t bytes) {
    if (bytes < kHuge) return ::operator new(bytes);
    void* memory = ::operator new(bytes, std::align_val_t{kHuge});
#ifdef MADV_HUGEPAGE
    ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
  }
  static void give(void* memory, std::size_t bytes) {
    if (bytes < kHuge)
      ::operator delete(memory);
    else
      ::operator delete(memory, std::align_val_t{kHuge});
  }
};

// Memory for nodes: one list of freed ones per number of sources, else from the end of the current block.
// Nodes with many sources come from the heap.
class NodePool {
 public:
  void* take(std::uint32_t nsrc) {
    if (nsrc >= kClasses) return ::operator new(sizeof(Node) + nsrc * sizeof(Node*));
    if (Free* node = free_[nsrc]) {
      free_[nsrc] = node->next;
      return node;
    }
    std::size_t bytes = sizeof(Node) + nsrc * sizeof(Node*);
    if (static_cast<std::size_t>(end_ - at_) < bytes) refill();
    void* memory = at_;
    at_ += bytes;
    return memory;
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

  // Blocks grow with what is used already. They are reachable from here, so that leak checkers see them.
  void refill() {
    std::size_t bytes = blocks_.size() < 8 ? std::size_t{1} << 16 : Pages::kHuge;
    at_ = static_cast<std::byte*>(Pages::take(bytes));
    end_ = at_ + bytes;
    blocks_.push_back(at_);
  }

  std::array<Free*, kClasses> free_{};
  std::byte *at_ = nullptr, *end_ = nullptr;
  std::vector<std::byte*> blocks_;
};

// The nodes there are, by what they are made of: open addressing with linear probes, without marks where one
// was removed (those behind move up).
class NodeTable {
 public:
  NodeTable() { grow(std::size_t{1} << 12); }

  /// The node of this tag that `is_it` says yes to, or null.
  template <class F>
  Node* find(std::uint32_t tag, F is_it) const {
    for (std::size_t at = tag & mask_; Node* n = slots_[at].node; at = (at + 1) & mask_)
      if (slots_[at].tag == tag && is_it(n)) return n;
    return nullptr;
  }
  /// Adds a node that is not there.
  void add(Node* n, std::uint32_t tag) {
    if (++used_ * 8 > (mask_ + 1) * 5) grow((mask_ + 1) * 2);
    put(n, tag);
  }
  /// Brings near what remove() of this tag will read.
  void prefetch(std::uint32_t tag) const { __builtin_prefetch(&slots_[tag & mask_], 1); }
  void remove(const Node* n, std::uint32_t tag) {
    std::size_t hole = tag & mask_;
    while (slots_[hole].node != n) hole = (hole + 1) & mask_;
    for (std::size_t at = (hole + 1) & mask_; slots_[at].node; at = (at + 1) & mask_) {
      // One that would be found at the hole too moves there.
      if (((at - slots_[at].tag) & mask_) < ((at - hole) & mask_)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].node = nullptr;
    --used_;
  }

 private:
  struct Slot {
    Node* node;
    std::uint32_t tag;
  };

  void put(Node* n, std::uint32_t tag) {
    std::size_t at = tag & mask_;
    while (slots_[at].node) at = (at + 1) & mask_;
    slots_[at] = {n, tag};
  }
  void grow(std::size_t size) {
    Slot* old = slots_;
    std::size_t old_size = old ? mask_ + 1 : 0;
    slots_ = static_cast<Slot*>(Pages::take(size * sizeof(Slot)));
    std::memset(static_cast<void*>(slots_), 0, size * sizeof(Slot));
    mask_ = size - 1;
    for (std::size_t i = 0; i < old_size; ++i)
      if (old[i].node) put(old[i].node, old[i].tag);
    if (old) Pages::give(old, old_size * sizeof(Slot));
  }

  Slot* slots_ = nullptr;
  std::size_t mask_ = 0, used_ = 0;
};

using Dims = std::span<const std::int64_t>;

// Payloads by content, found without making one.
struct ByContent {
  using is_transparent = void;
  static std::uint64_t hash(Dims values) {
    std::uint64_t h = values.size();
    for (std::int64_t v : values) h = mix(h, static_cast<std::uint64_t>(v));
    return h;
  }
  static std::uint64_t hash(std::string_view value) {
    std::uint64_t h = value.size();
    for (char c : value) h = mix(h, static_cast<unsigned char>(c));
    return h;
  }
  std::size_t operator()(Dims v) const { return hash(v); }
  std::size_t operator()(std::string_view v) const { return hash(v); }
  std::size_t operator()(const Payload* p) const { return p->hash; }
};
struct SameContent {
  using is_transparent = void;
  static Dims content(const IntsPayload* p) { return p->values; }
  static std::string_view content(const StrPayload* p) { return p->value; }
  bool operator()(const IntsPayload* a, const IntsPayload* b) const { return a == b; }
  bool operator()(const StrPayload* a, const StrPayload* b) const { return a == b; }
  bool operator()(const IntsPayload* a, Dims b) const { return std::ranges::equal(content(a), b); }
  bool operator()(const StrPayload* a, std::string_view b) const { return content(a) == b; }
};

class Graph {
 public:
  // Never destroyed: handles in static objects may outlive any order of destruction.
  static Graph& get() {
    static Graph* graph = current_ = new Graph;
    return *graph;
  }
  /// The same within a scope, which made it.
  static Graph& current() { return *current_; }

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
    std::uint32_t tag = identity(op, dtype, lanes, arg, srcs.data(), srcs.size());
    Node* found = table_.find(tag, [&](const Node* n) {
      if (n->op != op || n->dtype != dtype || n->lanes != lanes || n->nsrc != srcs.size() ||
          n->arg.i != arg.i)
        return false;
      for (std::size_t k = 0; k < srcs.size(); ++k)
        if (n->src[k] != srcs[k].node()) return false;
      return true;
    });
    if (found) {
      ++stats_.hits;
      return found;
    }
    Node* n = create(op, dtype, lanes, srcs, arg);
    table_.add(n, tag);
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

  Payload* ints(Dims values) {
    if (auto it = ints_.find(values); it != ints_.end()) return *it;
    auto* p = new IntsPayload;
    p->values.assign(values.begin(), values.end());
    p->hash = ByContent::hash(values);
    ints_.insert(p);
    young_payloads_.push_back(p);
    return p;
  }
  Payload* str(std::string_view value) {
    if (auto it = strs_.find(value); it != strs_.end()) return *it;
    auto* p = new StrPayload;
    p->value = value;
    p->hash = ByContent::hash(value);
    strs_.insert(p);
    young_payloads_.push_back(p);
    return p;
  }
  Payload* object(Payload* fresh) {
    young_payloads_.push_back(fresh);
    return fresh;
  }

  std::uint64_t sweeps() const { return sweeps_; }
  GraphStats stats() {
    stats_.live = live_;
    return stats_;
  }

 private:
  Graph() = default;

  // What identifies a node, as 32 well mixed bits. Sources are Refs or Node pointers.
  template <class Source>
  static std::uint32_t identity(Op op, DType dtype, int lanes, Arg arg, const Source* srcs,
                                std::size_t nsrc) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
    std::uint64_t h = mix(static_cast<std::uint64_t>(lanes) << 16 | static_cast<std::uint64_t>(dtype) << 8 |
                              static_cast<std::uint64_t>(op),
                          static_cast<std::uint64_t>(arg.i));
    for (std::size_t k = 0; k < nsrc; ++k) h = mix(h, std::bit_cast<std::uintptr_t>(srcs[k]));
    return static_cast<std::uint32_t>((h * kOdd) >> 32);
  }

  Node* create(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg) {
    auto nsrc = static_cast<std::uint32_t>(srcs.size());
    Node* n = new (pool_.take(nsrc)) Node{};  // mark 0, no shape, no cold facts
    n->nsrc = nsrc;
    n->lanes = static_cast<std::uint16_t>(lanes);
    n->dtype = dtype;
    n->op = op;
    n->arg = arg;
    std::uint64_t h = mix(static_cast<std::uint64_t>(op) << 16 | static_cast<std::uint64_t>(dtype),
                          static_cast<std::uint64_t>(lanes));
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

  // Frees every node without references, in any order of death, without recursion. A node may stand in young_
  // more than once; the marks below keep it from being freed twice.
  void sweep() {
    ++sweeps_;
    {
      std::lock_guard lock(dead_mutex_);
      for (Node* n : dead_)
        if (n->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) young_.push_back(n);
      dead_.clear();
    }
    // Each node once: every entry's node gets its position, so the last one stays.
    for (std::size_t i = 0; i < young_.size(); ++i) young_[i]->mark = static_cast<std::uint32_t>(i);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < young_.size(); ++i) {
      Node* n = young_[i];
      if (n->mark != i) continue;
      n->mark = kInYoung;
      young_[kept++] = n;
    }
    young_.resize(kept);
    while (!young_.empty()) {
      Node* n = young_.back();
      young_.pop_back();
      n->mark = 0;
      if (n->refs.load(std::memory_order_acquire) == 0) destroy(n);
    }
    for (Leaving& l : leaving_) leave(l);
    std::sort(young_payloads_.begin(), young_payloads_.end());
    young_payloads_.erase(std::unique(young_payloads_.begin(), young_payloads_.end()), young_payloads_.end());
    for (Payload* p : young_payloads_)
      if (p->refs.load(std::memory_order_relaxed) == 0) destroy(p);
    young_payloads_.clear();
  }

  // Nodes leave the table some time after they are gone, within the same sweep: by then their places, which
  // are all over a large table, are in cache.
  struct Leaving {
    const Node* node = nullptr;
    std::uint32_t tag = 0;
  };
  void leave(Leaving& l) {
    if (l.node) table_.remove(l.node, l.tag);
    l.node = nullptr;
  }

  void destroy(Node* n) {
    Leaving& slot = leaving_[++destroyed_ % leaving_.size()];
    leave(slot);
    slot = {n, identity(n->op, n->dtype, n->lanes, n->arg, n->src, n->nsrc)};
    table_.prefetch(slot.tag);
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
    if (has_payload(n->op, n->arg) && n->arg.p->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
      young_payloads_.push_back(n->arg.p);
    stats_.bytes -= sizeof(Node) + n->nsrc * sizeof(Node*);
    --live_;
    pool_.give(n, n->nsrc);
  }

  void destroy(Payload* p) {
    if (auto* v = dynamic_cast<IntsPayload*>(p)) {
      ints_.erase(v);
      delete v;
    } else if (auto* s = dynamic_cast<StrPayload*>(p)) {
      strs_.erase(s);
      delete s;
    } else {
      released_.push_back(p);
    }
  }

  static constexpr std::uint32_t kInYoung = 0xFFFFFFFF;

  static inline Graph* current_ = nullptr;
  std::mutex mutex_;
  static thread_local int depth_;
  NodeTable table_;
  std::array<Leaving, 32> leaving_{};
  std::uint64_t live_ = 0, sweeps_ = 0, destroyed_ = 0;
  NodePool pool_;
  std::vector<Node*> young_;
  std::vector<Payload*> young_payloads_, released_;
  std::mutex dead_mutex_;
  std::vector<Node*> dead_;
  absl::flat_hash_set<IntsPayload*, ByContent, SameContent> ints_;
  absl::flat_hash_set<StrPayload*, ByContent, SameContent> strs_;
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
  return Graph::current().intern(op, dtype, lanes, srcs, arg);
}

Payload* ints_payload(std::span<const std::int64_t> values) { return Graph::get().ints(values); }
Payload* str_payload(std::string_view value) { return Graph::get().str(value); }
Payload* object_payload(Payload* fresh) { return Graph::get().object(fresh); }

Cold& cold(Ref node) {
  if (!node->cold) node->cold = new Cold;
  return *node->cold;
}

std::uint64_t scope_number() { return Graph::current().sweeps(); }

std::vector<Ref> toposort(std::span<const Ref> roots) {
  new_walk();
  // A node is done once order[mark - 1] is it: marks of other walks never pass that test.
  std::vector<Ref> order;
  struct Frame {
    Node* node;
    std::uint32_t next;
  };
  thread_local std::vector<Frame> stack;  // empty between calls
  if (stack.capacity() > (std::size_t{1} << 20)) std::vector<Frame>().swap(stack);
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
