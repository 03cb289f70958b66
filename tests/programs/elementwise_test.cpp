// Every elementwise op and cast on every dtype, rendered and interpreted, against eval_scalar: scalars and
// vectors.
#include "programs/cases.h"

namespace pg::test {
namespace {

void run_ops(int lanes, DType t) {
  GraphScope scope;
  Case c = all_ops(t, lanes, Target::host_cpu());
  expect_all(c.linear, c.buffers, c.expected);
}
void run_casts(int lanes, DType t) {
  GraphScope scope;
  Case c = all_casts(t, lanes);
  expect_all(c.linear, c.buffers, c.expected);
}

class Elementwise : public testing::TestWithParam<DType> {};
TEST_P(Elementwise, Scalars) { run_ops(1, GetParam()); }
TEST_P(Elementwise, ShortVectors) { run_ops(4, GetParam()); }
TEST_P(Elementwise, Vectors) { run_ops(16, GetParam()); }
TEST_P(Elementwise, VectorsWiderThanARegister) { run_ops(64, GetParam()); }

class Casts : public testing::TestWithParam<DType> {};
TEST_P(Casts, Scalars) { run_casts(1, GetParam()); }
TEST_P(Casts, ShortVectors) { run_casts(2, GetParam()); }
TEST_P(Casts, Vectors) { run_casts(16, GetParam()); }

std::string dtype_name(const testing::TestParamInfo<DType>& info) { return std::string(name(info.param)); }
INSTANTIATE_TEST_SUITE_P(All, Elementwise, testing::ValuesIn(kAll), dtype_name);
INSTANTIATE_TEST_SUITE_P(All, Casts, testing::ValuesIn(kAll), dtype_name);

// Operands known to the renderer take other instructions.
void constant_operands(DType t, int lanes) {
  GraphScope scope;
  Array in(t, interesting(t));
  while (in.size() % 64) in.bits.push_back(in.bits[1]);
  auto n = static_cast<std::int64_t>(in.size());
  std::vector<Array> buffers{in}, expected{in};
  Builder p;
  Ref i = p.loop(n / lanes), first = i * lanes, x = p.load(p.at(p.param(0, t, n), first), lanes);
  std::vector<Op> ops;
  if (is_float(t))
    ops = {Op::Max, Op::Min, Op::Mul, Op::Add, Op::Div};
  else
    ops = {Op::CDiv, Op::CMod, Op::FloorDiv, Op::FloorMod, Op::Shl, Op::Shr, Op::Max};
  std::vector<double> constants;
  if (is_float(t))
    constants = {0.0, -0.0, 1.0, -2.5, HUGE_VAL, -HUGE_VAL, std::nan("")};
  else
    constants = {0, 1, -1, 2, 3, 7, -5, 8, 64, static_cast<double>(int_min(t))};
  for (Op op : ops)
    for (double c : constants)
      for (bool left : {false, true}) {
        Scalar v = is_float(t) ? float_scalar(c) : cast_scalar(float_scalar(c), f64, t);
        if (is_unsigned(t) && c < 0)
          v = from_bits(
              t, static_cast<std::uint64_t>(static_cast<std::int64_t>(c)) & to_bits(t, int_scalar(-1)));
        Array values(t, in.size());
        for (std::size_t e = 0; e < in.size(); ++e) {
          Scalar s[2] = {left ? v : in[e], left ? in[e] : v};
          values.set(e, eval_scalar(op, t, t, s));
        }
        Ref k = splat(scalar_const(t, v), lanes), s[2] = {left ? k : x, left ? x : k};
        auto slot = static_cast<int>(buffers.size());
        p.store(p.at(p.param(slot, t, n), first), intern(op, t, lanes, s));
        buffers.emplace_back(t, in.size());
        expected.push_back(values);
      }
  p.end();
  expect_all(p.linear(), buffers, expected);
}

TEST(Constants, AsOperandsOfIntegers) {
  for (DType t : {i8, u8, i32, u32, i64, u64}) {
    SCOPED_TRACE(name(t));
    constant_operands(t, 1);
  }
  constant_operands(i32, 16);
  constant_operands(u16, 32);
}
TEST(Constants, AsOperandsOfFloats) {
  constant_operands(f32, 1);
  constant_operands(f32, 16);
  constant_operands(f64, 8);
}

}  // namespace
}  // namespace pg::test
