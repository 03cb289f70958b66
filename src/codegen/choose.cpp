#include "codegen/choose.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/cost_model.h"
#include "codegen/window.h"

namespace pg::codegen {
namespace {

bool fixed(Ref loop) { return loop.src(0).is_const(); }
std::int64_t tiles_of(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

struct Found {
  Tile tile;
  CostModel::Cost cost{std::numeric_limits<double>::infinity(), 0};
};

Found best_tile(const Kernel& k, const CostModel& model) {
  std::vector<int> lanes{-1};
  auto free = [&](std::size_t loop) { return fixed(k.loops[loop]) && !(k.pinned >> loop & 1); };
  for (std::size_t i = 0; i < k.body; ++i)
    if (free(i) && model.lanes_for(i) > 1) lanes.push_back(static_cast<int>(i));
  Found best;
  auto consider = [&](const Tile& t, bool exact) {
    CostModel::Cost c = model.cost(t);
    if (c.cycles >= best.cost.cycles * 0.999) return;
    // Copies that end in the middle of a loop: only where panels take the gates out of the inner loop.
    if (!exact)
      for (std::size_t a = 0; a < k.accesses.size(); ++a)
        for (std::size_t i = 0; i < 2; ++i)
          if (t.loop[i] >= 0 && !k.accesses[a].store && model.loops_of(a) >> t.loop[i] & 1 &&
              !(c.staged >> a & 1) &&
              k.extent(static_cast<std::size_t>(t.loop[i])) %
                  (t.amount[i] * (t.loop[i] == t.lane ? t.lanes : 1)))
            return;
    best = {t, c};
  };
  for (int lane : lanes) {
    Tile t;
    t.lane = lane;
    t.lanes = lane < 0 ? 1 : model.lanes_for(static_cast<std::size_t>(lane));
    consider(t, true);
    auto room = [&](std::size_t loop) {
      return static_cast<int>(loop) == lane ? tiles_of(k.extent(loop), t.lanes) : k.extent(loop);
    };
    for (std::size_t a = 0; a < k.outputs; ++a) {
      if (!free(a)) continue;
      for (std::int64_t x : kTiles) {
        if (x > room(a)) continue;
        bool exact_a = room(a) % x == 0;
        if (!exact_a && !model.has_reduction()) continue;
        t.loop = {static_cast<int>(a), -1}, t.amount = {x, 1};
        if (model.has_reduction() || x <= 4) consider(t, exact_a);
        if (!model.has_reduction()) continue;
        for (std::size_t b = a + 1; b < k.outputs; ++b) {
          if (!free(b)) continue;
          for (std::int64_t y : kTiles) {
            if (y > room(b) || x * y > 32) continue;
            t.loop[1] = static_cast<int>(b), t.amount[1] = y;
            consider(t, exact_a && room(b) % y == 0);
          }
        }
        t.loop[1] = -1, t.amount[1] = 1;
      }
    }
  }
  return best;
}

// The output loop to share out among threads, and into how many chunks: the outermost that splits evenly,
// else the one with the least rest.
Opt threads(const Kernel& k, const Target& target) {
  for (std::size_t i = 0; i < k.outputs; ++i) {
    if (k.loops[i].range_kind() != RangeKind::Loop || !fixed(k.loops[i])) continue;
    std::int64_t n = k.extent(i);
    for (std::int64_t chunks = std::min<std::int64_t>(n, 4 * target.cores); chunks >= target.cores; --chunks)
      if (n % chunks == 0 && chunks % target.cores == 0)
        return {OptKind::Thread, k.loops[i].range_id(), chunks};
  }
  for (std::size_t i = 0; i < k.outputs; ++i)
    if (k.loops[i].range_kind() == RangeKind::Loop && fixed(k.loops[i]) && k.extent(i) >= 2 * target.cores)
      return {OptKind::Thread, k.loops[i].range_id(), target.cores};
  return {OptKind::Thread, 0, 0};
}

// How many tiles of `n` to run through before the next panel of the other operand: few enough for their rows
// to stay in the cache, many enough to pay for the panel, and none left over where that can be.
std::int64_t block_of(std::int64_t n, double bytes_of_tile, const Target& target) {
  auto most = static_cast<std::int64_t>(static_cast<double>(target.l2) / 2 / bytes_of_tile);
  most = std::clamp<std::int64_t>(most, 1, 12);
  std::int64_t best = most, waste = tiles_of(n, most) * most - n;
  for (std::int64_t per = most - 1; per >= std::max<std::int64_t>(1, most / 2); --per)
    if (std::int64_t w = tiles_of(n, per) * per - n; w < waste) best = per, waste = w;
  return best;
}

// Threads, the order of loops, and panels. `opts` holds what makes the tile.
void place_panels(const Kernel& k, const CostModel& model, const Found& found, bool parallel,
                  const Target& target, std::vector<Opt>& opts) {
  constexpr double kMostScratch = 64 << 20;
  const Tile& t = found.tile;
  auto id = [&](int loop) { return k.loops[static_cast<std::size_t>(loop)].range_id(); };
  // What moves with the lanes is the panel that all the rest runs along.
  int wide = -1, narrow = -1;
  for (std::size_t a = 0; a < k.accesses.size(); ++a)
    if (found.cost.staged >> a & 1)
      (t.lane >= 0 && model.loops_of(a) >> t.lane & 1 ? wide : narrow) = static_cast<int>(a);
  auto moves = [&](int access, int loop) {
    return model.loops_of(static_cast<std::size_t>(access)) >> loop & 1;
  };
  auto amount_of = [&](int loop) {
    std::int64_t n = loop == t.lane ? t.lanes : 1;
    for (std::size_t i = 0; i < 2; ++i)
      if (t.loop[i] == loop) n *= t.amount[i];
    return n;
  };
  auto left = [&](int loop) { return tiles_of(k.extent(static_cast<std::size_t>(loop)), amount_of(loop)); };
  double reduction = 1;
  for (std::size_t i = k.outputs; i < k.body; ++i) reduction *= static_cast<double>(k.extent(i));

  // The tiled loop that the wide panel does not move with: its tiles are run through in blocks, and a narrow
  // panel holds the rows of one.
  int rows = -1;
  for (std::size_t i = 0; i < 2; ++i)
    if (t.loop[i] >= 0 && t.loop[i] != t.lane) rows = t.loop[i];
  bool lane_left = t.lane >= 0 && t.lane < static_cast<int>(k.outputs) && left(t.lane) > 1;
  auto bytes_of = [&](int access) {
    return model.panel_elements(static_cast<std::size_t>(access)) *
           static_cast<double>(itemsize(k.accesses[static_cast<std::size_t>(access)].dtype));
  };
  bool far = wide >= 0 && bytes_of(wide) / target.cores > static_cast<double>(target.l2) / 2;
  bool blocked = rows >= 0 && lane_left && wide >= 0 && !moves(wide, rows) && (narrow >= 0 || far);
  // The wide panel of many images would be as large as all of them: a block at a time, which stays in the
  // cache while all that it is multiplied with passes.
  std::vector<std::size_t> images;
  if (far && t.lane >= 0 && t.lane < static_cast<int>(k.outputs) && (rows < 0 || !moves(wide, rows)))
    for (std::size_t i = 0; i < k.outputs; ++i)
      if (static_cast<int>(i) != t.lane && moves(wide, static_cast<int>(i)) && left(static_cast<int>(i)) > 1)
        images.push_back(i);
  std::int64_t wide_within = kWholeKernel, narrow_within = kWholeKernel;
  // Or it is the narrow operand that goes on from image to image: each is read for all of the wide panel.
  std::vector<std::size_t> around;
  if (images.empty() && blocked) {
    double bytes = narrow >= 0 ? bytes_of(narrow) : 0;
    for (std::size_t i = 0; i < k.outputs; ++i) {
      auto loop = static_cast<int>(i);
      bool near = bytes <= static_cast<double>(target.l2) / 2;
      if (loop == t.lane || loop == t.loop[0] || loop == t.loop[1] || left(loop) <= 1 || moves(wide, loop))
        continue;
      if (k.pinned >> i & 1 || (narrow >= 0 && moves(narrow, loop) && !near)) {
        around.push_back(i);
        bytes /= static_cast<double>(k.extent(i));
      }
    }
  }
  if (!around.empty()) {
    blocked = false;
    opts.push_back({OptKind::Reorder, id(t.lane), 0});
    for (std::size_t i = around.size(); i-- > 0;)
      opts.push_back({OptKind::Reorder, k.loops[around[i]].range_id(), 0});
    narrow_within = k.loops[around.back()].range_id();
  } else if (!images.empty()) {
    blocked = false;
    double column = static_cast<double>(itemsize(k.accesses[static_cast<std::size_t>(wide)].dtype));
    for (std::size_t i = k.outputs; i < k.body; ++i)
      if (moves(wide, static_cast<int>(i))) column *= static_cast<double>(k.extent(i));
    auto most = static_cast<std::int64_t>(static_cast<double>(target.l2) / 4 /
                                          (column * static_cast<double>(amount_of(t.lane))));
    std::int64_t blocks = tiles_of(left(t.lane), std::clamp<std::int64_t>(most, 1, left(t.lane))),
                 per = tiles_of(left(t.lane), blocks);
    if (blocks > 1) {
      if (per > 1) opts.push_back({OptKind::Split, id(t.lane), per});
      opts.push_back({OptKind::Reorder, id(t.lane), 0});
    }
    for (std::size_t i = images.size(); i-- > 0;)
      opts.push_back({OptKind::Reorder, k.loops[images[i]].range_id(), 0});
    wide_within = blocks > 1 ? id(t.lane) : k.loops[images.back()].range_id();
  } else if (blocked) {
    double bytes =
        static_cast<double>(amount_of(rows)) * reduction * static_cast<double>(itemsize(k.accesses[0].dtype));
    std::int64_t per = block_of(left(rows), bytes, target);
    if (per > 1 && per < left(rows)) opts.push_back({OptKind::Split, id(rows), per});
    opts.push_back({OptKind::Reorder, id(t.lane), 0});
    if (per < left(rows)) opts.push_back({OptKind::Reorder, id(rows), 0});
  } else if (lane_left) {
    // What the narrow operand reads stays near while all of the wide panel passes.
    for (std::size_t i = k.outputs; i-- > 0;)
      if (static_cast<int>(i) != t.lane && left(static_cast<int>(i)) > 1)
        opts.push_back({OptKind::Reorder, k.loops[i].range_id(), 0});
  }
  // Lanes along the reduction leave the order of the loops: an image at a time for those outside.
  if (wide >= 0 && t.lane >= static_cast<int>(k.outputs))
    for (int i = 0; i < static_cast<int>(k.outputs); ++i) {
      if (i == t.loop[0] || i == t.loop[1] || !moves(wide, i)) break;
      if (left(i) > 1) wide_within = id(i);
    }
  Opt thread{OptKind::Thread, 0, 0};
  if (parallel) {
    if (blocked && left(t.lane) >= target.cores) {
      thread = {OptKind::Thread, id(t.lane), target.cores};
    } else {
      // Each thread fills panels of its own: few chunks of the outermost loop with enough for all.
      std::vector<std::size_t> order = images.empty() ? around : images;
      for (std::size_t i = 0; i < k.outputs; ++i) order.push_back(i);
      for (std::size_t i : order) {
        std::int64_t n = left(static_cast<int>(i));
        if (!thread.amount && fixed(k.loops[i]) && n >= target.cores &&
            (static_cast<int>(i) != t.lane || !lane_left))
          thread = {OptKind::Thread, k.loops[i].range_id(),
                    std::min<std::int64_t>(n, n % (2 * target.cores) ? target.cores : 2 * target.cores)};
      }
    }
    if (!thread.amount && lane_left && left(t.lane) >= target.cores)
      thread = {OptKind::Thread, id(t.lane), target.cores};
    if (thread.amount) opts.push_back(thread);
  }
  for (int access : {wide, narrow}) {
    if (access < 0) continue;
    std::int64_t within = access == wide ? wide_within : narrow_within;
    if (access == narrow && blocked && moves(narrow, rows))
      within = id(rows);
    else if (bytes_of(access) > kMostScratch && blocked)
      within = id(t.lane);
    opts.push_back({OptKind::Stage, within, slot_of(k.accesses[static_cast<std::size_t>(access)])});
  }
}

// Work-items for a device with groups: neighbours in the output, or a reduction that a group shares where
// there is little output.
void place_items(Ref tiled, const Target& target, std::vector<Opt>& opts) {
  Kernel k(tiled);
  std::int64_t items = target.max_group, outputs = 1, copies = 1;
  for (std::size_t i = 0; i < k.outputs; ++i) {
    if (k.loops[i].range_kind() == RangeKind::Warp) items /= target.warp;
    std::int64_t n = std::max<std::int64_t>(1, k.loops[i].hi() + 1);
    outputs *= n;
    if (k.loops[i].range_kind() > RangeKind::Reduce) copies *= n;
  }
  std::int64_t shared = 1;
  bool fits = copies * target.max_group * 8 <= target.local_bytes;  // every item's results in shared memory
  if (outputs < target.max_group && fits && k.reduces.size() == 1 && items == target.max_group)
    for (std::size_t i = k.outputs; i < k.body && shared == 1; ++i)
      if (k.loops[i].range_kind() == RangeKind::Reduce && fixed(k.loops[i]) && k.extent(i) >= 32) {
        shared = std::min<std::int64_t>(
            target.warp, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(k.extent(i)))));
        opts.push_back({OptKind::Group, k.loops[i].range_id(), shared});
      }
  items = std::min<std::int64_t>(items / shared, 64);
  int axes = shared > 1 || items < 64 ? 1 : 0;
  for (std::size_t i = k.outputs; i-- > 0 && axes < 3 && items > 1;) {
    if (k.loops[i].range_kind() != RangeKind::Loop || !fixed(k.loops[i])) continue;
    std::int64_t n = std::min<std::int64_t>(
                     {items, k.extent(i), target.max_local[static_cast<std::size_t>(axes)]}),
                 most = n;
    while (n > 1 && k.extent(i) % n && n > most / 2) --n;
    if (k.extent(i) % n) n = most;
    if (n < 2) continue;
    opts.push_back({OptKind::Local, k.loops[i].range_id(), n});
    items /= n;
    ++axes;
  }
}

// A product for a matrix unit, padded to whole tiles where that wastes little.
bool place_matrices(Ref kernel, const Kernel& k, const Target& target, std::vector<Opt>& opts) {
  for (std::size_t core = 0; core < target.tensor_cores.size(); ++core)
    for (std::size_t i = k.outputs; i < k.body; ++i) {
      const TensorCore& unit = target.tensor_cores[core];
      MatrixLoops m = matrix_loops(kernel, k.loops[i], unit);
      if (!m.reduce || !fixed(m.m) || !fixed(m.n) || !fixed(m.k)) continue;
      if (m.m.hi() + 1 < unit.m / 2 || m.n.hi() + 1 < unit.n / 2 || m.k.hi() + 1 < unit.k) continue;
      for (auto [loop, size] : {std::pair(m.m, unit.m), std::pair(m.n, unit.n), std::pair(m.k, unit.k)})
        if ((loop.hi() + 1) % size) opts.push_back({OptKind::PadTo, loop.range_id(), size});
      opts.push_back({OptKind::TensorCore, m.k.range_id(), static_cast<std::int64_t>(core)});
      std::int64_t tiles = tiles_of(m.m.hi() + 1, unit.m);
      if (tiles % 2 == 0) opts.push_back({OptKind::Upcast, m.m.range_id(), 2});
      return true;
    }
  return false;
}

// A kernel to look for a tile in: as it was given, or with a window.
struct Way {
  Ref kernel;
  std::vector<Opt> opts{};
  double fill = 0;  // cycles per element of the reduction that it takes to fill the window
};

// Boxes behind gates that are read many times and fit the cache.
Way with_window(Ref kernel, const Target& target) {
  Kernel k(kernel);
  for (const Access& a : k.accesses) {
    std::int64_t slot = slot_of(a);
    if (a.store || a.index.nsrc() < 3 || slot < 0 || k.body == k.outputs) continue;
    Window w = window(kernel, slot, target);
    double bytes = w.elements * static_cast<double>(itemsize(a.dtype));
    if (!w.kernel || w.reads < 16 * w.elements || bytes > static_cast<double>(target.l2) / 2) continue;
    return {w.kernel, {{OptKind::Window, 0, slot}}, 1.5 * w.elements / w.reads};
  }
  return {kernel};
}

}  // namespace

