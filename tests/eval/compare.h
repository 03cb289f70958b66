// Comparing arrays: distance in units of the last place, tolerance by dtype, and a message that shows where
// they differ.
#pragma once

#include <cstdint>
#include <string>

#include "eval/array.h"

namespace pg::eval {

/// How far two elements may be apart. Any one of the three suffices; NaN equals NaN, infinities of one sign
/// are equal, and so are the two zeros unless signs are asked for. Integers and bools must be equal.
struct Tolerance {
  double ulp = 0;
  double rel = 0;  // of the wanted value
  double abs = 0;
  bool zero_signs = false;
};

/// An error of so many units of the last place: of the wanted value, or of values about `scale` large, which
/// cancelled.
Tolerance tolerance(DType t, double steps = 1, double scale = 0);

/// Half the distance between 1 and the next value: 2^-24 for f32.
double epsilon(DType t);

/// Representable values between two of a float dtype, counted through zero; infinite if one of them is NaN.
double ulp_distance(DType t, double a, double b);

bool close(DType t, Scalar got, Scalar want, const Tolerance& tolerance);

/// Empty if close everywhere; else where first, both values, how many differ, the worst, and the shapes:
/// "f32 (2, 3): at (1, 2) got 1.5, want 1.25 (2097152 ulp); 2 of 6 differ, worst at (1, 0) got ...".
std::string difference(const Array& got, const Array& want, const Tolerance& tolerance = {});

}  // namespace pg::eval
