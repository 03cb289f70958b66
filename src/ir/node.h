// The one node of every graph: immutable, interned (same op, dtype, sources, argument: same address),
// counted. Ref is what passes handle while they hold the graph; UOp is the owning 8-byte handle that lives
// anywhere.
//
// Rules of use. Nodes are made and Refs are used inside a GraphScope, which holds the one lock of the
// process-wide graph; a node nobody refers to lives until the outermost scope ends. A UOp may be copied and
// dropped by any thread at any time; reading a node through it needs no lock, since nodes never change.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pangrad/dtype.h>

namespace pg {

enum class Op : std::uint8_t {
#define OP(name, ...) name,
#include "ir/ops.def"
#undef OP
};
#define OP(name, ...) +1
inline constexpr int kOpCount = 0
#include "ir/ops.def"
    ;
#undef OP

enum class ArgKind : std::uint8_t { None, Int, Value, Ints, Str, Object, Range, Reduce };

enum OpFlag : std::uint16_t {
  kLeaf = 1,
  kMovement = 2,
  kElementwise = 4,
  kUnary = 8,
  kBinary = 16,
  kTernary = 32,
  kCommutative = 64,
  kAssociative = 128,
  kIdempotent = 256,
  kComparison = 512,
};

struct OpInfo {
  std::string_view name;
  std::int8_t nsrc;
  ArgKind arg;
  std::uint16_t flags;
};
extern const OpInfo kOps[kOpCount];
inline const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }
/// The op of that name. Throws ValueError on others.
Op parse_op(std::string_view name);

/// What a loop variable stands for. Order is nesting order from outside, by default.
enum class RangeKind : std::uint8_t {
  Device,
  Thread,
  Global,
  Warp,
  Local,
  Loop,
  GroupReduce,
  Reduce,
  Upcast,
  Unroll,
  Lane,
};
std::string_view name(RangeKind kind);

/// Where a STAGE puts its value: a buffer of its own, shared memory of a group, a panel private to a thread.
enum class Place : std::uint8_t { Global, Local, Scratch };

// --- payloads: arguments larger than 8 bytes
// -----------------------------------------------------------------------

/// Base of counted arguments. Ints and Str are interned by content; Objects have identity.
struct Payload {
  std::atomic<std::uint32_t> refs{0};
  std::uint64_t hash = 0;  // structural: equal between runs, blind to storage identity
  virtual ~Payload() = default;
  /// How the printer shows an Object.
  virtual std::string text() const { return "?"; }
  /// Called without the graph's lock once the last node with this argument is gone.
  virtual void release() { delete this; }
};
struct IntsPayload final : Payload {
  std::vector<std::int64_t> values;
};
struct StrPayload final : Payload {
  std::string value;
};

union Arg {
  std::int64_t i = 0;
  double f;
  Payload* p;
};

// --- node
// ----------------------------------------------------------------------------------------------------------

struct Node;
class UOp;

/// Facts worked out on demand, and what passes remember about a node.
struct Cold;

struct Node {
  std::atomic<std::uint32_t> refs;
  std::uint32_t nsrc;
  mutable std::uint32_t mark;  // index into the table of the walk that last saw this node
  std::uint16_t lanes;         // 1, or the width of a vector
  DType dtype;
  Op op;
  std::uint64_t hash;  // structural
  Arg arg;
  mutable const Node* shape;  // interned Shape node, or null while unknown
  mutable Cold* cold;
  std::int64_t lo, hi;  // bounds of integer and bool nodes
  Node* src[];
};
static_assert(sizeof(Node) == 64);

