// Many threads may use one tensor at once, as long as none writes: a model that serves, say.
#include <functional>
#include <thread>

#include "tensor/helpers.h"
#include <pangrad/jit.h>

namespace pg {
namespace {

void on_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (std::thread& t : threads) t.join();
}

TEST(Threads, OneModelServesMany) {
  Tensor w = (Tensor::of({{1.f, 2.f}, {3.f, 4.f}}) * 1.0).requires_grad(), b = Tensor::of({10.f, 20.f});
  on_threads(4, [&](int k) {
    for (int i = 0; i < 25; ++i) {
      Tensor x = Tensor::full({1, 2}, static_cast<float>(k));
      Tensor y = (x.matmul(w) + b).reshape({2});
      auto f = static_cast<float>(k);
      EXPECT_EQ(y.to_vector<float>(), (Floats{10 + 4 * f, 20 + 6 * f}));
      EXPECT_EQ(w.T()[0].to_vector<float>(), (Floats{1, 3}));
    }
  });
}

// Each thread records for itself, on weights that all of them read.
TEST(Threads, OneModelServesManyRecorded) {
  Tensor w = Tensor::of({{1.f, 2.f}, {3.f, 4.f}}).realize(), b = Tensor::of({10.f, 20.f});
  on_threads(4, [&](int k) {
    auto serve = jit([&](const Tensor& x) { return (x.matmul(w) + b).reshape({2}); });
    auto f = static_cast<float>(k);
    for (int i = 0; i < 10; ++i) {
      Tensor copy = w;  // handles of others come and go meanwhile
      EXPECT_EQ(serve(Tensor::full({1, 2}, f)).to_vector<float>(), (Floats{10 + 4 * f, 20 + 6 * f}));
    }
    EXPECT_EQ(serve.captures(), 1u);
  });
}

TEST(Threads, OneLazyValueIsReadByMany) {
  for (int round = 0; round < 10; ++round) {
    Tensor a = Tensor::arange(64).cast(f32) * 0.5;
    Tensor shared = (a + 1).clone(), view = shared.reshape({8, 8}).permute({1, 0});
    on_threads(4, [&](int k) {
      Tensor corner = view[{0, k}];
      EXPECT_EQ(corner.item<float>(), static_cast<float>(k) * 4 + 1);
      EXPECT_EQ(shared.sum().item<float>(), 1072);
    });
  }
}

TEST(Threads, GradientsOfOwnGraphs) {
  on_threads(4, [&](int k) {
    for (int i = 0; i < 10; ++i) {
      Tensor w = Tensor::full({3}, static_cast<float>(k)).requires_grad();
      (w * w).sum().backward();
      EXPECT_EQ(floats_of(w.grad()), Floats(3, 2 * static_cast<float>(k)));
    }
  });
}

TEST(Threads, ScopesAreOfOneThread) {
  NoGrad off;
  Training on;
  on_threads(1, [&](int) {
    EXPECT_FALSE(NoGrad::enabled());
    EXPECT_FALSE(Training::enabled());
  });
  EXPECT_TRUE(NoGrad::enabled());
}

}  // namespace
}  // namespace pg
