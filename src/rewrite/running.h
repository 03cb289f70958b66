// What passes keep while they run: counts, and what nodes became. Only the rule sets and the driver use it.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "ir/node.h"

namespace pg {

struct Rule;

struct Running {
  std::uint64_t attempts = 0, fired = 0;
  absl::flat_hash_map<const Rule*, std::uint64_t>* by_rule = nullptr;  // where rules are told apart
};

/// What nodes became under a set of rules that look at nothing else, until nodes are freed.
class Memory {
 public:
  Memory() : slots_(std::size_t{1} << 10) {}

  /// Before each pass: forgets nodes that may be gone.
  void refresh() {
    if (std::uint64_t now = scope_number(); now != scope_) {
      scope_ = now;
      used_ = 0;
    }
  }
  Node* find(const Node* n) const {
    for (std::size_t at = home(n);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[at];
      if (s.scope != scope_) return nullptr;
      if (s.node == n) return s.became;
    }
  }
  void put(Node* n, Node* became) {
    if (++used_ * 2 > slots_.size()) grow();
    std::size_t at = home(n);
    while (slots_[at].scope == scope_ && slots_[at].node != n) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {n, became, scope_};
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    Node* became = nullptr;
    std::uint64_t scope = ~std::uint64_t{0};  // of an earlier one: empty
  };

  std::size_t home(const Node* n) const {
    auto h = std::bit_cast<std::uintptr_t>(n) * 0x9E3779B97F4A7C15u;
    return (h >> 32) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.scope != scope_) continue;
      std::size_t at = home(s.node);
      while (slots_[at].scope == scope_) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = s;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint64_t scope_ = 0;
};

}  // namespace pg
