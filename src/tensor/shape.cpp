// Dim, Variable, Shape: the public face of symbolic sizes, and their way to nodes and back.
#include <algorithm>
#include <ostream>

#include "tensor/check.h"
#include "tensor/watch.h"
#include <pangrad/shape.h>

namespace pg {
namespace {

using detail::fail;

std::string expression(Ref n) {
  auto binary = [&](const char* sign) {
    return "(" + expression(n.src(0)) + sign + expression(n.src(1)) + ")";
  };
  switch (n.op()) {
    case Op::Const:
      return std::to_string(n.i());
    case Op::Bind:
      return n.src(0).str() + "=" + std::to_string(n.src(1).i());
    case Op::Var:
      return n.str();
    case Op::Add:
      return binary(" + ");
    case Op::Sub:
      return binary(" - ");
    case Op::Mul:
      return binary("*");
    case Op::FloorDiv:
      return binary("//");
    case Op::FloorMod:
      return binary("%");
    default:
      return std::string(info(n.op()).name) + "(...)";
  }
}

Dim combine(Op op, const Dim& a, const Dim& b) {
  GraphScope scope;
  return Dim(alu(op, {detail::dim_from(a), detail::dim_from(b)}).node());
}

}  // namespace

Dim::Dim(const Node* node) {
  if (!node) return;
  Ref n(node);
  if (n.is_const()) {
    value_ = n.i();
    return;
  }
  value_ = n.hi();
  node_ = node;
  retain();
}

void Dim::retain() const { const_cast<Node*>(node_)->refs.fetch_add(1, std::memory_order_relaxed); }

void Dim::release() const {
  UOp handle(Ref{node_});  // gives up the last count as handles do
  const_cast<Node*>(node_)->refs.fetch_sub(1, std::memory_order_relaxed);
}

void Dim::refuse() const { fail<ShapeError>("dim", "{} is symbolic: ask for value() or max()", str()); }

std::int64_t Dim::value() const {
  if (!node_) return value_;
  if (detail::CellWatch* watch = detail::cell_watch()) watch->value_read("value");
  GraphScope scope;
  return detail::bound_value(node_);
}

std::string Dim::str() const {
  if (!node_) return std::to_string(value_);
  GraphScope scope;
  return expression(node_);
}

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.node_ && !b.node_) return a.value_ + b.value_;
  return combine(Op::Add, a, b);
}
Dim operator-(const Dim& a, const Dim& b) {
  if (!a.node_ && !b.node_) return a.value_ - b.value_;
  return combine(Op::Sub, a, b);
}
Dim operator*(const Dim& a, const Dim& b) {
  if (!a.node_ && !b.node_) return a.value_ * b.value_;
  return combine(Op::Mul, a, b);
}
Dim operator/(const Dim& a, const Dim& b) {
  if (!a.node_ && !b.node_) return floor_div(a.value_, b.value_);
  return combine(Op::FloorDiv, a, b);
}
Dim operator%(const Dim& a, const Dim& b) {
  if (!a.node_ && !b.node_) return floor_mod(a.value_, b.value_);
  return combine(Op::FloorMod, a, b);
}

Variable::Variable(std::string_view name, std::int64_t lo, std::int64_t hi) : name_(name), lo_(lo), hi_(hi) {
  if (lo > hi) fail<ValueError>("variable", "the bounds of {} are {}..{}", name, lo, hi);
}

Dim Variable::bind(std::int64_t value) const {
  if (value < lo_ || value > hi_)
    fail<ValueError>("bind", "{} is outside {}..{}, the bounds of {}", value, lo_, hi_, name_);
  GraphScope scope;
  return Dim(pg::bind(var(name_, lo_, hi_), value).node());
}

const Dim& Shape::operator[](int axis) const {
  int r = rank();
  if (axis < -r || axis >= r) fail<IndexError>("shape", "axis {} is out of range for {}", axis, str());
  return dims_[static_cast<std::size_t>(axis < 0 ? axis + r : axis)];
}
Dim& Shape::operator[](int axis) { return const_cast<Dim&>(std::as_const(*this)[axis]); }

