#include "base/flags.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg {
namespace {

enum class Kind { Int, Text, Presence };

struct Row {
  Kind kind;
  int smallest;
  int largest;
};

// The index of each row, named like its accessor.
enum RowIndex : size_t {
#define PG_INT_FLAG(accessor, ...) accessor##_row,
#define PG_TEXT_FLAG(accessor, ...) accessor##_row,
#define PG_PRESENCE_FLAG(accessor, ...) accessor##_row,
#include "base/flags.def"
  kRowCount
};

constexpr std::array<flags::Info, kRowCount> kInfos = {{
#define PG_INT_FLAG(accessor, name, fallback, smallest, largest, help) {name, #fallback, help},
#define PG_TEXT_FLAG(accessor, name, fallback, help) {name, fallback, help},
#define PG_PRESENCE_FLAG(accessor, name, help) {name, "", help},
#include "base/flags.def"
}};

constexpr std::array<Row, kRowCount> kRows = {{
#define PG_INT_FLAG(accessor, name, fallback, smallest, largest, help) {Kind::Int, smallest, largest},
#define PG_TEXT_FLAG(accessor, name, fallback, help) {Kind::Text, 0, 0},
#define PG_PRESENCE_FLAG(accessor, name, help) {Kind::Presence, 0, 0},
#include "base/flags.def"
}};

int parse(size_t row, std::string_view text) {
  const auto& [kind, smallest, largest] = kRows[row];
  if (kind == Kind::Text) return 0;
  if (kind == Kind::Presence) return !text.empty() && text != "0";
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < smallest || value > largest) {
    throw ValueError(fmt::format("[flags] {}={}: expected an integer from {} to {} ({})", kInfos[row].name,
                                 text, smallest, largest, kInfos[row].help));
  }
  return value;
}

// The current values. Numbers are also kept parsed, so that reading one takes no lock.
class Table {
 public:
  Table() {
    for (size_t row = 0; row < kRowCount; row++) {
      const char* value = std::getenv(kInfos[row].name.data());
      set(row, value && *value ? value : kInfos[row].fallback);
    }
  }

  int number(size_t row) const { return numbers_[row].load(std::memory_order_relaxed); }

  std::string text(size_t row) const {
    std::shared_lock lock(mutex_);
    return texts_[row];
  }

  /// Returns the text that was there.
  std::string set(size_t row, std::string_view text) {
    int number = parse(row, text);
    std::unique_lock lock(mutex_);
    numbers_[row].store(number, std::memory_order_relaxed);
    return std::exchange(texts_[row], std::string(text));
  }

 private:
  mutable std::shared_mutex mutex_;
  std::array<std::string, kRowCount> texts_;
  std::array<std::atomic<int>, kRowCount> numbers_;
};

// Never destroyed: threads may still run, and read flags, while the process exits.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

size_t find_row(std::string_view name) {
  auto found = std::ranges::find(kInfos, name, &flags::Info::name);
  if (found == kInfos.end()) throw ValueError(fmt::format("[flags] there is no flag {}", name));
  return static_cast<size_t>(found - kInfos.begin());
}

}  // namespace

namespace flags {

#define PG_INT_FLAG(accessor, ...) \
  int accessor() { return table().number(accessor##_row); }
#define PG_TEXT_FLAG(accessor, ...) \
  std::string accessor() { return table().text(accessor##_row); }
#define PG_PRESENCE_FLAG(accessor, ...) \
  bool accessor() { return table().number(accessor##_row) != 0; }
#include "base/flags.def"

bool skips(std::string_view pass) {
  const std::string list = debug_skip();
  for (std::string_view rest = list; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == pass) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

std::span<const Info> all() { return kInfos; }

}  // namespace flags

ScopedFlag::ScopedFlag(std::string_view name, std::string_view value)
    : row_(find_row(name)), before_(table().set(row_, value)) {}

ScopedFlag::~ScopedFlag() { table().set(row_, before_); }

}  // namespace pg
