// Products: matmul, einsum, attention; and newton_schulz, which is made of them.
#include <algorithm>
#include <cmath>
#include <map>

#include "tensor/ops.h"

namespace pg {

using namespace detail;

// A product of broadcast operands and a sum: the compiler makes a matrix product of it.
Tensor Tensor::matmul(const Tensor& other, DType t) const {
  constexpr const char* kName = "matmul";
  GraphScope scope;
  Value a = detail::read(*this, kName), b = detail::read(other, kName);
  Ref sa = a.shape(), sb = b.shape();
  int ra = rank(sa), rb = rank(sb);
  if (ra == 0 || rb == 0)
    fail<ShapeError>(kName, "shapes {} and {}: a scalar is no matrix", detail::text(sa), detail::text(sb));
  Ref inner = dim(sa, ra - 1);
  if (!same(inner, dim(sb, std::max(0, rb - 2))))
    fail<ShapeError>(kName, "shapes {} and {}: the inner sizes {} and {} differ", detail::text(sa),
                     detail::text(sb), Dim(inner.node()).str(),
                     Dim(dim(sb, std::max(0, rb - 2)).node()).str());
  DType out = t != DType::Void ? t : strong(promote(a.dtype(), b.dtype()));
  DType wide = accumulator(out);
  // (..., m, 1, k) * (..., 1, n, k), in the dtype of the sum: products of narrow floats are exact there.
  Sizes left = sizes_of(sa), right = sizes_of(sb);
  if (rb > 1) left.insert(left.end() - 1, idx(1));
  std::vector<std::int64_t> order;
  for (int i = 0; i < rb; ++i) order.push_back(i);
  if (rb > 1) std::swap(order[static_cast<std::size_t>(rb - 1)], order[static_cast<std::size_t>(rb - 2)]);
  if (rb > 1) std::swap(right[right.size() - 1], right[right.size() - 2]);
  if (ra > 1 && rb > 1) right.insert(right.end() - 2, idx(1));
  Ref x = pg::cast(pg::cast(a.node, out), wide), w = pg::cast(pg::cast(b.node, out), wide);
  x = pg::reshape(x, shape_of_sizes(left));
  w = pg::reshape(pg::permute(w, order), shape_of_sizes(right));
  if (!broadcast(shape_of(x), shape_of(w)))
    fail<ShapeError>(kName, "shapes {} and {}: the leading axes do not broadcast", detail::text(sa),
                     detail::text(sb));
  Ref product = x * w;
  int last = rank(shape_of(product)) - 1;
  Ref sum = pg::reduce(product, Op::Add, std::uint64_t{1} << last);
  Sizes result = sizes_of(shape_of(sum));
  result.pop_back();
  sum = pg::reshape(sum, shape_of_sizes(result));
  return computed(pg::cast(sum, out), a.tracked || b.tracked, detail::device_of(kName, a, b));
}

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias) const {
  Tensor y = weight.ndim() == 1 ? *this * weight : matmul(weight);
  return bias.defined() ? y + bias : y;
}

Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value, const Tensor& mask,
                                            const AttentionOptions& options) const {
  constexpr const char* kName = "scaled_dot_product_attention";
  if (options.is_causal && mask.defined()) fail<ValueError>(kName, "both causal and with a mask");
  if (ndim() < 2 || key.ndim() < 2 || value.ndim() < 2)
    fail<ShapeError>(kName, "shapes {}, {}, {}: each needs a length and a width", shape().str(),
                     key.shape().str(), value.shape().str());
  Tensor k = key, v = value;
  if (options.enable_gqa) {
    if (ndim() < 3) fail<ShapeError>(kName, "shape {} has no axis of heads", shape().str());
    std::int64_t heads = size(-3), groups = key.size(-3);
    if (groups == 0 || heads % groups)
      fail<ShapeError>(kName, "{} query heads for {} key heads", heads, groups);
    k = key.repeat_interleave(heads / groups, -3);
    v = value.repeat_interleave(heads / groups, -3);
  }
  DType wide = promote(promote(dtype(), k.dtype()), f32);
  Tensor scores = matmul(k.T(), wide) * (1 / std::sqrt(static_cast<double>(size(-1).max())));
  constexpr double kOff = -std::numeric_limits<double>::infinity();
  if (options.is_causal) {
    Tensor seen = positions(i32, size(-2), 0, 2) >= positions(i32, k.size(-2), 1, 2);
    scores = seen.where(scores, kOff);
  } else if (mask.defined()) {
    scores = mask.dtype() == DType::Bool ? mask.where(scores, kOff) : scores + mask;
  }
  return scores.softmax(-1).cast(dtype()).dropout(options.dropout).matmul(v);
}

Tensor Tensor::newton_schulz(int steps, const std::vector<double>& coefficients, double eps) const {
  if (ndim() < 2) fail<ShapeError>("newton_schulz", "takes matrices, not shape {}", shape().str());
  if (coefficients.empty()) fail<ValueError>("newton_schulz", "no coefficients");
  Tensor g = *this / (square().sum({-2, -1}, {.keepdim = true}).sqrt() + eps);
  bool tall = size(-2).max() > size(-1).max();
  if (tall) g = g.T();
  for (int i = 0; i < steps; ++i) {
    Tensor a = g.matmul(g.T()), sum = g * coefficients[0], term = g;
    for (std::size_t k = 1; k < coefficients.size(); ++k) {
      term = a.matmul(term);
      sum = sum + term * coefficients[k];
    }
    g = sum;
  }
  return tall ? g.T() : g;
}

