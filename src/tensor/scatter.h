// Which elements of an index name each element of a target: what scatters and indexed writes are made of.
#pragma once

#include "tensor/along.h"

namespace pg::detail {

/// The targets 0..n-1 of an index of integers (..., m): results are (..., n). What names none of them is
/// ignored.
class Targets {
 public:
  Targets(const Tensor& index, const Dim& n);
  /// Whether any element of the index names it.
  Tensor hit() const;
  /// The position (i32) of the last that does; -1 if none.
  Tensor last() const;
  /// What stands in `source` (..., m) where the index names it, combined; how.none if nothing does.
  Tensor combined(const Tensor& source, const Combine& how) const;
  /// The same with rows as elements, for an index (m): `source` is (m, rest...), the result (n, rest...).
  Tensor combined_rows(const Tensor& source, const Combine& how) const;

 private:
  // Whether each target (second to last) is named by each element (last): never in memory, and reduced along
  // the elements one step for each of them (see codegen/scatter.h).
  Tensor names_;
};

/// How many elements along the last axis of `sorted` (..., m), in ascending order, are no greater than each
/// of `bounds` (n or ..., n), by bisection: i32 (..., n).
Tensor count_up_to(const Tensor& sorted, const Tensor& bounds);

/// Rows of a table at integers; out of range reads 0. Inside a GraphScope.
Tensor read_rows(const Tensor& table, const Tensor& rows, const char* op);

}  // namespace pg::detail
