// Random numbers: threefry by position. A generator is a seed and, per device, how many words were drawn;
// both are state of the host. A draw reads its offset as a bound scalar, so that a capture can vary it.
#include <array>
#include <cmath>
#include <mutex>
#include <numbers>
#include <random>

#include <absl/container/flat_hash_map.h>

#include "tensor/ops.h"
#include "tensor/watch.h"

namespace pg {
namespace detail {
namespace {

// FIPS 180-4, for messages of four bytes: the first word of a device's key is drawn from its number.
std::uint32_t last_word_of_sha256(std::uint32_t message) {
  constexpr std::array<std::uint32_t, 64> kRound = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<std::uint32_t, 64> w{message, 0x80000000};
  w[15] = 32;
  for (std::size_t i = 16; i < 64; ++i) {
    std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  constexpr std::array<std::uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  auto s = kStart;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    std::uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  return s[7] + kStart[7];
}

constexpr std::string_view kOffset = "random offset of ";

struct Generator {
  std::uint32_t number;     // in the order in which devices first drew
  std::int64_t offset = 0;  // words drawn so far
};

struct Generators {
  std::mutex mutex;
  std::uint32_t seed = std::random_device{}();
  absl::flat_hash_map<Device, Generator> of;
  static Generators& get() {
    static auto* all = new Generators;
    return *all;
  }
};

Generator& generator(Generators& all, Device device) {
  return all.of.try_emplace(device, Generator{static_cast<std::uint32_t>(all.of.size())}).first->second;
}

std::uint64_t key_of(const Generators& all, const Generator& g) {
  return std::uint64_t{all.seed} << 32 | last_word_of_sha256(g.number);
}

// The key of a draw: that of the device, advanced by the draw's offset. u64, low word first.
struct Draw {
  Ref key;
};
Draw draw(Device device, std::int64_t words) {
  std::uint64_t key;
  std::int64_t offset;
  {
    Generators& all = Generators::get();
    std::lock_guard lock(all.mutex);
    Generator& g = generator(all, device);
    key = key_of(all, g);
    offset = g.offset;
    g.offset += words;
  }
  Ref at = bind(var(std::string(kOffset) + *device, 0, std::int64_t{1} << 62, i64), offset);
  return {alu(Op::Threefry, {cast(at, u64), int_const(u64, static_cast<std::int64_t>(key))})};
}

// Random words at positions (u64) of a draw of n: blocks of threefry give their low words first, then their
// high ones.
Ref words_at(const Draw& d, Ref position, std::int64_t n) {
  std::int64_t half = (n + 1) / 2;
  Ref high = ge(position, int_const(u64, half)), low = where(high, position - int_const(u64, half), position);
  Ref counter = low | (low + int_const(u64, half)) << int_const(u64, 32);
  Ref block = alu(Op::Threefry, {counter, d.key});
  return where(high, block >> int_const(u64, 32), block & int_const(u64, 0xFFFFFFFF));
}

// Uniform in [0, 1): random bits of the mantissa under the exponent of 1, less 1.
Ref uniform_node(Device device, DType t, std::int64_t n) {
  auto bytes = static_cast<std::int64_t>(itemsize(t));
  std::int64_t words = (n * bytes + 3) / 4;
  Draw d = draw(device, words);
  Ref at = arange_node(u64, idx(n)), bits;
  if (bytes == 8)
    bits = words_at(d, at * int_const(u64, 2), words) |
           words_at(d, at * int_const(u64, 2) + int_const(u64, 1), words) << int_const(u64, 32);
  else if (bytes == 4)
    bits = words_at(d, at, words);
  else
    bits = (words_at(d, at >> int_const(u64, 1), words) >> ((at & int_const(u64, 1)) * int_const(u64, 16))) &
           int_const(u64, 0xFFFF);
  int mantissa = t == f64 ? 52 : t == f32 ? 23 : t == f16 ? 10 : 7;
  DType raw = bytes == 8 ? u64 : bytes == 4 ? u32 : u16;
  Ref one = int_const(raw, static_cast<std::int64_t>(to_bits(t, float_scalar(1))));
  bits = (cast(bits, raw) >> int_const(raw, bytes * 8 - mantissa)) | one;
  return bitcast(bits, t) - float_const(t, 1);
}

DType float_or(const char* op, DType asked) {
  if (asked == DType::Void) return f32;
  if (!is_float(asked) || is_weak(asked)) fail<DTypeError>(op, "draws floats, not {}", text(asked));
  return asked;
}

std::int64_t count_of(const char* op, const Shape& shape) {
  std::int64_t n = 1;
  for (const Dim& d : shape) {
    if (d.is_symbolic())
      fail<ShapeError>(op, "{} is symbolic: random draws have a size of their own", shape.str());
    if (d < 0) fail<ShapeError>(op, "{} has a negative size", shape.str());
    n *= d;
  }
  return n;
}

Tensor uniform_tensor(const char* op, const Shape& shape, DType t, const std::string& device_name) {
  std::int64_t n = count_of(op, shape);
  Device device = device_named(device_name);
  GraphScope scope;
  if (n == 0) return computed(full_node(t, 0, shape_from(shape)), false, device);
  return computed(reshape(uniform_node(device, t, n), shape_from(shape)), false, device);
}

double fan_in(const Shape& shape) {
  double n = 1;
  for (int i = 1; i < shape.rank(); ++i) n *= static_cast<double>(shape[i]);
  return n;
}

}  // namespace

std::int64_t random_offset(Device device) {
  Generators& all = Generators::get();
  std::lock_guard lock(all.mutex);
  auto it = all.of.find(device);
  return it == all.of.end() ? 0 : it->second.offset;
}
absl::flat_hash_map<Device, std::int64_t> random_offsets() {
  Generators& all = Generators::get();
  std::lock_guard lock(all.mutex);
  absl::flat_hash_map<Device, std::int64_t> out;
  for (auto& [device, g] : all.of) out[device] = g.offset;
  return out;
}
void advance_random(Device device, std::int64_t words) {
  Generators& all = Generators::get();
  std::lock_guard lock(all.mutex);
  generator(all, device).offset += words;
}
std::uint64_t random_key(Device device) {
  Generators& all = Generators::get();
  std::lock_guard lock(all.mutex);
  return key_of(all, generator(all, device));
}
Device generator_of(Ref bind) {
  std::string_view name = bind.src(0).str();
  return name.starts_with(kOffset) ? device_named(name.substr(kOffset.size())) : nullptr;
}
}  // namespace detail

using namespace detail;

void Tensor::manual_seed(std::uint64_t seed) {
  if (CellWatch* watch = cell_watch())
    watch->refused("manual_seed", "seeding is no part of what is recorded: seed before the call");
  Generators& all = Generators::get();
  std::lock_guard lock(all.mutex);
  all.seed = static_cast<std::uint32_t>(seed);
  all.of.clear();
}

Tensor Tensor::rand(const Shape& shape, const Options& options) {
  return uniform_tensor("rand", shape, float_or("rand", options.dtype), options.device);
}

// Box and Muller 1958.
Tensor Tensor::randn(const Shape& shape, const Options& options) {
  DType t = float_or("randn", options.dtype);
  Shape both = shape;
  both.insert(0, 2);
  Tensor u = uniform_tensor("randn", both, f32, options.device);
  Tensor angle = u[0], size = u[1];
  return ((angle * (2 * std::numbers::pi)).cos() * ((1 - size).log() * -2).sqrt()).cast(t);
}

Tensor Tensor::randint(const Shape& shape, const RandintOptions& options) {
  if (!is_int(options.dtype) || is_weak(options.dtype))
    fail<DTypeError>("randint", "draws integers, not {}", detail::text(options.dtype));
  if (options.low >= options.high)
    fail<ValueError>("randint", "no integers in [{}, {})", options.low, options.high);
  Tensor u = uniform_tensor("randint", shape, f32, options.device);
  return (u * static_cast<double>(options.high - options.low)).cast(options.dtype) + options.low;
}

Tensor Tensor::uniform(const Shape& shape, const UniformOptions& options) {
  DType t = float_or("uniform", options.dtype);
  Tensor u = uniform_tensor("uniform", shape, f32, options.device);
  return (u * (options.high - options.low)).cast(t) + options.low;
}

Tensor Tensor::normal(const Shape& shape, const NormalOptions& options) {
  if (options.std < 0) fail<ValueError>("normal", "a deviation of {}", options.std);
  return randn(shape, {.dtype = options.dtype, .device = options.device}) * options.std + options.mean;
}

Tensor Tensor::scaled_uniform(const Shape& shape, const Options& options) {
  double n = static_cast<double>(count_of("scaled_uniform", shape));
  return uniform(shape, {.low = -1, .high = 1, .dtype = options.dtype, .device = options.device}) *
         (1 / std::sqrt(std::max(1.0, n)));
}

Tensor Tensor::glorot_uniform(const Shape& shape, const Options& options) {
  if (shape.empty()) fail<ShapeError>("glorot_uniform", "a scalar has no fans");
  count_of("glorot_uniform", shape);
  double bound = std::sqrt(6 / (static_cast<double>(shape[0]) + fan_in(shape)));
  return uniform(shape, {.low = -1, .high = 1, .dtype = options.dtype, .device = options.device}) * bound;
}

Tensor Tensor::kaiming_uniform(const Shape& shape, const KaimingOptions& options) {
  count_of("kaiming_uniform", shape);
  double bound = std::numbers::sqrt3 * std::sqrt(2 / (1 + options.a * options.a)) / std::sqrt(fan_in(shape));
  return uniform(shape, {.low = -bound, .high = bound, .dtype = options.dtype, .device = options.device});
}

Tensor Tensor::kaiming_normal(const Shape& shape, const KaimingOptions& options) {
  count_of("kaiming_normal", shape);
  double std = std::sqrt(2 / (1 + options.a * options.a)) / std::sqrt(fan_in(shape));
  return normal(shape, {.mean = 0, .std = std, .dtype = options.dtype, .device = options.device});
}

Tensor Tensor::randperm(std::int64_t n, const Options& options) {
  if (n < 0) fail<ValueError>("randperm", "of {}", n);
  DType t = options.dtype == DType::Void ? i32 : options.dtype;
  return rand({n}, {.device = options.device}).argsort().cast(t);
}

Tensor Tensor::multinomial(std::int64_t samples, bool replacement) const {
  constexpr const char* kName = "multinomial";
  if (ndim() < 1 || ndim() > 2)
    fail<ShapeError>(kName, "takes weights of one or two axes, not shape {}", shape().str());
  if (samples < 1) fail<ValueError>(kName, "{} samples", samples);
  Tensor weight = (ndim() == 1 ? unsqueeze(0) : *this).cast(f32);
  std::int64_t rows = weight.size(0), n = weight.size(1);
  if (!replacement && samples > n)
    fail<ValueError>(kName, "{} samples of {} without replacement", samples, n);
  std::string where;
  {
    GraphScope scope;
    Device d = detail::read(*this, kName).device;
    if (d) where = *d;
  }
  Tensor picked;
  if (replacement || samples == 1) {
    Tensor sums = weight.cumsum(1), cdf = sums / sums.at(std::vector<Index>{Slice{}, Slice{.start = n - 1}});
    Tensor u = rand({samples, rows, 1}, {.device = where});
    picked = (u >= cdf).cast(i32).sum(2).permute({1, 0});
  } else {
    // An exponential race: the k first to arrive.
    Tensor race = -(1 - rand({rows, n}, {.device = where})).log() / weight;
    picked = race.topk(samples, 1, {.largest = false}).second;
  }
  return (ndim() == 1 ? picked.squeeze(0) : picked).cast(i32);
}

Tensor Tensor::dropout(double p) const {
  if (!(p >= 0 && p <= 1)) fail<ValueError>("dropout", "a probability of {}", p);
  if (!Training::enabled() || p == 0) return *this;
  if (p == 1) return zeros_like();
  Tensor keep = rand_like({.dtype = f32}) >= p;
  return keep.where(*this, 0) * (1 / (1 - p));
}

}  // namespace pg
