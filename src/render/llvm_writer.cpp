#include "render/llvm_writer.h"

#include <bit>
#include <cmath>

namespace pg::render {
namespace {

// In the order of Prim.
constexpr std::string_view kNames[] = {
    "add",      "sub",      "mul",      "udiv",     "sdiv",     "urem",     "srem",     "and",
    "or",       "xor",      "shl",      "lshr",     "ashr",     "umin",     "umax",     "smin",
    "smax",     "fadd",     "fsub",     "fmul",     "fdiv",     "icmp eq",  "icmp ne",  "icmp slt",
    "icmp ult", "fcmp oeq", "fcmp une", "fcmp olt", "fcmp ogt", "fcmp oge", "fcmp uno", "fneg",
    "trunc",    "sqrt",     "fabs",     "trunc",    "sext",     "zext",     "sitofp",   "uitofp",
    "fptosi",   "fptoui",   "fpext",    "fptrunc",  "bitcast",  "",         "",
};
static_assert(std::size(kNames) == static_cast<std::size_t>(Prim::F32ToHalf) + 1);
std::string_view name_of(Prim op) { return kNames[static_cast<int>(op)]; }

std::string vector_of(int lanes, std::string_view scalar) {
  return lanes == 1 ? std::string(scalar) : fmt::format("<{} x {}>", lanes, scalar);
}

}  // namespace

std::string LlvmWriter::type(Shape s, bool memory) const {
  switch (s.dtype) {
    case DType::F32:
      return vector_of(s.lanes, "float");
    case DType::F64:
      return vector_of(s.lanes, "double");
    case DType::F16:
      return vector_of(s.lanes, target().computes.has(f16) ? "half" : "i16");
    case DType::BF16:
      return vector_of(s.lanes, "i16");
    case DType::Bool:
      return vector_of(s.lanes, memory ? "i8" : "i1");
    case DType::Void:
    case DType::WeakInt:
    case DType::WeakFloat:
      throw InternalError("[llvm] a value of dtype " + std::string(name(s.dtype)));
    default:
      return vector_of(s.lanes, "i" + std::to_string(bits_of(s.dtype)));
  }
}

std::string LlvmWriter::intrinsic_type(Shape s, bool memory) const {
  std::string scalar = type({s.dtype, 1}, memory);
  if (scalar == "float") scalar = "f32";
  if (scalar == "double") scalar = "f64";
  if (scalar == "half") scalar = "f16";
  return s.lanes == 1 ? scalar : fmt::format("v{}{}", s.lanes, scalar);
}

std::string LlvmWriter::constant(Shape s, Scalar v) const {
  std::string scalar = type({s.dtype, 1}), text;
  if (scalar == "float" || scalar == "double") {
    text = fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(std::isnan(v.f) ? std::nan("") : v.f));
  } else if (scalar == "half") {
    text = fmt::format("0xH{:04X}", to_bits(f16, v));
  } else if (s.dtype == DType::Bool) {
    text = v.i & 1 ? "true" : "false";
  } else if (is_float(s.dtype)) {
    text = std::to_string(static_cast<std::int16_t>(to_bits(s.dtype, v)));
  } else {
    text = std::to_string(v.i);
  }
  return s.lanes == 1 ? text : fmt::format("splat ({} {})", scalar, text);
}

std::string LlvmWriter::select(Shape s, const std::string& condition, const std::string& yes,
                               const std::string& no) {
  return emit("select {} {}, {} {}, {} {}", type({boolean, s.lanes}), condition, type(s), yes, type(s), no);
}

std::string LlvmWriter::splat(Shape s, const std::string& scalar) {
  if (s.lanes == 1) return scalar;
  std::string t = type(s);
  std::string first = emit("insertelement {} poison, {} {}, i64 0", t, type({s.dtype, 1}), scalar);
  return emit("shufflevector {} {}, {} poison, <{} x i32> zeroinitializer", t, first, t, s.lanes);
}

std::string LlvmWriter::slice(Shape v, const std::string& value, int first, int lanes) {
  std::string t = type(v);
  if (lanes == 1) return emit("extractelement {} {}, i64 {}", t, value, first);
  std::string mask;
  for (int i = 0; i < lanes; ++i) mask += fmt::format("{}i32 {}", i ? ", " : "", first + i);
  return emit("shufflevector {} {}, {} poison, <{} x i32> <{}>", t, value, t, lanes, mask);
}

std::string LlvmWriter::binary(Prim op, Shape s, const std::string& a, const std::string& b, bool exact) {
  std::string t = type(s);
  if (op >= Prim::UMin && op <= Prim::SMax)
    return emit("call {0} @llvm.{1}.{2}({0} {3}, {0} {4})", t, name_of(op), intrinsic_type(s), a, b);
  return emit("{}{} {} {}, {}", name_of(op), exact ? " nsw" : "", t, a, b);
}

std::string LlvmWriter::unary(Prim op, Shape to, DType from, const std::string& x) {
  Shape s{from, to.lanes};
  std::string t = type(to), half = vector_of(to.lanes, "half");
  switch (op) {
    case Prim::FNeg:
      return emit("fneg {} {}", t, x);
    case Prim::FTrunc:
    case Prim::FSqrt:
    case Prim::FAbs:
      return emit("call {0} @llvm.{1}.{2}({0} {3})", t, name_of(op), intrinsic_type(to), x);
    case Prim::HalfToF32:
      return emit("fpext {} {} to {}", half, emit("bitcast {} {} to {}", type(s), x, half), t);
    case Prim::F32ToHalf:
      return emit("bitcast {} {} to {}", half, emit("fptrunc {} {} to {}", type(s), x, half), t);
    case Prim::Bits:
      if (type(s) == t) return x;
      [[fallthrough]];
    default:
      return emit("{} {} {} to {}", name_of(op), type(s), x, t);
  }
}

std::string LlvmWriter::fma(Shape s, const std::string& a, const std::string& b, const std::string& c) {
  return emit("call {0} @llvm.fma.{1}({0} {2}, {0} {3}, {0} {4})", type(s), intrinsic_type(s), a, b, c);
}

std::string LlvmWriter::dot_bytes(Shape s, const std::string& a, const std::string& b, const std::string& c) {
  int bits = vnni_bits(s);
  if (!bits) return {};
  return emit("call {0} @llvm.x86.avx512.vpdpbusd.{1}({0} {2}, {0} {3}, {0} {4})", type(s), bits, c, a, b);
}

}  // namespace pg::render
