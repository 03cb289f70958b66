// Linear programs written by hand: what code generation would make, for tests of what comes after it.
// Instructions stand in the order in which the test makes them; sources that do not stand yet go before their
// user.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/print.h"

namespace pg::test {

class Builder {
 public:
  Ref param(int slot, DType t, std::int64_t n) {
    return pg::param(slot, t, shape_node(Dims(std::vector<std::int64_t>{n})));
  }
  Ref scalar(int slot, DType t = i64, std::int64_t lo = 0, std::int64_t hi = 1 << 20) {
    return scalar_param(slot, t, lo, hi);
  }
  Ref special(const char* name, std::int64_t extent, DType t = i64) {
    return make(Op::Special, t, {int_const(t, extent)}, Arg{.p = str_payload(name)});
  }
  Ref local(int slot, DType t, std::int64_t n) {
    return make(Op::Local, t, {shape_node(Dims(std::vector<std::int64_t>{n}))}, Arg{.i = slot});
  }
  Ref iota(int lanes, DType t = i64) { return make(Op::Iota, t, {}, {}, lanes); }

  Ref loop(Ref extent) {
    add(extent);
    Ref r = list(make(Op::Range, extent.dtype(), {extent},
                      Arg{.i = next_range_++ << 8 | static_cast<int>(RangeKind::Loop)}));
    open_.push_back(r);
    within_.emplace_back();
    return r;
  }
  Ref loop(std::int64_t extent, DType t = i64) { return loop(int_const(t, extent)); }
  void end() {
    effect(Op::End, {open_.back()});
    open_.pop_back();
    closed_.merge(within_.back());  // what stands within is not seen from outside
    within_.pop_back();
  }

  Ref at(Ref buffer, Ref offset, Ref gate = nullptr) {
    std::vector<Ref> s{buffer, offset};
    if (gate) s.push_back(gate);
    return make(Op::Index, buffer.dtype(), 1, s);
  }
  /// Lanes of a contiguous access; a vector offset has its own.
  Ref load(Ref index, int lanes = 1, Ref other = nullptr) {
    std::vector<Ref> at(index.srcs().begin(), index.srcs().end());
    at[0] = after_effect(at[0]);
    std::vector<Ref> s{with_srcs(index, at)};
    if (other) s.push_back(other);
    return add(make(Op::Load, index.dtype(), std::max(lanes, index.src(1).lanes()), s));
  }
  void store(Ref index, Ref value) { effect_ = add(make(Op::Store, DType::Void, {index, value})); }

  Ref acc(Ref initial, Op op = Op::Add) {
    std::vector<Ref> s{initial};
    for (Ref r : open_) s.push_back(r);
    // The axes keep two with equal parts apart.
    return add(make(Op::Acc, initial.dtype(), initial.lanes(), s,
                    reduce_arg(op, static_cast<std::uint64_t>(next_range_++))));
  }
  Ref get(Ref acc) {
    std::vector<Ref> s{after_effect(acc)};
    for (Ref r : open_) s.push_back(r);
    return add(make(Op::Load, acc.dtype(), acc.lanes(), s));
  }
  void set(Ref acc, Ref value) { store(acc, value); }

  Ref fold(Ref vector, Op op) {
    return add(make(Op::Reduce, vector.dtype(), 1, std::vector<Ref>{vector}, reduce_arg(op)));
  }
  Ref extract(Ref vector, int lane) {
    return add(make(Op::Extract, vector.dtype(), 1, std::vector<Ref>{vector}, Arg{.i = lane}));
  }
  void barrier() { effect(Op::Barrier, {}); }
  void begin_if(Ref gate) {
    effect_ = add(make(Op::If, DType::Void, {gate}));
    ifs_.push_back(effect_);
  }
  void end_if() {
    effect_ = list(make(Op::EndIf, DType::Void, {ifs_.back()}));
    ifs_.pop_back();
  }

  /// Puts a node where the program stands, and before it what it needs. What was made in a loop that is
  /// closed cannot be used any more: make it before.
  Ref add(Ref n) {
    if (closed_.contains(n.node()))
      throw InternalError("[builder] " + brief(n) + " was made in a loop that is closed");
    if (listed_.contains(n.node()) || n.is(Op::Const) || n.is(Op::Shape)) return n;
    if (n.has(kLeaf) && !n.is(Op::Range)) {
      leaves_.push_back(n);
      listed_.insert(n.node());
      return n;
    }
    for (Node* s : n.srcs())
      if (s->dtype != DType::Void) add(s);  // effects stand where they were made
    return list(n);
  }
  Ref linear() const {
    std::vector<Ref> all = leaves_;
    all.insert(all.end(), instructions_.begin(), instructions_.end());
    return intern(Op::Linear, DType::Void, 1, all);
  }

 private:
  Ref list(Ref n) {
    instructions_.push_back(n);
    listed_.insert(n.node());
    if (!within_.empty() && n.dtype() != DType::Void) within_.back().insert(n.node());
    return n;
  }
  // One that must come after the last.
  void effect(Op op, std::vector<Ref> srcs) {
    if (effect_) srcs.insert(srcs.begin(), effect_);
    effect_ = list(intern(op, DType::Void, 1, srcs, Arg{.i = 0}));
  }
  // A read after the last effect is another read than one before it.
  Ref after_effect(Ref x) {
    return !effect_ ? x : intern(Op::After, x.dtype(), x.lanes(), std::vector<Ref>{x, effect_});
  }

  std::vector<Ref> leaves_, instructions_, open_, ifs_;
  std::set<const Node*> listed_;
  std::set<const Node*> closed_;
  std::vector<std::set<const Node*>> within_;
  std::int64_t next_range_ = 0;
  Ref effect_;
};

}  // namespace pg::test
