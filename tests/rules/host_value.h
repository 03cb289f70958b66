// Two kinds of value that the functions of rules/functions.h accept, for tests: Host<T>, a number of static
// type, fast; and Traced, a number whose dtype is known at run time only, as a node's is, which also counts
// the distinct ops.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace pg::test {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Integer = std::integral<T> && !std::is_same_v<T, bool>;

template <class T>
struct Host {
  T v;
};

// Integers wrap, and a shift by the width or more gives 0 or the sign.
template <Number T>
constexpr auto bits_of(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    return v;
  } else {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
}
template <Number T>
Host<T> operator+(Host<T> a, Host<T> b) {
  return {static_cast<T>(bits_of(a.v) + bits_of(b.v))};
}
template <Number T>
Host<T> operator-(Host<T> a, Host<T> b) {
  return {static_cast<T>(bits_of(a.v) - bits_of(b.v))};
}
template <Number T>
Host<T> operator*(Host<T> a, Host<T> b) {
  return {static_cast<T>(bits_of(a.v) * bits_of(b.v))};
}
template <std::floating_point T>
Host<T> operator/(Host<T> a, Host<T> b) {
  return {a.v / b.v};
}
template <std::floating_point T>
Host<T> operator-(Host<T> a) {
  return {-a.v};
}
template <Integer T>
Host<T> operator&(Host<T> a, Host<T> b) {
  return {static_cast<T>(a.v & b.v)};
}
template <Integer T>
Host<T> operator|(Host<T> a, Host<T> b) {
  return {static_cast<T>(a.v | b.v)};
}
template <Integer T>
Host<T> operator^(Host<T> a, Host<T> b) {
  return {static_cast<T>(a.v ^ b.v)};
}
template <Integer T>
Host<T> operator<<(Host<T> a, Host<T> b) {
  return {bits_of(b.v) < sizeof(T) * 8 ? static_cast<T>(bits_of(a.v) << bits_of(b.v)) : T{0}};
}
template <Integer T>
Host<T> operator>>(Host<T> a, Host<T> b) {
  return {static_cast<T>(bits_of(b.v) < sizeof(T) * 8 ? a.v >> b.v : a.v < 0 ? -1 : 0)};
}
template <std::floating_point T>
Host<T> fma(Host<T> a, Host<T> b, Host<T> c) {
  return {std::fma(a.v, b.v, c.v)};
}
template <std::floating_point T>
Host<T> trunc(Host<T> a) {
  return {std::trunc(a.v)};
}
template <Number T>
Host<bool> lt(Host<T> a, Host<T> b) {
  return {a.v < b.v};
}
template <Number T>
Host<bool> eq(Host<T> a, Host<T> b) {
  return {a.v == b.v};
}
template <Number T>
Host<bool> ne(Host<T> a, Host<T> b) {
  return {a.v != b.v};
}
inline Host<bool> and_(Host<bool> a, Host<bool> b) { return {a.v && b.v}; }
inline Host<bool> or_(Host<bool> a, Host<bool> b) { return {a.v || b.v}; }
inline Host<bool> not_(Host<bool> a) { return {!a.v}; }
template <class T>
Host<T> where(Host<bool> c, Host<T> a, Host<T> b) {
  return {c.v ? a.v : b.v};
}
inline Host<std::uint64_t> mul_wide(Host<std::uint32_t> a, Host<std::uint32_t> b) {
  return {std::uint64_t{a.v} * b.v};
}
inline Host<std::uint32_t> to_u32(Host<std::uint64_t> a) { return {static_cast<std::uint32_t>(a.v)}; }
inline Host<float> to_f32(Host<std::int32_t> a) { return {static_cast<float>(a.v)}; }
inline Host<double> to_f64(Host<std::int64_t> a) { return {static_cast<double>(a.v)}; }
template <class T>
  requires(sizeof(T) == 4)
Host<float> bitcast_f32(Host<T> a) {
  return {std::bit_cast<float>(a.v)};
}
template <class T>
  requires(sizeof(T) == 4)
Host<std::int32_t> bitcast_i32(Host<T> a) {
  return {std::bit_cast<std::int32_t>(a.v)};
}
template <class T>
  requires(sizeof(T) == 4)
Host<std::uint32_t> bitcast_u32(Host<T> a) {
  return {std::bit_cast<std::uint32_t>(a.v)};
}
template <class T>
  requires(sizeof(T) == 8)
Host<double> bitcast_f64(Host<T> a) {
  return {std::bit_cast<double>(a.v)};
}
template <class T>
  requires(sizeof(T) == 8)
Host<std::int64_t> bitcast_i64(Host<T> a) {
  return {std::bit_cast<std::int64_t>(a.v)};
}
template <class T>
  requires(sizeof(T) == 8)
Host<std::uint64_t> bitcast_u64(Host<T> a) {
  return {std::bit_cast<std::uint64_t>(a.v)};
}
template <class T>
Host<T> constant_like(Host<T>, double c) {
  return {static_cast<T>(c)};
}
template <class T>
Host<T> constant_like(Host<T>, std::int64_t c) {
  return {static_cast<T>(c)};
}

