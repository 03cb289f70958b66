// The options of tensor operations: structs filled by name, always the last argument. What is left out keeps
// its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pangrad/dtype.h>
#include <pangrad/shape.h>

namespace pg {

/// What to make and where. A dtype of Void means the operation's own default, an empty device the default
/// device.
struct Options {
  DType dtype = DType::Void;
  std::string device = {};
};

/// Bounds [low, high) of `uniform`.
struct UniformOptions {
  double low = 0, high = 1;
  DType dtype = DType::Void;
  std::string device = {};
};
/// Bounds [low, high) of `randint`; an integer dtype.
struct RandintOptions {
  std::int64_t low = 0, high = 10;
  DType dtype = i32;
  std::string device = {};
};
/// Mean and standard deviation of `normal`.
struct NormalOptions {
  double mean = 0, std = 1;
  DType dtype = DType::Void;
  std::string device = {};
};
/// Negative slope of the rectifier that follows a layer drawn by `kaiming_*`.
struct KaimingOptions {
  double a = 0.01;
  DType dtype = DType::Void;
  std::string device = {};
};

/// keepdim leaves the reduced axes as 1. dtype (sum and prod): both what is accumulated in and the result.
struct ReduceOptions {
  bool keepdim = false;
  DType dtype = DType::Void;
};
/// Of var and std: they divide by n - correction.
struct VarOptions {
  bool keepdim = false;
  std::int64_t correction = 1;
};

enum class PadMode : std::uint8_t { Constant, Reflect, Replicate, Circular };
struct PadOptions {
  double value = 0;  // of Constant
  PadMode mode = PadMode::Constant;
};

/// Of convolutions: a number for all spatial axes, or one for each. `padding` also takes two for each axis,
/// before and after: {top, bottom, left, right}.
struct ConvOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints dilation = 1;
  std::int64_t groups = 1;
  DType dtype = DType::Void;  // of the product and of the result
};
struct ConvTransposeOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints output_padding = 0;
  Ints dilation = 1;
  std::int64_t groups = 1;
};
/// Of pooling. No stride: the kernel's size. ceil_mode: also windows that hang over the end, unless they
/// begin beyond the padding. count_include_pad (averages): padding counts as zeros.
struct PoolOptions {
  Ints stride = {};
  Ints padding = 0;
  Ints dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

/// How a loss is reduced over its elements.
enum class Reduction : std::uint8_t { Mean, Sum, None };
struct LossOptions {
  Reduction reduction = Reduction::Mean;
};
struct CrossEntropyOptions {
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;
};
struct SparseCrossEntropyOptions {
  std::int64_t ignore_index = -1;
  double label_smoothing = 0;
  Reduction reduction = Reduction::Mean;
};
struct NllOptions {
  std::optional<std::int64_t> ignore_index = {};
  Reduction reduction = Reduction::Mean;
};

/// Form of gelu: by tanh, or exact by erf.
enum class Gelu : std::uint8_t { Tanh, Erf };

struct AttentionOptions {
  double dropout = 0;
  bool is_causal = false;
  bool enable_gqa = false;  // fewer key and value heads than query heads: each serves a group
};

enum class Interpolation : std::uint8_t { Linear, Nearest, NearestExact };
struct InterpolateOptions {
  Interpolation mode = Interpolation::Linear;
  bool align_corners = false;
};

/// How values that meet at one element of a scatter combine.
enum class Scatter : std::uint8_t { Sum, Prod, Mean, Amax, Amin };
struct ScatterOptions {
  bool include_self = true;
};

/// Of masked_select and nonzero. A size makes the result so long, filled up or cut off; without one it is as
/// long as there are elements, which has to be computed to know the shape.
struct SelectOptions {
  std::optional<std::int64_t> size = {};
  double fill = 0;
};

struct SortOptions {
  bool descending = false;
};
struct TopkOptions {
  bool largest = true;
};

struct IsCloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};

}  // namespace pg
