// Every dtype: arithmetic at the edges, all casts, bitcasts, all pairs that promote; and the creation of
// constants.
#include "ops/op_table.h"

namespace pg::ops {
namespace {

constexpr DType kIntegers[] = {i8, u8, i16, u16, i32, u32, i64, u64};
constexpr DType kFloats[] = {f16, bf16, f32, f64};
constexpr DType kStored[] = {boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64};

struct Row {
  const char* name;
  Tensor (*apply)(const Args&);
};
constexpr Row kArithmetic[] = {
    {"add", PG_OP(x[0] + x[1])},
    {"sub", PG_OP(x[0] - x[1])},
    {"mul", PG_OP(x[0] * x[1])},
    {"maximum", PG_OP(x[0].maximum(x[1]))},
    {"minimum", PG_OP(x[0].minimum(x[1]))},
    {"lt", PG_OP(x[0] < x[1])},
    {"ge", PG_OP(x[0] >= x[1])},
    {"eq", PG_OP(x[0] == x[1])},
    {"ne", PG_OP(x[0] != x[1])},
    {"where", PG_OP(where(x[0] < x[1], x[0], x[1]))},
};
constexpr Row kIntegerOnly[] = {
    {"floor_div", PG_OP(x[0].floor_div(x[1]))},
    {"mod", PG_OP(x[0] % x[1])},
    {"fmod", PG_OP(x[0].fmod(x[1]))},
    {"and", PG_OP(x[0] & x[1])},
    {"or", PG_OP(x[0] | x[1])},
    {"xor", PG_OP(x[0] ^ x[1])},
    {"shl", PG_OP(x[0] << x[1])},
    {"shr", PG_OP(x[0] >> x[1])},
};

void add_arithmetic(Table& t) {
  for (DType d : kStored) {
    std::string suffix = "." + std::string(name(d));
    auto each = [&](const Row& row) {
      t.add(row.name + suffix, {special_column(d), special_row(d)}, row.apply);
    };
    for (const Row& row : kArithmetic)
      if (d != boolean || std::string_view(row.name) != "sub") each(row);
    if (is_int(d))
      for (const Row& row : kIntegerOnly) each(row);
    if (d == boolean)
      for (int k : {3, 4, 5}) each(kIntegerOnly[k]);
  }
  for (DType d : kFloats)
    t.add("div." + std::string(name(d)), {special_column(d), special_row(d)}, PG_OP(x[0] / x[1]));
  for (DType d : {i8, u64})
    t.add("div." + std::string(name(d)), {special_column(d), special_row(d)}, PG_OP(x[0] / x[1]));
  for (DType d : kIntegers) {
    std::string suffix = "." + std::string(name(d));
    t.add("neg" + suffix, {special(d)}, PG_OP(-x[0]));
    t.add("abs" + suffix, {special(d)}, PG_OP(x[0].abs()));
    t.add("sign" + suffix, {special(d)}, PG_OP(x[0].sign()));
    t.add("bitwise_not" + suffix, {special(d)}, PG_OP(~x[0]));
    t.add("pow" + suffix, {ints({5, 1}, 0, 9, d), ints({1, 5}, 0, 6, d)}, PG_OP(x[0].pow(x[1])));
  }
  t.add("bitwise_not.bool", {bools({5})}, PG_OP(~x[0]));
  t.add("logical_not.i32", {special(i32)}, PG_OP(x[0].logical_not()));
  t.add("sqrt.i32", {ints({6}, 0, 99)}, PG_OP(x[0].sqrt()));
  t.add("exp.i8", {ints({6}, -5, 5, i8)}, PG_OP(x[0].exp())).tol(2);
  t.add("sin.bool", {bools({6})}, PG_OP(x[0].sin())).tol(2);
}

void add_casts(Table& t) {
  for (DType from : kStored)
    for (DType to : kStored)
      if (from != to)
        t.add("cast." + std::string(name(from)) + "." + std::string(name(to)), {special(from)},
              [to](const Args& x) { return x[0].cast(to); });
  for (DType from : {f32, f64})
    for (DType to : {i8, u8, i16, u32, i64, u64, f16, bf16})
      t.add("cast.random." + std::string(name(from)) + "." + std::string(name(to)),
            {of(from, {33}, -70000, 70000)}, [to](const Args& x) { return x[0].cast(to); });
  struct Pair {
    DType from, to;
  };
  const Pair pairs[] = {{f32, i32}, {f32, u32}, {i32, f32}, {f16, i16}, {bf16, u16}, {f64, i64},
                        {u64, f64}, {f32, u8},  {i64, i16}, {f64, f32}, {bf16, u8},  {u8, i8}};
  for (const Pair& pair : pairs)
    t.add("bitcast." + std::string(name(pair.from)) + "." + std::string(name(pair.to)),
          {of(pair.from, {2, 3}, is_unsigned(pair.from) ? 0 : -99, 99)},
          [to = pair.to](const Args& x) { return x[0].bitcast(to); });
  // Towards wider elements: the last axis shrinks.
  t.add("bitcast.u8.f32", {ints({2, 8}, 0, 127, u8)}, PG_OP(x[0].bitcast(f32)));
  t.add("bitcast.i16.i64", {ints({3, 4}, -999, 999, i16)}, PG_OP(x[0].bitcast(i64)));
  t.add("bitcast.of_cast", {f({5})}, PG_OP(x[0].cast(bf16).bitcast(u16)));
}

void add_promotion(Table& t) {
  for (DType a : kStored)
    for (DType b : kStored)
      if (a < b)
        t.add("promote." + std::string(name(a)) + "." + std::string(name(b)),
              {of(a, {4}, 0, 5), of(b, {4}, 0, 5)}, PG_OP(x[0] + x[1]));
}

void add_creation(Table& t) {
  t.add("full", {}, PG_OP(Tensor::full({2, 3}, 2.5)));
  t.add("full.int", {}, PG_OP(Tensor::full({2, 3}, 7, {.dtype = i16})));
  t.add("full.scalar", {}, PG_OP(Tensor::full({}, true)));
  t.add("zeros", {}, PG_OP(Tensor::zeros({3, 1})));
  t.add("ones", {}, PG_OP(Tensor::ones({0, 2})));
  t.add("full_like", {of(f16, {3}, 0, 1)}, PG_OP(x[0].full_like(0.1)));
  t.add("eye", {}, PG_OP(Tensor::eye(4)));
  t.add("eye.wide", {}, PG_OP(Tensor::eye(2, 5)));
  t.add("eye.int", {}, PG_OP(Tensor::eye(5, 2, {.dtype = u8})));
  t.add("arange", {}, PG_OP(Tensor::arange(7)));
  t.add("arange.from", {}, PG_OP(Tensor::arange(-3, 4)));
  t.add("arange.step", {}, PG_OP(Tensor::arange(5, 20, 4)));
  t.add("arange.down", {}, PG_OP(Tensor::arange(9, -2, -3)));
  t.add("arange.float", {}, PG_OP(Tensor::arange(0, 1, 0.25)));
  t.add("arange.empty", {}, PG_OP(Tensor::arange(3, 3)));
  t.add("arange.wide", {}, PG_OP(Tensor::arange(3000000000, 3000000003)));
  t.add("arange.half", {}, PG_OP(Tensor::arange(5, {.dtype = f16})));
  t.add("linspace", {}, PG_OP(Tensor::linspace(-1, 1, 5))).golden(4);
  t.add("linspace.one", {}, PG_OP(Tensor::linspace(3, 9, 1)));
  t.add("linspace.zero", {}, PG_OP(Tensor::linspace(3, 9, 0)));
  t.add("linspace.f64", {}, PG_OP(Tensor::linspace(0, 1, 8, {.dtype = f64}))).golden(4);
  t.add("weak.number", {}, PG_OP(Tensor(2.5) * Tensor(true) * 3));
}

}  // namespace

void add_dtypes(Table& t) {
  add_arithmetic(t);
  add_casts(t);
  add_promotion(t);
  add_creation(t);
}

}  // namespace pg::ops
