// How everything that holds tensors is walked: modules, optimisers, arguments of captured functions. A type
// of a program joins in by one member, a template that names its fields:
//
//   struct Net {
//     nn::Linear head{4, 2};
//     std::vector<Block> blocks;
//     void fields(auto&& field) { field("head", head), field("blocks", blocks); }
//   };
//
// Fields may be tensors, other such types, and optional, vector, array, pair, tuple, map and smart pointers
// of these. Nothing is stored about them, so such types copy and move as they are.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <pangrad/tensor.h>

namespace pg {
namespace detail {

struct AnyField {
  template <class T>
  void operator()(std::string_view, T&) const {}
};

template <class T>
inline constexpr bool kIsPointer = false;
template <class T>
inline constexpr bool kIsPointer<std::optional<T>> = true;
template <class T, class Deleter>
inline constexpr bool kIsPointer<std::unique_ptr<T, Deleter>> = true;
template <class T>
inline constexpr bool kIsPointer<std::shared_ptr<T>> = true;

template <class T>
concept IsTensor = std::derived_from<T, Tensor>;
template <class T>
concept IsMap = requires(T& map) {
  typename T::mapped_type;
  { map.begin()->first } -> std::convertible_to<std::string_view>;
};
template <class T>
concept IsTuple = !std::ranges::range<T> && requires { std::tuple_size<T>::value; };
template <class T>
concept IsText = std::convertible_to<const T&, std::string_view>;

}  // namespace detail

/// A type that names its fields.
template <class T>
concept HasFields =
    requires(std::remove_cvref_t<T>& value, const detail::AnyField& field) { value.fields(field); };

namespace detail {

// Walks one value. The name grows and shrinks in place as the walk goes down and up.
template <class Visit>
class FieldWalk {
 public:
  explicit FieldWalk(Visit& visit) : visit_(visit) {}

  template <class T>
  void walk(T& value) {
    if constexpr (IsTensor<T>) {
      visit_(std::as_const(name_), static_cast<Tensor&>(value));
    } else if constexpr (HasFields<T>) {
      value.fields([this](std::string_view name, auto& child) { this->enter(name, child); });
    } else if constexpr (kIsPointer<T>) {
      if (value) walk(*value);
    } else if constexpr (IsMap<T>) {
      for (auto& [name, child] : value) enter(name, child);
    } else if constexpr (IsText<T>) {
    } else if constexpr (std::ranges::range<T>) {
      std::size_t i = 0;
      for (auto& child : value) enter(std::to_string(i++), child);
    } else if constexpr (IsTuple<T>) {
      std::size_t i = 0;
      std::apply([&](auto&... children) { (enter(std::to_string(i++), children), ...); }, value);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>,
                    "a field is a tensor, a type with fields(), a container of these, or a plain value");
    }
  }

 private:
  template <class T>
  void enter(std::string_view name, T& child) {
    std::size_t length = name_.size();
    if (length > 0) name_ += '.';
    name_ += name;
    // fields() is one member for reading and writing; whoever walks a const value only reads.
    walk(const_cast<std::remove_const_t<T>&>(child));
    name_.resize(length);
  }

  Visit& visit_;
  std::string name_;
};

}  // namespace detail

/// Calls visit(name, tensor) for each tensor in a value, in the order of its fields, with dotted names
/// ("blocks.0.weight"). Tensors that hold nothing are visited too. A value that is not const gives Tensor&,
/// which may be rebound, a const one const Tensor&.
template <class T, class Visit>
void walk_tensors(T& value, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_const_v<T>) {
    auto read = [&](const std::string& name, const Tensor& tensor) { visit(name, tensor); };
    detail::FieldWalk<decltype(read)>(read).walk(const_cast<Plain&>(value));
  } else {
    detail::FieldWalk<std::remove_reference_t<Visit>>(visit).walk(value);
  }
}

}  // namespace pg
