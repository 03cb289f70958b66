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
    std::int64_t offset = -1;
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

  constexpr std::int64_t kAlign = 256;
  std::vector<Life*> by_size;
  for (Life& life : lives)
    if (!kept[static_cast<std::size_t>(life.slot)] && life.first <= life.last) by_size.push_back(&life);
  std::sort(by_size.begin(), by_size.end(),
            [](Life* a, Life* b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a->slot < b->slot; });
  std::vector<Life*> placed;
  for (Life* life : by_size) {
    const std::string& device = s.buffers[static_cast<std::size_t>(life->slot)].device;
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (Life* other : placed)
      if (s.buffers[static_cast<std::size_t>(other->slot)].device == device && other->first <= life->last &&
          life->first <= other->last)
        taken.emplace_back(other->offset, other->offset + other->bytes);
    std::sort(taken.begin(), taken.end());
    std::int64_t at = 0;
    for (auto [from, to] : taken) {
      if (at + life->bytes <= from) break;
      at = std::max(at, (to + kAlign - 1) / kAlign * kAlign);
    }
    life->offset = at;
    placed.push_back(life);
    s.buffers[static_cast<std::size_t>(life->slot)].arena_offset = at;
    auto arena = std::find(s.arena_devices.begin(), s.arena_devices.end(), device);
    if (arena == s.arena_devices.end()) {
      s.arena_devices.push_back(device);
      s.arena_bytes.push_back(0);
      arena = s.arena_devices.end() - 1;
    }
    auto& bytes = s.arena_bytes[static_cast<std::size_t>(arena - s.arena_devices.begin())];
    bytes = std::max(bytes, at + life->bytes);
  }
}

}  // namespace pg::schedule
