// Checks of what layers are made with.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg::nn {

inline void check_positive(const char* layer, const char* what, std::int64_t value) {
  if (value <= 0) throw ValueError(fmt::format("[{}] {} must be positive, not {}", layer, what, value));
}

}  // namespace pg::nn
