// Short ways to read tensors and what stands behind them, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tensor/cell.h"
#include <pangrad/tensor.h>

namespace pg {

using Ints64 = std::vector<int>;
using Floats = std::vector<float>;

inline Ints64 ints_of(const Tensor& x) { return x.cast(i32).to_vector<int>(); }
inline Floats floats_of(const Tensor& x) { return x.cast(f32).to_vector<float>(); }

/// The storage a tensor's contents are in, or null.
inline engine::Storage* storage(const Tensor& x) {
  GraphScope scope;
  Ref n = x.impl()->whole ? x.impl()->cell->node.ref() : detail::read(x, "test").node;
  if (!n.is(Op::Buffer) && n->cold) n = n->cold->materialized.ref();
  return n && n.is(Op::Buffer) ? &engine::storage_of(n) : nullptr;
}
/// The piece of memory behind it.
inline const void* memory(const Tensor& x) {
  engine::Storage* s = storage(x);
  return s ? s->buffer.allocation.get() : nullptr;
}
inline std::uint64_t kernels() { return engine::counters().kernels; }

inline void expect_close(const Floats& got, const Floats& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "at " << i << ": " << got[i];
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << "at " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(static_cast<double>(want[i]))))
          << "at " << i;
    }
  }
}
inline void expect_close(const Tensor& got, const Floats& want, double tolerance = 1e-5) {
  expect_close(floats_of(got), want, tolerance);
}

/// What the exception of that kind says; empty if none is thrown.
template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

}  // namespace pg
