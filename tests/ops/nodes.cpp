#include "ops/nodes.h"

#include "engine/engine.h"
#include "tensor/cell.h"

namespace pg::ops {
namespace {

eval::Array contents(Ref buffer) {
  GraphScope scope;
  Ref shape = shape_of(buffer);
  eval::Dims dims(shape.ints().begin(), shape.ints().end());
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(eval::count(dims)) * itemsize(buffer.dtype()));
  engine::read(buffer, bytes.data(), bytes.size());
  return eval::Array::from_bytes(buffer.dtype(), dims, bytes.data());
}

}  // namespace

std::vector<eval::Array> evaluate(std::span<const Tensor> xs, std::span<const eval::Array> inputs) {
  std::vector<UOp> nodes;
  {
    GraphScope scope;
    for (const Tensor& x : xs) nodes.emplace_back(detail::read(x, "evaluate").node);
  }
  std::vector<Ref> refs(nodes.begin(), nodes.end());
  return eval::evaluate(refs, [&](Ref leaf) {
    if (leaf.is(Op::Buffer)) return contents(leaf);
    return inputs[static_cast<std::size_t>(leaf.i())];
  });
}

eval::Array evaluate(const Tensor& x, std::span<const eval::Array> inputs) {
  return evaluate(std::span<const Tensor>(&x, 1), inputs)[0];
}

Tensor input(int slot, DType t, const eval::Dims& dims) {
  GraphScope scope;
  return detail::computed(param(slot, t, shape_node(pg::Dims(dims))), false, nullptr);
}

Tensor stored(const eval::Array& a, const std::string& device) {
  return Tensor::from_host(a.bytes().data(), Shape(a.dims), a.dtype, {.device = device});
}

eval::Array computed(const Tensor& x) {
  std::vector<std::uint8_t> bytes(x.nbytes());
  x.copy_to(bytes.data(), bytes.size());
  return eval::Array::from_bytes(x.dtype(), x.shape().concrete(), bytes.data());
}

std::vector<std::string> devices() {
  std::vector<std::string> found;
  for (const char* name : {"CPU", "INTERP", "INTERP:gpu"}) try {
      Tensor::zeros({1}, {.device = name}).clone().realize();
      found.emplace_back(name);
    } catch (const Error&) {
      continue;
    }
  return found;
}

}  // namespace pg::ops
