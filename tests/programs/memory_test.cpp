// Loads, stores, gates, gathers and loops, rendered and interpreted, on memory that ends where the buffer
// does: what is off must touch nothing.
#include "programs/builder.h"
#include "programs/run.h"

namespace pg::test {
namespace {

Array ramp(DType t, std::size_t n, double first = 0) {
  Array a(t, n);
  for (std::size_t i = 0; i < n; ++i)
    a.set(i, is_float(t)
                 ? float_scalar(round_to(t, first + static_cast<double>(i)))
                 : int_scalar(wrap(t, static_cast<std::int64_t>(first) + static_cast<std::int64_t>(i))));
  return a;
}

// out = a + b for 37 floats, the last vector under a mask.
TEST(Memory, AVectorTailUnderAMask) {
  GraphScope scope;
  constexpr std::int64_t n = 37, lanes = 16;
  for (DType t : {f32, f64, i32, i64, i8, u16, f16, bf16, boolean}) {
    SCOPED_TRACE(name(t));
    Array a = ramp(t, n), b = ramp(t, n, 5), out(t, n);
    Builder p;
    Ref i = p.loop((n + lanes - 1) / lanes), first = i * lanes;
    Ref lane = splat(first, lanes) + p.iota(lanes), gate = lane < n;
    Ref x = p.load(p.at(p.param(1, t, n), first, gate), lanes),
        y = p.load(p.at(p.param(2, t, n), first, gate), lanes);
    bool add = Target::host_cpu().computes.has(t);
    p.store(p.at(p.param(0, t, n), first, gate), add ? x + y : x);
    p.end();
    for (std::size_t e = 0; e < n; ++e) {
      Scalar s[2] = {a[e], b[e]};
      out.set(e, add ? eval_scalar(Op::Add, t, t, s) : a[e]);
    }
    expect_all(p.linear(), {Array(t, n), a, b}, {out, a, b});
  }
}

// A gate of one bool over a whole vector, and an alternative for what is off.
TEST(Memory, AScalarGateOverAVector) {
  GraphScope scope;
  for (DType t : {f32, i8, bf16, boolean}) {
    SCOPED_TRACE(name(t));
    constexpr std::int64_t n = 32, lanes = 8;
    Array a = ramp(t, n, 1), out(t, 2 * n);
    Builder p;
    Ref i = p.loop(2 * n / lanes), on = i < n / lanes, first = i * lanes;
    Ref seven = splat(is_float(t) ? float_const(t, 7) : int_const(t, 7), lanes);
    Ref x = p.load(p.at(p.param(1, t, n), first, on), lanes, seven);
    p.store(p.at(p.param(0, t, 2 * n), first), x);
    // Where the gate is off the offset is outside.
    p.store(p.at(p.param(2, t, n), first, on), x);
    p.end();
    for (std::size_t e = 0; e < 2 * n; ++e)
      out.bits[e] = e < n ? a.bits[e] : to_bits(t, is_float(t) ? float_scalar(7) : int_scalar(wrap(t, 7)));
    expect_all(p.linear(), {Array(t, 2 * n), a, Array(t, n)}, {out, a, a});
  }
}

TEST(Memory, ScalarsUnderAGate) {
  GraphScope scope;
  for (DType t : {f32, f64, u8, i64, f16, boolean}) {
    SCOPED_TRACE(name(t));
    constexpr std::int64_t n = 10;
    Array a = ramp(t, n, 1), zero(t, n + 6), alternative(t, n + 6), copy(t, n);
    Builder p;
    Ref i = p.loop(n + 6), at = i - 3, on = ge(at, int_const(i64, 0)) & (at < n);
    Ref three = is_float(t) ? float_const(t, 3) : int_const(t, 3);
    p.store(p.at(p.param(0, t, n + 6), i), p.load(p.at(p.param(1, t, n), at, on)));
    p.store(p.at(p.param(2, t, n + 6), i), p.load(p.at(p.param(1, t, n), at, on), 1, three));
    p.store(p.at(p.param(3, t, n), at, on), p.load(p.at(p.param(1, t, n), at, on)));
    p.end();
    for (std::size_t e = 0; e < n + 6; ++e) {
      bool inside = e >= 3 && e < n + 3;
      zero.bits[e] = inside ? a.bits[e - 3] : 0;
      alternative.bits[e] =
          inside ? a.bits[e - 3] : to_bits(t, is_float(t) ? float_scalar(3) : int_scalar(wrap(t, 3)));
    }
    expect_all(p.linear(), {Array(t, n + 6), a, Array(t, n + 6), Array(t, n)}, {zero, a, alternative, a});
  }
}

// out[l] = in[index[l]], where some indices are outside and gated off; then back to where they came from.
TEST(Memory, GathersAndScatters) {
  GraphScope scope;
  struct Case {
    DType t, offset;
    int lanes;
  };
  for (auto [t, offset, lanes] :
       {Case{f32, i32, 16}, Case{f32, u32, 4}, Case{f64, i64, 8}, Case{i32, i64, 16}, Case{i16, i32, 16},
        Case{u8, u32, 16}, Case{bf16, i32, 4}, Case{boolean, i64, 4}}) {
    SCOPED_TRACE(std::string(name(t)) + " at " + std::string(name(offset)));
    constexpr std::int64_t n = 48;
    Array in = ramp(t, n, 3), index(offset, n), gathered(t, n), scattered(t, n), reversed(t, n);
    for (std::size_t e = 0; e < n; ++e) {
      std::int64_t k = static_cast<std::int64_t>(e * 29 % 53);  // 48 to 52 are outside
      index.set(e, int_scalar(k));
      gathered.bits[e] = k < n ? in.bits[static_cast<std::size_t>(k)] : 0;
      if (k < n) scattered.bits[static_cast<std::size_t>(k)] = in.bits[e];
      reversed.bits[n - 1 - e] = in.bits[e];
    }
    Builder p;
    Ref i = p.loop(n / lanes), first = i * lanes;
    Ref k = p.load(p.at(p.param(1, offset, n), first), lanes), on = k < n;
    p.store(p.at(p.param(2, t, n), first), p.load(p.at(p.param(0, t, n), k, on)));
    p.store(p.at(p.param(3, t, n), k, on), p.load(p.at(p.param(0, t, n), first), lanes));
    // Without a gate: backwards.
    Ref back = splat(int_const(i64, n - 1) - first, lanes) - p.iota(lanes);
    p.store(p.at(p.param(4, t, n), back), p.load(p.at(p.param(0, t, n), first), lanes));
    p.end();
    expect_all(p.linear(), {in, index, Array(t, n), Array(t, n), Array(t, n)},
               {in, index, gathered, scattered, reversed});
  }
}

TEST(Memory, AnyByteButZeroIsTrue) {
  GraphScope scope;
  Array in(u8, {0, 1, 2, 128, 255, 0, 7, 0}), out(boolean, {0, 1, 1, 1, 1, 0, 1, 0});
  in.dtype = boolean;
  for (int lanes : {1, 8}) {
    Builder p;
    Ref i = p.loop(8 / lanes);
    Ref x = p.load(p.at(p.param(0, boolean, 8), i * lanes), lanes);
    p.store(p.at(p.param(1, boolean, 8), i * lanes), x);
    p.end();
    expect_all(p.linear(), {in, Array(boolean, 8)}, {in, out});
  }
}

// What is only moved keeps every bit, also those of a signalling NaN.
TEST(Memory, MovingKeepsEveryBit) {
  GraphScope scope;
  for (DType t : {f16, bf16, f32, f64}) {
    std::uint64_t odd = t == f32   ? 0x7f800001u
                        : t == f64 ? 0x7ff0000000000001u
                        : t == f16 ? 0x7c01u
                                   : 0x7f81u;
    Builder p;
    Ref x = p.load(p.at(p.param(0, t, 4), int_const(i64, 0)), 4);
    DType raw = itemsize(t) == 2 ? u16 : itemsize(t) == 4 ? u32 : u64;
    p.store(p.at(p.param(1, raw, 4), int_const(i64, 0)), bitcast(x, raw));
    Array in(t, {odd, 1, odd, 2}), out(raw, in.bits);
    expect_all(p.linear(), {in, Array(raw, 4)}, {in, out});
  }
}

TEST(Memory, InPlace) {
  GraphScope scope;
  constexpr std::int64_t n = 32;
  Array a = ramp(f32, n), out = a;
  for (std::size_t e = 0; e < n; ++e) out.set(e, float_scalar(2.0 * static_cast<double>(e)));
  Builder p;
  Ref i = p.loop(n / 8), buffer = p.param(0, f32, n);
  Ref x = p.load(p.at(buffer, i * 8), 8);
  p.store(p.at(buffer, i * 8), x + x);
  p.end();
  expect_all(p.linear(), {a}, {out});
}

// --- loops and accumulators ----------------------------------------------------------------------

TEST(Loops, OfAnyLengthAlsoNone) {
  GraphScope scope;
  // out[r] = sum of in[r, 0..k) with k a parameter; and how often the inner loop ran in all, in an
  // accumulator outside.
  constexpr std::int64_t rows = 3, columns = 5;
  Array in = ramp(i32, rows * columns);
  for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, columns}) {
    Builder p;
    Ref extent = p.scalar(0, i64, 0, columns), count = p.acc(int_const(i32, 100));
    Ref r = p.loop(rows), sum = p.acc(int_const(i32, 7));
    Ref c = p.loop(extent);
    p.set(sum, p.get(sum) + p.load(p.at(p.param(1, i32, rows * columns), r * columns + c)));
    p.set(count, p.get(count) + 1);
    p.end();
    p.store(p.at(p.param(0, i32, rows + 1), r), p.get(sum));
    p.end();
    p.store(p.at(p.param(0, i32, rows + 1), int_const(i64, rows)), p.get(count));
    Array out(i32, rows + 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t total = 7;
      for (std::int64_t column = 0; column < k; ++column) total += row * columns + column;
      out.set(static_cast<std::size_t>(row), int_scalar(total));
    }
    out.set(rows, int_scalar(100 + rows * k));
    expect_all(p.linear(), {Array(i32, rows + 1), in}, {out, in}, {k});
  }
}

