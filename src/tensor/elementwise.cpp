// Elementwise operations: the primitives, operators, and the functions made of them.
#include <cmath>
#include <numbers>

#include "tensor/ops.h"

namespace pg {
namespace detail {

Ref number_const(DType t, Number n) {
  if (is_float(t)) return float_const(t, n.to_double());
  if (n.kind() != Number::Kind::Float)
    return t == DType::Bool ? bool_const(n.to_int() != 0) : int_const(t, n.to_int());
  return scalar_const(t, cast_scalar(float_scalar(n.to_double()), f64, t));
}

Value value_of(const Operand& x, const char* op, DType t) {
  if (x.tensor()) {
    Value v = read(*x.tensor(), op);
    return t == DType::Void ? v : cast_value(v, t);
  }
  return {number_const(t == DType::Void ? strong(x.number().dtype()) : t, x.number())};
}

Operands operands(const char* op, const Operand& x, const Operand& y) {
  Operands r;
  if (x.tensor() && y.tensor()) {
    r.a = read(*x.tensor(), op);
    r.b = read(*y.tensor(), op);
    if (r.a.dtype() != r.b.dtype()) {
      DType t = strong(promote(r.a.dtype(), r.b.dtype()));
      r.a = cast_value(r.a, t);
      r.b = cast_value(r.b, t);
    }
  } else if (x.tensor()) {
    r.a = read(*x.tensor(), op);
    DType t = strong(promote(r.a.dtype(), y.number().dtype()));
    r.a = cast_value(r.a, t);
    r.b = {number_const(t, y.number())};
  } else {
    DType kind = x.number().dtype();
    r.b = value_of(y, op);
    DType t = strong(promote(kind, y.tensor() ? r.b.dtype() : y.number().dtype()));
    r.b = y.tensor() ? cast_value(r.b, t) : Value{number_const(t, y.number())};
    r.a = {number_const(t, x.number())};
  }
  r.device = device_of(op, r.a, r.b);
  broadcast_of(op, r.a.shape(), r.b.shape());
  return r;
}

Ref full_node(DType t, Number n, Ref shape) { return expand(number_const(t, n), shape); }

Ref arange_node(DType t, Ref n) {
  Ref shape = shape_node(std::span<const Ref>(&n, 1));
  return make(Op::Arange, t, {shape});
}

Tensor unary(const char* name, Op op, const Tensor& x) {
  GraphScope scope;
  Value v = read(x, name);
  return computed(alu(op, {v.node}), v.tracked, v.device);
}

Tensor float_unary(const char* name, Op op, const Tensor& x) {
  GraphScope scope;
  Value v = read(x, name);
  if (!is_float(v.dtype())) v = cast_value(v, f32);
  return computed(alu(op, {v.node}), v.tracked, v.device);
}

Tensor binary(const char* name, Op op, const Operand& x, const Operand& y) {
  GraphScope scope;
  Operands o = operands(name, x, y);
  return computed(alu(op, {o.a.node, o.b.node}), o.tracked(), o.device);
}

Tensor as_float(const Tensor& x, const char* op) {
  GraphScope scope;
  return is_float(read(x, op).dtype()) ? x : x.cast(f32);
}

namespace {

Tensor integers_only(const char* name, Op op, const Operand& x, const Operand& y, bool bools) {
  GraphScope scope;
  Operands o = operands(name, x, y);
  if (is_float(o.dtype()) || (!bools && o.dtype() == DType::Bool))
    fail<DTypeError>(name, "takes integers{}, not {}", bools ? " and bool" : "", text(o.dtype()));
  return computed(alu(op, {o.a.node, o.b.node}), false, o.device);
}

Tensor shift(const char* name, Op op, const Operand& x, const Operand& y) {
  GraphScope scope;
  Value a = value_of(x, name), b = value_of(y, name);
  if (!is_int(a.dtype()) || !is_int(b.dtype()))
    fail<DTypeError>(name, "takes integers, not {} and {}", text(a.dtype()), text(b.dtype()));
  broadcast_of(name, a.shape(), b.shape());
  return computed(alu(op, {a.node, cast(b.node, a.dtype())}), false, device_of(name, a, b));
}

// Not (b < a), which for floats would let NaN pass.
Tensor less_equal(const char* name, const Operand& x, const Operand& y) {
  GraphScope scope;
  Operands o = operands(name, x, y);
  Ref r =
      is_float(o.dtype()) ? (o.a.node < o.b.node) | eq(o.a.node, o.b.node) : logical_not(o.b.node < o.a.node);
  return computed(r, false, o.device);
}

// Remainder and quotient that round by `round`.
Tensor divide_rounded(const char* name, const Operand& x, const Operand& y, Op for_ints,
                      Tensor (Tensor::*round)() const) {
  {
    GraphScope scope;
    Operands o = operands(name, x, y);
    if (o.dtype() == DType::Bool) {
      o.a = cast_value(o.a, i32);
      o.b = cast_value(o.b, i32);
    }
    if (!is_float(o.dtype())) return computed(alu(for_ints, {o.a.node, o.b.node}), false, o.device);
  }
  return (binary(name, Op::Div, x, y).*round)();
}

Tensor power(const Operand& x, const Operand& y) {
  constexpr const char* kName = "pow";
  GraphScope scope;
  Operands o = operands(kName, x, y);
  if (is_float(o.dtype())) {
    if (!y.tensor()) {
      // Small exponents by multiplication: exact where the product is.
      double e = y.number().to_double();
      Ref a = o.a.node;
      if (e == 0) return computed(full_node(o.dtype(), 1, shape_of(a)), false, o.device);
      if (e == 1) return computed(a, o.a.tracked, o.device);
      if (e == 2) return computed(a * a, o.a.tracked, o.device);
      if (e == 3) return computed(a * a * a, o.a.tracked, o.device);
      if (e == -1) return computed(const_like(a, 1) / a, o.a.tracked, o.device);
    }
    return computed(alu(Op::Pow, {o.a.node, o.b.node}), o.tracked(), o.device);
  }
  DType t = o.dtype() == DType::Bool ? i32 : o.dtype();
  Ref base = cast(o.a.node, t), exponent = cast(o.b.node, t), one = int_const(t, 1);
  if (!y.tensor()) {
    if (y.number().to_int() < 0)
      fail<ValueError>(kName, "an integer base with the negative exponent {}: cast the base to a float",
                       y.number().to_int());
    Ref result = full_node(t, 1, shape_of(base));
    bool first = true;
    for (auto e = static_cast<std::uint64_t>(y.number().to_int()); e; e >>= 1, base = base * base) {
      if (!(e & 1)) continue;
      result = first ? base : result * base;
      first = false;
    }
    return computed(result, false, o.device);
  }
  // By squaring, a bit of the exponent at a time; negative exponents give 0 but for bases of 1 and -1.
  Ref result = one, power_of_base = base;
  int bits = static_cast<int>(itemsize(t)) * 8 - !is_unsigned(t);
  for (int bit = 0; bit < bits; ++bit) {
    Ref on = ne(alu(Op::And, {exponent, int_const(t, std::int64_t{1} << bit)}), int_const(t, 0));
    result = where(on, result * power_of_base, result);
    power_of_base = power_of_base * power_of_base;
  }
  if (!is_unsigned(t)) {
    Ref odd = where(ne(exponent & one, int_const(t, 0)), base, base * base);
    Ref unit = eq(base * base, one);
    result = where(exponent < int_const(t, 0), where(unit, odd, int_const(t, 0)), result);
  }
  return computed(result, false, o.device);
}

// The polynomial with these coefficients, highest power first.
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.begin();
  Tensor sum = *c == 1 ? x : x * *c;
  while (++c + 1 != coefficients.end()) sum = (sum + *c) * x;
  return sum + *c;
}

}  // namespace
}  // namespace detail

