// What networks are made of: normalisations, losses, interpolation, and a few whole layers.
#include "ops/op_table.h"

namespace pg::ops {
namespace {

void add_norms(Table& t) {
  t.add("layernorm", {f({3, 6})}, PG_OP(x[0].layernorm())).tol(24, 2).grad();
  t.add("layernorm.axes", {f({2, 3, 4})}, PG_OP(x[0].layernorm({1, 2}))).tol(24, 2).grad();
  t.add("layernorm.eps", {f({3, 6})}, PG_OP(x[0].layernorm(-1, 0.1))).tol(24, 2).grad();
  t.add("batchnorm", {f({4, 3, 2, 2}), f({3}), f({3}), f({3}), f({3}, 0.5, 2)},
        PG_OP(x[0].batchnorm(x[1], x[2], x[3], x[4])))
      .golden(8, 8)
      .grad();
  t.add("batchnorm.no_affine", {f({4, 3}), f({3}), f({3}, 0.5, 2)}, PG_OP(x[0].batchnorm({}, {}, x[1], x[2])))
      .golden(8, 8)
      .grad();
  t.add("batchnorm.training", {f({5, 3, 2, 2}), f({3}), f({3})},
        PG_OP([](const Tensor& a, const Tensor& w, const Tensor& b) {
          auto [var, mean] = a.var_mean({0, 2, 3}, {.correction = 0});
          return a.batchnorm(w, b, mean, (var + 1e-5).rsqrt());
        }(x[0], x[1], x[2])))
      .tol(32, 4)
      .grad();
}

void add_losses(Table& t) {
  using enum Reduction;
  t.add("cross_entropy", {f({4, 5}, -4, 4), ints({4}, 0, 5)}, PG_OP(x[0].cross_entropy(x[1])))
      .tol(16, 8)
      .grad();
  t.add("cross_entropy.sum", {f({4, 5}, -4, 4), ints({4}, 0, 5)},
        PG_OP(x[0].cross_entropy(x[1], {.reduction = Sum})))
      .tol(24, 32)
      .grad();
  t.add("cross_entropy.none", {f({4, 5}, -4, 4), ints({4}, 0, 5)},
        PG_OP(x[0].cross_entropy(x[1], {.reduction = None})))
      .tol(16, 8)
      .grad();
  t.add("cross_entropy.smoothing", {f({4, 5}, -4, 4), ints({4}, 0, 5)},
        PG_OP(x[0].cross_entropy(x[1], {.label_smoothing = 0.2})))
      .tol(16, 8)
      .grad();
  t.add("cross_entropy.probabilities", {f({4, 5}, -4, 4), f({4, 5}, 0, 1)},
        PG_OP(x[0].cross_entropy(x[1].softmax())))
      .tol(24, 16)
      .grad();
  t.add("cross_entropy.image", {f({2, 3, 2, 2}, -4, 4), ints({2, 2, 2}, 0, 3)},
        PG_OP(x[0].cross_entropy(x[1])))
      .tol(16, 8)
      .grad();
  t.add("cross_entropy.one", {f({5}, -4, 4), ints({}, 0, 5)}, PG_OP(x[0].cross_entropy(x[1])))
      .tol(16, 8)
      .grad();
  t.add("sparse_cross_entropy", {f({4, 5}, -4, 4), ints({4}, 0, 5)},
        PG_OP(x[0].sparse_categorical_crossentropy(x[1])))
      .tol(16, 8)
      .grad();
  t.add("sparse_cross_entropy.ignore", {f({6, 5}, -4, 4), ints({6}, 0, 5)},
        PG_OP(x[0].sparse_categorical_crossentropy(x[1], {.ignore_index = 2})))
      .tol(16, 8)
      .grad();
  t.add("sparse_cross_entropy.smoothing", {f({4, 5}, -4, 4), ints({4}, 0, 5)},
        PG_OP(x[0].sparse_categorical_crossentropy(x[1], {.label_smoothing = 0.1, .reduction = Sum})))
      .tol(24, 32)
      .grad();
  t.add("sparse_cross_entropy.u8", {f({4, 5}, -4, 4), ints({4}, 0, 5, u8)},
        PG_OP(x[0].sparse_categorical_crossentropy(x[1])))
      .tol(16, 8)
      .grad();
  t.add("nll_loss", {f({4, 5}, -4, 4), ints({4}, 0, 5)}, PG_OP(x[0].log_softmax().nll_loss(x[1])))
      .tol(16, 8)
      .grad();
  t.add("nll_loss.weight", {f({4, 5}, -4, 4), ints({4}, 0, 5), f({5}, 0.1, 2)},
        PG_OP(x[0].log_softmax().nll_loss(x[1], x[2])))
      .tol(24, 8)
      .grad();
  t.add("nll_loss.ignore", {f({6, 3}, -4, 4), ints({6}, 0, 3)},
        PG_OP(x[0].log_softmax().nll_loss(x[1], {}, {.ignore_index = 1, .reduction = Sum})))
      .tol(24, 32)
      .grad();
  t.add("bce", {f({3, 4}, 0.05, 0.95), f({3, 4}, 0, 1)}, PG_OP(x[0].binary_crossentropy(x[1])))
      .tol(16, 4)
      .grad();
  t.add("bce.none", {f({3, 4}, 0.05, 0.95), f({3, 4}, 0, 1)},
        PG_OP(x[0].binary_crossentropy(x[1], {.reduction = None})))
      .tol(16, 4)
      .grad();
  t.add("bce_logits", {f({3, 4}, -5, 5), f({3, 4}, 0, 1)}, PG_OP(x[0].binary_crossentropy_logits(x[1])))
      .tol(16, 8)
      .grad();
  t.add("bce_logits.pos_weight", {f({3, 4}, -5, 5), f({3, 4}, 0, 1), f({4}, 0.5, 2)},
        PG_OP(x[0].binary_crossentropy_logits(x[1], x[2], {.reduction = Sum})))
      .tol(24, 64)
      .grad();
  t.add("mse", {f({3, 4}), f({3, 4})}, PG_OP((x[0] - x[1]).square().mean())).tol(16, 4).grad();
}

void add_interpolation(Table& t) {
  t.add("interpolate", {f({1, 2, 4, 5})}, PG_OP(x[0].interpolate({6, 3}))).tol(16, 4).grad();
  t.add("interpolate.corners", {f({1, 2, 4, 5})}, PG_OP(x[0].interpolate({7, 3}, {.align_corners = true})))
      .tol(16, 4)
      .grad();
  t.add("interpolate.nearest", {f({1, 2, 4, 5})},
        PG_OP(x[0].interpolate({6, 3}, {.mode = Interpolation::Nearest})))
      .grad();
  t.add("interpolate.nearest_exact", {f({1, 2, 4, 5})},
        PG_OP(x[0].interpolate({6, 3}, {.mode = Interpolation::NearestExact})))
      .grad();
  t.add("interpolate.one_axis", {f({1, 2, 5})}, PG_OP(x[0].interpolate({8}))).tol(16, 4).grad();
}

void add_whole_layers(Table& t) {
  t.add("layer.mlp", {f({3, 4}), f({4, 6}), f({6}), f({6, 2}), f({2})},
        PG_OP(x[0].linear(x[1], x[2]).relu().linear(x[3], x[4]).log_softmax()))
      .tol(32, 64)
      .grad();
  t.add("layer.gated", {f({3, 4}), f({4, 6}), f({4, 6})}, PG_OP(x[0].matmul(x[1]).silu() * x[0].matmul(x[2])))
      .tol(32, 64)
      .grad();
  t.add("layer.conv_pool", {f({2, 1, 8, 8}), f({3, 1, 3, 3}), f({3})},
        PG_OP(x[0].conv2d(x[1], x[2]).relu().avg_pool2d({2, 2}).flatten(1)))
      .tol(16, 16)
      .grad();
  t.add("layer.rms", {f({3, 6}), f({6})},
        PG_OP(x[0] * (x[0].square().mean(-1, {.keepdim = true}) + 1e-6).rsqrt() * x[1]))
      .tol(16)
      .grad();
  t.add("newton_schulz", {f({3, 4})}, PG_OP(x[0].newton_schulz(3, {3.4445, -4.775, 2.0315})))
      .tol(256, 8)
      .grad();
}

}  // namespace

void add_layers(Table& t) {
  add_norms(t);
  add_losses(t);
  add_interpolation(t);
  add_whole_layers(t);
}

}  // namespace pg::ops
