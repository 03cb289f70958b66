// Tiles, panels, windows, threads and matrix units change how long a reduction takes, never what it gives:
// random products, convolutions, pools and sums of odd sizes over views, with other work fused around them,
// against the evaluator. Data are small whole numbers, so that sums are exact in any order.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "eval/compare.h"
#include "fuzz/seeds.h"
#include "ops/nodes.h"

namespace pg::fuzz {
namespace {

using eval::Array;
using eval::Dims;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::string braces(const std::vector<std::int64_t>& values) {
  std::string out;
  for (std::int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return "{" + out + "}";
}

struct Value {
  Tensor tensor;
  std::string source;  // as C++, near enough
};

// One program on one device. The same seed draws the same program on each.
class Program {
 public:
  Program(std::uint64_t seed, const std::string& device, std::int64_t work, bool small)
      : c_(seed * 0x9E3779B97F4A7C15u + 1), device_(device), work_(work), small_(small) {
    gradients_ = c_.chance(20);
    Value y = expression();
    source_ = y.source;
    if (!gradients_ || cancels_ || y.tensor.dtype() != f32 || targets_.empty()) {
      results_ = {y.tensor};
      return;
    }
    gradients_ = false;
    Value w = plain(y.tensor.shape().concrete(), f32);
    source_ += "; the gradient by " + w.source;
    results_ = (y.tensor * w.tensor).sum().gradient(targets_);
  }

  const std::string& source() const { return source_; }
  const std::vector<Tensor>& results() const { return results_; }
  bool exact() const { return exact_; }

 private:
  // Lengths at which tiles and vectors end early, and some at which they do not.
  std::int64_t length(std::int64_t most) {
    constexpr std::int64_t kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 61, 97, 127, 257};
    std::int64_t n = 1;
    switch (c_.below(6)) {
      case 0:
        n = kPrimes[c_.below(16)];
        break;
      case 1:
        n = 16 * c_.between(1, 16);
        break;
      case 2:
        n = 14 * c_.between(1, 10) + c_.between(-1, 1);
        break;
      case 3:
        n = c_.between(1, 70);
        break;
      case 4:
        n = c_.chance(30) ? 1 : std::int64_t{1} << c_.between(1, 8);
        break;
      default:
        n = c_.between(8, 33);
    }
    return std::clamp<std::int64_t>(n, 1, std::max<std::int64_t>(1, most));
  }

  // --- operands
  // -------------------------------------------------------------------------------------------------------

  Value plain(const Dims& dims, DType t) {
    Array a(t, dims);
    std::int64_t low = is_unsigned(t) || t == DType::Bool ? 0 : -2, high = t == DType::Bool ? 1 : 2;
    for (Scalar& v : a.data)
      v = is_float(t) ? float_scalar(static_cast<double>(c_.between(low, high)))
                      : int_scalar(c_.between(low, high));
    Value out{ops::stored(a, device_), std::string(name(t)) + braces(dims)};
    if (gradients_ && t == f32) targets_.push_back(out.tensor.requires_grad());
    return out;
  }

  // Of that shape, reached through views and work that may fuse into its reader.
  Value operand(const Dims& dims, DType t, int depth = 0) {
    if (depth == 0 && c_.chance(10))
      for (const Value& v : operands_)
        if (v.tensor.dtype() == t && v.tensor.shape().concrete() == dims) return v;
    Value out = reached(dims, t, depth);
    if (depth == 0) operands_.push_back(out);
    return out;
  }

  Value reached(const Dims& dims, DType t, int depth) {
    auto rank = static_cast<std::int64_t>(dims.size());
    if (depth > 2 || !rank || c_.chance(30)) return plain(dims, t);
    std::int64_t axis = c_.below(rank), n = dims[at(axis)];
    Dims inner = dims;
    auto under = [&](DType type) { return operand(inner, type, depth + 1); };
    switch (c_.below(12)) {
      case 0:
      case 1: {
        Dims order(at(rank)), back(at(rank));
        std::iota(order.begin(), order.end(), 0);
        if (c_.chance(60))
          std::swap(order.back(), order[at(axis)]);
        else
          std::rotate(order.begin(), order.begin() + axis, order.end());
        for (std::size_t i = 0; i < order.size(); ++i) {
          inner[i] = dims[at(order[i])];
          back[at(order[i])] = static_cast<std::int64_t>(i);
        }
        Value x = under(t);
        return {x.tensor.permute(back), x.source + ".permute(" + braces(back) + ")"};
      }
      case 2: {
        std::int64_t start = c_.below(3), step = c_.between(1, 3);
        inner[at(axis)] = start + (n - 1) * step + 1 + c_.below(3);
        if (eval::count(inner) > 400000) return plain(dims, t);
        std::vector<Index> index(at(axis), Slice{});
        index.emplace_back(Slice{start, start + (n - 1) * step + 1, step});
        Value x = under(t);
        return {x.tensor.at(index), x.source + "[axis " + std::to_string(axis) + " from " +
                                        std::to_string(start) + " by " + std::to_string(step) + "]"};
      }
      case 3: {
        Value x = under(t);
        return {x.tensor.flip(axis), x.source + ".flip(" + std::to_string(axis) + ")"};
      }
      case 4: {
        if (n < 3) return plain(dims, t);
        std::int64_t left = c_.below(std::min<std::int64_t>(n - 1, 3)), right = c_.below(2);
        inner[at(axis)] = n - left - right;
        Pairs widths(at(rank), {0, 0});
        widths[at(axis)] = {left, right};
        Value x = under(t);
        return {x.tensor.pad(widths), x.source + ".pad(axis " + std::to_string(axis) + ": " +
                                          std::to_string(left) + ", " + std::to_string(right) + ")"};
      }
      case 5: {
        if (c_.chance(50)) return plain(dims, t);
        inner[at(axis)] = 1;
        Value x = under(t);
        return {x.tensor.expand(Shape(dims)), x.source + ".expand(" + braces(dims) + ")"};
      }
      case 6:
      case 7: {
        constexpr DType kFrom[] = {f16, bf16, i8, u8, i32, f32, boolean};
        Value x = under(kFrom[c_.below(7)]);
        return {x.tensor.cast(t), x.source + ".cast(" + std::string(name(t)) + ")"};
      }
      case 8: {
        Value x = under(t);
        if (t == DType::Bool) return x;
        return {x.tensor.relu(), x.source + ".relu()"};
      }
      case 9: {
        if (t == DType::Bool) return plain(dims, t);
        Value mask = operand(inner, boolean, depth + 2), x = under(t);
        return {x.tensor.masked_fill(mask.tensor, 1), x.source + ".masked_fill(" + mask.source + ", 1)"};
      }
      case 10: {
        // Two axes that were one.
        std::int64_t by = 0;
        for (std::int64_t d : {2, 3, 5, 7})
          if (n % d == 0 && n > d) by = d;
        if (!by) return plain(dims, t);
        inner[at(axis)] = by;
        inner.insert(inner.begin() + axis, n / by);
        if (inner.size() > 6) return plain(dims, t);
        Value x = under(t);
        return {x.tensor.reshape(Shape(dims)), x.source + ".reshape(" + braces(dims) + ")"};
      }
      default: {
        Value x = under(t);
        if (c_.chance(40)) return {x.tensor.contiguous(), x.source + ".contiguous()"};
        if (t == DType::Bool) return x;
        Value other = plain({n}, t);
        Dims column(at(rank - axis), 1);
        column[0] = n;
        return {x.tensor + other.tensor.reshape(Shape(column)),
                "(" + x.source + " + " + other.source + " along " + std::to_string(axis) + ")"};
      }
    }
  }

  // --- what reduces
  // ---------------------------------------------------------------------------------------------------

  DType dtype() {
    constexpr DType kSeldom[] = {i32, i8, i64, u8, f64, f16};
    return gradients_ || c_.chance(75) ? f32 : kSeldom[c_.below(6)];
  }

  // Lengths of a product with about `work` steps; now and then one that is far longer than the others.
  std::array<std::int64_t, 3> sizes(std::int64_t work) {
    std::array<std::int64_t, 3> out{length(257), length(257), length(257)};
    std::int64_t free = c_.below(3);
    for (std::size_t i = 0; i < 3; ++i)
      if (c_.chance(6)) out[i] = 1;
    if (half_ && small_) return {c_.between(8, 40), c_.between(16, 50), c_.between(8, 40)};
    std::int64_t others = 1;
    for (std::int64_t i = 0; i < 3; ++i)
      if (i != free) others *= out[at(i)];
    while (others > work) {
      std::size_t largest = 0;
      for (std::size_t i = 0; i < 3; ++i)
        if (static_cast<std::int64_t>(i) != free && (largest == at(free) || out[i] > out[largest]))
          largest = i;
      others /= out[largest];
      out[largest] = length(32);
      others *= out[largest];
    }
    std::int64_t most = std::max<std::int64_t>(1, work / others);
    out[at(free)] = c_.chance(40) ? std::min<std::int64_t>(most, 40000) : length(most);
    return out;
  }

  Value product(const Dims& batch, std::int64_t m, std::int64_t k, std::int64_t n, DType t) {
    Dims left = batch, right = c_.chance(60) ? batch : Dims{};
    left.insert(left.end(), {m, k});
    right.insert(right.end(), {k, n});
    if (half_) {
      DType half = c_.chance(80) ? f16 : bf16;
      Value a = operand(left, half), b = operand(right, half);
      return {a.tensor.matmul(b.tensor, f32), a.source + ".matmul(" + b.source + ", f32)"};
    }
    Value a = operand(left, t), b = operand(right, t);
    return {a.tensor.matmul(b.tensor), a.source + ".matmul(" + b.source + ")"};
  }

  Value products() {
    Dims batch;
    std::int64_t work = work_;
    if (c_.chance(25)) batch.push_back(c_.between(1, 5)), work /= batch[0];
    DType t = dtype();
    int form = static_cast<int>(c_.below(10));
    // A matrix unit takes factors of 16 bits.
    half_ = t == f32 && !gradients_ && c_.chance(small_ ? 60 : 20);
    if (form < 5) {
      auto [m, k, n] = sizes(work);
      return product(batch, m, k, n, t);
    }
    auto [m, k, n] = sizes(work / 2);
    if (form == 5) {  // with itself
      auto [rows, inner, unused] = sizes(work);
      rows = std::min<std::int64_t>(rows, static_cast<std::int64_t>(std::sqrt(work / inner + 1)) + 1);
      Value x = operand({rows, inner}, t);
      if (c_.chance(50)) return {x.tensor.matmul(x.tensor.T()), x.source + ": x.matmul(x.T())"};
      std::int64_t columns = std::min<std::int64_t>(inner, 40);
      Value y = operand({work / (columns * columns) + 1, columns}, t);
      return {y.tensor.T().matmul(y.tensor), y.source + ": y.T().matmul(y)"};
    }
    if (form == 6) {  // one after the other
      Value a = product(batch, m, k, n, t);
      std::int64_t last = std::clamp<std::int64_t>(work / 2 / (m * n), 1, 64);
      Value b = operand({n, last}, a.tensor.dtype());
      bool relu = c_.chance(50);
      return {(relu ? a.tensor.relu() : a.tensor).matmul(b.tensor),
              a.source + (relu ? ".relu()" : "") + ".matmul(" + b.source + ")"};
    }
    Value a = product(batch, m, k, n, t), b = product(batch, m, c_.chance(50) ? k : length(k), n, t);
    switch (form) {
      case 7:
        return {a.tensor + b.tensor, "(" + a.source + " + " + b.source + ")"};
      case 8:
        return {a.tensor.relu() * b.tensor, "(" + a.source + ".relu() * " + b.source + ")"};
      default:
        exact_ = !gradients_;
        return {a.tensor.maximum(b.tensor), a.source + ".maximum(" + b.source + ")"};
    }
  }

  // A number for each spatial axis.
  Ints each(std::int64_t axes, std::int64_t low, std::int64_t high, std::string& words) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < axes; ++i) out.push_back(c_.between(low, high));
    words += braces(out) + " ";
    return Ints(out);
  }

