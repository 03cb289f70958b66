// Indexing by integers, slices and tensors; gather, scatter, one-hot; sorting.
#include "ops/op_table.h"

namespace pg::ops {

void add_indexing(Table& t) {
  t.add("index.int", {f({4, 3})}, PG_OP(x[0][1])).grad();
  t.add("index.negative", {f({4, 3})}, PG_OP(x[0][-1])).grad();
  t.add("index.ints", {f({4, 3})}, PG_OP(x[0][{2, -3}])).grad();
  t.add("index.slice", {f({7, 3})}, PG_OP(x[0][Slice{1, 5}])).grad();
  t.add("index.slice_step", {f({9, 3})}, PG_OP(x[0][Slice{1, 8, 3}])).grad();
  t.add("index.slice_back", {f({9, 3})}, PG_OP(x[0][Slice{.step = -1}])).grad();
  t.add("index.slice_back_step", {f({9})}, PG_OP(x[0][Slice{7, 1, -2}])).grad();
  t.add("index.slice_negative", {f({9})}, PG_OP(x[0][Slice{-4, -1}])).grad();
  t.add("index.slice_clipped", {f({4})}, PG_OP(x[0][Slice{-99, 99}])).grad();
  t.add("index.slice_empty", {f({4, 2})}, PG_OP(x[0][Slice{3, 1}]));
  t.add("index.slices", {f({5, 6})}, PG_OP(x[0][{Slice{1, 4}, Slice{.step = 2}}])).grad();
  t.add("index.ellipsis", {f({2, 3, 4})}, PG_OP(x[0][{ellipsis, 2}])).grad();
  t.add("index.newaxis", {f({2, 3})}, PG_OP(x[0][{Slice{}, newaxis, 1}])).grad();
  t.add("index.mixed", {f({2, 3, 4, 5})}, PG_OP(x[0][{1, ellipsis, newaxis, Slice{.stop = -1}, 3}])).grad();

  t.add("take", {f({5, 3}), ints({4}, -5, 5)}, PG_OP(x[0][x[1]])).grad();
  t.add("take.matrix", {f({5, 3}), ints({2, 3}, 0, 5)}, PG_OP(x[0][x[1]])).grad();
  t.add("take.second_axis", {f({3, 5}), ints({4}, 0, 5)}, PG_OP(x[0][{Slice{}, x[1]}])).grad();
  t.add("take.pairs", {f({4, 5}), ints({6}, 0, 4), ints({6}, 0, 5)}, PG_OP(x[0][{x[1], x[2]}])).grad();
  t.add("take.broadcast", {f({4, 5}), ints({3, 1}, 0, 4), ints({2}, 0, 5)}, PG_OP(x[0][{x[1], x[2]}])).grad();
  t.add("take.adjacent", {f({2, 4, 5, 3}), ints({3}, 0, 4), ints({3}, 0, 5)},
        PG_OP(x[0][{Slice{}, x[1], x[2]}]))
      .grad();
  t.add("take.separated", {f({4, 2, 5}), ints({3}, 0, 4), ints({3}, 0, 5)},
        PG_OP(x[0][{x[1], Slice{}, x[2]}]))
      .grad();
  t.add("take.with_int", {f({4, 2, 5}), ints({3}, 0, 5)}, PG_OP(x[0][{1, Slice{}, x[1]}])).grad();
  t.add("take.list", {f({4, 3})}, PG_OP(x[0][std::vector<std::int64_t>{2, 0, -1, 2}])).grad();
  t.add("take.u8", {f({5, 3}), ints({4}, 0, 5, u8)}, PG_OP(x[0][x[1]])).grad();
  t.add("take.i64", {f({5}), ints({4}, 0, 5, i64)}, PG_OP(x[0][x[1]])).grad();
  t.add("take.out_of_range", {f({3}), ints({8}, -6, 6)}, PG_OP(x[0][x[1]])).grad();
  t.add("take.nothing", {f({3, 2}), ints({0}, 0, 3)}, PG_OP(x[0][x[1]]));
  t.add("take.bools", {bools({5}), ints({4}, 0, 5)}, PG_OP(x[0][x[1]]));
  t.add("index_select", {f({3, 5}), ints({4}, 0, 5)}, PG_OP(x[0].index_select(1, x[1]))).grad();

  t.add("gather", {f({4, 3}), ints({2, 3}, 0, 4)}, PG_OP(x[0].gather(0, x[1]))).grad();
  t.add("gather.last", {f({4, 5}), ints({4, 3}, 0, 5)}, PG_OP(x[0].gather(1, x[1]))).grad();
  t.add("gather.smaller", {f({4, 5}), ints({2, 7}, 0, 5)}, PG_OP(x[0].gather(1, x[1]))).grad();
  t.add("gather.middle", {f({2, 4, 3}), ints({2, 2, 3}, 0, 4)}, PG_OP(x[0].gather(1, x[1]))).grad();
  t.add("gather.out_of_range", {f({4, 3}), ints({5, 2}, -6, 9)}, PG_OP(x[0].gather(0, x[1]))).grad();
  t.add("gather.of_permuted", {f({3, 4}), ints({4, 3}, 0, 3, u32)}, PG_OP(x[0].T().gather(1, x[1])));
  t.add("scatter", {f({3, 5}), ints({3, 2}, 0, 2), f({3, 2})},
        PG_OP(x[0].scatter(1, x[1] * 2 + Tensor::arange(2), x[2])));
  t.add("scatter.number", {f({3, 5}), ints({3, 2}, 0, 5)}, PG_OP(x[0].scatter(1, x[1], 9.0)));
  t.add("scatter_reduce.sum", {f({3, 4}), ints({3, 6}, 0, 4), f({3, 6})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Sum)))
      .tol(6, 8)
      .grad();
  t.add("scatter_reduce.prod", {f({3, 4}), ints({3, 6}, 0, 4), f({3, 6})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Prod)))
      .tol(6, 8);
  t.add("scatter_reduce.mean", {f({3, 4}), ints({3, 6}, 0, 4), f({3, 6})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Mean)))
      .tol(6, 8);
  t.add("scatter_reduce.amax", {f({3, 4}), ints({3, 6}, 0, 4), f({3, 6})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Amax)));
  t.add("scatter_reduce.amin", {f({3, 4}), ints({3, 6}, 0, 4), f({3, 6})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Amin, {.include_self = false})));
  t.add("index_add", {f({5, 3}), ints({4}, -1, 6), f({4, 3})}, PG_OP(x[0].index_add(0, x[1], x[2])))
      .tol(4, 4)
      .grad();
  t.add("index_add.middle", {f({2, 4, 3}), ints({5}, 0, 4, u8), f({2, 5, 3})},
        PG_OP(x[0].index_add(1, x[1], x[2])))
      .tol(5, 6);
  t.add("index_add.f16", {of(f16, {4}, -2, 2), ints({9}, 0, 4), of(f16, {9}, -2, 2)},
        PG_OP(x[0].index_add(0, x[1], x[2])))
      .tol(2, 8);
  // Large enough for the values to go to their places one by one.
  t.add("index_add.sorted", {f({500, 2}), ints({600}, -9, 59), f({600, 2})},
        PG_OP(x[0].index_add(0, x[1], x[2])[Slice{0, 70, 5}]))
      .tol(30, 30);
  t.add("scatter.sorted", {f({500, 2}), ints({600, 2}, -9, 509), f({600, 2})},
        PG_OP(x[0].scatter(0, x[1], x[2])[Slice{.step = 37}]));
  t.add("scatter_reduce.sorted_mean", {f({2, 400}), ints({2, 680}, 0, 99), f({2, 680})},
        PG_OP(x[0].scatter_reduce(1, x[1], x[2], Scatter::Mean)[{Slice{}, Slice{.step = 37}}]))
      .tol(16, 16);
  t.add("write.rows_sorted", {f({500, 2}), ints({600}, -499, 509), f({600, 2})},
        PG_OP([](Tensor a, const Tensor& rows, const Tensor& v) {
          a[rows] = v;
          return a[Slice{.step = 37}];
        }(x[0].clone(), x[1], x[2])));
  t.add("masked_select.size", {f({3, 4}), bools({3, 4})},
        PG_OP(x[0].masked_select(x[1], {.size = 9, .fill = -7})))
      .grad();
  t.add("masked_select.fewer", {f({3, 4}), bools({4})}, PG_OP(x[0].masked_select(x[1], {.size = 3})));
  t.add("masked_select.none", {f({3}), bools({3})}, PG_OP(x[0].masked_select(x[1], {.size = 0})));
  t.add("nonzero.size", {ints({3, 4}, -1, 2)}, PG_OP(x[0].nonzero({.size = 13, .fill = -1})));
  t.add("nonzero.vector", {bools({40})}, PG_OP(x[0].nonzero({.size = 30})));
  t.add("one_hot", {ints({4}, 0, 5)}, PG_OP(x[0].one_hot(5)));
  t.add("one_hot.matrix", {ints({2, 3}, 0, 3, u8)}, PG_OP(x[0].one_hot(3)));
  t.add("one_hot.embedding", {ints({4}, 0, 5), f({5, 3})}, PG_OP(x[0].one_hot(5).cast(f32).matmul(x[1])))
      .golden(4, 4);

  t.add("sort", {distinct({3, 7})}, PG_OP(x[0].sort().first)).grad();
  t.add("sort.indices", {distinct({3, 7})}, PG_OP(x[0].sort().second));
  t.add("sort.descending", {distinct({7, 2})}, PG_OP(x[0].sort(0, {.descending = true}).first)).grad();
  t.add("sort.ties", {ints({12}, 0, 4)}, PG_OP(x[0].sort().second));
  t.add("sort.one", {f({2, 1})}, PG_OP(x[0].sort().first));
  // Long enough for a network: of keys, and of pairs where keys do not fit.
  t.add("sort.network", {distinct({2100})}, PG_OP(x[0].sort().first[Slice{.step = 70}]));
  t.add("sort.network_ties", {ints({2100}, -9, 9, i8)}, PG_OP(x[0].sort().second[Slice{.step = 70}]));
  t.add("sort.network_descending", {ints({2100}, 0, 50, u32)},
        PG_OP(x[0].sort(0, {.descending = true}).second[Slice{.step = 70}]));
  t.add("sort.network_rows", {of(f16, {3, 1500}, -2, 2)},
        PG_OP(x[0].sort(1).second[{Slice{}, Slice{.step = 99}}]));
  t.add("sort.network_specials", {special(f32)}, PG_OP(x[0].repeat({150}).sort().second[Slice{.step = 70}]));
  t.add("sort.pairs", {ints({2100}, -9, 9, i64)},
        PG_OP(x[0].sort(0, {.descending = true}).second[Slice{.step = 70}]));
  t.add("argsort", {distinct({9})}, PG_OP(x[0].argsort()));
  t.add("topk", {distinct({3, 7})}, PG_OP(x[0].topk(3).first)).grad();
  t.add("topk.indices", {distinct({3, 7})}, PG_OP(x[0].topk(3).second));
  t.add("topk.smallest", {distinct({8})}, PG_OP(x[0].topk(2, 0, {.largest = false}).first)).grad();
  t.add("topk.none", {f({3})}, PG_OP(x[0].topk(0).first));
  t.add("topk.blocks", {f({2, 3001})}, PG_OP(x[0].topk(5).first));
  t.add("topk.blocks_ties", {ints({3001, 2}, 0, 400)}, PG_OP(x[0].topk(7, 0, {.largest = false}).second));

  // A write is a value too.
  t.add("write.slice", {f({4, 3}), f({2, 3})}, PG_OP([](Tensor a, const Tensor& v) {
          a[Slice{1, 3}] = v;
          return a * 2;
        }(x[0] + 0, x[1])))
      .grad();
  t.add("write.column", {f({4, 3}), f({4})}, PG_OP([](Tensor a, const Tensor& v) {
          a[{Slice{}, 1}] = v;
          return a;
        }(x[0].clone(), x[1])))
      .grad();
  t.add("write.through_views", {f({4, 3}), f({2})}, PG_OP([](const Tensor& a, const Tensor& v) {
          Tensor view = a.permute({1, 0}).flip(0)[{1, Slice{.step = 2}}];
          view.assign(v);
          return a + 1;
        }(x[0].clone(), x[1])))
      .grad();
  t.add("write.twice", {f({5}), f({3}), f({3})}, PG_OP([](Tensor a, const Tensor& v, const Tensor& w) {
          a[Slice{0, 3}] = v;
          a[Slice{2, 5}] += w;
          return a;
        }(x[0].clone(), x[1], x[2])))
      .grad();
  t.add("write.rows", {f({5, 2}), ints({3}, 0, 5), f({3, 2})},
        PG_OP([](Tensor a, const Tensor& i, const Tensor& v) {
          a[i] = v;
          return a;
        }(x[0].clone(), x[1], x[2])));
}

}  // namespace pg::ops
