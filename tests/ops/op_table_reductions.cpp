// Reductions, running reductions, softmax and its kin.
#include "ops/op_table.h"

namespace pg::ops {
namespace {

using Reduce = Tensor (Tensor::*)(const Axes&, const ReduceOptions&) const;

struct Row {
  const char* name;
  Reduce apply;
  double steps, scale;
  bool grad;
};
constexpr Row kReductions[] = {
    {"sum", &Tensor::sum, 8, 4, true},   {"prod", &Tensor::prod, 24, 0, true},
    {"max", &Tensor::max, 0, 0, true},   {"min", &Tensor::min, 0, 0, true},
    {"mean", &Tensor::mean, 8, 1, true}, {"logsumexp", &Tensor::logsumexp, 8, 4, true},
};

struct Where {
  const char* name;
  eval::Dims dims;
  Axes axes;
  bool keepdim;
};

void add_axes(Table& t) {
  const Where places[] = {
      {"all", {3, 5}, {}, false},
      {"rows", {3, 5}, 1, false},
      {"columns", {3, 5}, 0, false},
      {"keep", {3, 5}, -1, true},
      {"outer_and_inner", {3, 4, 5}, {0, 2}, false},
      {"middle", {2, 7, 3}, 1, false},
      {"of_one", {1, 4}, 0, false},
      {"scalar", {}, {}, false},
      {"long", {1, 37}, 1, false},
      {"keep_all", {2, 3}, {}, true},
      {"tall", {33, 2}, 0, false},
  };
  for (const Row& row : kReductions)
    for (const Where& where : places) {
      Reduce apply = row.apply;
      OpCase& c = t.add(std::string(row.name) + "." + where.name, {distinct(where.dims)},
                        [apply, axes = where.axes, keep = where.keepdim](const Args& x) {
                          return (x[0].*apply)(axes, {.keepdim = keep});
                        });
      c.tol(row.steps, row.scale);
      c.differentiable = row.grad;
    }
  // Of nothing.
  for (const Row& row : kReductions) {
    Reduce apply = row.apply;
    t.add(std::string(row.name) + ".empty", {f({0, 2})},
          [apply](const Args& x) { return (x[0].*apply)(0, {}); });
    t.add(std::string(row.name) + ".empty_result", {f({3, 0})},
          [apply](const Args& x) { return (x[0].*apply)(0, {}); });
  }
}

void add_dtypes_of_reductions(Table& t) {
  for (DType d : {boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f64}) {
    std::string suffix = "." + std::string(name(d));
    Input in = of(d, {3, 9}, is_unsigned(d) || d == boolean ? 0 : -100, d == boolean ? 2 : 120);
    t.add("sum" + suffix, {in}, PG_OP(x[0].sum(1))).tol(2, 500);
    t.add("max" + suffix, {in}, PG_OP(x[0].max(1)));
    t.add("min" + suffix, {in}, PG_OP(x[0].min(0)));
    t.add("mean" + suffix, {in}, PG_OP(x[0].mean())).tol(4, 100);
    if (d != boolean)
      t.add("prod" + suffix, {of(d, {3, 5}, is_unsigned(d) ? 0 : -3, 4)}, PG_OP(x[0].prod(1))).tol(5);
    t.add("argmax" + suffix, {in}, PG_OP(x[0].argmax(1)));
  }
  t.add("sum.wraps", {ints({40}, 100000000, 200000000)}, PG_OP(x[0].sum()));
  t.add("sum.named_dtype", {ints({7}, -100, 100, i8)}, PG_OP(x[0].sum({}, {.dtype = i64})));
  t.add("sum.half_in_half", {of(f16, {8}, 1, 2)}, PG_OP(x[0].sum({}, {.dtype = f16}))).tol(8);
  t.add("sum.half_is_wide", {of(f16, {3000}, 1, 2)}, PG_OP(x[0].sum())).tol(1);
  t.add("sum.cancels", {f({100}, 1e6, 2e6)}, PG_OP((x[0] - x[0].flip(0)).sum()))
      .tol(100, 1e6)
      .golden(200, 1e6);
  t.add("max.nan", {special(f32)}, PG_OP(x[0].max()));
  t.add("min.nan", {special(f16)}, PG_OP(x[0].min()));
  t.add("sum.special", {special(f32)}, PG_OP(x[0].sum()));
  t.add("any", {bools({4, 2})}, PG_OP(x[0].any(1)));
  t.add("all", {bools({4, 2})}, PG_OP(x[0].all(1)));
  t.add("any.numbers", {ints({3, 4}, -1, 2)}, PG_OP(x[0].any()));
  t.add("all.floats", {f({3, 4})}, PG_OP(x[0].all(0)));
  t.add("any.empty", {bools({0})}, PG_OP(x[0].any()));
  t.add("all.empty", {bools({0})}, PG_OP(x[0].all()));
}

void add_positions(Table& t) {
  t.add("argmax", {distinct({3, 6})}, PG_OP(x[0].argmax()));
  t.add("argmax.axis", {distinct({3, 6})}, PG_OP(x[0].argmax(0)));
  t.add("argmax.keep", {distinct({3, 6})}, PG_OP(x[0].argmax(-1, {.keepdim = true})));
  t.add("argmax.ties", {ints({20}, 0, 3)}, PG_OP(x[0].argmax()));
  t.add("argmin", {distinct({3, 6})}, PG_OP(x[0].argmin()));
  t.add("argmin.axis", {distinct({3, 6})}, PG_OP(x[0].argmin(1)));
  t.add("argmin.ties", {ints({20}, 0, 3)}, PG_OP(x[0].argmin()));
}

void add_statistics(Table& t) {
  t.add("var", {f({4, 6})}, PG_OP(x[0].var())).tol(16, 2).grad();
  t.add("var.axis", {f({4, 6})}, PG_OP(x[0].var(1))).tol(16, 2).grad();
  t.add("var.biased", {f({4, 6})}, PG_OP(x[0].var(0, {.keepdim = true, .correction = 0}))).tol(16, 2).grad();
  t.add("std", {f({4, 6})}, PG_OP(x[0].std(1))).tol(16, 2).grad();
  t.add("std.biased", {f({4, 6})}, PG_OP(x[0].std({}, {.correction = 0}))).tol(16, 2).grad();
  t.add("var_mean", {f({4, 6})}, PG_OP(x[0].var_mean(1).second)).tol(8, 1).grad();
  t.add("std_mean", {f({4, 6})}, PG_OP(x[0].std_mean(1).first)).tol(16, 2).grad();
  t.add("var.f16", {of(f16, {4, 6}, -2, 2)}, PG_OP(x[0].var(1))).tol(4, 2);
  t.add("mean.of_square", {f({3, 11})}, PG_OP(x[0].square().mean(1))).tol(8, 1).grad();
  t.add("normalize", {f({3, 5})}, PG_OP(x[0].normalize())).tol(12).grad();
  t.add("normalize.p1", {f({3, 5})}, PG_OP(x[0].normalize(1, 0))).tol(12).grad();
}

void add_softmax(Table& t) {
  t.add("softmax", {f({3, 7}, -5, 5)}, PG_OP(x[0].softmax())).tol(12).grad();
  t.add("softmax.axis", {f({3, 7, 2}, -5, 5)}, PG_OP(x[0].softmax(1))).tol(12).grad();
  t.add("softmax.large", {f({2, 5}, 900, 1000)}, PG_OP(x[0].softmax())).tol(12).golden(24);
  t.add("softmax.int", {ints({2, 5}, -5, 5)}, PG_OP(x[0].softmax())).tol(12);
  t.add("softmax.one", {f({3, 1})}, PG_OP(x[0].softmax())).grad();
  t.add("softmax.f16", {of(f16, {3, 7}, -5, 5)}, PG_OP(x[0].softmax())).tol(12);
  t.add("softmax.minus_infinity", {f({2, 5}, -1, 1)}, PG_OP(x[0].masked_fill(x[0] < 0, -HUGE_VAL).softmax()))
      .tol(12);
  t.add("softmin", {f({3, 7}, -5, 5)}, PG_OP(x[0].softmin())).tol(12).grad();
  t.add("log_softmax", {f({3, 7}, -5, 5)}, PG_OP(x[0].log_softmax())).tol(12, 8).grad();
  t.add("log_softmax.axis", {f({3, 7}, -5, 5)}, PG_OP(x[0].log_softmax(0))).tol(12, 8).grad();
  t.add("softmax.of_sum", {f({4, 4}), f({4, 4})}, PG_OP((x[0] + x[1]).softmax() * 2)).tol(12).grad();
}

void add_running(Table& t) {
  t.add("cumsum", {f({3, 6})}, PG_OP(x[0].cumsum())).tol(8, 8).grad();
  t.add("cumsum.axis", {f({3, 6})}, PG_OP(x[0].cumsum(1))).tol(8, 8).grad();
  t.add("cumsum.int", {ints({9}, -99, 99, i8)}, PG_OP(x[0].cumsum()));
  t.add("cumsum.long", {f({700})}, PG_OP(x[0].cumsum())).tol(700, 40);
  t.add("cumsum.blocks", {f({2, 50})}, PG_OP(x[0].cumsum(1))).tol(50, 40).grad();
  t.add("cumsum.levels", {f({300, 2})}, PG_OP(x[0].cumsum(0)[Slice{.step = 7}])).tol(300, 40);
  t.add("cumsum.scalar", {f({})}, PG_OP(x[0].cumsum()));
  t.add("cumprod", {f({3, 6})}, PG_OP(x[0].cumprod(1))).tol(8).grad();
  t.add("cumprod.blocks", {f({2, 40}, 0.8, 1.25)}, PG_OP(x[0].cumprod(1))).tol(40).grad();
  t.add("cumprod.int", {ints({40}, 1, 3)}, PG_OP(x[0].cumprod()));
  t.add("cummax", {distinct({3, 6})}, PG_OP(x[0].cummax(1).first)).grad();
  t.add("cummax.indices", {distinct({3, 6})}, PG_OP(x[0].cummax(1).second));
  t.add("cummax.blocks", {ints({2, 60}, -9, 9, i8)}, PG_OP(x[0].cummax(1).first));
  t.add("cummax.first_of_ties", {ints({2, 60}, -9, 9)}, PG_OP(x[0].cummax(1).second));
  t.add("cummax.nan", {special(f32)}, PG_OP(x[0].flip(0).cummax().first));
  t.add("cummax.first_nan", {special(f32)}, PG_OP(x[0].cummax().second));
  t.add("cummin.positions", {distinct({50})}, PG_OP(x[0].cummin().second));
  t.add("cummin", {distinct({3, 6})}, PG_OP(x[0].cummin(0).first)).grad();
  t.add("logcumsumexp", {f({3, 6})}, PG_OP(x[0].logcumsumexp(1))).tol(12, 4).grad();
  t.add("logcumsumexp.blocks", {f({2, 40}, -9, 9)}, PG_OP(x[0].logcumsumexp(1))).tol(60, 10).grad();
}

// A reduction whose result meets its operand again, and reductions of reductions: where fusion has choices.
void add_compositions(Table& t) {
  t.add("reduce.centre", {f({4, 5})}, PG_OP(x[0] - x[0].mean(1, {.keepdim = true}))).tol(8, 4).grad();
  t.add("reduce.twice", {f({4, 5})}, PG_OP(x[0].sum(0).max())).tol(8, 8).grad();
  t.add("reduce.both_ways", {f({4, 5})}, PG_OP(x[0].sum(0).sum() + x[0].sum(1).sum())).tol(16, 16).grad();
  t.add("reduce.of_permuted", {f({3, 4, 5})}, PG_OP(x[0].permute({2, 0, 1}).sum(1))).tol(8, 8).grad();
  t.add("reduce.of_padded", {f({3, 4})}, PG_OP(x[0].pad({{1, 2}, {0, 3}}, {.value = 2}).prod(0)))
      .tol(8)
      .grad();
  t.add("reduce.of_repeat", {f({3})}, PG_OP(x[0].repeat(5).sum())).tol(16, 16).grad();
  t.add("reduce.of_cat", {f({3, 2}), f({2, 2})}, PG_OP(cat({x[0], x[1]}).max(0))).grad();
}

}  // namespace

void add_reductions(Table& t) {
  add_axes(t);
  add_dtypes_of_reductions(t);
  add_positions(t);
  add_statistics(t);
  add_softmax(t);
  add_running(t);
  add_compositions(t);
}

}  // namespace pg::ops
