// Linear programs written by hand: what code generation would make, for tests of what comes after it.
// Instructions stand in the order in which the test makes them; sources that do not stand yet go before their
// user.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/build.h"

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
    outside_.push_back(listed_);
    return r;
  }
  Ref loop(std::int64_t extent, DType t = i64) { return loop(int_const(t, extent)); }
  void end() {
    effect_ = list(intern(Op::End, DType::Void, 1, std::vector<Ref>{effect_, open_.back()}));
    open_.pop_back();
    listed_ = outside_.back();  // what stands within is not seen from outside
    outside_.pop_back();
  }

  Ref at(Ref buffer, Ref offset, Ref gate = nullptr) {
    std::vector<Ref> s{buffer, offset};
    if (gate) s.push_back(gate);
    return make(Op::Index, buffer.dtype(), 1, s);
  }
  /// Lanes of a contiguous access; a vector offset has its own.
  Ref load(Ref index, int lanes = 1, Ref other = nullptr) {
    std::vector<Ref> s{after_effect(index)};
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
  void barrier() { effect_ = list(intern(Op::Barrier, DType::Void, 1, std::vector<Ref>{effect_})); }
  void begin_if(Ref gate) { effect_ = add(make(Op::If, DType::Void, {gate})); }
  void end_if() { effect_ = list(intern(Op::EndIf, DType::Void, 1, std::vector<Ref>{effect_})); }

  /// Puts a node where the program stands, and before it what it needs.
  Ref add(Ref n) {
    if (n.is(Op::After)) {
      add(n.src(0));
      return n;
    }
    if (listed_.contains(n.node()) || n.has(kLeaf)) return n;
    for (Node* s : n.srcs())
      if (s->dtype != DType::Void) add(s);  // effects stand where they were made
    return list(n);
  }
  Ref linear() const { return intern(Op::Linear, DType::Void, 1, instructions_); }

 private:
  Ref list(Ref n) {
    instructions_.push_back(n);
    listed_.insert(n.node());
    return n;
  }
  // A read after the last effect is another read than one before it.
  Ref after_effect(Ref x) {
    return effect_.is(start_) ? x : intern(Op::After, x.dtype(), x.lanes(), std::vector<Ref>{x, effect_});
  }

  std::vector<Ref> instructions_, open_;
  std::set<const Node*> listed_;
  std::vector<std::set<const Node*>> outside_;
  std::int64_t next_range_ = 0;
  Ref start_ = idx(0), effect_ = start_;
};

}  // namespace pg::test
