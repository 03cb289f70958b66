#include <array>
#include <limits>
#include <string>

#include <pangrad/dtype.h>

namespace pg {
namespace {

struct Row {
  std::string_view name;
  std::size_t bytes;
  std::int64_t lo, hi;
  DType parents[2];  // edges of the promotion lattice; Void where there is none
};

template <class T>
constexpr std::int64_t lo() {
  return std::numeric_limits<T>::min();
}
template <class T>
constexpr std::int64_t hi() {
  return std::numeric_limits<T>::max();
}
constexpr std::int64_t kMin = lo<std::int64_t>(), kMax = hi<std::int64_t>();
constexpr DType kNone = DType::Void;

constexpr Row kRows[kDTypeCount] = {
    {"void", 0, 0, 0, {kNone, kNone}},
    {"bool", 1, 0, 1, {DType::WeakInt, kNone}},
    {"weakint", 8, kMin, kMax, {i8, u8}},
    {"i8", 1, lo<std::int8_t>(), hi<std::int8_t>(), {i16, kNone}},
    {"u8", 1, 0, hi<std::uint8_t>(), {i16, u16}},
    {"i16", 2, lo<std::int16_t>(), hi<std::int16_t>(), {i32, kNone}},
    {"u16", 2, 0, hi<std::uint16_t>(), {i32, u32}},
    {"i32", 4, lo<std::int32_t>(), hi<std::int32_t>(), {i64, kNone}},
    {"u32", 4, 0, hi<std::uint32_t>(), {i64, u64}},
    {"i64", 8, kMin, kMax, {DType::WeakFloat, kNone}},
    {"u64", 8, 0, kMax, {DType::WeakFloat, kNone}},
    {"weakfloat", 8, kMin, kMax, {f16, bf16}},
    {"f16", 2, kMin, kMax, {f32, kNone}},
    {"bf16", 2, kMin, kMax, {f32, kNone}},
    {"f32", 4, kMin, kMax, {f64, kNone}},
    {"f64", 8, kMin, kMax, {kNone, kNone}},
};

constexpr const Row& row(DType t) { return kRows[static_cast<int>(t)]; }

// Everything at or above t in the lattice, as a bit per dtype.
constexpr unsigned ancestors(DType t) {
  unsigned all = 1u << static_cast<int>(t);
  for (int i = static_cast<int>(t); i < kDTypeCount; ++i)
    if (all >> i & 1)
      for (DType p : kRows[i].parents)
        if (p != kNone) all |= 1u << static_cast<int>(p);
  return all;
}

constexpr auto kPromote = [] {
  std::array<std::array<DType, kDTypeCount>, kDTypeCount> table{};
  for (int a = 1; a < kDTypeCount; ++a)
    for (int b = 1; b < kDTypeCount; ++b) {
      unsigned common = ancestors(static_cast<DType>(a)) & ancestors(static_cast<DType>(b));
      int lowest = 0;
      while (!(common >> lowest & 1)) ++lowest;
      table[a][b] = static_cast<DType>(lowest);
    }
  return table;
}();

struct Alias {
  std::string_view name;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"boolean", DType::Bool},
    {"int8", i8},
    {"char", i8},
    {"uint8", u8},
    {"byte", u8},
    {"int16", i16},
    {"short", i16},
    {"uint16", u16},
    {"int32", i32},
    {"int", i32},
    {"uint32", u32},
    {"int64", i64},
    {"long", i64},
    {"uint64", u64},
    {"float16", f16},
    {"half", f16},
    {"bfloat16", bf16},
    {"float32", f32},
    {"float", f32},
    {"float64", f64},
    {"double", f64},
};

}  // namespace

std::size_t itemsize(DType t) { return row(t).bytes; }
std::string_view name(DType t) { return row(t).name; }

DType parse_dtype(std::string_view text) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (kRows[i].name == text) return static_cast<DType>(i);
  for (const Alias& alias : kAliases)
    if (alias.name == text) return alias.dtype;
  throw DTypeError("[dtype] there is no dtype named \"" + std::string(text) + "\"");
}

DType promote(DType a, DType b) { return kPromote[static_cast<int>(a)][static_cast<int>(b)]; }

DType accumulator(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::WeakInt:
    case DType::I8:
    case DType::I16:
      return i32;
    case DType::U8:
    case DType::U16:
      return u32;
    case DType::WeakFloat:
    case DType::F16:
    case DType::BF16:
      return f32;
    default:
      return t;
  }
}

DType strong(DType t) { return t == DType::WeakInt ? i32 : t == DType::WeakFloat ? f32 : t; }

bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::Bool) return to != DType::Void;
  if (is_int(from) && is_int(to)) {
    if (to == DType::WeakInt) return from != u64;
    if (to == u64) return is_unsigned(from);
    return from != u64 && int_min(to) <= int_min(from) && int_max(from) <= int_max(to);
  }
  if (is_int(from)) {
    int bits = from == DType::WeakInt ? 64 : static_cast<int>(itemsize(from)) * 8;
    int exact = to == f16 ? 11 : to == bf16 ? 8 : to == f32 ? 24 : to == f64 ? 53 : 0;
    return bits - (is_unsigned(from) ? 0 : 1) <= exact;
  }
  if (!is_float(from) || !is_float(to)) return false;
  return to == f64 || (to == f32 && (from == f16 || from == bf16));
}

std::int64_t int_min(DType t) { return row(t).lo; }
std::int64_t int_max(DType t) { return row(t).hi; }

}  // namespace pg
