// Words for what a caller got wrong, and the checks that most operations share. An error names the operation
// in brackets and the shapes as the caller wrote them.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tensor/cell.h"

namespace pg::detail {

/// "(2, 3)", "(n=2, 3)".
std::string text(Ref shape);
inline std::string text(DType t) { return std::string(name(t)); }

template <class E, class... Args>
[[noreturn]] void fail(std::string_view op, fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format("[{}] {}", op, fmt::format(format, std::forward<Args>(args)...)));
}

/// An axis counted from the front. Throws IndexError.
int axis_of(std::string_view op, std::int64_t axis, Ref shape);
/// As above for a position where an axis can be inserted.
int place_of(std::string_view op, std::int64_t axis, Ref shape);
/// Axes as a mask; none means all of them. Throws IndexError, also when one is named twice.
std::uint64_t axes_of(std::string_view op, const Axes& axes, Ref shape);

/// The shape both broadcast to. Throws ShapeError.
Ref broadcast_of(std::string_view op, Ref a, Ref b);
/// The device of both; a constant goes along. Throws DeviceError.
Device device_of(std::string_view op, const Value& a, const Value& b);
void check_float(std::string_view op, DType t);

/// Shapes of the public kind as nodes and back.
Ref shape_from(const Shape& shape);
Shape shape_to(Ref shape);
Ref dim_from(const Dim& dim);
/// The node with each Bind at its value: a constant.
std::int64_t bound_value(Ref size);
/// Product of the dimensions, as a node.
Ref count(Ref shape);

/// Dimensions as a list to change.
using Sizes = absl::InlinedVector<Ref, 8>;
Sizes sizes_of(Ref shape);
inline Ref shape_of_sizes(const Sizes& sizes) {
  return shape_node(std::span<const Ref>(sizes.data(), sizes.size()));
}

}  // namespace pg::detail
