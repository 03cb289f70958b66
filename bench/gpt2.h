// GPT-2 (Radford et al. 2019) as the graph benchmark traces and trains it.
#pragma once

#include <vector>

#include <pangrad/nn.h>

namespace pg::bench {

struct Gpt2Block : nn::Module {
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, proj, up, down;
  std::int64_t heads;

  Gpt2Block(std::int64_t width, std::int64_t head_count)
      : norm1(width),
        norm2(width),
        qkv(width, 3 * width),
        proj(width, width),
        up(width, 4 * width),
        down(4 * width, width),
        heads(head_count) {}
  void fields(auto&& field) {
    field("norm1", norm1), field("norm2", norm2), field("qkv", qkv), field("proj", proj);
    field("up", up), field("down", down);
  }
  Tensor operator()(const Tensor& x) const {
    auto split = [&](const Tensor& t) {
      return t.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
    };
    std::vector<Tensor> parts = qkv(norm1(x)).chunk(3, -1);
    Tensor h = split(parts[0]).scaled_dot_product_attention(split(parts[1]), split(parts[2]), {},
                                                            {.is_causal = true});
    Tensor y = x + proj(h.transpose(1, 2).reshape(x.shape()));
    return y + down(up(norm2(y)).gelu());
  }
};

struct Gpt2 : nn::Module {
  nn::Embedding tokens, places;
  std::vector<Gpt2Block> blocks;
  nn::LayerNorm norm;

  /// The small one.
  Gpt2() : tokens(50257, 768), places(1024, 768), norm(768) {
    for (int i = 0; i < 12; ++i) blocks.emplace_back(768, 12);
  }
  void fields(auto&& field) {
    field("tokens", tokens), field("places", places), field("blocks", blocks), field("norm", norm);
  }
  /// Token numbers (batch, length) to logits (batch, length, vocabulary).
  Tensor operator()(const Tensor& ids) const {
    Tensor x = tokens(ids) + places(Tensor::arange(ids.size(1).max()));
    for (const Gpt2Block& b : blocks) x = b(x);
    return norm(x).matmul(tokens.weight.T());
  }
};

}  // namespace pg::bench
