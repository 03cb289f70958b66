#include "fuzz/storage_model.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "eval/arith.h"

namespace pg::fuzz {
namespace {

using eval::Array;
using eval::Dims;

template <class F>
void each(const Dims& dims, F f) {
  Dims at(dims.size(), 0);
  for (std::int64_t i = 0, n = eval::count(dims); i < n; ++i) {
    f(i, at);
    for (std::size_t k = dims.size(); k-- > 0;) {
      if (++at[k] < dims[k]) break;
      at[k] = 0;
    }
  }
}

std::int64_t flat(const Dims& dims, const Dims& at) {
  std::int64_t r = 0;
  for (std::size_t k = 0; k < dims.size(); ++k) r = r * dims[k] + at[k];
  return r;
}

// Position in an operand of `dims` of the element at `out` of what it broadcasts to.
std::size_t within(const Dims& dims, const Dims& out) {
  Dims at(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k) at[k] = dims[k] == 1 ? 0 : out[out.size() - dims.size() + k];
  return static_cast<std::size_t>(flat(dims, at));
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Model::Model(const Array& value)
    : dtype_(value.dtype),
      dims_(value.dims),
      bytes_(std::make_shared<std::vector<std::uint8_t>>(value.bytes())) {
  for (std::size_t i = 0; i < bytes_->size(); ++i) place_.push_back(i);
}

Array Model::value() const {
  std::vector<std::uint8_t> seen;
  for (std::size_t p : place_) seen.push_back((*bytes_)[p]);
  return Array::from_bytes(dtype_, dims_, seen.data());
}

void Model::write(const Array& value) const {
  Array wide(dtype_, dims_);
  each(dims_,
       [&](std::int64_t i, const Dims& out) { wide.data[at(i)] = value.data[within(value.dims, out)]; });
  std::vector<std::uint8_t> fresh = wide.bytes();
  for (std::size_t i = 0; i < fresh.size(); ++i) (*bytes_)[place_[i]] = fresh[i];
}

bool Model::repeats() const {
  return std::unordered_set(place_.begin(), place_.end()).size() != place_.size();
}

Model Model::moved(Dims dims, const std::function<void(const Dims&, Dims&)>& inner) const {
  Model m = *this;
  m.dims_ = dims;
  m.place_.clear();
  std::size_t width = itemsize(dtype_);
  Dims from(dims_.size());
  each(dims, [&](std::int64_t, const Dims& out) {
    inner(out, from);
    for (std::size_t k = 0; k < width; ++k) m.place_.push_back(place_[at(flat(dims_, from)) * width + k]);
  });
  return m;
}

Model Model::reshape(Dims dims) const {
  Model m = *this;
  m.dims_ = std::move(dims);
  return m;
}

Model Model::permute(std::span<const std::int64_t> order) const {
  Dims dims;
  for (std::int64_t axis : order) dims.push_back(dims_[at(axis)]);
  return moved(dims, [&](const Dims& out, Dims& in) {
    for (std::size_t k = 0; k < order.size(); ++k) in[at(order[k])] = out[k];
  });
}

Model Model::expand(Dims dims) const {
  std::size_t lead = dims.size() - dims_.size();
  Model m = moved(dims, [&](const Dims& out, Dims& in) {
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = dims_[k] == 1 ? 0 : out[lead + k];
  });
  m.expanded_ = expanded_ || m.repeats() || m.size() == 0;
  return m;
}

Model Model::flip(int axis) const {
  return moved(dims_, [&](const Dims& out, Dims& in) {
    in = out;
    in[at(axis)] = dims_[at(axis)] - 1 - out[at(axis)];
  });
}

Model Model::slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const {
  Dims dims = dims_;
  dims[at(axis)] = count;
  return moved(dims, [&](const Dims& out, Dims& in) {
    in = out;
    in[at(axis)] = start + out[at(axis)] * step;
  });
}

Model Model::diagonal(int axis0, int axis1, std::int64_t offset) const {
  std::int64_t row = std::max<std::int64_t>(0, -offset), column = std::max<std::int64_t>(0, offset);
  std::int64_t length =
      std::max<std::int64_t>(0, std::min(dims_[at(axis0)] - row, dims_[at(axis1)] - column));
  Dims dims;
  for (int k = 0; k < rank(); ++k)
    if (k != axis0 && k != axis1) dims.push_back(dims_[at(k)]);
  dims.push_back(length);
  return moved(dims, [&](const Dims& out, Dims& in) {
    std::size_t next = 0;
    for (int k = 0; k < rank(); ++k)
      if (k != axis0 && k != axis1) in[at(k)] = out[next++];
    in[at(axis0)] = row + out.back();
    in[at(axis1)] = column + out.back();
  });
}

Model Model::bitcast(DType t) const {
  Model m = *this;
  m.dtype_ = t;
  auto before = static_cast<std::int64_t>(itemsize(dtype_)), after = static_cast<std::int64_t>(itemsize(t));
  if (before != after) m.dims_.back() = m.dims_.back() * before / after;
  return m;
}

Array RandomModel::uniform(const Dims& dims, const std::string& device) {
  if (eval::count(dims) == 0) return Array(f32, dims);
  std::size_t number = 0;
  while (number < streams_.size() && streams_[number].device != device) ++number;
  if (number == streams_.size()) streams_.push_back({device});
  // The last words of SHA-256 of the device's number, four bytes with the greatest first.
  constexpr std::uint32_t kHashes[] = {0x14b81119, 0x764f528d, 0xdb12cf1a, 0x0f79f7d3};
  auto threefry = [](std::uint64_t x, std::uint64_t key) {
    Scalar pair[2] = {int_scalar(static_cast<std::int64_t>(x)), int_scalar(static_cast<std::int64_t>(key))};
    return static_cast<std::uint64_t>(eval::apply(Op::Threefry, u64, u64, pair).i);
  };
  std::uint64_t key =
      threefry(streams_[number].offset, std::uint64_t{seed_} << 32 | kHashes[number % std::size(kHashes)]);
  Array r(f32, dims);
  auto n = static_cast<std::uint64_t>(r.size()), half = (n + 1) / 2;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t low = i < half ? i : i - half, block = threefry(low | (low + half) << 32, key);
    auto word = static_cast<std::uint32_t>(i < half ? block : block >> 32);
    r.data[i] = float_scalar(static_cast<double>(std::bit_cast<float>(word >> 9 | 0x3F800000) - 1));
  }
  streams_[number].offset += n;
  return r;
}

bool broadcast(const Dims& a, const Dims& b, Dims& out) {
  out.assign(std::max(a.size(), b.size()), 1);
  for (std::size_t k = 1; k <= out.size(); ++k) {
    std::int64_t x = k <= a.size() ? a[a.size() - k] : 1, y = k <= b.size() ? b[b.size() - k] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out[out.size() - k] = x == 1 ? y : x;
  }
  return true;
}

Array elementwise(Op op, const Array& a, const Array& b) {
  Dims dims;
  broadcast(a.dims, b.dims, dims);
  Array r(a.dtype, dims);
  each(dims, [&](std::int64_t i, const Dims& out) {
    Scalar pair[2] = {a.data[within(a.dims, out)], b.data[within(b.dims, out)]};
    r.data[at(i)] = eval::apply(op, a.dtype, a.dtype, pair);
  });
  return r;
}

Array cast(const Array& a, DType t) {
  Array r(t, a.dims);
  for (std::size_t i = 0; i < a.data.size(); ++i) r.data[i] = eval::convert(a.data[i], a.dtype, t);
  return r;
}

Array sum(const Array& a, int axis) {
  DType t = accumulator(a.dtype);
  Dims dims = a.dims;
  dims.erase(dims.begin() + axis);
  Array r(t, dims);
  each(a.dims, [&](std::int64_t i, const Dims& full) {
    Dims out = full;
    out.erase(out.begin() + axis);
    Scalar& total = r.data[at(flat(dims, out))];
    Scalar pair[2] = {total, eval::convert(a.data[at(i)], a.dtype, t)};
    total = eval::apply(Op::Add, t, t, pair);
  });
  return r;
}

Array cat(const Array& a, const Array& b, int axis) {
  Dims dims = a.dims;
  dims[at(axis)] += b.dims[at(axis)];
  Array r(a.dtype, dims);
  each(dims, [&](std::int64_t i, const Dims& out) {
    Dims in = out;
    bool second = out[at(axis)] >= a.dims[at(axis)];
    if (second) in[at(axis)] -= a.dims[at(axis)];
    const Array& part = second ? b : a;
    r.data[at(i)] = part.data[at(flat(part.dims, in))];
  });
  return r;
}

Array take(const Array& a, std::span<const std::int64_t> rows) {
  Dims dims = a.dims;
  std::int64_t n = dims[0], row_size = n ? a.size() / n : 0;
  dims[0] = static_cast<std::int64_t>(rows.size());
  Array r(a.dtype, dims);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    std::int64_t row = rows[k] < 0 ? rows[k] + n : rows[k];
    if (row < 0 || row >= n) continue;
    for (std::int64_t i = 0; i < row_size; ++i)
      r.data[k * at(row_size) + at(i)] = a.data[at(row * row_size + i)];
  }
  return r;
}

}  // namespace pg::fuzz
