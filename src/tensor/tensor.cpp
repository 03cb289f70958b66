// What a Tensor is, computing it, reading it; scopes.
#include <cstring>
#include <ostream>

#include "engine/engine.h"
#include "tensor/ops.h"
#include "tensor/watch.h"
#include <pangrad/tensor.h>

namespace pg {

using namespace detail;

// --- what it is
// ----------------------------------------------------------------------------------------------------

Shape Tensor::shape() const {
  GraphScope scope;
  return shape_to(detail::read(*this, "shape").shape());
}
int Tensor::ndim() const {
  GraphScope scope;
  return rank(detail::read(*this, "ndim").shape());
}
Dim Tensor::size(std::int64_t axis) const {
  GraphScope scope;
  Ref shape = detail::read(*this, "size").shape();
  return Dim(dim(shape, axis_of("size", axis, shape)).node());
}
Dim Tensor::numel() const {
  GraphScope scope;
  return Dim(detail::count(detail::read(*this, "numel").shape()).node());
}
std::size_t Tensor::nbytes() const {
  GraphScope scope;
  Value v = detail::read(*this, "nbytes");
  return static_cast<std::size_t>(max_numel(v.shape())) * itemsize(v.dtype());
}
DType Tensor::dtype() const {
  GraphScope scope;
  return detail::read(*this, "dtype").dtype();
}
std::string Tensor::device() const {
  Device device;
  {
    GraphScope scope;
    device = detail::read(*this, "device").device;
  }
  return device ? *device : engine::default_device();
}
bool Tensor::is_floating_point() const { return is_float(dtype()); }

std::string Tensor::str() const {
  if (!defined()) return "Tensor()";
  return fmt::format("Tensor({}, {}, {}{})", shape().str(), name(dtype()), device(),
                     wants_grad() ? ", requires_grad" : "");
}
std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.str(); }

// --- computing, reading
// --------------------------------------------------------------------------------------------

Tensor Tensor::realize() const {
  pg::realize({*this});
  return *this;
}

void realize(TensorList tensors) {
  std::vector<Impl*> impls;
  for (const Tensor& t : tensors.span()) {
    if (!t.defined())
      fail<ValueError>("realize", "the tensor holds nothing: it was never given a value, or was moved from");
    impls.push_back(t.impl());
  }
  detail::realize(impls);
}

std::size_t Tensor::count() const {
  GraphScope scope;
  return static_cast<std::size_t>(bound_value(detail::count(detail::read(*this, "to_vector").shape())));
}

namespace {

// A constant behind movements that only rename or repeat it.
Ref constant_of(Ref node) {
  while ((node.has(kMovement) && !node.is(Op::Pad)) || node.is(Op::Detach) || node.is(Op::Leaf) ||
         node.is(Op::Contiguous))
    node = node.src(0);
  return node.is(Op::Const) ? node : nullptr;
}

// The elements in their own dtype.
std::vector<std::uint8_t> bytes_of(const Tensor& x, std::size_t n, const char* op) {
  if (CellWatch* watch = cell_watch()) watch->value_read(op);
  UOp buffer;
  {
    GraphScope scope;
    Value v = detail::read(x, op);
    if (Ref c = constant_of(v.node)) {
      std::size_t item = itemsize(c.dtype());
      std::vector<std::uint8_t> out(n * item);
      std::uint64_t bits = to_bits(c.dtype(), c->arg);
      for (std::size_t i = 0; i < n; ++i) std::memcpy(out.data() + i * item, &bits, item);
      return out;
    }
  }
  std::vector<std::uint8_t> out(n * itemsize(x.dtype()));
  if (out.empty()) return out;
  x.realize();
  UOp node;
  {
    GraphScope scope;
    node = x.impl()->whole ? x.impl()->cell->node.ref() : detail::read(x, op).node;
  }
  buffer = engine::realize({&node, 1})[0];
  engine::read(buffer, out.data(), out.size());
  return out;
}

}  // namespace

void Tensor::read(void* out, std::size_t n, DType t, const char* op) const {
  DType from = dtype();
  std::size_t have = count();
  if (have != n) fail<ShapeError>(op, "shape {} has {} elements, not one", shape().str(), have);
  if (!is_lossless(from, t))
    fail<DTypeError>(op, "{} does not hold every {}: cast it first", detail::text(t), detail::text(from));
  std::vector<std::uint8_t> bytes = bytes_of(*this, n, op);
  std::size_t item = itemsize(from), to = itemsize(t);
  if (from == t) {
    if (n) std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  auto* target = static_cast<std::uint8_t*>(out);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * item, item);
    bits = to_bits(t, cast_scalar(from_bits(from, bits), from, t));
    std::memcpy(target + i * to, &bits, to);
  }
}

