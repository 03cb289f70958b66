// What a device can do, as plain data: which dtypes and ops it computes, how wide its vectors are, how large
// its caches and groups. The code generator shapes and decomposes kernels by it, renderers choose
// instructions by it, and nothing outside a device's folder asks for a device by name.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/node.h"

namespace pg {

/// A set of enumerators below 128.
template <class E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> all) {
    for (E e : all) add(e);
  }
  constexpr bool has(E e) const { return words_[at(e) / 64] >> at(e) % 64 & 1; }
  constexpr void add(E e) { words_[at(e) / 64] |= std::uint64_t{1} << at(e) % 64; }
  constexpr void remove(E e) { words_[at(e) / 64] &= ~(std::uint64_t{1} << at(e) % 64); }
  constexpr int size() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }
  friend constexpr EnumSet operator|(EnumSet a, EnumSet b) {
    for (std::size_t i = 0; i < 2; ++i) a.words_[i] |= b.words_[i];
    return a;
  }
  friend constexpr EnumSet operator-(EnumSet a, EnumSet b) {
    for (std::size_t i = 0; i < 2; ++i) a.words_[i] &= ~b.words_[i];
    return a;
  }
  friend constexpr bool operator==(const EnumSet&, const EnumSet&) = default;
  /// For keys.
  std::string text() const;

 private:
  static constexpr std::size_t at(E e) { return static_cast<std::size_t>(e); }
  std::array<std::uint64_t, 2> words_{};
};
using OpSet = EnumSet<Op>;
using DTypeSet = EnumSet<DType>;

template <class E>
std::string EnumSet<E>::text() const {
  return std::to_string(words_[0]) + "." + std::to_string(words_[1]);
}

/// The elementwise ops with exact results (see is_exact): what a device computes at least, or has decomposed.
inline constexpr OpSet kExactOps = {
    Op::Cast,     Op::Bitcast,  Op::Neg,   Op::Trunc, Op::Sqrt,  Op::Add,   Op::Sub,    Op::Mul,      Op::Div,
    Op::FloorDiv, Op::FloorMod, Op::CDiv,  Op::CMod,  Op::Max,   Op::Min,   Op::And,    Op::Or,       Op::Xor,
    Op::Shl,      Op::Shr,      Op::CmpLt, Op::CmpEq, Op::CmpNe, Op::Where, Op::MulAcc, Op::Threefry,
};
inline constexpr DTypeSet kIntegers = {i8, u8, i16, u16, i32, u32, i64, u64};

/// A matrix unit: d = a * b + c with a of m x k and b of k x n of `in`, c and d of m x n of `out`, by one
/// warp.
struct TensorCore {
  int m, n, k;
  DType in, out;
};

struct Target {
  /// The family the code is for ("CPU", "INTERP:gpu", "NULL") and the language it is rendered in.
  std::string device;
  std::string language;
  /// The instruction set, for cache keys and people: "x86-64 avx512f avx512fp16 ...".
  std::string isa;

  // --- arithmetic ---
  /// Dtypes with arithmetic of their own. The others of `stores` are for storage: only Load, Store, Splat,
  /// Extract, Where, Bitcast and Cast (from and to every stored dtype, rounded once) take them; the rest is
  /// computed in f32 between Casts.
  DTypeSet computes;
  DTypeSet stores;
  /// Those of `stores` with an instruction for their exact conversion from and to f32; the others take some
  /// ten.
  DTypeSet converts;
  /// Elementwise ops it computes on those dtypes; the others must be decomposed.
  OpSet ops;

  // --- vectors ---
  int vector_bytes = 0;  // of one register; 0: scalars only
  int vector_registers = 0;
  int max_lanes = 1;  // of a vector in a program; wider than a register is allowed and split by the compiler
  /// The smallest element, in bytes, that vectors load and store under a mask, and that they gather, in
  /// hardware; 0: none. Both are always correct, but slow where the hardware has none.
  int masked_bytes = 0;
  int gather_bytes = 0;
  /// Dtype of index arithmetic where i32 would do too.
  DType index = i32;

  // --- memory ---
  std::int64_t l1 = 0, l2 = 0, l3 = 0;  // data caches: of a core, of a core, shared
  int cores = 1;                        // threads that run at once
  /// An output of at least so many bytes is better stored past the caches, by vectors; 0: none is.
  std::int64_t stream_bytes = 0;

  // --- rates, for the cost model: rough, per core and cycle ---
  double mul_acc_per_cycle = 1;  // vector instructions
  double l1_bytes_per_cycle = 32, l2_bytes_per_cycle = 16, l3_bytes_per_cycle = 8;
  double memory_bytes_per_cycle = 4;  // of one core alone
  double cycles_per_launch = 5000;    // of one kernel
  double cycles_per_thread = 5000;    // to get one more core to work

  // --- groups ---
  bool has_groups = false;       // gidx, lidx, Local, Barrier, If
  std::int64_t local_bytes = 0;  // shared memory of a group
  int max_group = 1;             // work-items in one
  int warp = 1;
  std::array<std::int64_t, 3> max_global{1, 1, 1}, max_local{1, 1, 1};
  std::vector<TensorCore> tensor_cores;

  /// Elements of t in one vector register.
  int lanes_of(DType t) const { return std::max(1, vector_bytes / static_cast<int>(itemsize(t))); }
  bool has(Op op) const { return ops.has(op); }
  /// Whether vectors of t load and store under a mask in hardware.
  bool masks(DType t) const { return masked_bytes && static_cast<int>(itemsize(t)) >= masked_bytes; }
  bool gathers(DType t) const { return gather_bytes && static_cast<int>(itemsize(t)) >= gather_bytes; }
  /// All of it as text: equal for targets that get equal code.
  std::string key() const;

  /// This machine, as the CPU device compiles for it. Found out once.
  static const Target& host_cpu();
  /// Executes programs node by node: every dtype and exact op, vectors of any width.
  static Target interp();
  /// The same with work-groups, shared memory and a 16 x 16 x 16 matrix unit.
  static Target interp_gpu();
  /// Compiles what the host's CPU would get and never runs it.
  static Target null();
};

}  // namespace pg