std::vector<Opt> choose_options(Ref kernel, const Target& target) {
  Way way{kernel};
  Found found;
  if (!target.has_groups && target.vector_bytes > 0) {
    Way other = with_window(kernel, target);
    if (!other.opts.empty()) {
      Kernel plain(kernel), boxed(other.kernel);
      Found a = best_tile(plain, CostModel(plain, target)), b = best_tile(boxed, CostModel(boxed, target));
      // Gates in the inner loops cost more than their count says.
      if (b.cost.cycles + other.fill <= 1.15 * a.cost.cycles) way = other;
    }
  }
  std::vector<Opt>& opts = way.opts;
  Kernel k(way.kernel);
  if (k.loops.empty()) return opts;
  double work = 1;
  for (Ref l : k.loops) work *= static_cast<double>(std::max<std::int64_t>(1, l.src(0).hi()));
  CostModel model(k, target);
  bool matrices = place_matrices(way.kernel, k, target, opts);
  if (target.vector_bytes > 0 && !matrices) {
    found = best_tile(k, model);
    const Tile& tile = found.tile;
    if (tile.lanes > 1)
      opts.push_back({OptKind::Lane, k.loops[static_cast<std::size_t>(tile.lane)].range_id(), tile.lanes});
    for (std::size_t i = 0; i < 2; ++i)
      if (tile.amount[i] > 1)
        opts.push_back(
            {OptKind::Upcast, k.loops[static_cast<std::size_t>(tile.loop[i])].range_id(), tile.amount[i]});
    // A reduction along the lanes with few accumulators waits for each addition: several at once.
    if (tile.lane >= 0 && k.is_reduce(static_cast<std::size_t>(tile.lane))) {
      std::int64_t rest = tiles_of(k.extent(static_cast<std::size_t>(tile.lane)), tile.lanes),
                   unroll = model.unroll_of(tile);
      if (unroll > 1 && rest % unroll == 0 && rest > 1)
        opts.push_back({OptKind::Unroll, k.loops[static_cast<std::size_t>(tile.lane)].range_id(), unroll});
    }
  }
  auto tiled = [&] {
    Ref t = kernel;
    for (const Opt& o : opts) t = apply(t, o, target);
    return t;
  };
  // Threads only where each has enough to do to be worth waking.
  bool parallel = target.cores > 1 && work >= 32768;
  if (target.has_groups)
    place_items(tiled(), target, opts);
  else if (found.cost.staged)
    place_panels(k, model, found, parallel, target, opts);
  else if (parallel)
    if (Opt o = threads(Kernel(tiled()), target); o.amount) opts.push_back(o);
  return opts;
}

}  // namespace pg::codegen