TEST(Loops, AnAccumulatorReadBetweenTwoWrites) {
  GraphScope scope;
  // Fibonacci numbers: two accumulators that feed each other.
  Builder p;
  Ref a = p.acc(int_const(i64, 0)), b = p.acc(int_const(i64, 1));
  Ref i = p.loop(20);
  p.store(p.at(p.param(0, i64, 20), i), p.get(a));
  Ref x = p.get(a), y = p.get(b);
  p.set(a, y);
  p.set(b, x + y);
  p.end();
  Array out(i64, 20);
  std::int64_t u = 0, v = 1;
  for (std::size_t k = 0; k < 20; ++k) {
    out.set(k, int_scalar(u));
    std::tie(u, v) = std::pair(v, u + v);
  }
  expect_all(p.linear(), {Array(i64, 20)}, {out});
}

// Every way to fold, by halves, on vectors.
TEST(Reductions, OfVectors) {
  GraphScope scope;
  for (DType t : {f32, f64, i32, u8, i64, boolean, f16})
    for (std::size_t lanes : {std::size_t{2}, std::size_t{16}, std::size_t{64}}) {
      if (!Target::host_cpu().computes.has(t)) continue;
      SCOPED_TRACE(name(t));
      Array in(t, interesting(t, 80)), out(t, 0);
      in.bits.resize(lanes, in.bits[0]);
      Builder p;
      auto n = static_cast<std::int64_t>(lanes);
      Ref x = p.load(p.at(p.param(0, t, n), int_const(i64, 0)), static_cast<int>(lanes));
      for (Op op : {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Xor}) {
        if (is_float(t) && (op == Op::And || op == Op::Or || op == Op::Xor)) continue;
        std::vector<Scalar> v;
        for (std::size_t e = 0; e < lanes; ++e) v.push_back(in[e]);
        for (std::size_t half = lanes / 2; half; half /= 2)
          for (std::size_t e = 0; e < half; ++e) {
            Scalar pair[2] = {v[e], v[e + half]};
            v[e] = eval_scalar(op, t, t, pair);
          }
        p.store(p.at(p.param(1, t, 8), int_const(i64, static_cast<std::int64_t>(out.size()))), p.fold(x, op));
        out.bits.push_back(to_bits(t, v[0]));
      }
      expect_all(p.linear(), {in, Array(t, out.size())}, {in, out});
    }
}

