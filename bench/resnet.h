// ResNet-50 (He et al. 2015) as the graph benchmark traces it.
#pragma once

#include <optional>
#include <vector>

#include <pangrad/nn.h>

namespace pg::bench {

struct Bottleneck : nn::Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm norm1, norm2, norm3;
  std::optional<nn::Conv2d> short_conv;
  std::optional<nn::BatchNorm> short_norm;

  Bottleneck(std::int64_t in, std::int64_t planes, std::int64_t stride)
      : conv1(in, planes, 1, {.bias = false}),
        conv2(planes, planes, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv3(planes, planes * 4, 1, {.bias = false}),
        norm1(planes),
        norm2(planes),
        norm3(planes * 4) {
    if (stride == 1 && in == planes * 4) return;
    short_conv.emplace(in, planes * 4, 1, nn::ConvLayerOptions{.stride = stride, .bias = false});
    short_norm.emplace(planes * 4);
  }
  void fields(auto&& field) {
    field("conv1", conv1), field("conv2", conv2), field("conv3", conv3);
    field("norm1", norm1), field("norm2", norm2), field("norm3", norm3);
    field("short_conv", short_conv), field("short_norm", short_norm);
  }
  Tensor operator()(const Tensor& x) const {
    Tensor h = norm1(conv1(x)).relu();
    h = norm2(conv2(h)).relu();
    h = norm3(conv3(h));
    return (h + (short_conv ? (*short_norm)((*short_conv)(x)) : x)).relu();
  }
};

struct ResNet50 : nn::Module {
  nn::Conv2d stem{3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm norm{64};
  std::vector<Bottleneck> blocks;
  nn::Linear head{2048, 1000};

  ResNet50() {
    std::int64_t in = 64;
    const struct {
      std::int64_t planes, count, stride;
    } stages[] = {{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}};
    for (const auto& s : stages)
      for (std::int64_t i = 0; i < s.count; ++i) {
        blocks.emplace_back(in, s.planes, i == 0 ? s.stride : 1);
        in = s.planes * 4;
      }
  }
  void fields(auto&& field) {
    field("stem", stem), field("norm", norm), field("blocks", blocks), field("head", head);
  }
  Tensor operator()(const Tensor& x) const {
    Tensor h = norm(stem(x)).relu().max_pool2d({3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
    for (const Bottleneck& b : blocks) h = b(h);
    return head(h.mean({2, 3}));
  }
};

}  // namespace pg::bench