void Shape::insert(int axis, Dim dim) {
  if (axis < 0 || axis > rank()) fail<IndexError>("shape", "there is no place {} in {}", axis, str());
  dims_.insert(dims_.begin() + axis, std::move(dim));
}
void Shape::erase(int axis) {
  (*this)[axis];
  dims_.erase(dims_.begin() + (axis < 0 ? axis + rank() : axis));
}

Dim Shape::numel() const {
  Dim n = 1;
  for (const Dim& d : dims_) n = n * d;
  return n;
}

bool Shape::is_symbolic() const {
  return std::any_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_symbolic(); });
}

std::vector<std::int64_t> Shape::concrete() const { return {dims_.begin(), dims_.end()}; }

std::string Shape::str() const {
  std::string out = "(";
  for (std::size_t i = 0; i < dims_.size(); ++i) out += (i ? ", " : "") + dims_[i].str();
  return out + ")";
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << dim.str(); }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

namespace detail {

std::string text(Ref shape) { return shape_to(shape).str(); }

Ref dim_from(const Dim& dim) { return dim.is_symbolic() ? Ref(dim.node()) : idx(dim.max()); }

Ref shape_from(const Shape& shape) {
  Sizes sizes;
  for (const Dim& d : shape) sizes.push_back(dim_from(d));
  return shape_of_sizes(sizes);
}

Shape shape_to(Ref shape) {
  std::vector<Dim> out;
  out.reserve(static_cast<std::size_t>(rank(shape)));
  for (int i = 0; i < rank(shape); ++i) out.emplace_back(dim(shape, i).node());
  return Shape(std::move(out));
}

Sizes sizes_of(Ref shape) {
  Sizes out;
  for (int i = 0; i < rank(shape); ++i) out.push_back(dim(shape, i));
  return out;
}

std::int64_t bound_value(Ref size) {
  if (size.is_const()) return size.i();
  std::vector<std::pair<Ref, Ref>> values;
  for (Ref n : toposort(size))
    if (n.is(Op::Bind)) values.emplace_back(n, n.src(1));
  Ref value = substitute(size, values);
  if (!value.is_const()) fail<ShapeError>("shape", "{} has a variable that is not bound", expression(size));
  return value.i();
}

Ref count(Ref shape) {
  if (is_concrete(shape)) return idx(numel(shape));
  Ref n = idx(1);
  for (int i = 0; i < rank(shape); ++i) n = n * dim(shape, i);
  return n;
}

int axis_of(std::string_view op, std::int64_t axis, Ref shape) {
  int r = rank(shape);
  if (axis < -r || axis >= r) fail<IndexError>(op, "axis {} is out of range for shape {}", axis, text(shape));
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

int place_of(std::string_view op, std::int64_t axis, Ref shape) {
  int r = rank(shape);
  if (axis < -r - 1 || axis > r)
    fail<IndexError>(op, "there is no place {} for an axis in shape {}", axis, text(shape));
  return static_cast<int>(axis < 0 ? axis + r + 1 : axis);
}

std::uint64_t axes_of(std::string_view op, const Axes& axes, Ref shape) {
  if (axes.empty()) return (std::uint64_t{1} << rank(shape)) - 1;
  std::uint64_t mask = 0;
  for (std::int64_t axis : axes) {
    std::uint64_t bit = std::uint64_t{1} << axis_of(op, axis, shape);
    if (mask & bit) fail<IndexError>(op, "axis {} is named twice for shape {}", axis, text(shape));
    mask |= bit;
  }
  return mask;
}

Ref broadcast_of(std::string_view op, Ref a, Ref b) {
  Ref s = broadcast(a, b);
  if (!s) fail<ShapeError>(op, "shapes {} and {} do not broadcast", text(a), text(b));
  return s;
}

Device device_of(std::string_view op, const Value& a, const Value& b) {
  if (a.device == b.device || !b.device) return a.device;
  if (!a.device) return b.device;
  fail<DeviceError>(op, "one operand is on {}, the other on {}: move one with to()", *a.device, *b.device);
}

void check_float(std::string_view op, DType t) {
  if (!is_float(t)) fail<DTypeError>(op, "takes floats, not {}", text(t));
}

}  // namespace detail
}  // namespace pg