  Value convolution() {
    std::int64_t axes = c_.chance(60)   ? 2
                        : c_.chance(60) ? 1
                                        : 3,
                 groups = c_.chance(30) ? c_.between(2, 5) : 1;
    bool depthwise = c_.chance(15), transposed = c_.chance(20);
    std::int64_t in = depthwise ? 1 : c_.chance(15) ? length(40) : c_.between(1, 9), out = c_.between(1, 20);
    if (depthwise) groups = length(24), out = c_.chance(70) ? 1 : 2;
    if (groups > 1 && !depthwise) out = c_.between(1, 6);
    std::int64_t batch = c_.chance(40) ? c_.between(2, 4) : 1, window = 1;
    Dims kernel, spatial;
    std::string words;
    ConvOptions o;
    o.groups = groups;
    for (std::int64_t i = 0; i < axes; ++i) {
      kernel.push_back(c_.chance(50) ? 3 : c_.between(1, axes == 1 ? 11 : 5));
      window *= kernel.back();
    }
    o.stride = each(axes, 1, c_.chance(60) ? 1 : 3, words);
    o.padding = each(axes, 0, c_.chance(30) ? 0 : 3, words);
    o.dilation = each(axes, 1, c_.chance(70) ? 1 : 3, words);
    std::int64_t left = std::max<std::int64_t>(1, work_ / (batch * groups * in * out * window));
    for (std::int64_t i = 0; i < axes; ++i) {
      std::int64_t share = i + 1 == axes
                               ? left
                               : static_cast<std::int64_t>(std::pow(static_cast<double>(left),
                                                                    1.0 / static_cast<double>(axes - i)));
      std::int64_t n = c_.chance(50) ? share : length(share);
      left = std::max<std::int64_t>(1, left / n);
      std::int64_t reach = (kernel[at(i)] - 1) * o.dilation[at(i)] + 1;
      spatial.push_back(transposed ? n : std::max(n * o.stride[at(i)], reach));
    }
    DType t = dtype();
    Dims x{batch, groups * in}, w{groups * out, in};
    if (transposed) w = {groups * in, out};
    x.insert(x.end(), spatial.begin(), spatial.end());
    w.insert(w.end(), kernel.begin(), kernel.end());
    Value a = operand(x, t), b = operand(w, t);
    words =
        "(" + b.source + ", stride, padding, dilation " + words + "groups " + std::to_string(groups) + ")";
    if (!transposed) return {a.tensor.conv2d(b.tensor, o), a.source + ".conv2d" + words};
    // No more padding than there is window.
    std::vector<std::int64_t> padding;
    for (std::int64_t i = 0; i < axes; ++i)
      padding.push_back(std::min(o.padding[at(i)], (kernel[at(i)] - 1) * o.dilation[at(i)] / 2));
    return {a.tensor.conv_transpose2d(
                b.tensor,
                {.stride = o.stride, .padding = Ints(padding), .dilation = o.dilation, .groups = groups}),
            a.source + ".conv_transpose2d" + words};
  }

