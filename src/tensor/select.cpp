// What a condition picks: positions and values, as many as there are or as many as asked for.
#include <algorithm>

#include "tensor/scatter.h"

namespace pg {
namespace detail {
namespace {

// The flat positions (i32) of the first `size` elements that are true; beyond the last one -1.
Tensor true_positions(const Tensor& mask, std::int64_t size, const char* op) {
  Tensor flat = mask.flatten();
  std::int64_t n = flat.numel();
  if (n > int_max(i32)) fail<ShapeError>(op, "shape {} has too many elements", mask.shape().str());
  if (n == 0 || size == 0) return Tensor::full({size}, -1, {.dtype = i32});
  // Element k stands where the running count reaches k + 1: after all places where it is no more than k.
  Tensor counts = flat.cast(i32).cumsum(0).contiguous();
  Tensor at = count_up_to(counts, positions(i32, size, 0, 1));
  return (at < static_cast<std::int32_t>(n)).where(at, -1);
}

std::int64_t size_of(const Tensor& mask, const SelectOptions& options, const char* op) {
  if (mask.numel().is_symbolic()) fail<ShapeError>(op, "shape {} is symbolic", mask.shape().str());
  if (options.size && *options.size < 0) fail<ValueError>(op, "a size of {}", *options.size);
  return options.size ? *options.size : mask.cast(i64).sum().item<std::int64_t>();
}

}  // namespace
}  // namespace detail

using namespace detail;

Tensor Tensor::nonzero(const SelectOptions& options) const {
  constexpr const char* kName = "nonzero";
  Tensor mask = *this != 0;
  std::int64_t size = size_of(mask, options, kName);
  Tensor at = true_positions(mask, size, kName), rest = at;
  std::vector<Tensor> columns(static_cast<std::size_t>(ndim()));
  for (int i = ndim(); i-- > 0;) {
    auto n = static_cast<std::int32_t>(std::max<std::int64_t>(1, this->size(i)));
    columns[static_cast<std::size_t>(i)] = rest % n;
    rest = rest.floor_div(n);
  }
  if (columns.empty()) return zeros({size, 0}, {.dtype = i32});
  return pg::where((at >= 0).unsqueeze(1), stack(columns, 1), Tensor::full({}, options.fill, {.dtype = i32}));
}

Tensor Tensor::masked_select(const Tensor& mask, const SelectOptions& options) const {
  constexpr const char* kName = "masked_select";
  if (mask.dtype() != DType::Bool)
    fail<DTypeError>(kName, "the mask is {}, not bool", detail::text(mask.dtype()));
  Ref shape;
  Tensor picked, at;
  {
    GraphScope scope;
    shape = broadcast_of(kName, detail::read(*this, kName).shape(), detail::read(mask, kName).shape());
    Shape both = shape_to(shape);
    Tensor wide = mask.expand(both);
    at = true_positions(wide, size_of(wide, options, kName), kName);
    picked = read_rows(expand(both).reshape({both.numel()}), at, kName);
  }
  return pg::where(at >= 0, picked, Tensor::full({}, options.fill, {.dtype = dtype()}));
}

}  // namespace pg