using detail::binary;
using detail::float_unary;
using detail::unary;

// --- operators
// -----------------------------------------------------------------------------------------------------

Tensor operator+(const Operand& a, const Operand& b) { return binary("add", Op::Add, a, b); }
Tensor operator-(const Operand& a, const Operand& b) {
  GraphScope scope;
  detail::Operands o = detail::operands("sub", a, b);
  if (o.dtype() == DType::Bool)
    detail::fail<DTypeError>("sub", "takes numbers, not bool: cast first, or use ^ or ~");
  return detail::computed(o.a.node - o.b.node, o.tracked(), o.device);
}
Tensor operator*(const Operand& a, const Operand& b) { return binary("mul", Op::Mul, a, b); }
Tensor operator/(const Operand& a, const Operand& b) {
  GraphScope scope;
  detail::Operands o = detail::operands("div", a, b);
  if (!is_float(o.dtype())) {
    o.a = detail::cast_value(o.a, f32);
    o.b = detail::cast_value(o.b, f32);
  }
  return detail::computed(alu(Op::Div, {o.a.node, o.b.node}), o.tracked(), o.device);
}
Tensor operator%(const Operand& a, const Operand& b) {
  Tensor q = detail::divide_rounded("mod", a, b, Op::FloorMod, &Tensor::floor);
  return q.is_floating_point() ? a - q * b : q;
}
Tensor operator&(const Operand& a, const Operand& b) {
  return detail::integers_only("and", Op::And, a, b, true);
}
Tensor operator|(const Operand& a, const Operand& b) {
  return detail::integers_only("or", Op::Or, a, b, true);
}
Tensor operator^(const Operand& a, const Operand& b) {
  return detail::integers_only("xor", Op::Xor, a, b, true);
}
Tensor operator<<(const Operand& a, const Operand& b) { return detail::shift("shift left", Op::Shl, a, b); }
Tensor operator>>(const Operand& a, const Operand& b) { return detail::shift("shift right", Op::Shr, a, b); }
Tensor operator==(const Operand& a, const Operand& b) { return binary("equal", Op::CmpEq, a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return binary("not equal", Op::CmpNe, a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return binary("less", Op::CmpLt, a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return binary("greater", Op::CmpLt, b, a); }
Tensor operator<=(const Operand& a, const Operand& b) { return detail::less_equal("less or equal", a, b); }
Tensor operator>=(const Operand& a, const Operand& b) { return detail::less_equal("greater or equal", b, a); }
Tensor operator-(const Tensor& a) { return a.neg(); }
Tensor operator~(const Tensor& a) { return a.bitwise_not(); }

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  constexpr const char* kName = "where";
  GraphScope scope;
  detail::Value c = detail::read(condition, kName);
  if (c.dtype() != DType::Bool)
    detail::fail<DTypeError>(kName, "the condition is {}, not bool: compare it with something",
                             detail::text(c.dtype()));
  detail::Operands o = detail::operands(kName, a, b);
  detail::broadcast_of(kName, c.shape(), detail::broadcast_of(kName, o.a.shape(), o.b.shape()));
  detail::Device device = detail::device_of(kName, c, {nullptr, false, o.device});
  return detail::computed(where(c.node, o.a.node, o.b.node), o.tracked(), device);
}

// --- one operand
// ---------------------------------------------------------------------------------------------------

Tensor Tensor::cast(DType t) const {
  GraphScope scope;
  detail::Value v = detail::read(*this, "cast");
  if (t == DType::Void || is_weak(t))
    detail::fail<DTypeError>("cast", "{} is no dtype of tensors", detail::text(t));
  return detail::computed(pg::cast(v.node, t), v.tracked, v.device);
}

Tensor Tensor::neg() const {
  GraphScope scope;
  detail::Value v = detail::read(*this, "neg");
  return detail::computed(v.dtype() == DType::Bool ? pg::logical_not(v.node) : -v.node, v.tracked, v.device);
}
Tensor Tensor::logical_not() const {
  GraphScope scope;
  detail::Value v = detail::read(*this, "logical_not");
  return detail::computed(pg::eq(v.node, const_like(v.node, 0)), false, v.device);
}
Tensor Tensor::bitwise_not() const {
  GraphScope scope;
  detail::Value v = detail::read(*this, "bitwise_not");
  if (is_float(v.dtype()))
    detail::fail<DTypeError>("bitwise_not", "takes integers and bool, not {}", detail::text(v.dtype()));
  Ref r = v.dtype() == DType::Bool ? pg::logical_not(v.node) : v.node ^ int_const(v.dtype(), -1);
  return detail::computed(r, false, v.device);
}
Tensor Tensor::reciprocal() const { return 1.0 / *this; }
Tensor Tensor::sqrt() const { return float_unary("sqrt", Op::Sqrt, *this); }
Tensor Tensor::rsqrt() const { return 1.0 / sqrt(); }
Tensor Tensor::square() const { return *this * *this; }
Tensor Tensor::exp() const { return float_unary("exp", Op::Exp, *this); }
Tensor Tensor::exp2() const { return float_unary("exp2", Op::Exp2, *this); }
Tensor Tensor::log() const { return float_unary("log", Op::Log, *this); }
Tensor Tensor::log2() const { return float_unary("log2", Op::Log2, *this); }
Tensor Tensor::log10() const { return log2() * (1 / std::log2(10.0)); }
Tensor Tensor::sin() const { return float_unary("sin", Op::Sin, *this); }
Tensor Tensor::cos() const { return float_unary("cos", Op::Cos, *this); }
Tensor Tensor::tan() const { return sin() / cos(); }
Tensor Tensor::tanh() const { return float_unary("tanh", Op::Tanh, *this); }
Tensor Tensor::erf() const { return float_unary("erf", Op::Erf, *this); }

// Cephes, atan.c: reduced to |x| <= 0.66 by pi/2 - atan(1/x) and pi/4 + atan((x-1)/(x+1)), then a rational
// function.
Tensor Tensor::atan() const {
  Tensor x = detail::as_float(*this, "atan"), a = x.abs();
  Tensor large = a > 2.414213562373095, middle = a > 0.66;
  // Beyond its branch each argument is one that gives no infinity.
  Tensor r = large.where(-1.0 / large.where(a, 1.0), middle.where((a - 1.0) / (a + 1.0), x));
  Tensor z = r * r;
  Tensor p = detail::polynomial(
      z, {-8.750608600031904122785E-1, -1.615753718733365076637E1, -7.500855792314704667340E1,
          -1.228866684490136173410E2, -6.485021904942025371773E1});
  Tensor q = detail::polynomial(
      z, {1.0, 2.485846490142306297962E1, 1.650270098316988542046E2, 4.328810604912902668951E2,
          4.853903996359136964868E2, 1.945506571482613964425E2});
  Tensor y = r * z * p / q + r;
  Tensor shifted = large.where(y + std::numbers::pi / 2, y + std::numbers::pi / 4);
  return middle.where(shifted * x.sign(), y);
}
Tensor Tensor::asin() const {
  Tensor x = detail::as_float(*this, "asin");
  return (x / (1.0 - x * x).sqrt()).atan();
}
Tensor Tensor::acos() const { return std::numbers::pi / 2 - asin(); }
Tensor Tensor::sinh() const { return (exp() - neg().exp()) * 0.5; }
Tensor Tensor::cosh() const { return (exp() + neg().exp()) * 0.5; }
Tensor Tensor::asinh() const { return (*this + (square() + 1).sqrt()).log(); }
Tensor Tensor::acosh() const { return (*this + (square() - 1).sqrt()).log(); }
Tensor Tensor::atanh() const { return ((1 + *this) / (1 - *this)).log() * 0.5; }

Tensor Tensor::trunc() const {
  GraphScope scope;
  detail::Value v = detail::read(*this, "trunc");
  return detail::computed(is_float(v.dtype()) ? alu(Op::Trunc, {v.node}) : v.node, v.tracked, v.device);
}
Tensor Tensor::floor() const {
  Tensor t = trunc();
  return t.is_floating_point() ? (*this < t).where(t - 1, t) : t;
}
Tensor Tensor::ceil() const {
  Tensor t = trunc();
  return t.is_floating_point() ? (*this > t).where(t + 1, t) : t;
}
Tensor Tensor::round() const {
  Tensor low = floor();
  if (!low.is_floating_point()) return low;
  Tensor rest = *this - low, half = low * 0.5;
  Tensor even = half.trunc() == half;
  return ((rest < 0.5) | ((rest == 0.5) & even)).where(low, (rest == rest).where(low + 1, low));
}
Tensor Tensor::sign() const {
  Tensor x = detach();
  if (x.dtype() == DType::Bool) return x.cast(DType::Bool);
  return (x > 0).where(1, (x < 0).where(is_unsigned(x.dtype()) ? 1 : -1, x)).cast(x.dtype());
}
Tensor Tensor::abs() const { return *this * sign(); }
Tensor Tensor::isnan() const { return *this != *this; }
Tensor Tensor::isinf() const {
  if (!is_floating_point()) return zeros_like({.dtype = DType::Bool});
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return (*this == kInf) | (*this == -kInf);
}
Tensor Tensor::isfinite() const { return ~(isnan() | isinf()); }

Tensor Tensor::relu() const { return binary("relu", Op::Max, *this, 0); }
Tensor Tensor::relu6() const { return clamp(0, 6); }
Tensor Tensor::leaky_relu(double slope) const { return (*this < 0).where(*this * slope, *this); }
Tensor Tensor::elu(double alpha) const {
  return (*this > 0).where(*this, alpha * (detail::as_float(*this, "elu").minimum(0).exp() - 1));
}
Tensor Tensor::celu(double alpha) const {
  if (alpha == 0) detail::fail<ValueError>("celu", "alpha is 0");
  return (*this > 0).where(*this, alpha * ((*this / alpha).minimum(0).exp() - 1));
}
// Klambauer et al. 2017.
Tensor Tensor::selu() const { return 1.0507009873554805 * elu(1.6732632423543772); }
Tensor Tensor::gelu(Gelu form) const {
  Tensor x = detail::as_float(*this, "gelu");
  if (form == Gelu::Erf) return 0.5 * x * (1 + (x * (1 / std::numbers::sqrt2)).erf());
  return 0.5 * x * (1 + (std::sqrt(2 / std::numbers::pi) * x * (1 + 0.044715 * x * x)).tanh());
}
Tensor Tensor::quick_gelu() const { return *this * (*this * 1.702).sigmoid(); }
Tensor Tensor::sigmoid() const {
  Tensor x = detail::as_float(*this, "sigmoid");
  return 1.0 / ((-x).exp() + 1.0);
}
Tensor Tensor::logsigmoid() const { return -(neg().softplus()); }
Tensor Tensor::hardsigmoid() const { return (*this * (1.0 / 6) + 0.5).clamp(0, 1); }
Tensor Tensor::silu() const { return *this * sigmoid(); }
Tensor Tensor::hardswish() const { return *this * (*this + 3).relu6() * (1.0 / 6); }
Tensor Tensor::hardtanh(double low, double high) const { return clamp(low, high); }
Tensor Tensor::softplus(double beta) const {
  if (beta == 0) detail::fail<ValueError>("softplus", "beta is 0");
  return (*this * beta).logaddexp(0.0) * (1 / beta);
}
Tensor Tensor::softsign() const { return *this / (abs() + 1); }
Tensor Tensor::mish() const { return *this * softplus().tanh(); }

// --- more operands
// -------------------------------------------------------------------------------------------------

Tensor Tensor::add(const Operand& other) const { return *this + other; }
Tensor Tensor::sub(const Operand& other) const { return *this - other; }
Tensor Tensor::mul(const Operand& other) const { return *this * other; }
Tensor Tensor::div(const Operand& other) const { return *this / other; }
Tensor Tensor::bitwise_and(const Operand& other) const { return *this & other; }
Tensor Tensor::bitwise_or(const Operand& other) const { return *this | other; }
Tensor Tensor::bitwise_xor(const Operand& other) const { return *this ^ other; }
Tensor Tensor::lshift(const Operand& other) const { return *this << other; }
Tensor Tensor::rshift(const Operand& other) const { return *this >> other; }
Tensor Tensor::eq(const Operand& other) const { return *this == other; }
Tensor Tensor::ne(const Operand& other) const { return *this != other; }
Tensor Tensor::floor_div(const Operand& other) const {
  return detail::divide_rounded("floor_div", *this, other, Op::FloorDiv, &Tensor::floor);
}
Tensor Tensor::mod(const Operand& other) const { return *this % other; }
Tensor Tensor::fmod(const Operand& other) const {
  Tensor q = detail::divide_rounded("fmod", *this, other, Op::CMod, &Tensor::trunc);
  return q.is_floating_point() ? *this - q * other : q;
}
Tensor Tensor::pow(const Operand& other) const { return detail::power(*this, other); }
Tensor Tensor::maximum(const Operand& other) const { return binary("maximum", Op::Max, *this, other); }
Tensor Tensor::minimum(const Operand& other) const { return binary("minimum", Op::Min, *this, other); }
Tensor Tensor::clamp(const Operand& low, const Operand& high) const { return clamp_min(low).clamp_max(high); }
Tensor Tensor::clamp_min(const Operand& low) const { return binary("clamp", Op::Max, *this, low); }
Tensor Tensor::clamp_max(const Operand& high) const { return binary("clamp", Op::Min, *this, high); }
Tensor Tensor::lerp(const Tensor& end, const Operand& weight) const { return *this + (end - *this) * weight; }
Tensor Tensor::copysign(const Operand& other) const {
  GraphScope scope;
  detail::Value s = detail::value_of(other, "copysign");
  // 1/-0.0 tells it from 0.0.
  Ref negative = s.node < const_like(s.node, 0);
  if (is_float(s.dtype())) negative = negative | (const_like(s.node, 1) / s.node < const_like(s.node, 0));
  Tensor minus = detail::computed(negative, false, s.device), size = abs();
  DType t = strong(promote(size.dtype(), s.dtype()));
  return pg::where(minus, -size, size).cast(t);
}
Tensor Tensor::logaddexp(const Operand& other) const {
  Tensor m = binary("logaddexp", Op::Max, *this, other).detach();
  if (!m.is_floating_point()) m = m.cast(f32);
  m = m.isinf().where(0.0, m);
  return ((*this - m).exp() + (Operand(other) - m).exp()).log() + m;
}
Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value) const {
  return pg::where(mask, value, *this);
}
Tensor Tensor::where(const Operand& a, const Operand& b) const { return pg::where(*this, a, b); }
Tensor Tensor::isclose(const Operand& other, const IsCloseOptions& options) const {
  Tensor difference = (*this - other).abs();
  Tensor bound = (other * Tensor(1.0)).abs() * options.rtol + options.atol;
  Tensor finite = isfinite() & (other * Tensor(1.0)).isfinite();
  Tensor close = (*this == other) | (finite & (difference <= bound));
  if (options.equal_nan) close = close | (isnan() & (other != other));
  return close;
}
Tensor Tensor::allclose(const Operand& other, const IsCloseOptions& options) const {
  return isclose(other, options).all();
}

}  // namespace pg