  Value pool() {
    std::int64_t axes = c_.chance(70) ? 2 : c_.chance(50) ? 1 : 3, lead = c_.between(1, 12), window = 1;
    std::string words;
    Ints kernel = each(axes, 1, 4, words), stride = each(axes, 1, 3, words), dilation = 1;
    std::vector<std::int64_t> padding;
    for (std::int64_t k : kernel) window *= k, padding.push_back(c_.below(k / 2 + 1));
    Dims x{lead};
    std::int64_t left = std::max<std::int64_t>(1, work_ / (lead * window));
    for (std::int64_t i = 0; i < axes; ++i) {
      auto n =
          static_cast<std::int64_t>(std::pow(static_cast<double>(left), 1.0 / static_cast<double>(axes - i)));
      left = std::max<std::int64_t>(1, left / n);
      x.push_back(std::max(n * stride[at(i)], kernel[at(i)]));
    }
    DType t = c_.chance(80) ? f32 : i32;
    Value a = operand(x, t);
    PoolOptions o{.stride = stride, .padding = Ints(padding), .ceil_mode = c_.chance(30)};
    words = "(kernel, stride " + words + "padding " + braces(padding) + (o.ceil_mode ? " ceil)" : ")");
    bool max = t == i32 || c_.chance(50);
    exact_ = max && !gradients_;  // equal maxima share a gradient
    if (max) return {a.tensor.max_pool2d(kernel, o), a.source + ".max_pool2d" + words};
    return {a.tensor.avg_pool2d(kernel, o), a.source + ".avg_pool2d" + words};
  }

