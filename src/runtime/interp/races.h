// Finds races: two work-items that touch one element, at least one of them writing, with no barrier of their
// group between. Items of different groups have no barrier at all. Used by the interpreter, which tells it of
// every access in some legal order; what it finds does not depend on that order.
#pragma once

#include <cstdint>

#include <absl/container/flat_hash_map.h>

namespace pg::runtime::interp {

/// A work-item at a point of its run: the epoch counts the barriers its group has passed.
struct Place {
  std::int64_t group = -1;
  std::int64_t item = -1;
  std::int64_t epoch = -1;
};

class Races {
 public:
  /// The access of an element at the address. Returns null, or the place of an earlier one that it races
  /// with.
  const Place* read(std::uintptr_t address, const Place& now) {
    Element& e = elements_[address];
    if (e.written.group >= 0 && !ordered(e.written, now)) return &e.written;
    if (e.read.group != now.group || e.read.epoch != now.epoch) {
      // An item of another group stays a witness against every write to come; an earlier epoch of this one
      // does not.
      if (e.read.group >= 0 && e.read.group != now.group) e.other = e.read;
      e.read = now;
      e.second = Place{};
    } else if (e.read.item != now.item) {
      e.second = now;
    }
    return nullptr;
  }
  const Place* write(std::uintptr_t address, const Place& now) {
    Element& e = elements_[address];
    for (const Place* earlier : {&e.written, &e.read, &e.second, &e.other})
      if (earlier->group >= 0 && !ordered(*earlier, now)) return earlier;
    e.written = now;
    return nullptr;
  }
  void clear() { elements_.clear(); }

 private:
  struct Element {
    Place written, read;  // the last
    Place second;         // another item that read in the same epoch as `read`
    Place other;          // a reader of another group
  };
  static bool ordered(const Place& a, const Place& b) {
    return a.group == b.group && (a.item == b.item || a.epoch != b.epoch);
  }
  absl::flat_hash_map<std::uintptr_t, Element> elements_;
};

}  // namespace pg::runtime::interp
