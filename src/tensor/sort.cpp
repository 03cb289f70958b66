// Sorting along an axis, and the first of what is sorted.
#include <bit>
#include <limits>

#include "tensor/along.h"

namespace pg {
namespace detail {
namespace {

// a before b in the order of sort: NaN after everything.
Tensor before(const Tensor& a, const Tensor& b, bool descending) {
  Tensor less = descending ? b < a : a < b;
  if (a.is_floating_point())
    less = descending ? less | (a.isnan() & ~b.isnan()) : less | (b.isnan() & ~a.isnan());
  return less;
}

// --- short axes: all against all
// ---------------------------------------------------------------------------------

// The position in x of each element of the result: element k is the one before which k others come, equal
// ones in their order.
Tensor order_by_ranks(const Tensor& x, const Dim& n, bool descending) {
  int axes = x.ndim();
  Tensor mine = x.unsqueeze(-1), other = x.unsqueeze(-2);
  Tensor first = before(other, mine, descending);
  Tensor tie = ~first & ~before(mine, other, descending) &
               (positions(i32, n, axes, axes + 1) < positions(i32, n, axes - 1, axes + 1));
  Tensor ranks = (first | tie).sum(-1);
  Tensor hit = ranks.unsqueeze(-2) == positions(i32, n, axes - 1, axes + 1);
  return hit.where(positions(i32, n, axes, axes + 1), 0).sum(-1);
}

// --- long axes: Batcher's network
// ---------------------------------------------------------------------------------

// Elements and their positions as one integer each, in the order of sort, so that comparing two of them is a
// minimum and a maximum; of dtypes of at most 32 bits.
Tensor keys_of(const Tensor& x, const Tensor& at, bool descending) {
  Tensor key;
  if (x.is_floating_point()) {
    // Bits of floats are in order as integers, those of negative ones backwards. NaN after everything; zeros
    // are equal.
    Tensor y = x.cast(f32);
    Tensor bits = (y == 0.0).where(0.0, y).bitcast(i32);
    Tensor ordered = bits ^ ((bits >> 31) & int_max(i32));
    key = y.isnan().where(int_max(i32), ordered).cast(i64);
  } else {
    key = x.cast(i64);
  }
  if (descending) key = ~key;
  return (key << 32) | at.cast(i64);
}

// One comparison of each element with the one `step` away, or with its mirror image in a block of 2 * step:
// the smaller goes in front.
Tensor exchange(const Tensor& keys, std::int64_t step, bool mirrored) {
  Shape pairs = keys.shape(), flat = pairs;
  pairs[-1] = pairs[-1] / (2 * step);
  pairs.push_back(2);
  pairs.push_back(step);
  int axes = pairs.rank();
  Tensor mine = keys.reshape(pairs), other = mirrored ? mine.flip({-2, -1}) : mine.flip(-2);
  Tensor second = positions(i32, 2, axes - 2, axes) == 1;
  return second.where(mine.maximum(other), mine.minimum(other)).reshape(flat);
}

// The last axis, a power of two long, in ascending order. A merge is a mirrored comparison and then straight
// ones of halved steps, two of them in a pass over memory; the passes of one merge serve the next as well.
Tensor sorted_keys(Tensor keys, std::int64_t from = 1) {
  auto width = static_cast<std::int64_t>(keys.size(-1));
  for (std::int64_t half = from; half < width; half *= 2) {
    int steps = std::countr_zero(static_cast<std::uint64_t>(half)) + 1;
    keys = exchange(keys, half, true);
    if (steps % 2 == 1) keys = keys.contiguous();
    for (std::int64_t step = half / 2; step >= 1; step /= 2) {
      keys = exchange(keys, step, false);
      if (std::countr_zero(static_cast<std::uint64_t>(step)) % 2 == 0) keys = keys.contiguous();
    }
  }
  return keys;
}

std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
Tensor positions_in(const Tensor& keys) { return (keys & int_max(u32)).cast(i32); }

Tensor order_by_keys(const Tensor& x, std::int64_t n, bool descending) {
  Tensor at = positions(i32, n, x.ndim() - 1, x.ndim());
  Tensor keys = pad_last(keys_of(x, at, descending), 0, power_of_two(n) - n, kLast).contiguous();
  return positions_in(first_of_last(sorted_keys(keys), n));
}

// The same on pairs of value and position, for values whose keys would not fit.
Tensor order_by_pairs(Tensor x, std::int64_t n, bool descending) {
  std::int64_t width = power_of_two(n);
  int axes = x.ndim();
  // Padding sorts last: it is marked by its position, which is beyond n.
  Tensor at = positions(i32, width, axes - 1, axes).expand(pad_last(x, 0, width - n, 0).shape());
  x = pad_last(x, 0, width - n, 0);
  auto comes_first = [&](const Tensor& xa, const Tensor& ia, const Tensor& xb, const Tensor& ib) {
    Tensor real = (ia < n) & (ib >= n), both = (ia < n) == (ib < n);
    Tensor less = before(xa, xb, descending), equal = ~less & ~before(xb, xa, descending);
    return real | (both & (less | (equal & (ia < ib))));
  };
  Shape flat = x.shape();
  auto exchange_pairs = [&](std::int64_t step, bool mirrored) {
    Shape pairs = flat;
    pairs[-1] = width / (2 * step);
    pairs.push_back(2);
    pairs.push_back(step);
    auto other = [&](const Tensor& t) { return mirrored ? t.flip({-2, -1}) : t.flip(-2); };
    Tensor mx = x.reshape(pairs), mi = at.reshape(pairs), ox = other(mx), oi = other(mi);
    Tensor second = positions(i32, 2, axes, axes + 2) == 1;
    Tensor keep = comes_first(mx, mi, ox, oi) != second;
    x = pg::where(keep, mx, ox).reshape(flat).contiguous();
    at = pg::where(keep, mi, oi).reshape(flat).contiguous();
  };
  for (std::int64_t half = 1; half < width; half *= 2) {
    exchange_pairs(half, true);
    for (std::int64_t step = half / 2; step >= 1; step /= 2) exchange_pairs(step, false);
  }
  return first_of_last(at, n);
}

bool has_keys(const Tensor& x) { return itemsize(x.dtype()) <= 4; }

// All against all where that is little work, or few kernels worth more.
bool is_short(const Tensor& x, std::int64_t n) {
  constexpr std::int64_t kShort = 128, kPairs = std::int64_t{1} << 22;
  return n <= kShort || (x.numel().max() <= kPairs / n);
}

// The position in x of each element of the sorted axis.
Tensor order(const Tensor& x, std::int64_t n, bool descending) {
  if (is_short(x, n)) return order_by_ranks(x, n, descending);
  return has_keys(x) ? order_by_keys(x, n, descending) : order_by_pairs(x, n, descending);
}

// The positions of the k elements that sort first. Of a long axis in blocks they lie in those k blocks whose
// own first elements sort first, so x is read once and little more than k blocks are sorted.
Tensor first(const Tensor& x, std::int64_t n, std::int64_t k, bool descending) {
  std::int64_t block = 1;
  while (4 * k * block * block <= n) block *= 2;
  if (block < 4 || is_short(x, n) || !has_keys(x)) return first_of_last(order(x, n, descending), k);
  int axes = x.ndim();
  std::int64_t blocks = (n + block - 1) / block;
  Tensor keys =
      pad_last(keys_of(x, positions(i32, n, axes - 1, axes), descending), 0, blocks * block - n, kLast);
  Tensor best = keys.unflatten(-1, {blocks, block}).min(-1).contiguous();
  best = pad_last(best, 0, power_of_two(blocks) - blocks, kLast).contiguous();
  Tensor chosen =
      positions_in(first_of_last(sorted_keys(best), k)).floor_div(static_cast<std::int32_t>(block));
  Tensor at = chosen.unsqueeze(-1) * static_cast<std::int32_t>(block) + positions(i32, block, axes, axes + 1);
  at = at.flatten(-2, -1).contiguous();
  Tensor found = (at < static_cast<std::int32_t>(n)).where(keys_of(x.gather(-1, at), at, descending), kLast);
  found = pad_last(found, 0, power_of_two(k * block) - k * block, kLast).contiguous();
  return positions_in(first_of_last(sorted_keys(found), k));
}

}  // namespace
}  // namespace detail

using namespace detail;

std::pair<Tensor, Tensor> Tensor::sort(std::int64_t axis, const SortOptions& options) const {
  if (ndim() == 0) return {value_copy(*this, "sort"), zeros({}, {.dtype = i32})};
  Along a = along("sort", *this, axis);
  if (a.n.is_symbolic()) fail<ShapeError>("sort", "axis {} of {} is symbolic", axis, shape().str());
  if (a.n == 0) return {value_copy(*this, "sort"), zeros(shape(), {.dtype = i32})};
  Tensor at = order(a.x.detach(), a.n, options.descending);
  return {a.x.gather(-1, at).permute(a.back), at.permute(a.back)};
}
Tensor Tensor::argsort(std::int64_t axis, const SortOptions& options) const {
  return sort(axis, options).second;
}

std::pair<Tensor, Tensor> Tensor::topk(std::int64_t k, std::int64_t axis, const TopkOptions& options) const {
  if (k < 0 || k > size(axis)) fail<ValueError>("topk", "{} of axis {} of {}", k, axis, shape().str());
  Along a = along("topk", *this, axis);
  if (a.n.is_symbolic()) fail<ShapeError>("topk", "axis {} of {} is symbolic", axis, shape().str());
  Tensor at;
  if (k == 0) {
    Shape none = a.x.shape();
    none[-1] = 0;
    at = zeros(none, {.dtype = i32});
  } else {
    at = first(a.x.detach(), a.n, k, options.largest);
  }
  return {a.x.gather(-1, at).permute(a.back), value_copy(at.permute(a.back), "topk")};
}

}  // namespace pg