  // Over any axes; now and then so long that it is done in two steps.
  Value reduction() {
    Dims dims;
    if (c_.chance(40)) {
      constexpr std::int64_t kLong[] = {32767, 32768, 32771, 65536,     65537,
                                        49152, 60000, 98304, 127 * 521, 99991};
      dims.push_back(kLong[c_.below(10)]);
      if (dims[0] * 8 < work_ && c_.chance(50)) dims.insert(dims.begin() + c_.below(2), c_.between(2, 7));
    } else {
      std::int64_t left = work_;
      for (std::int64_t i = c_.between(1, 5); i > 0 && left > 1; --i) {
        dims.push_back(i == 1 ? left : length(left));
        left /= dims.back();
      }
    }
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (c_.chance(50)) axes.push_back(static_cast<std::int64_t>(i));
    DType t = dtype();
    if (t == f16) t = f32;  // whose sums would not be whole
    Value x = operand(dims, t);
    std::string over = "(" + braces(axes) + ")";
    switch (c_.below(is_float(t) ? 10 : 4)) {
      case 0:
      case 1:
        return {x.tensor.sum(axes), x.source + ".sum" + over};
      case 2:
        exact_ = !gradients_;
        return {x.tensor.max(axes), x.source + ".max" + over};
      case 3: {
        Value y = operand(dims, t);
        return {(x.tensor * y.tensor).sum(axes), "(" + x.source + " * " + y.source + ").sum" + over};
      }
      case 4:
        exact_ = false;
        return {x.tensor.mean(axes), x.source + ".mean" + over};
      case 5:
        exact_ = false, cancels_ = true;
        return {x.tensor.var(axes, {.correction = 0}), x.source + ".var" + over};
      case 6:
        exact_ = false, cancels_ = true;
        return {x.tensor.softmax(c_.below(x.tensor.ndim())), x.source + ".softmax"};
      case 7:
        exact_ = false, cancels_ = true;
        return {x.tensor - x.tensor.mean(axes, {.keepdim = true}), "less the mean over " + over + x.source};
      case 8:
        exact_ = false;
        return {x.tensor * x.tensor.sum(axes, {.keepdim = true}), "times the sum over " + over + x.source};
      default: {
        std::int64_t axis = c_.below(static_cast<std::int64_t>(dims.size()));
        return {x.tensor.argmax(axis), x.source + ".argmax(" + std::to_string(axis) + ")"};
      }
    }
  }

