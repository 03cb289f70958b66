// Matrix products of each dtype and layout, attention.
#include <vector>

#include <fmt/format.h>

#include "kernels.h"
#include "measure.h"

namespace pg::bench {
namespace {

struct Product {
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  const char* layout = "nn";  // t: the operand lies in memory as its transpose
  DType dtype = f32;
};

Tensor drawn(const Shape& shape, DType t) {
  if (t == i8) return Tensor::randint(shape, {.low = -127, .high = 127, .dtype = i8});
  return Tensor::randn(shape).cast(t);
}

Work matmul(const Product& p) {
  const char* dtype = p.dtype == f32 ? "f32" : p.dtype == f16 ? "f16" : p.dtype == bf16 ? "bf16" : "i8";
  bool ta = p.layout[0] == 't', tb = p.layout[1] == 't';
  auto batched = [&](std::int64_t rows, std::int64_t columns) {
    return p.batch == 1 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
  };
  auto count = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  auto size = static_cast<double>(itemsize(p.dtype)), batch = static_cast<double>(p.batch);
  DType out = p.dtype == i8 ? i32 : p.dtype;
  std::string name = p.m == p.n && p.n == p.k ? fmt::format("{} matmul {} square", dtype, p.m)
                                              : fmt::format("{} matmul {}x{}x{}", dtype, p.m, p.k, p.n);
  if (p.batch > 1) name += fmt::format(", batch {}", p.batch);
  if (ta || tb) name += ta && tb ? ", both transposed" : ta ? ", left transposed" : ", right transposed";
  return {
      .name = name,
      .flops = 2 * batch * count(p.m, p.n) * static_cast<double>(p.k),
      .bytes = batch * (size * (count(p.m, p.k) + count(p.k, p.n)) +
                        static_cast<double>(itemsize(out)) * count(p.m, p.n)),
      .inputs = {drawn(ta ? batched(p.k, p.m) : batched(p.m, p.k), p.dtype),
                 drawn(tb ? batched(p.n, p.k) : batched(p.k, p.n), p.dtype)},
      .ours =
          [ta, tb, out](const std::vector<Tensor>& in) {
            return std::vector{(ta ? in[0].T() : in[0]).matmul(tb ? in[1].T() : in[1], out)};
          },
      .rival_work = fmt::format("matmul {} {} {} {} {} {}", dtype, p.layout, p.batch, p.m, p.n, p.k),
  };
}

// By weights (n, k) of 8 or 4 bits, a scale for each row or block of 32, which become floats inside the
// product.
Work few_bits(std::int64_t m, std::int64_t n, std::int64_t k, int bits, bool blocks) {
  constexpr std::int64_t kBlock = 32;
  auto size = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  std::int64_t scales = blocks ? k / kBlock : 1;
  return {
      .name = fmt::format("matmul of f32 {}x{} by {}-bit weights{}", m, k, bits, blocks ? " in blocks" : ""),
      .flops = 2 * size(m, n) * static_cast<double>(k),
      .bytes = 4 * (size(m, k) + size(m, n) + size(n, scales)) + size(n, k) * bits / 8,
      .inputs = {Tensor::randn({m, k}),
                 bits == 8 ? drawn({n, k}, i8)
                           : Tensor::randint({n, k / kBlock, kBlock / 2}, {.high = 256, .dtype = u8}),
                 Tensor::randn({n, scales, 1})},
      .ours =
          [=](const std::vector<Tensor>& in) {
            Tensor w = bits == 8 ? in[1].cast(f32) : stack({in[1] & 15, in[1] >> 4}, 2).cast(f32) - 8;
            w = w.reshape({n, scales, k / scales}) * in[2];
            return std::vector{in[0].matmul(w.reshape({n, k}).T())};
          },
  };
}

// What follows a product costs no pass of its own.
Work with_epilogue(std::int64_t n) {
  auto size = static_cast<double>(n) * static_cast<double>(n);
  return {.name = fmt::format("f32 matmul {} square, bias, relu and residual", n),
          .flops = 2 * size * static_cast<double>(n),
          .bytes = 16 * size,
          .inputs = {Tensor::randn({n, n}), Tensor::randn({n, n}), Tensor::randn({n}), Tensor::randn({n, n})},
          .ours = [](const std::vector<Tensor>& in) {
            return std::vector{(in[0].matmul(in[1]) + in[2]).relu() + in[3]};
          }};
}

}  // namespace

void products() {
  Rival &blas = Rival::openblas(), &torch = Rival::torch(), &dnnl = Rival::onednn();
  const struct {
    std::int64_t n;
    double share;
  } squares[] = {{256, 0.5}, {512, 0.65}, {1024, 0.8}, {2048, 0.82}, {4096, 0.75}};
  for (auto [n, share] : squares) {
    std::vector<Goal> goals{Goal::peak(share)};
    if (n >= 512) goals.push_back(Goal::beat(blas, 1.05));
    measure(matmul({n, n, n}), goals);
  }
  for (const char* layout : {"nt", "tn", "tt"})
    measure(matmul({1024, 1024, 1024, 1, layout}), {Goal::beat(blas, 1)});
  for (const Product& p :
       {Product{4096, 4096, 64}, Product{64, 64, 4096}, Product{31, 77, 1000}, Product{128, 128, 128, 64}})
    measure(matmul(p), {Goal::beat(blas, 1)});
  measure(matmul({1, 4096, 4096}), {Goal::read(0.9), Goal::beat(blas, 1)});
  measure(matmul({1024, 1024, 1024, 1, "nn", bf16}), {Goal::beat(torch, 1), Goal::beat(dnnl, 1)});
  measure(matmul({1024, 1024, 1024, 1, "nn", f16}), {Goal::beat(torch, 1)});  // Debian's oneDNN has none
  measure(matmul({1024, 1024, 1024, 1, "nn", i8}), {Goal::beat(dnnl, 0.9)});

  measure(with_epilogue(1024), {Goal::peak(0.76)});
  measure(few_bits(1, 4096, 4096, 8, false), {Goal::read(0.9)});
  measure(few_bits(1, 4096, 4096, 8, true), {Goal::read(0.9)});
  measure(few_bits(1, 4096, 4096, 4, true), {Goal::read(0.9)});
  measure(few_bits(128, 4096, 4096, 8, false), {Goal::peak(0.65)});

  constexpr std::int64_t kHeads = 12, kTokens = 1024, kWidth = 64;
  std::vector<Tensor> qkv;
  for (int i = 0; i < 3; ++i) qkv.push_back(Tensor::randn({1, kHeads, kTokens, kWidth}));
  measure(
      {.name = "attention, 12 heads, 1024 tokens, head 64, causal",
       .flops = 2.0 * 2 * kHeads * kTokens * kTokens * kWidth / 2,
       .bytes = 4.0 * 4 * kHeads * kTokens * kWidth,
       .inputs = qkv,
       .ours =
           [](const std::vector<Tensor>& in) {
             return std::vector{in[0].scaled_dot_product_attention(in[1], in[2], {}, {.is_causal = true})};
           },
       .rival_work = fmt::format("attention {} {} {} causal", kHeads, kTokens, kWidth)},
      {Goal::beat(torch, 1.2)});
}

}  // namespace pg::bench
