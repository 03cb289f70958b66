// GPT-2 small (Radford et al. 2019) with random weights, as the benchmarks trace, train and run it.
#pragma once

#include <cstdint>
#include <vector>

#include <pangrad/nn.h>

namespace pg::bench {

struct Gpt2 : nn::Module {
  static constexpr std::int64_t kWidth = 768, kHeads = 12, kLayers = 12, kVocabulary = 50257, kContext = 1024;

  /// Keys and values of what came before, each (1, heads, tokens, width of a head).
  struct Past {
    Tensor keys, values;
  };

  struct Layer : nn::Module {
    nn::LayerNorm norm1{kWidth}, norm2{kWidth};
    nn::Linear qkv{kWidth, 3 * kWidth}, out{kWidth, kWidth}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};

    void fields(auto&& field) {
      field("norm1", norm1), field("norm2", norm2), field("qkv", qkv), field("out", out), field("up", up);
      field("down", down);
    }
    Tensor operator()(const Tensor& x, const Past* past) const {
      std::int64_t n = x.size(0), length = x.size(1);
      Tensor parts = qkv(norm1(x)).reshape({n, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
      const std::vector<Tensor> list = parts.unbind(0);
      const Tensor& q = list[0];
      Tensor k = list[1], v = list[2];
      if (past) {
        k = cat({past->keys, k}, 2), v = cat({past->values, v}, 2);
      }
      Tensor h = q.scaled_dot_product_attention(k, v, {}, {.is_causal = past == nullptr});
      Tensor y = x + out(h.transpose(1, 2).reshape({n, length, kWidth}));
      return y + down(up(norm2(y)).gelu());
    }
  };

  nn::Embedding tokens{kVocabulary, kWidth}, places{kContext, kWidth};
  std::vector<Layer> layers;
  nn::LayerNorm norm{kWidth};

  Gpt2() : layers(kLayers) {}
  void fields(auto&& field) {
    field("tokens", tokens), field("places", places), field("layers", layers), field("norm", norm);
  }
  /// Tokens (batch, n) that stand at `start` and after it, to what is read off for each (batch, n, width).
  Tensor states(const Tensor& text, std::int64_t start = 0, const std::vector<Past>& past = {}) const {
    std::int64_t n = text.size(1);
    Tensor x = tokens(text) + places.weight.shrink({{start, start + n}, {0, kWidth}});
    for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i](x, past.empty() ? nullptr : &past[i]);
    return norm(x);
  }
  /// Logits (..., vocabulary) of states.
  Tensor logits(const Tensor& x) const { return x.matmul(tokens.weight.T()); }
  /// Those of what follows each token.
  Tensor operator()(const Tensor& text) const { return logits(states(text)); }
  /// Those of what follows the last one: (batch, vocabulary).
  Tensor next(const Tensor& text, std::int64_t start = 0, const std::vector<Past>& past = {}) const {
    Tensor x = states(text, start, past);
    std::int64_t n = text.size(1);
    return logits(x.shrink({{0, x.size(0)}, {n - 1, n}, {0, kWidth}}).squeeze(1));
  }
};

}  // namespace pg::bench
