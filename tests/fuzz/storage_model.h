// What storage means, told without laziness: bytes somewhere, and views that say for each of their bytes
// where it is. The storage fuzzer runs every program on this beside the library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/array.h"

namespace pg::fuzz {

class Model {
 public:
  Model() = default;
  /// Storage of its own.
  explicit Model(const eval::Array& value);

  DType dtype() const { return dtype_; }
  const eval::Dims& dims() const { return dims_; }
  std::int64_t size() const { return eval::count(dims_); }
  int rank() const { return static_cast<int>(dims_.size()); }
  /// What it reads now.
  eval::Array value() const;
  /// Overwrites what it looks at. The value broadcasts.
  void write(const eval::Array& value) const;
  /// Whether an element is seen more than once, so that it cannot be written to.
  bool repeats() const;
  /// Whether it comes from a view that repeats.
  bool expanded() const { return expanded_; }

  // Views.
  Model reshape(eval::Dims dims) const;
  Model permute(std::span<const std::int64_t> order) const;
  Model expand(eval::Dims dims) const;
  Model flip(int axis) const;
  /// count elements along an axis from start, step apart.
  Model slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const;
  Model diagonal(int axis0, int axis1, std::int64_t offset) const;
  Model bitcast(DType t) const;

 private:
  // The view in which the element at `out` is that at inner(out) of this one.
  Model moved(eval::Dims dims,
              const std::function<void(const eval::Dims& out, eval::Dims& inner)>& inner) const;

  DType dtype_ = DType::Void;
  eval::Dims dims_;
  bool expanded_ = false;
  std::shared_ptr<std::vector<std::uint8_t>> bytes_;
  std::vector<std::size_t> place_;  // of each byte, row-major
};

/// The random numbers of a program: words by position, of a seed and of a device's number in the order in
/// which devices first drew.
class RandomModel {
 public:
  explicit RandomModel(std::uint32_t seed) : seed_(seed) {}
  /// What Tensor::rand gives (f32).
  eval::Array uniform(const eval::Dims& dims, const std::string& device);

 private:
  struct Stream {
    std::string device;
    std::uint64_t offset = 0;  // words drawn
  };
  std::uint32_t seed_;
  std::vector<Stream> streams_;
};

// Values.
eval::Array elementwise(Op op, const eval::Array& a, const eval::Array& b);
eval::Array cast(const eval::Array& a, DType t);
eval::Array sum(const eval::Array& a, int axis);
eval::Array cat(const eval::Array& a, const eval::Array& b, int axis);
/// Rows of a (negative ones from the end) along the first axis; out of range reads 0.
eval::Array take(const eval::Array& a, std::span<const std::int64_t> rows);
/// The dims two broadcast to; false if they do not.
bool broadcast(const eval::Dims& a, const eval::Dims& b, eval::Dims& out);

}  // namespace pg::fuzz