using Any = std::variant<Host<bool>, Host<float>, Host<double>, Host<std::int32_t>, Host<std::uint32_t>,
                         Host<std::int64_t>, Host<std::uint64_t>>;

/// A handle of an interned node, with its value. Wrong dtypes throw.
struct Traced {
  int id;
};

class Trace {
 public:
  static Trace& get() {
    static Trace trace;
    return trace;
  }
  void clear() { ids_.clear(), values_.clear(), ops_ = 0; }
  /// Distinct ops since clear(): no inputs, no constants, no bitcasts, which cost nothing.
  int ops() const { return ops_; }
  const Any& value(Traced t) const { return values_[static_cast<std::size_t>(t.id)]; }

  Traced node(std::string_view op, std::vector<int> srcs, Any value, bool free) {
    // The bits of a constant are part of its name; all else follows from op and sources.
    std::uint64_t bits = srcs.empty() ? std::visit([](auto x) { return word(x.v); }, value) : 0;
    auto [it, is_new] =
        ids_.try_emplace({op, value.index(), std::move(srcs), bits}, static_cast<int>(values_.size()));
    if (is_new) values_.push_back(value), ops_ += free ? 0 : 1;
    return {it->second};
  }

 private:
  template <class T>
  static std::uint64_t word(T v) {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<std::uint32_t>(v);
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<std::uint64_t>(v);
    else
      return static_cast<std::uint64_t>(v);
  }

  std::map<std::tuple<std::string_view, std::size_t, std::vector<int>, std::uint64_t>, int> ids_;
  std::vector<Any> values_;
  int ops_ = 0;
};

/// The op f of Host values applied to traced ones, all of the type of the first.
template <class F, class... More>
Traced traced(std::string_view op, bool free, F f, Traced a, More... more) {
  const Trace& t = Trace::get();
  Any result = std::visit(
      [&](auto x) -> Any {
        using X = decltype(x);
        if constexpr (std::is_invocable_v<F, X, std::conditional_t<true, X, More>...>)
          return f(x, std::get<X>(t.value(more))...);
        else
          throw std::logic_error("no such op on this dtype");
      },
      t.value(a));
  return Trace::get().node(op, {a.id, more.id...}, result, free);
}

#define PG_UNARY(name, free)                                                            \
  inline Traced name(Traced a) {                                                        \
    return traced(#name, free, [](auto x) -> decltype(name(x)) { return name(x); }, a); \
  }
#define PG_BINARY(name, expression)                                                                       \
  inline Traced name(Traced a, Traced b) {                                                                \
    return traced(#name, false, [](auto x, auto y) -> decltype(expression) { return expression; }, a, b); \
  }
PG_BINARY(operator+, x + y)
PG_BINARY(operator-, x - y)
PG_BINARY(operator*, x* y)
PG_BINARY(operator/, x / y)
PG_BINARY(operator&, x& y)
PG_BINARY(operator|, x | y)
PG_BINARY(operator^, x ^ y)
PG_BINARY(operator<<, x << y)
PG_BINARY(operator>>, x >> y)
PG_BINARY(lt, lt(x, y))
PG_BINARY(eq, eq(x, y))
PG_BINARY(ne, ne(x, y))
PG_BINARY(and_, and_(x, y))
PG_BINARY(or_, or_(x, y))
PG_BINARY(mul_wide, mul_wide(x, y))
PG_UNARY(operator-, false)
PG_UNARY(trunc, false)
PG_UNARY(not_, false)
PG_UNARY(to_u32, false)
PG_UNARY(to_f32, false)
PG_UNARY(to_f64, false)
PG_UNARY(bitcast_f32, true)
PG_UNARY(bitcast_i32, true)
PG_UNARY(bitcast_u32, true)
PG_UNARY(bitcast_f64, true)
PG_UNARY(bitcast_i64, true)
PG_UNARY(bitcast_u64, true)
#undef PG_UNARY
#undef PG_BINARY

inline Traced fma(Traced a, Traced b, Traced c) {
  return traced(
      "fma", false, [](auto x, auto y, auto z) -> decltype(fma(x, y, z)) { return fma(x, y, z); }, a, b, c);
}
inline Traced where(Traced c, Traced a, Traced b) {
  Trace& t = Trace::get();
  bool first = std::get<Host<bool>>(t.value(c)).v;
  if (t.value(a).index() != t.value(b).index()) throw std::logic_error("where of two dtypes");
  return t.node("where", {c.id, a.id, b.id}, t.value(first ? a : b), false);
}
inline Traced constant(std::string_view op, Any value) { return Trace::get().node(op, {}, value, true); }
inline Traced constant_like(Traced a, auto c) {
  return constant("constant",
                  std::visit([&](auto x) -> Any { return constant_like(x, c); }, Trace::get().value(a)));
}

}  // namespace pg::test