// C (m x n) = A (m x k) B (k x n) in register tiles of 4 rows and two vectors.
TEST(Reductions, ATileOfAMatrixProduct) {
  GraphScope scope;
  constexpr std::int64_t m = 8, n = 64, k = 19, lanes = 16, high = 4, wide = 2;
  Array a(f32, m * k), b(f32, k * n), c(f32, m * n);
  std::mt19937 random(7);
  for (Array* x : {&a, &b})
    for (std::size_t e = 0; e < x->size(); ++e)
      x->set(e, float_scalar(round_to(f32, std::uniform_real_distribution<>(-1, 1)(random))));
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      float sum = 0;
      for (std::size_t e = 0; e < k; ++e)
        sum = std::fma(static_cast<float>(a[row * k + e].f), static_cast<float>(b[e * n + column].f), sum);
      c.set(row * n + column, float_scalar(static_cast<double>(sum)));
    }
  Builder p;
  Ref thread = p.special("thread", m / high), row = thread * high;
  Ref tile = p.loop(n / (lanes * wide)), column = tile * (lanes * wide);
  for (int i = 0; i < high; ++i) p.add((row + i) * n + column), p.add((row + i) * k);
  std::vector<Ref> accs;
  for (int i = 0; i < high * wide; ++i) accs.push_back(p.acc(splat(float_const(f32, 0), lanes)));
  Ref e = p.loop(k);
  std::vector<Ref> right;
  for (int j = 0; j < wide; ++j)
    right.push_back(p.load(p.at(p.param(2, f32, k * n), e * n + column + j * lanes), lanes));
  for (int i = 0; i < high; ++i) {
    Ref left = splat(p.load(p.at(p.param(1, f32, m * k), (row + i) * k + e)), lanes);
    for (int j = 0; j < wide; ++j) {
      Ref acc = accs[static_cast<std::size_t>(i * wide + j)];
      p.set(acc, alu(Op::MulAcc, {left, right[static_cast<std::size_t>(j)], p.get(acc)}));
    }
  }
  p.end();
  for (int i = 0; i < high; ++i)
    for (int j = 0; j < wide; ++j)
      p.store(p.at(p.param(0, f32, m * n), (row + i) * n + column + j * lanes),
              p.get(accs[static_cast<std::size_t>(i * wide + j)]));
  p.end();
  for (bool distinct : {false, true})
    expect_all(p.linear(), {Array(f32, m * n), a, b}, {c, a, b}, {}, distinct);
}

