// The element types of tensors, how they promote, and what sums of them accumulate in. Used by every room and
// by programs; the weak types are those of C++ scalars, which take the type of what they meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <pangrad/error.h>

namespace pg {

/// An element type. The order is the promotion order: of two candidates the earlier one wins.
enum class DType : std::uint8_t {
  Void,
  Bool,
  WeakInt,
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  WeakFloat,
  F16,
  BF16,
  F32,
  F64,
};
inline constexpr int kDTypeCount = 16;

inline constexpr DType boolean = DType::Bool;
inline constexpr DType i8 = DType::I8, i16 = DType::I16, i32 = DType::I32, i64 = DType::I64;
inline constexpr DType u8 = DType::U8, u16 = DType::U16, u32 = DType::U32, u64 = DType::U64;
inline constexpr DType f16 = DType::F16, bf16 = DType::BF16, f32 = DType::F32, f64 = DType::F64;

constexpr bool is_float(DType t) { return t >= DType::WeakFloat; }
constexpr bool is_weak(DType t) { return t == DType::WeakInt || t == DType::WeakFloat; }
constexpr bool is_unsigned(DType t) {
  return t == DType::U8 || t == DType::U16 || t == DType::U32 || t == DType::U64;
}
/// Integers, the weak one included; bool is not one.
constexpr bool is_int(DType t) { return t >= DType::WeakInt && t <= DType::U64; }

/// Bytes of one element in memory; 8 for the weak types (they have no storage, only values), 0 for Void.
PG_API std::size_t itemsize(DType t);
/// "f32", "i64", "bool", ...
PG_API std::string_view name(DType t);
/// The dtype of that name (also "float32", "int64", "half" and the like). Throws DTypeError on others.
PG_API DType parse_dtype(std::string_view text);

/// The dtype of a binary operation on two: the lowest common ancestor in the promotion lattice. A signed type
/// with u64 gives WeakFloat, f16 with bf16 gives f32, an integer with a float gives the float.
PG_API DType promote(DType a, DType b);
/// What sum, mean, matmul and var accumulate in: at least 32 bits.
PG_API DType accumulator(DType t);
/// WeakInt becomes i32, WeakFloat f32; the others stay.
PG_API DType strong(DType t);
/// True if every value of `from` is a value of `to`.
PG_API bool is_lossless(DType from, DType to);

/// Range of an integer or bool type (u64 is clipped to the largest int64). WeakInt has the range of int64.
PG_API std::int64_t int_min(DType t);
PG_API std::int64_t int_max(DType t);

/// The DType of a C++ arithmetic type.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::I8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::I16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::I32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::I64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::U8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::U16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::U32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::U64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};

}  // namespace pg