  Value attention() {
    exact_ = false, cancels_ = true;
    std::int64_t heads = c_.between(1, 4), l = length(64), s = length(64), d = length(32), e = length(32);
    Value q = operand({heads, l, d}, f32), k = operand({heads, s, d}, f32), v = operand({heads, s, e}, f32);
    bool causal = l == s && c_.chance(50);
    return {q.tensor.scaled_dot_product_attention(k.tensor, v.tensor, {}, {.is_causal = causal}),
            "attention(" + q.source + ", " + k.source + ", " + v.source + (causal ? ", causal)" : ")")};
  }

  // --- and what comes after it
  // ----------------------------------------------------------------------------------------

  Value expression() {
    std::int64_t kind = c_.below(100);
    Value y = kind < 42   ? products()
              : kind < 67 ? convolution()
              : kind < 75 ? pool()
              : kind < 96 ? reduction()
                          : attention();
    for (std::int64_t i = c_.below(3); i > 0; --i) y = followed(y);
    return y;
  }

  Value followed(const Value& y) {
    Dims dims = y.tensor.shape().concrete();
    DType t = y.tensor.dtype();
    auto rank = static_cast<std::int64_t>(dims.size());
    if (!rank || t == DType::Bool || eval::count(dims) > 500000) return y;
    std::int64_t axis = c_.below(rank);
    switch (c_.below(8)) {
      case 0: {
        Value bias = operand({dims.back()}, t);
        return {y.tensor + bias.tensor, "(" + y.source + " + " + bias.source + ")"};
      }
      case 1:
        return {y.tensor.relu(), y.source + ".relu()"};
      case 2: {
        Value other = operand(dims, t);
        return {y.tensor + other.tensor, "(" + y.source + " + " + other.source + ")"};
      }
      case 3: {
        std::vector<std::int64_t> order(at(rank));
        std::iota(order.begin(), order.end(), 0);
        std::rotate(order.begin(), order.begin() + axis, order.end());
        return {y.tensor.permute(order), y.source + ".permute(" + braces(order) + ")"};
      }
      case 4: {
        std::int64_t n = dims[at(axis)], start = c_.below(n);
        std::vector<Index> index(at(axis), Slice{});
        index.emplace_back(Slice{start, n, c_.between(1, 2)});
        return {y.tensor.at(index),
                y.source + "[axis " + std::to_string(axis) + " from " + std::to_string(start) + "]"};
      }
      case 5:
        return {y.tensor.flip(axis), y.source + ".flip(" + std::to_string(axis) + ")"};
      case 6:
        if (t == f16 || !exact_) return y;  // the sum of what nearly cancels is known badly
        return {y.tensor.sum(axis), y.source + ".sum(" + std::to_string(axis) + ")"};
      default: {
        Pairs widths(at(rank), {0, 0});
        widths[at(axis)] = {1, 2};
        return {y.tensor.pad(widths), y.source + ".pad(axis " + std::to_string(axis) + ": 1, 2)"};
      }
    }
  }

