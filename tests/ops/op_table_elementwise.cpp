// Elementwise operations on f32: one operand, two, more; broadcasting; numbers beside tensors.
#include "ops/op_table.h"

namespace pg::ops {
namespace {

using Unary = Tensor (Tensor::*)() const;

struct UnaryRow {
  const char* name;
  Unary apply;
  double low, high;
  double steps, scale;
  bool grad;
};

// Steps: 0 for what IEEE defines; 2 for a function of its own; more for what is built from several. The scale
// is that of the terms that may cancel.
constexpr UnaryRow kUnary[] = {
    {"neg", &Tensor::neg, -2, 2, 0, 0, true},
    {"abs", &Tensor::abs, -2, 2, 0, 0, true},
    {"sign", &Tensor::sign, -2, 2, 0, 0, true},
    {"square", &Tensor::square, -2, 2, 0, 0, true},
    {"reciprocal", &Tensor::reciprocal, 0.3, 3, 0, 0, true},
    {"sqrt", &Tensor::sqrt, 0.1, 4, 0, 0, true},
    {"rsqrt", &Tensor::rsqrt, 0.1, 4, 0, 0, true},
    {"exp", &Tensor::exp, -4, 4, 2, 0, true},
    {"exp2", &Tensor::exp2, -4, 4, 2, 0, true},
    {"log", &Tensor::log, 0.1, 5, 2, 0, true},
    {"log2", &Tensor::log2, 0.1, 5, 2, 0, true},
    {"log10", &Tensor::log10, 0.1, 5, 4, 0, true},
    {"sin", &Tensor::sin, -8, 8, 2, 0, true},
    {"cos", &Tensor::cos, -8, 8, 2, 0, true},
    {"tan", &Tensor::tan, -1.3, 1.3, 6, 0, true},
    {"asin", &Tensor::asin, -0.95, 0.95, 8, 1, true},
    {"acos", &Tensor::acos, -0.95, 0.95, 8, 2, true},
    {"atan", &Tensor::atan, -5, 5, 8, 1, true},
    {"sinh", &Tensor::sinh, -3, 3, 4, 4, true},
    {"cosh", &Tensor::cosh, -3, 3, 4, 0, true},
    {"tanh", &Tensor::tanh, -4, 4, 2, 0, true},
    {"asinh", &Tensor::asinh, -3, 3, 8, 4, true},
    {"acosh", &Tensor::acosh, 1.1, 4, 8, 4, true},
    {"atanh", &Tensor::atanh, -0.9, 0.9, 8, 2, true},
    {"erf", &Tensor::erf, -3, 3, 2, 0, true},
    {"trunc", &Tensor::trunc, -4, 4, 0, 0, true},
    {"floor", &Tensor::floor, -4, 4, 0, 0, true},
    {"ceil", &Tensor::ceil, -4, 4, 0, 0, true},
    {"round", &Tensor::round, -4, 4, 0, 0, true},
    {"isnan", &Tensor::isnan, -2, 2, 0, 0, false},
    {"isinf", &Tensor::isinf, -2, 2, 0, 0, false},
    {"isfinite", &Tensor::isfinite, -2, 2, 0, 0, false},
    {"relu", &Tensor::relu, -2, 2, 0, 0, true},
    {"relu6", &Tensor::relu6, -2, 9, 1, 8, true},
    {"selu", &Tensor::selu, -3, 3, 4, 2, true},
    {"quick_gelu", &Tensor::quick_gelu, -4, 4, 8, 1, true},
    {"sigmoid", &Tensor::sigmoid, -8, 8, 6, 1, true},
    {"logsigmoid", &Tensor::logsigmoid, -8, 8, 8, 8, true},
    {"hardsigmoid", &Tensor::hardsigmoid, -5, 5, 2, 1, true},
    {"silu", &Tensor::silu, -6, 6, 8, 1, true},
    {"hardswish", &Tensor::hardswish, -5, 5, 2, 8, true},
    {"softsign", &Tensor::softsign, -4, 4, 1, 0, true},
    {"mish", &Tensor::mish, -6, 6, 8, 2, true},
    {"logical_not", &Tensor::logical_not, -2, 2, 0, 0, false},
};

// Functions whose value at every special number all of mathematics agrees on.
constexpr UnaryRow kUnarySpecial[] = {
    {"neg", &Tensor::neg, 0, 0, 0, 0, false},         {"abs", &Tensor::abs, 0, 0, 0, 0, false},
    {"square", &Tensor::square, 0, 0, 0, 0, false},   {"reciprocal", &Tensor::reciprocal, 0, 0, 0, 0, false},
    {"sqrt", &Tensor::sqrt, 0, 0, 0, 0, false},       {"exp", &Tensor::exp, 0, 0, 2, 0, false},
    {"exp2", &Tensor::exp2, 0, 0, 2, 0, false},       {"log", &Tensor::log, 0, 0, 2, 0, false},
    {"log2", &Tensor::log2, 0, 0, 2, 0, false},       {"sin", &Tensor::sin, 0, 0, 2, 0, false},
    {"cos", &Tensor::cos, 0, 0, 2, 0, false},         {"tanh", &Tensor::tanh, 0, 0, 2, 0, false},
    {"erf", &Tensor::erf, 0, 0, 2, 0, false},         {"trunc", &Tensor::trunc, 0, 0, 0, 0, false},
    {"floor", &Tensor::floor, 0, 0, 0, 0, false},     {"ceil", &Tensor::ceil, 0, 0, 0, 0, false},
    {"round", &Tensor::round, 0, 0, 0, 0, false},     {"isnan", &Tensor::isnan, 0, 0, 0, 0, false},
    {"isinf", &Tensor::isinf, 0, 0, 0, 0, false},     {"isfinite", &Tensor::isfinite, 0, 0, 0, 0, false},
    {"sigmoid", &Tensor::sigmoid, 0, 0, 6, 1, false},
};

void add_unary(Table& t) {
  for (const UnaryRow& row : kUnary) {
    Unary apply = row.apply;
    // 45 elements: more than a vector, and no multiple of one.
    OpCase& c =
        t.add(row.name, {f({45}, row.low, row.high)}, [apply](const Args& x) { return (x[0].*apply)(); });
    c.tol(row.steps, row.scale);
    c.differentiable = row.grad;
  }
  for (DType dtype : {f32, f64, f16, bf16})
    for (const UnaryRow& row : kUnarySpecial) {
      Unary apply = row.apply;
      t.add(std::string(row.name) + ".special." + std::string(name(dtype)), {special(dtype)},
            [apply](const Args& x) { return (x[0].*apply)(); })
          .tol(dtype == f64 ? 2 * row.steps : row.steps, row.scale);
    }
  t.add("leaky_relu", {f({3, 5})}, PG_OP(x[0].leaky_relu())).grad();
  t.add("leaky_relu.slope", {f({3, 5})}, PG_OP(x[0].leaky_relu(0.3))).grad();
  t.add("elu", {f({3, 5})}, PG_OP(x[0].elu())).tol(4, 1).grad();
  t.add("elu.alpha", {f({3, 5})}, PG_OP(x[0].elu(1.7))).tol(4, 2).grad();
  t.add("celu", {f({3, 5})}, PG_OP(x[0].celu(0.7))).tol(4, 1).grad();
  t.add("gelu", {f({3, 5}, -4, 4)}, PG_OP(x[0].gelu())).tol(8, 4).grad();
  t.add("gelu.erf", {f({3, 5}, -4, 4)}, PG_OP(x[0].gelu(Gelu::Erf))).tol(8, 4).grad();
  t.add("hardtanh", {f({3, 5})}, PG_OP(x[0].hardtanh())).grad();
  t.add("hardtanh.bounds", {f({3, 5})}, PG_OP(x[0].hardtanh(-0.3, 1.2))).grad();
  t.add("softplus", {f({3, 5}, -6, 6)}, PG_OP(x[0].softplus())).tol(8, 6).grad();
  t.add("softplus.beta", {f({3, 5}, -6, 6)}, PG_OP(x[0].softplus(3))).tol(8, 6).grad();
  // Through the whole range, where argument reduction works hardest.
  t.add("sin.large", {f({40}, -1e5, 1e5)}, PG_OP(x[0].sin())).tol(2);
  t.add("cos.large", {f({40}, -1e30, 1e30)}, PG_OP(x[0].cos())).tol(2);
  t.add("exp.range", {f({40}, -110, 90)}, PG_OP(x[0].exp())).tol(2);
  t.add("exp2.range", {f({40}, -155, 130)}, PG_OP(x[0].exp2())).tol(2);
  t.add("log.range", {f({40}, 0, 1e30)}, PG_OP(x[0].log())).tol(2);
  t.add("log.one", {f({40}, 0.99, 1.01)}, PG_OP(x[0].log())).tol(2);
  t.add("tanh.small", {f({40}, -1e-3, 1e-3)}, PG_OP(x[0].tanh())).tol(2);
  t.add("erf.small", {f({40}, -1e-3, 1e-3)}, PG_OP(x[0].erf())).tol(2);
}

void add_binary(Table& t) {
  t.add("add", {f({3, 5}), f({3, 5})}, PG_OP(x[0] + x[1])).grad();
  t.add("sub", {f({3, 5}), f({3, 5})}, PG_OP(x[0] - x[1])).grad();
  t.add("mul", {f({3, 5}), f({3, 5})}, PG_OP(x[0] * x[1])).grad();
  t.add("div", {f({3, 5}), f({3, 5}, 0.5, 2)}, PG_OP(x[0] / x[1])).grad();
  t.add("floor_div", {f({3, 5}, -9, 9), f({3, 5}, 0.5, 2)}, PG_OP(x[0].floor_div(x[1])));
  t.add("mod", {f({3, 5}, -9, 9), f({3, 5}, 0.5, 2)}, PG_OP(x[0] % x[1])).tol(2, 16);
  t.add("mod.negative", {f({3, 5}, -9, 9), f({3, 5}, -2, -0.5)}, PG_OP(x[0] % x[1])).tol(2, 16);
  t.add("fmod", {f({3, 5}, -9, 9), f({3, 5}, 0.5, 2)}, PG_OP(x[0].fmod(x[1]))).tol(2, 16);
  t.add("pow", {f({3, 15}, 0.1, 4), f({3, 15}, -3, 3)}, PG_OP(x[0].pow(x[1]))).tol(4).grad();
  t.add("pow.negative_base", {f({3, 5}, -4, -0.1), ints({3, 5}, -3, 4)}, PG_OP(x[0].pow(x[1].cast(f32))))
      .tol(4);
  t.add("pow.fraction_of_negative", {f({3, 5}, -4, -0.1), f({3, 5}, 0.1, 0.9)}, PG_OP(x[0].pow(x[1]))).tol(4);
  t.add("maximum", {f({3, 5}), f({3, 5})}, PG_OP(x[0].maximum(x[1]))).grad();
  t.add("minimum", {f({3, 5}), f({3, 5})}, PG_OP(x[0].minimum(x[1]))).grad();
  t.add("copysign", {f({3, 5}), f({3, 5})}, PG_OP(x[0].copysign(x[1])));
  t.add("logaddexp", {f({3, 5}), f({3, 5})}, PG_OP(x[0].logaddexp(x[1]))).tol(6, 4).grad();
  t.add("bits_by_name", {ints({3, 5}, -99, 99), ints({5}, -99, 99)},
        PG_OP(x[0].bitwise_and(x[1]).bitwise_or(x[0].lshift(3)).bitwise_xor(x[1].rshift(2))));
  t.add("equal_by_name", {ints({3, 5}, 0, 3), ints({5}, 0, 3)}, PG_OP(x[0].eq(x[1]) & x[0].ne(2)));
  t.add("lerp", {f({3, 5}), f({3, 5}), f({3, 5}, 0, 1)}, PG_OP(x[0].lerp(x[1], x[2]))).golden(8, 2).grad();
  t.add("lerp.number", {f({3, 5}), f({3, 5})}, PG_OP(x[0].lerp(x[1], 0.25))).golden(8, 2).grad();
  t.add("isclose", {f({3, 5}, 1, 1.0001), f({3, 5}, 1, 1.0001)}, PG_OP(x[0].isclose(x[1])));
  t.add("allclose", {f({3, 5}), f({3, 5})}, PG_OP(x[0].allclose(x[1])));

  t.add("eq", {ints({3, 5}, 0, 3), ints({3, 5}, 0, 3)}, PG_OP(x[0] == x[1]));
  t.add("ne", {ints({3, 5}, 0, 3), ints({3, 5}, 0, 3)}, PG_OP(x[0] != x[1]));
  t.add("lt", {f({3, 5}), f({3, 5})}, PG_OP(x[0] < x[1]));
  t.add("le", {f({3, 5}), f({3, 5})}, PG_OP(x[0] <= x[1]));
  t.add("gt", {f({3, 5}), f({3, 5})}, PG_OP(x[0] > x[1]));
  t.add("ge", {f({3, 5}), f({3, 5})}, PG_OP(x[0] >= x[1]));

  t.add("where", {bools({3, 5}), f({3, 5}), f({3, 5})}, PG_OP(where(x[0], x[1], x[2]))).grad();
  t.add("where.numbers", {bools({3, 5})}, PG_OP(x[0].where(1.5, -1)));
  t.add("where.broadcast", {bools({3, 1}), f({5}), f({1, 1})}, PG_OP(where(x[0], x[1], x[2]))).grad();
  t.add("masked_fill", {f({3, 5}), bools({3, 5})}, PG_OP(x[0].masked_fill(x[1], -9.0))).grad();
  t.add("clamp", {f({3, 5})}, PG_OP(x[0].clamp(-0.5, 1))).grad();
  t.add("clamp.tensors", {f({3, 5}), f({5}, -1, 0), f({5}, 0, 1)}, PG_OP(x[0].clamp(x[1], x[2])));
  t.add("clamp_min", {f({3, 5})}, PG_OP(x[0].clamp_min(0.2))).grad();
  t.add("clamp_max", {f({3, 5})}, PG_OP(x[0].clamp_max(0.2))).grad();

  t.add("number.add", {f({3, 5})}, PG_OP(x[0] + 1)).grad();
  t.add("number.rsub", {f({3, 5})}, PG_OP(2.5 - x[0])).grad();
  t.add("number.rdiv", {f({3, 5}, 0.5, 2)}, PG_OP(1 / x[0])).grad();
  t.add("number.div", {f({3, 5})}, PG_OP(x[0] / 3)).golden(1).grad();
  t.add("number.pow2", {f({3, 5})}, PG_OP(x[0].pow(2))).tol(4).grad();
  t.add("number.pow3", {f({3, 5})}, PG_OP(x[0].pow(3))).tol(4).grad();
  t.add("number.pow_half", {f({3, 5}, 0.1, 4)}, PG_OP(x[0].pow(0.5))).tol(4).grad();
  t.add("number.pow_minus1", {f({3, 5}, 0.5, 4)}, PG_OP(x[0].pow(-1))).tol(4).grad();
  t.add("number.int_times_float", {ints({3, 5}, -9, 9)}, PG_OP(x[0] * 0.5));
  t.add("number.int_plus_int", {ints({3, 5}, -9, 9, u8)}, PG_OP(x[0] + 3));
  t.add("number.half_plus_float", {of(f16, {3, 5}, -9, 9)}, PG_OP(x[0] + 0.1));
  t.add("number.bool_plus_int", {bools({5})}, PG_OP(x[0] + 1));
  t.add("number.int_mod", {ints({9}, -9, 9)}, PG_OP(x[0] % 4));
  t.add("number.int_floor_div", {ints({9}, -9, 9)}, PG_OP(x[0].floor_div(4)));
}

void add_broadcast(Table& t) {
  struct Row {
    const char* name;
    eval::Dims a, b;
  };
  const Row rows[] = {
      {"broadcast.row", {3, 4}, {4}},
      {"broadcast.column", {3, 4}, {3, 1}},
      {"broadcast.outer", {3, 1}, {1, 4}},
      {"broadcast.scalar", {}, {2, 3}},
      {"broadcast.one", {1}, {5}},
      {"broadcast.rank", {2, 3, 4}, {3, 1}},
      {"broadcast.ones", {1, 1, 1}, {2, 3, 4}},
      {"broadcast.mixed", {5, 1, 3}, {4, 1}},
      {"broadcast.scalars", {}, {}},
      {"broadcast.empty", {0, 3}, {3}},
      {"broadcast.empty_from_one", {2, 0}, {2, 1}},
  };
  for (const Row& r : rows) t.add(r.name, {f(r.a), f(r.b)}, PG_OP(x[0] * x[1] - x[1])).grad();
}

// Chains: fused or not, each operation rounds once.
void add_fusion(Table& t) {
  t.add("chain.multiply_add", {f({50}), f({50}), f({50})}, PG_OP(x[0] * x[1] + x[2])).golden(2, 4).grad();
  t.add("chain.no_excess", {of(f16, {50}, 100, 1000), of(f16, {50}, 100, 1000)}, PG_OP((x[0] * x[1]) / x[1]));
  t.add("chain.shared", {f({20})}, PG_OP((x[0] + 1) * (x[0] + 1) - (x[0] + 1).sin())).tol(2, 8).grad();
  t.add("chain.half_sums", {of(bf16, {30}, -2, 2), of(bf16, {30}, -2, 2)}, PG_OP(x[0] + x[1] + x[0] + x[1]));
}

}  // namespace

void add_elementwise(Table& t) {
  add_unary(t);
  add_binary(t);
  add_broadcast(t);
  add_fusion(t);
}

}  // namespace pg::ops
