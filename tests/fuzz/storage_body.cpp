#include "fuzz/storage_body.h"

#include <algorithm>

namespace pg::fuzz {

Operand operand(double v, DType t) {
  return is_float(t) ? Operand(v) : Operand(static_cast<std::int64_t>(v));
}
// The first half of an axis, at least one.
static std::int64_t half_of(std::int64_t extent) { return std::max<std::int64_t>(1, extent / 2); }

Tensor Body::operator()(Tensor a, const Tensor& b, Tensor captured, bool computes) const {
  DType t = a.dtype();
  for (auto [kind, n] : steps) {
    switch (kind) {
      case 0:
        a += b;
        break;
      case 1:
        a.assign(b);
        break;
      case 2:
        if (a.ndim()) a[Slice{0, half_of(a.size(0))}] = operand(n, t);
        break;
      case 3:
        captured += operand(n, t);
        break;
      case 4:
        if (captured.ndim()) captured.assign(captured.flip(0));
        break;
      case 5:
        if (a.ndim()) a.assign(a.flip(0));
        break;
      case 6:
        if (computes) captured.realize();
        break;
      default:
        a = a + operand(n, t);  // a handle of its own
    }
  }
  if (draws) a = a + (Tensor::rand(a.shape(), {.device = a.device()}) * 4).cast(t);
  return a + captured.flatten().sum(0, {.dtype = t});
}

eval::Array modelled(const Body& body, Model a, const Model& b, const Model& captured, RandomModel& random,
                     const std::string& device) {
  DType t = a.dtype();
  for (auto [kind, n] : body.steps) {
    eval::Array single(t, {}, {n});
    switch (kind) {
      case 0:
        a.write(elementwise(Op::Add, a.value(), b.value()));
        break;
      case 1:
        a.write(b.value());
        break;
      case 2:
        if (a.rank()) {
          std::int64_t extent = a.dims()[0];
          a.slice(0, 0, std::min(extent, half_of(extent)), 1).write(single);
        }
        break;
      case 3:
        captured.write(elementwise(Op::Add, captured.value(), single));
        break;
      case 4:
        if (captured.rank()) captured.write(captured.flip(0).value());
        break;
      case 5:
        if (a.rank()) a.write(a.flip(0).value());
        break;
      case 6:
        break;
      default:
        a = Model(elementwise(Op::Add, a.value(), single));
    }
  }
  eval::Array out = a.value();
  if (body.draws) {
    eval::Array u = random.uniform(out.dims, device), four(f32, {}, {4.0});
    out = elementwise(Op::Add, out, cast(elementwise(Op::Mul, u, four), t));
  }
  eval::Array all = captured.value();
  all.dims = {all.size()};
  eval::Array total = cast(sum(all, 0), t);
  return elementwise(Op::Add, out, total);
}

}  // namespace pg::fuzz
