#include "base/hash.h"

#include <array>

#include <fmt/format.h>

// The whole of xxHash inline: no symbol of it can meet the one of a host.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pg {

static_assert(std::endian::native == std::endian::little, "words are digested as they lie in memory");

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

Digester& Digester::add(std::string_view text) {
  add_word(text.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  return *this;
}

Digester& Digester::add_word(uint64_t word) {
  auto bytes = std::bit_cast<std::array<char, sizeof(word)>>(word);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

Digest Digester::finish() const {
  XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return {.high = hash.high64, .low = hash.low64};
}

}  // namespace pg
