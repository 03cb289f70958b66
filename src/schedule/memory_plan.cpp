// Temporaries in reused memory: each lives from its first to its last call; placed first-fit, largest first.
#include <algorithm>
#include <limits>

#include "schedule/plan.h"

namespace pg::schedule {

void plan_memory(Schedule& s) {
  struct Life {
    int slot;
    std::int64_t bytes;
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
  };
  std::vector<Life> lives(s.buffers.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    lives[i].slot = static_cast<int>(i);
    lives[i].bytes = s.buffers[i].size * static_cast<std::int64_t>(itemsize(s.buffers[i].dtype));
  }
  auto calls = s.linear.ref().srcs();
  for (std::size_t c = 0; c < calls.size(); ++c)
    for (Node* arg : Ref(calls[c]).srcs().subspan(1)) {
      if (arg->op != Op::Param) continue;
      Life& life = lives[static_cast<std::size_t>(arg->arg.i)];
      life.first = std::min(life.first, c);
      life.last = std::max(life.last, c);
    }
  std::vector<bool> kept(s.buffers.size(), false);
  for (std::size_t i = 0; i < s.params; ++i) kept[i] = true;
  for (int out : s.outputs)
    if (out >= 0) kept[static_cast<std::size_t>(out)] = true;

  std::vector<Life*> by_size;
  for (Life& life : lives)
    if (!kept[static_cast<std::size_t>(life.slot)] && life.first <= life.last) by_size.push_back(&life);
  std::sort(by_size.begin(), by_size.end(),
            [](Life* a, Life* b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a->slot < b->slot; });
  // What is placed in an arena, by offset.
  struct Placed {
    std::int64_t begin, end;
    std::size_t first, last;
  };
  constexpr std::int64_t kAlign = 256;
  std::vector<std::vector<Placed>> arenas;
  for (Life* life : by_size) {
    BufferInfo& buffer = s.buffers[static_cast<std::size_t>(life->slot)];
    auto arena = static_cast<std::size_t>(
        std::find(s.arena_devices.begin(), s.arena_devices.end(), buffer.device) - s.arena_devices.begin());
    if (arena == arenas.size()) {
      s.arena_devices.push_back(buffer.device);
      s.arena_bytes.push_back(0);
      arenas.emplace_back();
    }
    std::vector<Placed>& placed = arenas[arena];
    std::int64_t at = 0;
    for (const Placed& other : placed) {
      if (other.first > life->last || life->first > other.last) continue;
      if (at + life->bytes <= other.begin) break;
      at = std::max(at, (other.end + kAlign - 1) / kAlign * kAlign);
    }
    Placed here{at, at + life->bytes, life->first, life->last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [](std::int64_t offset, const Placed& p) { return offset < p.begin; }),
                  here);
    buffer.arena_offset = at;
    s.arena_bytes[arena] = std::max(s.arena_bytes[arena], here.end);
  }
}

}  // namespace pg::schedule