// --- einsum
// --------------------------------------------------------------------------------------------------------

namespace {

constexpr char kEllipsis = '.';

std::string letters_of(std::string_view formula, std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == ' ') continue;
    if (part.substr(i, 3) == "...") {
      out += kEllipsis;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(part[i]))) {
      out += part[i];
    } else {
      fail<ValueError>("einsum", "unexpected '{}' in \"{}\"", part[i], formula);
    }
  }
  return out;
}

}  // namespace

Tensor einsum(std::string_view formula, TensorList operands) {
  constexpr const char* kName = "einsum";
  auto list = operands.span();
  auto arrow = formula.find("->");
  std::vector<std::string> inputs;
  std::string_view rest = formula.substr(0, arrow);
  for (;;) {
    auto comma = rest.find(',');
    inputs.push_back(letters_of(formula, rest.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (inputs.size() != list.size())
    fail<ValueError>(kName, "\"{}\" names {} operands, {} are given", formula, inputs.size(), list.size());
  // An ellipsis stands for axes named by digits, counted from the right.
  auto spell_out = [](std::string letters, int extra) {
    auto at = letters.find(kEllipsis);
    if (at == std::string::npos) return letters;
    std::string digits;
    for (int i = extra; i-- > 0;) digits += static_cast<char>('0' + i);
    return letters.replace(at, 1, digits);
  };
  int widest = 0;
  std::map<char, Dim> sizes;
  std::map<char, int> uses;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    auto named = static_cast<int>(
        std::count_if(inputs[k].begin(), inputs[k].end(), [](char c) { return c != kEllipsis; }));
    int extra = list[k].ndim() - named;
    bool open = inputs[k].find(kEllipsis) != std::string::npos;
    if (extra < 0 || (extra && !open))
      fail<ShapeError>(kName, "\"{}\" names {} axes of operand {}, its shape is {}", formula, named, k,
                       list[k].shape().str());
    if (open) widest = std::max(widest, extra);
    inputs[k] = spell_out(inputs[k], extra);
    for (char c : inputs[k]) ++uses[c];
  }
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    Tensor x = list[k];
    std::string& axes = inputs[k];
    // A letter twice: the diagonal.
    for (std::size_t i = 0; i < axes.size(); ++i) {
      auto again = axes.find(axes[i], i + 1);
      if (again == std::string::npos) continue;
      auto a = static_cast<std::int64_t>(i), b = static_cast<std::int64_t>(again);
      if (!(x.size(a) == x.size(b)))
        fail<ShapeError>(kName, "axis {} is {} and {}", axes[i], x.size(a).str(), x.size(b).str());
      x = x.diagonal(0, a, b);
      char c = axes[i];
      axes.erase(again, 1);
      axes.erase(i, 1);
      axes += c;
      i = static_cast<std::size_t>(-1);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Dim n = x.size(static_cast<std::int64_t>(i));
      auto [it, fresh] = sizes.try_emplace(axes[i], n);
      if (!fresh && !(it->second == n)) {
        if (!(it->second == 1) && !(n == 1))
          fail<ShapeError>(kName, "axis {} is {} and {}", axes[i], it->second.str(), n.str());
        if (it->second == 1) it->second = n;
      }
    }
    parts.push_back(x);
  }
  std::string output;
  if (arrow == std::string_view::npos) {
    for (int i = widest; i-- > 0;) output += static_cast<char>('0' + i);
    for (auto& [c, n] : uses)
      if (n == 1 && !std::isdigit(static_cast<unsigned char>(c))) output += c;
  } else {
    output = spell_out(letters_of(formula, formula.substr(arrow + 2)), widest);
  }
  for (std::size_t i = 0; i < output.size(); ++i)
    if (!sizes.contains(output[i]) || output.find(output[i], i + 1) != std::string::npos)
      fail<ValueError>(kName, "axis {} of the result of \"{}\" is named twice, or by no operand", output[i],
                       formula);
  std::string order = output;
  for (auto& [c, n] : sizes)
    if (output.find(c) == std::string::npos) order += c;
  // All operands over all axes in this order; their product is summed up over those that are not in the
  // result.
  DType t = parts[0].dtype();
  for (const Tensor& p : parts) t = strong(promote(t, p.dtype()));
  DType wide = accumulator(t);
  Tensor product;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::vector<std::int64_t> axes;
    Shape shape;
    for (char c : order) {
      auto at = inputs[k].find(c);
      if (at == std::string::npos) {
        shape.push_back(1);
      } else {
        axes.push_back(static_cast<std::int64_t>(at));
        shape.push_back(parts[k].size(axes.back()));
      }
    }
    Tensor x = parts[k].permute(axes).reshape(shape).cast(wide);
    product = product.defined() ? product * x : x;
  }
  std::vector<std::int64_t> summed;
  for (std::size_t i = output.size(); i < order.size(); ++i) summed.push_back(static_cast<std::int64_t>(i));
  Shape all;
  for (char c : order) all.push_back(sizes[c]);
  if (parts.size() == 1 || !(product.shape() == all)) product = product.expand(all);
  return summed.empty() ? product.cast(t) : product.sum(summed, {.dtype = wide}).cast(t);
}

}  // namespace pg
