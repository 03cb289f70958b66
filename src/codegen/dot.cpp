#include "codegen/dot.h"

#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/stage.h"
#include "rewrite/rewrite.h"
#include "rules/symbolic.h"

namespace pg::codegen {
namespace {

using Refs = absl::InlinedVector<Ref, 8>;

constexpr std::int64_t kBytes = 4;

// The byte that is widened to a factor of an i32 product, or null.
Ref byte_of(Ref factor) {
  if (!factor.is(Op::Cast) || factor.dtype() != i32) return nullptr;
  DType t = factor.src(0).dtype();
  return t == i8 || t == u8 ? factor.src(0) : nullptr;
}

struct Product {
  Ref reduce, guard;  // without a guard: always on
  Ref a, b;           // bytes; b is signed
};

Product product_of(Ref reduce) {
  Product p;
  if (!reduce.is(Op::Reduce) || reduce.reduce_op() != Op::Add || reduce.dtype() != i32) return p;
  Ref value = reduce.src(0);
  if (value.is(Op::Where) && value.src(2).is_const(0)) p.guard = value.src(0), value = value.src(1);
  if (!value.is(Op::Mul)) return p;
  p.a = byte_of(value.src(0)), p.b = byte_of(value.src(1));
  if (!p.a || !p.b || (p.a.dtype() == u8 && p.b.dtype() == u8)) return p;
  if (p.b.dtype() == u8) std::swap(p.a, p.b);
  p.reduce = reduce;
  return p;
}

std::uint64_t loops_of(const Kernel& k, Ref x) {
  std::uint64_t mask = 0;
  for (Ref n : toposort(x))
    if (n.is(Op::Range))
      if (int i = k.loop_of(n); i >= 0) mask |= std::uint64_t{1} << i;
  return mask;
}

bool closes(Ref reduce, Ref loop) {
  for (int i = 1; i < reduce.nsrc(); ++i)
    if (same(reduce.src(i), loop)) return true;
  return false;
}

// The bytes at the four quarters of the loop as one word, the first in the lowest bits.
Ref word(Ref byte, Ref loop, Ref turn) {
  std::int64_t n = loop.src(0).i(), quarter = turn.src(0).i();
  Ref all;
  for (std::int64_t part = 0; part < kBytes; ++part) {
    Ref at = turn + part * quarter;
    absl::InlinedVector<std::pair<Ref, Ref>, 1> to{{loop, at}};
    Ref one = substitute(byte, to);
    if ((part + 1) * quarter > n) one = where(at < n, guarded(one, at < n), int_const(one.dtype(), 0));
    Ref wide = cast(bitcast(one, u8), i32);
    if (part) wide = wide << int_const(i32, 8 * part);
    all = all ? all | wide : wide;
  }
  return all;
}

}  // namespace

Ref dot_of_bytes(Ref kernel, Ref loop) {
  Kernel k(kernel);
  Product p;
  for (Ref r : k.reduces) {
    if (!closes(r, loop)) continue;
    if (p.reduce) return nullptr;
    p = product_of(r);
    if (!p.reduce) return nullptr;
  }
  if (!p.reduce || !loop.src(0).is_const() || loop.src(0).i() < 2 * kBytes) return nullptr;
  // Of two signed factors b is the one along which the lanes will lie: what it adds up alone, which is taken
  // off the sum, then needs few registers.
  std::uint64_t in_a = loops_of(k, p.a), in_b = loops_of(k, p.b);
  std::uint64_t outputs = (std::uint64_t{1} << k.outputs) - 1;
  if (p.a.dtype() == i8 && p.b.dtype() == i8 && (in_b & outputs) < (in_a & outputs))
    std::swap(p.a, p.b), std::swap(in_a, in_b);
  if (p.guard) {
    Ref& f = loops_of(k, p.guard) & ~in_a ? p.b : p.a;
    f = where(p.guard, f, int_const(f.dtype(), 0));
  }
  Ref turn = range(loop.range_id(), RangeKind::Reduce, idx((loop.src(0).i() + kBytes - 1) / kBytes));
  Refs sum{nullptr};
  for (int i = 1; i < p.reduce.nsrc(); ++i)
    sum.push_back(same(p.reduce.src(i), loop) ? turn : p.reduce.src(i));
  auto sum_of = [&](Ref a, Ref b) {
    sum[0] = alu(Op::DotBytes, {a, b, int_const(i32, 0)});
    return make(Op::Reduce, i32, 1, sum, p.reduce->arg);
  };
  Ref a = word(p.a, loop, turn), b = word(p.b, loop, turn);
  Ref result;
  if (p.a.dtype() == u8) {
    result = sum_of(a, b);
  } else {
    // (a + 128) * b - 128 * b; with another sign bit a byte is unsigned and 128 more.
    Ref signs = int_const(i32, 0x80808080);
    result = sum_of(a ^ signs, b) - sum_of(signs, b);
  }
  absl::InlinedVector<std::pair<Ref, Ref>, 1> to{{p.reduce, result}};
  return rewrite(substitute(kernel, to), rules::symbolic(), {.name = "simplify options"});
}

Ref loop_of_bytes(Ref kernel) {
  Kernel k(kernel);
  Ref longest;
  for (Ref r : k.reduces)
    if (product_of(r).reduce)
      for (int i = 1; i < r.nsrc(); ++i)
        if (r.src(i).src(0).is_const() && (!longest || r.src(i).hi() > longest.hi())) longest = r.src(i);
  return longest && longest.hi() + 1 >= 4 * kBytes ? longest : nullptr;
}

}  // namespace pg::codegen