  Choices c_;
  std::string device_;
  std::int64_t work_;
  bool small_;  // enough for a matrix unit, not for threads
  bool gradients_ = false, exact_ = true;
  bool half_ = false;     // whether products have factors of 16 bits
  bool cancels_ = false;  // sums of gradients nearly cancel, so that they are known badly
  std::vector<Value> operands_;
  std::vector<Tensor> targets_;
  std::vector<Tensor> results_;
  std::string source_;
};

// What is wrong with the program of a seed; empty if nothing.
std::string wrong(std::uint64_t seed) {
  Choices c(seed * 0xD1342543DE82EF95u + 7);
  // The interpreter takes small programs only.
  bool small = c.chance(30);
  // Some large enough for the scheduler to make loops for one product alone.
  std::int64_t work = small          ? c.between(2000, 30000)
                      : c.chance(25) ? c.between(270000, 500000)
                                     : c.between(40000, 150000);
  std::vector<Array> want;
  for (const char* device : {"CPU", "INTERP", "INTERP:gpu"}) {
    if (!small && device != std::string("CPU")) break;
    std::string source;
    try {
      Program p(seed, device, work, small);
      source = p.source();
      if (want.empty()) want = ops::evaluate(p.results(), {});
      for (std::size_t i = 0; i < want.size(); ++i) {
        eval::Tolerance t = p.exact() ? eval::Tolerance{} : eval::tolerance(want[i].dtype, 256, 64);
        if (std::string apart = eval::difference(ops::computed(p.results()[i]), want[i], t); !apart.empty())
          return std::string(device) + ", result " + std::to_string(i) + ": " + apart + "\n" + source;
      }
    } catch (const std::exception& e) {
      return std::string(device) + " throws " + e.what() + "\n" + source;
    }
  }
  return "";
}

TEST(ShapesFuzz, ReductionsGiveWhatTheEvaluatorGives) {
  Seeds seeds(8, 400);
  while (seeds.more()) {
    std::uint64_t seed = seeds.next();
    if (std::string what = wrong(seed); !what.empty()) {
      seeds.failed();
      ADD_FAILURE() << "seed " << seed << ": " << what;
    }
  }
  RecordProperty("programs", static_cast<int>(seeds.done()));
}

}  // namespace
}  // namespace pg::fuzz