// --- arguments -----------------------------------------------------------------------------------

TEST(Arguments, ScalarsOfEveryInteger) {
  GraphScope scope;
  std::vector<Array> buffers, expected;
  std::vector<std::int64_t> scalars;
  Builder p;
  int slot = 0;
  for (DType t : {i8, u8, i16, u16, i32, u32, i64, u64}) {
    std::int64_t v = wrap(t, t == u64 ? 1ll << 40 : -3);
    scalars.push_back(v);
    p.store(p.at(p.param(slot, t, 1), int_const(i32, 0)), p.scalar(slot, t, v, v));
    buffers.emplace_back(t, 1);
    expected.emplace_back(t, 1);
    expected.back().set(0, int_scalar(v));
    ++slot;
  }
  expect_all(p.linear(), buffers, expected, scalars);
}

TEST(Arguments, ScratchIsOfTheThreadAlone) {
  GraphScope scope;
  // Each thread reverses its 40 numbers by way of scratch.
  constexpr std::int64_t n = 40, threads = 3;
  Array in = ramp(f32, n * threads), out(f32, n * threads);
  for (std::size_t t = 0; t < threads; ++t)
    for (std::size_t e = 0; e < n; ++e) out.bits[t * n + e] = in.bits[t * n + n - 1 - e];
  Builder p;
  Ref thread = p.special("thread", threads, i32), first = p.add(cast(thread, i64) * n);
  Ref other = p.local(1, u8, 3), panel = p.local(4, f32, n);
  p.store(p.at(other, int_const(i64, 2)), int_const(u8, 9));
  Ref i = p.loop(n);
  p.store(p.at(panel, i), p.load(p.at(p.param(1, f32, n * threads), first + i)));
  p.end();
  Ref j = p.loop(n);
  p.store(p.at(p.param(0, f32, n * threads), first + j), p.load(p.at(panel, int_const(i64, n - 1) - j)));
  p.end();
  ProgramInfo info = program_info(p.linear(), "k", Target::host_cpu());
  EXPECT_EQ(info.scratch_bytes, 64 + 192);
  EXPECT_EQ(info.threads, threads);
  expect_all(p.linear(), {Array(f32, n * threads), in}, {out, in});
}

TEST(Arguments, LanesTakenApart) {
  GraphScope scope;
  Array in = ramp(i32, 4, 10), out(i32, {13, 10});
  Builder p;
  Ref x = p.load(p.at(p.param(0, i32, 4), int_const(i64, 0)), 4);
  p.store(p.at(p.param(1, i32, 2), int_const(i64, 0)), p.extract(x, 3));
  p.store(p.at(p.param(1, i32, 2), int_const(i64, 1)), p.extract(x, 0));
  expect_all(p.linear(), {in, Array(i32, 2)}, {in, out});
}

}  // namespace
}  // namespace pg::test
