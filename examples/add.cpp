// The smallest program: docs/layout.md follows its sum down to the machine.
#include <cstdio>

#include <pangrad/pangrad.h>

int main() {
  pg::Tensor a = pg::Tensor::of({1.f, 2.f, 3.f}), b = pg::Tensor::of({10.f, 20.f, 30.f});
  for (float x : (a + b).to_vector<float>()) std::printf("%g\n", x);
}
