// The environment flags, as typed accessors: flags::debug(), flags::cachedb(), ... one for each row of
// flags.def. Every room reads them; none calls getenv. The environment is read once, at the first use of any
// flag, and a value outside its domain is a ValueError then and at each later use. Safe to call from any
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pg {
namespace flags {

#define PG_INT_FLAG(accessor, name, fallback, smallest, largest, help) int accessor();
#define PG_TEXT_FLAG(accessor, name, fallback, help) std::string accessor();
#define PG_PRESENCE_FLAG(accessor, name, help) bool accessor();
#include "base/flags.def"

/// Whether DEBUG_SKIP lists this pass.
bool skips(std::string_view pass);

/// A row of the table, for listings.
struct Info {
  std::string_view name;
  std::string_view fallback;
  std::string_view help;
};

/// All rows, in the order of flags.def.
std::span<const Info> all();

}  // namespace flags

/// Gives a flag another value while it lives, in all threads. Meant for tests and for the command line;
/// scopes must nest. Throws ValueError for an unknown flag or a value outside its domain.
class ScopedFlag {
 public:
  ScopedFlag(std::string_view name, std::string_view value);
  ScopedFlag(std::string_view name, int value) : ScopedFlag(name, std::to_string(value)) {}
  ~ScopedFlag();
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  size_t row_;
  std::string before_;
};

}  // namespace pg