/// A borrowed node, valid while something keeps it: a UOp, an edge, or the current GraphScope.
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  constexpr Ref(const Node* node) : node_(const_cast<Node*>(node)) {}
  constexpr explicit operator bool() const { return node_ != nullptr; }
  constexpr bool is(Ref other) const { return node_ == other.node_; }
  constexpr Node* node() const { return node_; }
  Node* operator->() const { return node_; }

  Op op() const { return node_->op; }
  bool is(Op op) const { return node_->op == op; }
  DType dtype() const { return node_->dtype; }
  int lanes() const { return node_->lanes; }
  int nsrc() const { return static_cast<int>(node_->nsrc); }
  Ref src(int i) const {
    assert(i < nsrc());
    return node_->src[i];
  }
  std::span<Node* const> srcs() const { return {node_->src, node_->nsrc}; }
  std::int64_t lo() const { return node_->lo; }
  std::int64_t hi() const { return node_->hi; }

  bool has(OpFlag flag) const { return info(node_->op).flags & flag; }
  bool is_const() const { return node_->op == Op::Const; }
  /// True if this is the constant v (of an integer or bool type; for floats the exact value, and 0.0 is not
  /// -0.0).
  bool is_const(double v) const {
    if (!is_const()) return false;
    return is_float(dtype()) ? std::bit_cast<std::int64_t>(node_->arg.f) == std::bit_cast<std::int64_t>(v)
                             : static_cast<double>(node_->arg.i) == v;
  }
  /// Arguments, by what the op's row in ops.def says it has.
  std::int64_t i() const { return node_->arg.i; }
  double f() const { return node_->arg.f; }
  std::span<const std::int64_t> ints() const { return static_cast<IntsPayload*>(node_->arg.p)->values; }
  const std::string& str() const { return static_cast<StrPayload*>(node_->arg.p)->value; }
  template <class T>
  T& object() const {
    return *static_cast<T*>(node_->arg.p);
  }
  bool has_object() const { return node_->arg.p != nullptr; }

  // Range: arg = id * 256 + kind.
  RangeKind range_kind() const { return static_cast<RangeKind>(node_->arg.i & 255); }
  std::int64_t range_id() const { return node_->arg.i >> 8; }
  // Reduce and Acc: arg = axes * 256 + op.
  Op reduce_op() const { return static_cast<Op>(node_->arg.i & 255); }
  std::uint64_t reduce_axes() const { return static_cast<std::uint64_t>(node_->arg.i) >> 8; }

  friend constexpr bool same(Ref a, Ref b) { return a.node_ == b.node_; }

 private:
  Node* node_ = nullptr;
};

/// An owning handle: keeps its node. Copying and dropping are safe from any thread.
class UOp {
 public:
  UOp() = default;
  /// Within a GraphScope.
  UOp(Ref ref) : node_(ref.node()) {
    if (node_) node_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  UOp(const UOp& other) : UOp(Ref(other.node_)) {}
  UOp(UOp&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  UOp& operator=(UOp other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~UOp() {
    if (node_) drop(node_);
  }
  operator Ref() const { return node_; }
  Node* operator->() const { return node_; }
  Ref ref() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  static void drop(Node* node);
  Node* node_ = nullptr;
};

/// Holds the lock of the graph; may nest. The end of the outermost scope frees what nobody refers to.
class GraphScope {
 public:
  GraphScope();
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;
};

/// Numbers for tests and `pangrad cache`.
struct GraphStats {
  std::uint64_t made = 0;  // nodes ever made (not counting hits)
  std::uint64_t hits = 0;  // nodes found instead
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
};
GraphStats graph_stats();

// --- making nodes (inside a GraphScope)
// ----------------------------------------------------------------------------

/// The node with these parts, found or made. Folds nothing and orders nothing; prefer the functions of
/// ir/build.h.
Ref intern(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg = {});
/// As intern, with constants folded and commutative integer operands ordered. What rewriting uses to rebuild.
Ref make(Op op, DType dtype, int lanes, std::span<const Ref> srcs, Arg arg = {});
inline Ref make(Op op, DType dtype, std::initializer_list<Ref> srcs, Arg arg = {}, int lanes = 1) {
  return make(op, dtype, lanes, std::span<const Ref>(srcs.begin(), srcs.size()), arg);
}
/// The same node with other sources.
Ref with_srcs(Ref node, std::span<const Ref> srcs);

/// Interned payloads; the result lives at least as long as the scope.
Payload* ints_payload(std::span<const std::int64_t> values);
Payload* str_payload(std::string_view value);
/// Hands an Object over to the graph.
Payload* object_payload(Payload* fresh);

// --- facts
// ---------------------------------------------------------------------------------------------------------

/// Everything reachable from the roots, sources before users, each once. No recursion.
std::vector<Ref> toposort(std::span<const Ref> roots);
inline std::vector<Ref> toposort(Ref root) { return toposort(std::span<const Ref>(&root, 1)); }

/// The interned Shape of a tensor-graph node. Worked out without recursion and remembered.
Ref shape_of(Ref node);

/// Side facts of a node, kept while it lives. Made at first use; needs the graph's lock.
struct Cold {
  /// Once the node's value is in a storage: the Buffer leaf that stands for it.
  UOp materialized;
  /// Name a user gave, shown in listings.
  std::string label;
};
Cold& cold(Ref node);

}  // namespace pg
