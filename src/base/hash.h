// Hashing. hash_mix and hash_bytes give 64 bits, for tables; Digester gives 128, for keys on disk, where two
// inputs with the same digest are taken to be the same. All of them are the same in every run and on every
// machine.
#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <absl/container/inlined_vector.h>

namespace pg {

/// Mixes two words into one; the order matters. For a fixed word on one side it is a bijection of the other.
constexpr uint64_t hash_mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15 + b;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93;
  return x ^ (x >> 32);
}

/// Hashes bytes.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);

/// A 128-bit digest.
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Digest&) const = default;

  template <typename State>
  friend State AbslHashValue(State state, const Digest& digest) {
    return State::combine(std::move(state), digest.high, digest.low);
  }
};

/// The digest as 32 hexadecimal digits.
std::string to_string(const Digest& digest);

/// Collects values and gives their digest. Each value counts with its place and its length, so ("ab", "c")
/// differs from
/// ("a", "bc"); an integer counts by its value and not by its width.
class Digester {
 public:
  template <typename Int>
    requires std::integral<Int> || std::is_enum_v<Int>
  Digester& add(Int value) {
    return add_word(static_cast<uint64_t>(value));
  }
  Digester& add(double value) { return add_word(std::bit_cast<uint64_t>(value)); }
  Digester& add(const Digest& digest) { return add_word(digest.high).add_word(digest.low); }
  Digester& add(std::string_view text);

  Digest finish() const;

 private:
  Digester& add_word(uint64_t word);

  absl::InlinedVector<char, 256> bytes_;
};

}  // namespace pg
