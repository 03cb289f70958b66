// What operations take beside tensors: numbers of C++, which have no dtype of their own, and the forms of an
// index.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pangrad/dtype.h>
#include <pangrad/shape.h>

namespace pg {

class Tensor;

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;
/// A C++ type that is the element type of a dtype.
template <class T>
concept Element = requires { DTypeOf<T>::value; };

/// A C++ number with its kind: bool, integer or floating point.
class Number {
 public:
  enum class Kind : std::uint8_t { Bool, Int, Float };
  template <Arithmetic T>
  constexpr Number(T value) {
    if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::Bool, int_ = value;
    } else if constexpr (std::floating_point<T>) {
      kind_ = Kind::Float, float_ = static_cast<double>(value);
    } else {
      kind_ = Kind::Int, int_ = static_cast<std::int64_t>(value);
    }
  }
  constexpr Kind kind() const { return kind_; }
  constexpr double to_double() const { return kind_ == Kind::Float ? float_ : static_cast<double>(int_); }
  /// Bool and Int only.
  constexpr std::int64_t to_int() const { return int_; }
  /// Its weak dtype: bool, weak integer, weak float.
  constexpr DType dtype() const {
    return kind_ == Kind::Bool ? DType::Bool : kind_ == Kind::Int ? DType::WeakInt : DType::WeakFloat;
  }

 private:
  Kind kind_;
  union {
    std::int64_t int_;
    double float_;
  };
};

/// An operand: a Tensor, or a number, which takes the dtype of what it meets (an integer beside a float
/// tensor is a float; a float beside an integer tensor makes both f32). Refers to the tensor: for parameters
/// only.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor), number_(0) {}
  template <Arithmetic T>
  Operand(T number) : number_(number) {}
  Operand(Number number) : number_(number) {}
  const Tensor* tensor() const { return tensor_; }
  Number number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Number number_;
};

/// One position of an index: an integer (drops the axis), a Slice, an ellipsis, newaxis, or an integer tensor
/// or list, which pick in any order.
class Index {
 public:
  template <Integer T>
  Index(T i) : form_(Dim(i)) {}
  Index(Dim i) : form_(std::move(i)) {}
  Index(Slice s) : form_(std::move(s)) {}
  Index(Ellipsis e) : form_(e) {}
  Index(NewAxis n) : form_(n) {}
  Index(const Tensor& rows);
  Index(std::vector<std::int64_t> rows) : form_(std::move(rows)) {}

  using Form =
      std::variant<Dim, Slice, Ellipsis, NewAxis, std::vector<std::int64_t>, std::shared_ptr<const Tensor>>;
  const Form& form() const { return form_; }

 private:
  Form form_;
};

/// Several tensors: a braced list, a vector or a span. For parameters only.
class TensorList {
 public:
  TensorList(std::initializer_list<Tensor> tensors) : first_(tensors.begin()), count_(tensors.size()) {}
  TensorList(const std::vector<Tensor>& tensors);
  TensorList(std::span<const Tensor> tensors);
  std::span<const Tensor> span() const;

 private:
  const Tensor* first_;
  std::size_t count_;
};

}  // namespace pg
