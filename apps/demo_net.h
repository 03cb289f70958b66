// The network of the demo: the usual small convolutional net for pictures of 28x28. Also what the benchmark
// of the demo trains.
#pragma once

#include <pangrad/nn.h>

namespace pg::apps {

struct DemoNet : nn::Module {
  nn::Conv2d conv1{1, 32, 5}, conv2{32, 32, 5};
  nn::BatchNorm norm1{32};
  nn::Conv2d conv3{32, 64, 3}, conv4{64, 64, 3};
  nn::BatchNorm norm2{64};
  nn::Linear head{576, 10};

  void fields(auto&& field) {
    field("conv1", conv1), field("conv2", conv2), field("norm1", norm1);
    field("conv3", conv3), field("conv4", conv4), field("norm2", norm2), field("head", head);
  }

  /// Pictures (n, 1, 28, 28) to scores of ten classes (n, 10).
  Tensor operator()(const Tensor& x) const {
    Tensor h = norm1(conv2(conv1(x).relu()).relu()).max_pool2d();
    h = norm2(conv4(conv3(h).relu()).relu()).max_pool2d();
    return head(h.flatten(1));
  }
};

}  // namespace pg::apps
