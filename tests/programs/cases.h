// Programs with every elementwise op and every cast of a dtype, with what they must compute.
#pragma once

#include "programs/builder.h"
#include "programs/run.h"

namespace pg::test {

struct Case {
  Ref linear;
  std::vector<Array> buffers, expected;
};

inline constexpr DType kAll[] = {boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64};

inline std::vector<Op> ops_of(DType t, const Target& target) {
  std::vector<Op> ops;
  for (int k = 0; k < kOpCount; ++k) {
    auto op = static_cast<Op>(k);
    if (!is_exact(op) || op == Op::Cast || op == Op::Bitcast || op == Op::Threefry) continue;
    if (op == Op::DotBytes && t != i32) continue;
    bool whole = op == Op::FloorDiv || op == Op::FloorMod || op == Op::CDiv || op == Op::CMod ||
                 op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Shl || op == Op::Shr;
    bool real = op == Op::Div || op == Op::Sqrt;
    if (is_float(t) ? whole : real) continue;
    bool logical = op == Op::Add || op == Op::Mul || op == Op::Max || op == Op::Min || op == Op::And ||
                   op == Op::Or || op == Op::Xor || op == Op::Where || info(op).flags & kComparison;
    if (t == DType::Bool && !logical) continue;
    if (op == Op::Where || (target.computes.has(t) && target.has(op))) ops.push_back(op);
  }
  return ops;
}

inline DType result_of(Op op, DType t) { return info(op).flags & kComparison ? boolean : t; }

// Operands that meet in all pairs of interesting values, padded to a multiple of 64.
struct Operands {
  Array a, b, c;
  explicit Operands(DType t) : a(t, 0), b(t, 0), c(t, 0) {
    auto some = interesting(t, 12);
    for (std::size_t i = 0; i < some.size(); ++i)
      for (std::size_t j = 0; j < some.size(); ++j) {
        a.bits.push_back(some[i]);
        b.bits.push_back(some[j]);
        c.bits.push_back(some[(i * 7 + j * 3) % some.size()]);
      }
    while (a.size() % 64)
      a.bits.push_back(some[0]), b.bits.push_back(some[1 % some.size()]), c.bits.push_back(some[0]);
  }
};

/// Within a GraphScope, as the next.
inline Case all_ops(DType t, int lanes, const Target& target) {
  Operands in(t);
  auto n = static_cast<std::int64_t>(in.a.size());
  std::vector<Op> ops = ops_of(t, target);
  std::vector<Array> buffers{in.a, in.b, in.c}, expected = buffers;
  Builder p;
  Ref i = p.loop(n / lanes), first = i * lanes;
  Ref x[3];
  for (int k = 0; k < 3; ++k) x[k] = p.load(p.at(p.param(k, t, n), first), lanes);
  for (Op op : ops) {
    DType to = result_of(op, t);
    Array values(to, in.a.size());
    for (std::size_t e = 0; e < in.a.size(); ++e) {
      Scalar s[3] = {in.a[e], in.b[e], in.c[e]};
      if (op == Op::Where) s[0] = int_scalar((in.a.bits[e] ^ in.b.bits[e]) & 1);
      values.set(e, eval_scalar(op, to, t, s));
    }
    Ref y;
    if (op == Op::Where) {
      DType raw = itemsize(t) == 1 ? u8 : itemsize(t) == 2 ? u16 : itemsize(t) == 4 ? u32 : u64;
      Ref bits = t == raw ? x[0] ^ x[1] : bitcast(x[0], raw) ^ bitcast(x[1], raw);
      y = where(cast(bits & const_like(bits, 1), boolean), x[1], x[2]);
    } else {
      y = alu(op, std::span<const Ref>(x, static_cast<std::size_t>(info(op).nsrc)));
    }
    auto slot = static_cast<int>(buffers.size());
    p.store(p.at(p.param(slot, to, n), first), y);
    buffers.emplace_back(to, in.a.size());
    expected.push_back(values);
  }
  p.end();
  return {p.linear(), buffers, expected};
}

inline Case all_casts(DType from, int lanes) {
  Array in(from, interesting(from, 200));
  while (in.size() % 64) in.bits.push_back(in.bits[1]);
  auto n = static_cast<std::int64_t>(in.size());
  std::vector<Array> buffers{in}, expected{in};
  Builder p;
  Ref i = p.loop(n / lanes), first = i * lanes, x = p.load(p.at(p.param(0, from, n), first), lanes);
  for (DType to : kAll) {
    for (Op op : {Op::Cast, Op::Bitcast}) {
      if (from == to || (op == Op::Bitcast && itemsize(from) != itemsize(to))) continue;
      Array values(to, in.size());
      for (std::size_t e = 0; e < in.size(); ++e) {
        Scalar s = in[e];
        if (op == Op::Cast)
          values.set(e, eval_scalar(op, to, from, &s));
        else
          values.bits[e] = to == DType::Bool ? in.bits[e] != 0 : in.bits[e];
      }
      auto slot = static_cast<int>(buffers.size());
      p.store(p.at(p.param(slot, to, n), first), op == Op::Cast ? cast(x, to) : bitcast(x, to));
      buffers.emplace_back(to, in.size());
      expected.push_back(values);
    }
  }
  p.end();
  return {p.linear(), buffers, expected};
}

}  // namespace pg::test
