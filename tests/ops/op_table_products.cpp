// Matrix products in every layout, einsum, convolutions, pooling.
#include "ops/op_table.h"

namespace pg::ops {
namespace {

void add_matmul(Table& t) {
  struct Row {
    const char* name;
    eval::Dims a, b;
  };
  const Row rows[] = {
      {"matmul", {3, 4}, {4, 5}},
      {"matmul.odd", {5, 7}, {7, 3}},
      {"matmul.one", {1, 1}, {1, 1}},
      {"matmul.outer", {4, 1}, {1, 3}},
      {"matmul.inner", {1, 6}, {6, 1}},
      {"matmul.vector_matrix", {4}, {4, 3}},
      {"matmul.matrix_vector", {3, 4}, {4}},
      {"matmul.vectors", {5}, {5}},
      {"matmul.batch", {2, 3, 4}, {2, 4, 2}},
      {"matmul.batch_broadcast", {2, 1, 3, 4}, {3, 4, 2}},
      {"matmul.batch_by_matrix", {2, 3, 4}, {4, 2}},
      {"matmul.matrix_by_batch", {3, 4}, {2, 4, 2}},
      {"matmul.vector_by_batch", {4}, {2, 4, 3}},
      {"matmul.no_inner", {3, 0}, {0, 2}},
      {"matmul.no_rows", {0, 3}, {3, 2}},
      {"matmul.square", {8, 8}, {8, 8}},
      {"matmul.wide", {2, 33}, {33, 17}},
      {"matmul.tall", {35, 3}, {3, 2}},
  };
  for (const Row& r : rows) t.add(r.name, {f(r.a), f(r.b)}, PG_OP(x[0].matmul(x[1]))).tol(8, 16).grad();
  t.add("matmul.left_transposed", {f({4, 3}), f({4, 5})}, PG_OP(x[0].T().matmul(x[1]))).tol(8, 16).grad();
  t.add("matmul.right_transposed", {f({3, 4}), f({5, 4})}, PG_OP(x[0].matmul(x[1].T()))).tol(8, 16).grad();
  t.add("matmul.both_transposed", {f({4, 3}), f({5, 4})}, PG_OP(x[0].T().matmul(x[1].T()))).tol(8, 16).grad();
  t.add("matmul.permuted_batch", {f({3, 2, 4}), f({4, 2, 5})},
        PG_OP(x[0].permute({1, 0, 2}).matmul(x[1].permute({1, 0, 2}))))
      .tol(8, 16)
      .grad();
  t.add("matmul.with_itself", {f({4, 4})}, PG_OP(x[0].matmul(x[0].T()))).tol(8, 16).grad();
  t.add("matmul.relu_bias", {f({3, 4}), f({4, 5}), f({5})}, PG_OP((x[0].matmul(x[1]) + x[2]).relu()))
      .tol(8, 16)
      .grad();
  t.add("matmul.chain", {f({3, 4}), f({4, 5}), f({5, 2})}, PG_OP(x[0].matmul(x[1]).matmul(x[2])))
      .tol(16, 64)
      .grad();
  t.add("matmul.large", {f({48, 40}), f({40, 33})}, PG_OP(x[0].matmul(x[1]))).tol(16, 32);
  t.add("linear", {f({3, 4}), f({4, 5}), f({5})}, PG_OP(x[0].linear(x[1], x[2]))).tol(8, 16).grad();
  t.add("linear.by_element", {f({3, 4}), f({4}), f({4})}, PG_OP(x[0].linear(x[1], x[2]))).golden(4, 4).grad();
  for (DType d : {i8, u8, i32, i64, f16, bf16, f64}) {
    double low = is_unsigned(d) ? 0 : -9;
    t.add("matmul." + std::string(name(d)), {of(d, {4, 6}, low, 9), of(d, {6, 3}, low, 9)},
          PG_OP(x[0].matmul(x[1])))
        .tol(8, 64);
  }
  t.add("matmul.half_to_f32", {of(f16, {4, 6}, -9, 9), of(f16, {6, 3}, -9, 9)}, PG_OP(x[0].matmul(x[1], f32)))
      .tol(8, 64);
  t.add("matmul.mixed", {ints({4, 6}, -9, 9), f({6, 3})}, PG_OP(x[0].matmul(x[1]))).tol(8, 64);

  t.add("einsum.matmul", {f({2, 3, 4}), f({2, 4, 5})}, PG_OP(einsum("bij,bjk->bik", {x[0], x[1]})))
      .tol(8, 16)
      .grad();
  t.add("einsum.implicit", {f({3, 4}), f({4, 5})}, PG_OP(einsum("ij,jk", {x[0], x[1]}))).tol(8, 16).grad();
  t.add("einsum.diagonal", {f({4, 4})}, PG_OP(einsum("ii->i", {x[0]}))).grad();
  t.add("einsum.trace", {f({4, 4})}, PG_OP(einsum("ii", {x[0]}))).tol(8, 8).grad();
  t.add("einsum.transpose", {f({2, 3})}, PG_OP(einsum("ba", {x[0]}))).grad();
  t.add("einsum.ellipsis", {f({2, 3, 4}), f({4, 2})}, PG_OP(einsum("...i,ij->...j", {x[0], x[1]})))
      .tol(8, 16)
      .grad();
  t.add("einsum.three", {f({3}), f({3, 4}), f({4})}, PG_OP(einsum("a,ab,b->", {x[0], x[1], x[2]})))
      .tol(16, 32)
      .grad();
  t.add("attention", {f({2, 3, 4}), f({2, 5, 4}), f({2, 5, 6})},
        PG_OP(x[0].scaled_dot_product_attention(x[1], x[2])))
      .tol(24, 4)
      .grad();
  t.add("attention.causal", {f({1, 2, 4, 3}), f({1, 2, 4, 3}), f({1, 2, 4, 3})},
        PG_OP(x[0].scaled_dot_product_attention(x[1], x[2], {}, {.is_causal = true})))
      .tol(24, 4)
      .grad();
  t.add("attention.mask", {f({2, 3, 4}), f({2, 5, 4}), f({2, 5, 6}), f({3, 5})},
        PG_OP(x[0].scaled_dot_product_attention(x[1], x[2], x[3])))
      .tol(24, 4)
      .grad();
}

void add_convolutions(Table& t) {
  struct Row {
    const char* name;
    eval::Dims x, w;
    ConvOptions options;
  };
  const Row rows[] = {
      {"conv2d", {2, 3, 6, 5}, {4, 3, 3, 3}, {}},
      {"conv2d.one_by_one", {2, 3, 4, 4}, {5, 3, 1, 1}, {}},
      {"conv2d.stride", {1, 2, 7, 7}, {3, 2, 3, 3}, {.stride = 2}},
      {"conv2d.strides", {1, 2, 7, 8}, {3, 2, 3, 2}, {.stride = {2, 3}}},
      {"conv2d.padding", {1, 2, 5, 5}, {3, 2, 3, 3}, {.padding = 1}},
      {"conv2d.paddings", {1, 2, 5, 4}, {3, 2, 3, 3}, {.padding = {2, 1}}},
      {"conv2d.four_paddings", {1, 2, 5, 4}, {3, 2, 3, 3}, {.padding = {1, 0, 2, 1}}},
      {"conv2d.dilation", {1, 2, 7, 7}, {3, 2, 3, 3}, {.dilation = 2}},
      {"conv2d.dilations", {1, 2, 7, 6}, {2, 2, 3, 2}, {.padding = 1, .dilation = {2, 3}}},
      {"conv2d.groups", {1, 4, 5, 5}, {6, 2, 3, 3}, {.groups = 2}},
      {"conv2d.depthwise", {2, 3, 5, 5}, {3, 1, 3, 3}, {.padding = 1, .groups = 3}},
      {"conv2d.depthwise_multiplier", {1, 2, 5, 5}, {4, 1, 3, 3}, {.stride = 2, .groups = 2}},
      {"conv2d.whole", {2, 2, 4, 4}, {3, 2, 4, 4}, {}},
      {"conv2d.wide_window", {1, 1, 9, 9}, {2, 1, 5, 5}, {}},
      {"conv2d.everything",
       {2, 4, 8, 7},
       {4, 2, 3, 2},
       {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2}},
      {"conv1d", {2, 3, 8}, {4, 3, 3}, {}},
      {"conv1d.stride_padding", {2, 3, 8}, {4, 3, 3}, {.stride = 2, .padding = 2}},
      {"conv1d.dilation", {1, 2, 9}, {2, 2, 3}, {.dilation = 3}},
      {"conv3d", {1, 2, 4, 4, 3}, {3, 2, 2, 3, 2}, {}},
      {"conv3d.padding", {1, 2, 3, 3, 3}, {2, 2, 3, 3, 3}, {.stride = {1, 2, 1}, .padding = 1}},
  };
  for (const Row& r : rows)
    t.add(r.name, {f(r.x), f(r.w)},
          [options = r.options](const Args& x) { return x[0].conv2d(x[1], options); })
        .tol(16, 32)
        .grad();
  t.add("conv2d.bias", {f({2, 3, 5, 5}), f({4, 3, 3, 3}), f({4})},
        PG_OP(x[0].conv2d(x[1], x[2], {.padding = 1}).relu()))
      .tol(16, 32)
      .grad();
  t.add("conv2d.f16", {of(f16, {1, 3, 5, 5}, -2, 2), of(f16, {2, 3, 3, 3}, -2, 2)}, PG_OP(x[0].conv2d(x[1])))
      .tol(2, 32);
  t.add("conv2d.int", {ints({1, 3, 5, 5}, -9, 9), ints({2, 3, 3, 3}, -9, 9)}, PG_OP(x[0].conv2d(x[1])));
  t.add("conv2d.twice", {f({1, 1, 8, 8}), f({2, 1, 3, 3}), f({2, 2, 3, 3})},
        PG_OP(x[0].conv2d(x[1]).relu().conv2d(x[2])))
      .tol(32, 128)
      .grad();

  struct Transposed {
    const char* name;
    eval::Dims x, w;
    ConvTransposeOptions options;
  };
  const Transposed transposed[] = {
      {"conv_transpose2d", {1, 2, 4, 4}, {2, 3, 3, 3}, {}},
      {"conv_transpose2d.stride", {1, 2, 4, 3}, {2, 3, 3, 3}, {.stride = 2}},
      {"conv_transpose2d.padding", {1, 2, 4, 4}, {2, 3, 3, 3}, {.stride = 2, .padding = 1}},
      {"conv_transpose2d.output_padding",
       {1, 2, 4, 4},
       {2, 3, 3, 3},
       {.stride = 2, .padding = 1, .output_padding = 1}},
      {"conv_transpose2d.dilation", {1, 2, 4, 4}, {2, 3, 2, 2}, {.dilation = 2}},
      {"conv_transpose2d.groups", {1, 4, 3, 3}, {4, 2, 3, 3}, {.stride = 2, .groups = 2}},
      {"conv_transpose1d", {2, 3, 5}, {3, 2, 3}, {.stride = 3, .padding = 1}},
      {"conv_transpose3d", {1, 2, 3, 2, 3}, {2, 2, 2, 2, 2}, {.stride = 2}},
  };
  for (const Transposed& r : transposed)
    t.add(r.name, {f(r.x), f(r.w)},
          [options = r.options](const Args& x) { return x[0].conv_transpose2d(x[1], options); })
        .tol(16, 32)
        .grad();
  t.add("conv_transpose2d.bias", {f({1, 2, 4, 4}), f({2, 3, 3, 3}), f({3})},
        PG_OP(x[0].conv_transpose2d(x[1], x[2])))
      .tol(16, 32)
      .grad();
}

void add_pooling(Table& t) {
  struct Row {
    const char* name;
    eval::Dims x;
    Ints kernel;
    PoolOptions options;
  };
  const Row rows[] = {
      {"", {2, 3, 6, 6}, {2, 2}, {}},
      {".odd", {1, 2, 7, 5}, {2, 2}, {}},
      {".three", {1, 2, 7, 7}, {3, 3}, {}},
      {".oblong", {1, 2, 6, 8}, {3, 2}, {}},
      {".overlapping", {1, 2, 6, 6}, {3, 3}, {.stride = 1}},
      {".strides", {1, 2, 7, 8}, {2, 3}, {.stride = {1, 2}}},
      {".gaps", {1, 1, 9, 9}, {2, 2}, {.stride = 3}},
      {".padding", {1, 2, 6, 6}, {3, 3}, {.stride = 2, .padding = 1}},
      {".paddings", {1, 2, 6, 5}, {3, 4}, {.stride = 2, .padding = {1, 2}}},
      {".ceil", {1, 2, 6, 6}, {3, 3}, {.stride = 2, .ceil_mode = true}},
      {".ceil_padding", {1, 1, 5, 5}, {2, 2}, {.stride = 3, .padding = 1, .ceil_mode = true}},
      {".global", {2, 3, 4, 5}, {4, 5}, {}},
      {".three_axes", {1, 2, 4, 4, 4}, {2, 2, 2}, {}},
  };
  for (const Row& r : rows) {
    t.add(std::string("max_pool2d") + r.name, {distinct(r.x)}, [k = r.kernel, o = r.options](const Args& x) {
       return x[0].max_pool2d(k, o);
     }).grad();
    t.add(std::string("avg_pool2d") + r.name, {f(r.x)},
          [k = r.kernel, o = r.options](const Args& x) { return x[0].avg_pool2d(k, o); })
        .tol(8, 2)
        .grad();
  }
  t.add("max_pool2d.dilation", {distinct({1, 2, 7, 7})},
        PG_OP(x[0].max_pool2d({2, 2}, {.stride = 1, .dilation = 2})))
      .grad();
  t.add("avg_pool2d.without_padding", {f({1, 2, 6, 6})},
        PG_OP(x[0].avg_pool2d({3, 3}, {.stride = 2, .padding = 1, .count_include_pad = false})))
      .tol(8, 2)
      .grad();
  // One axis: a list of one number is a number, so a second axis is made.
  t.add("max_pool2d.one_axis", {distinct({2, 3, 8})}, PG_OP(x[0].max_pool2d({2}))).grad();
  t.add("avg_pool2d.one_axis", {f({2, 3, 8})}, PG_OP(x[0].avg_pool2d({2}))).tol(8, 2).grad();
  t.add("max_pool2d.default", {distinct({1, 2, 5, 4})}, PG_OP(x[0].max_pool2d())).grad();
  t.add("max_pool2d.indices", {distinct({2, 2, 5, 6})}, PG_OP(x[0].max_pool2d_with_indices().second));
  t.add("max_pool2d.indices_padded", {distinct({1, 2, 5, 4})},
        PG_OP(x[0].max_pool2d_with_indices({3, 3}, {.stride = 2, .padding = 1}).second));
  t.add("max_pool2d.indices_ties", {ints({1, 1, 6, 6}, 0, 3)},
        PG_OP(x[0].max_pool2d_with_indices({3, 3}, {.stride = 1}).second));
  t.add("max_unpool2d", {distinct({2, 2, 4, 6})}, PG_OP([](const Tensor& a) {
          auto [values, at] = a.max_pool2d_with_indices();
          return values.max_unpool2d(at);
        }(x[0])))
      .grad();
  t.add("max_unpool2d.size", {distinct({1, 5, 4})}, PG_OP([](const Tensor& a) {
          auto [values, at] = a.max_pool2d_with_indices();
          return values.max_unpool2d(at, {2, 2}, {}, {5, 4});
        }(x[0])));
  t.add("max_pool2d.int", {ints({1, 2, 5, 4}, -99, 99, i8)}, PG_OP(x[0].max_pool2d({2, 2}, {.padding = 1})));
}

}  // namespace

void add_products(Table& t) {
  add_matmul(t);
  add_convolutions(t);
  add_pooling(t);
}

}  // namespace pg::ops