void Tensor::copy_to(void* out, std::size_t bytes) const {
  std::size_t n = count(), size = n * itemsize(dtype());
  if (bytes != size)
    fail<ValueError>("copy_to", "{} bytes for shape {} of {}, which has {}", bytes, shape().str(),
                     detail::text(dtype()), size);
  std::vector<std::uint8_t> data = bytes_of(*this, n, "copy_to");
  if (size) std::memcpy(out, data.data(), size);
}

Tensor Tensor::contiguous() const {
  GraphScope scope;
  Value v = detail::read(*this, "contiguous");
  Ref n = v.node;
  while (n.is(Op::Reshape) || n.is(Op::Leaf) || n.is(Op::Detach)) n = n.src(0);
  bool already = n.is(Op::Buffer) || n.is(Op::Contiguous) || n.is(Op::After) || constant_of(n);
  return computed(already ? v.node : make(Op::Contiguous, v.dtype(), {placed(v.node, v.device)}), v.tracked,
                  v.device);
}
Tensor Tensor::contiguous_backward() const {
  GraphScope scope;
  Value v = detail::read(*this, "contiguous_backward");
  return computed(make(Op::ContiguousBackward, v.dtype(), {v.node}), v.tracked, v.device);
}

Tensor Tensor::clone() const {
  GraphScope scope;
  Value v = detail::read(*this, "clone");
  Tensor copy = computed(v.node, v.tracked, v.device);
  copy.impl()->cell->kept = true;
  return copy;
}
Tensor Tensor::clone(std::string_view device) const {
  Tensor there = to(device);
  return there.impl() == impl() ? clone() : there;
}

Tensor Tensor::to(std::string_view name) const {
  Device device = device_named(name);
  GraphScope scope;
  Value v = detail::read(*this, "to");
  if (v.device == device || (!v.device && device == default_device())) return *this;
  if (!v.device) return computed(v.node, v.tracked, device);
  Tensor copy =
      computed(make(Op::Copy, v.dtype(), {v.node}, Arg{.p = str_payload(*device)}), v.tracked, device);
  copy.impl()->cell->kept = true;
  return copy;
}

Tensor Tensor::detach() const {
  GraphScope scope;
  NoGrad off;  // what is detached is not used with its history
  detail::read(*this, "detach");
  Ref chain = chain_of(*impl_);
  if (chain.is(Op::Detach)) return *this;
  auto detached = [](Ref n) { return make(Op::Detach, n.dtype(), {n}); };
  return make_view(*this, detached(contents(*impl_)), detached(chain));
}

Tensor Tensor::bitcast(DType t) const {
  constexpr const char* kName = "bitcast";
  GraphScope scope;
  Value v = detail::read(*this, kName);
  if (t == DType::Void || is_weak(t)) fail<DTypeError>(kName, "{} is no dtype of tensors", detail::text(t));
  auto from = static_cast<std::int64_t>(itemsize(v.dtype())), to = static_cast<std::int64_t>(itemsize(t));
  if (from != to) {
    Ref shape = v.shape();
    Ref last = rank(shape) ? dim(shape, rank(shape) - 1) : nullptr;
    if (!last || (last.is_const() && last.i() * from % to))
      fail<ShapeError>(kName, "the last axis of {} as {} does not divide into {}", detail::text(shape),
                       detail::text(v.dtype()), detail::text(t));
  }
  return view_of(*this, kName, [t](Ref n) { return pg::bitcast(n, t); });
}

// --- scopes
// --------------------------------------------------------------------------------------------------------

namespace {

thread_local bool t_training = false;
thread_local bool t_no_grad = false;

}  // namespace

Training::Training(bool on) : before_(std::exchange(t_training, on)) {}
Training::~Training() { t_training = before_; }
bool Training::enabled() { return t_training; }

NoGrad::NoGrad(bool on) : before_(std::exchange(t_no_grad, on)) {}
NoGrad::~NoGrad() { t_no_grad = before_; }
bool NoGrad::enabled() { return t_no_grad; }

}  // namespace pg
