#include "codegen/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/cost_model.h"
#include "codegen/dot.h"
#include "codegen/nests.h"
#include "codegen/scatter.h"
#include "codegen/window.h"

namespace pg::codegen {
namespace {

bool fixed(Ref loop) { return loop.src(0).is_const(); }
std::int64_t tiles_of(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

struct Found {
  Tile tile;
  CostModel::Cost cost{std::numeric_limits<double>::infinity(), 0, 0};
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
              !(c.in_panels >> a & 1) &&
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
    if (k.loops[i].range_kind() != RangeKind::Loop || !fixed(k.loops[i]) || !(k.shared >> i & 1)) continue;
    std::int64_t n = k.extent(i);
    for (std::int64_t chunks = std::min<std::int64_t>(n, 4 * target.cores); chunks >= target.cores; --chunks)
      if (n % chunks == 0 && chunks % target.cores == 0)
        return {OptKind::Thread, k.loops[i].range_id(), chunks};
  }
  for (std::size_t i = 0; i < k.outputs; ++i)
    if (k.loops[i].range_kind() == RangeKind::Loop && fixed(k.loops[i]) && k.shared >> i & 1 &&
        k.extent(i) >= 2 * target.cores)
      return {OptKind::Thread, k.loops[i].range_id(), target.cores};
  return {OptKind::Thread, 0, 0};
}

// How many tiles of `n` to run through before the next panel of the other operand: few enough for their rows
// to stay in the cache, many enough to pay for the panel, and none left over where that can be.
// All of them where they fit, or two blocks would do but a panel of the other operand is far from the core.
std::int64_t block_of(std::int64_t n, double bytes_of_tile, bool far, const Target& target) {
  constexpr std::int64_t kMost = 12;
  auto most = static_cast<std::int64_t>(static_cast<double>(target.l2) / 2 / bytes_of_tile);
  if (n <= most || (far && n <= 2 * kMost)) return n;
  most = std::clamp<std::int64_t>(most, 1, kMost);
  std::int64_t best = most, waste = tiles_of(n, most) * most - n;
  for (std::int64_t per = most - 1; per >= std::max<std::int64_t>(1, most / 2); --per)
    if (std::int64_t w = tiles_of(n, per) * per - n; w < waste) best = per, waste = w;
  return best;
}

// How much of a loop a tile takes at a time.
std::int64_t amount_of(const Tile& t, int loop) {
  std::int64_t n = loop == t.lane ? t.lanes : 1;
  for (std::size_t i = 0; i < 2; ++i)
    if (t.loop[i] == loop) n *= t.amount[i];
  return n;
}

// Without panels: outermost the loop in whose turns the least is read again, where the cache does not hold
// it.
void order_loops(const Kernel& k, const CostModel& model, const Tile& t, const Target& target,
                 std::vector<Opt>& opts) {
  auto again = [&](std::size_t loop) {
    double bytes = 0;
    for (std::size_t a = 0; a < k.accesses.size(); ++a)
      if (!k.accesses[a].store && !(model.loops_of(a) >> loop & 1))
        bytes += model.panel_elements(a) * static_cast<double>(itemsize(k.accesses[a].dtype));
    return bytes;
  };
  std::size_t best = 0;
  for (std::size_t i = 0; i < k.outputs; ++i) {
    if (!fixed(k.loops[i])) return;
    if (tiles_of(k.extent(i), amount_of(t, static_cast<int>(i))) > 1 && again(i) < again(best) / 2) best = i;
  }
  if (best && again(0) > static_cast<double>(target.l2) / 2)
    opts.push_back({OptKind::Reorder, k.loops[best].range_id(), 0});
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
  auto left = [&](int loop) {
    return tiles_of(k.extent(static_cast<std::size_t>(loop)), amount_of(t, loop));
  };
  double reduction = 1;
  for (std::size_t i = k.outputs; i < k.body; ++i) reduction *= static_cast<double>(k.extent(i));

  // The tiled loop that the wide panel does not move with: its tiles are run through in blocks, and a narrow
  // panel holds the rows of one.
  int rows = -1;
  for (std::size_t i = 0; i < 2; ++i)
    if (t.loop[i] >= 0 && t.loop[i] != t.lane) rows = t.loop[i];
  bool lane_left = t.lane >= 0 && t.lane < static_cast<int>(k.outputs) && left(t.lane) > 1;
  auto bytes_of = [&](int access) {
    auto a = static_cast<std::size_t>(access);
    return model.panel_elements(a) * model.panel_element_bytes(a);
  };
  bool far = wide >= 0 && bytes_of(wide) / target.cores > static_cast<double>(target.l2) / 2;
  bool blocked = rows >= 0 && lane_left && wide >= 0 && !moves(wide, rows) && (narrow >= 0 || far);
  bool one_block = false;  // each part of the wide panel is filled, used and left
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
                                          (column * static_cast<double>(amount_of(t, t.lane))));
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
    double bytes = static_cast<double>(amount_of(t, rows)) * reduction *
                   (narrow >= 0 ? model.panel_element_bytes(static_cast<std::size_t>(narrow))
                                : static_cast<double>(itemsize(k.accesses[0].dtype)));
    std::int64_t per = block_of(left(rows), bytes, far, target);
    if (per > 1 && per < left(rows)) opts.push_back({OptKind::Split, id(rows), per});
    opts.push_back({OptKind::Reorder, id(t.lane), 0});
    one_block = per >= left(rows);
    if (!one_block) opts.push_back({OptKind::Reorder, id(rows), 0});
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
      within = one_block ? kWholeKernel : id(rows);
    else if (blocked && (one_block || bytes_of(access) > kMostScratch))
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
  bool gated = false;
  for (Ref n : toposort(kernel)) gated |= n.is(Op::Index) && n.nsrc() > 2;
  if (!gated) return {kernel};
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

void place_tile(const Kernel& k, const CostModel& model, const Tile& tile, std::vector<Opt>& opts) {
  auto id = [&](int loop) { return k.loops[static_cast<std::size_t>(loop)].range_id(); };
  if (tile.lanes > 1) opts.push_back({OptKind::Lane, id(tile.lane), tile.lanes});
  for (std::size_t i = 0; i < 2; ++i)
    if (tile.amount[i] > 1) opts.push_back({OptKind::Upcast, id(tile.loop[i]), tile.amount[i]});
  // A reduction along the lanes with few accumulators waits for each addition: several at once.
  if (tile.lane >= 0 && k.is_reduce(static_cast<std::size_t>(tile.lane))) {
    std::int64_t rest = tiles_of(k.extent(static_cast<std::size_t>(tile.lane)), tile.lanes),
                 unroll = model.unroll_of(tile);
    if (unroll > 1 && rest % unroll == 0 && rest > 1)
      opts.push_back({OptKind::Unroll, id(tile.lane), unroll});
  }
}

// The loop of a reduction over rows of memory too large for the caches, each read once, from row to row by
// pages: its results are better kept close by while it passes over the rows one after the other. -1: none.
int swept(const Kernel& k, const CostModel& model, const Tile& tile, bool parallel, const Target& target) {
  constexpr double kPage = 4096;
  if (tile.lane < 0 || k.is_reduce(static_cast<std::size_t>(tile.lane)) || k.reduces.size() != 1) return -1;
  auto lane = static_cast<std::size_t>(tile.lane);
  for (int t : tile.loop)
    if (t >= 0 && t != tile.lane) return -1;
  // One output loop, or a second one outside that is shared out altogether.
  if (k.outputs > 2 || (k.outputs == 2 && (!parallel || !fixed(k.loops[0]) || k.extent(0) < target.cores)))
    return -1;
  if (lane + 1 != k.outputs || k.extent(lane) % tile.lanes || k.extent(lane) / tile.lanes < 2) return -1;
  double results = static_cast<double>(k.extent(lane)) * static_cast<double>(itemsize(k.reduces[0].dtype()));
  if (results > static_cast<double>(target.l2) / 2) return -1;
  for (std::size_t a = 0; a < k.accesses.size(); ++a) {
    const Access& access = k.accesses[a];
    auto size = static_cast<double>(itemsize(access.dtype));
    bool once = !access.store && access.strides[lane].regular && access.strides[lane].value == 1;
    std::size_t row = k.outputs;
    for (std::size_t i = 0; i < k.body; ++i) {
      const Stride& s = access.strides[i];
      once &= fixed(k.loops[i]) && s.regular && s.value && !access.gated[i];
      if (k.is_reduce(i) && s.value > access.strides[row].value) row = i;
    }
    if (once && model.panel_elements(a) * size > static_cast<double>(target.l2 * target.cores) &&
        static_cast<double>(access.strides[row].value) * size >= kPage)
      return static_cast<int>(row);
  }
  return -1;
}

// Elements named one by one: lanes and threads along other loops than the one that is named, where a row is
// long enough.
bool place_scatter(Ref kernel, const Kernel& k, bool parallel, const Target& target, std::vector<Opt>& opts) {
  constexpr std::int64_t kFew = 16;  // elements that are better compared with each name
  Ref loop = named_loop(kernel);
  if (!loop || loop.hi() < kFew) return false;
  const Access& out =
      *std::find_if(k.accesses.begin(), k.accesses.end(), [](const Access& a) { return a.store; });
  std::int64_t lanes = 1, threads = 0;
  for (std::size_t i = k.outputs; i-- > 0 && lanes == 1;) {
    std::int64_t each = target.lanes_of(out.dtype);
    bool lines = out.strides[i].regular && out.strides[i].value == 1 && !same(k.loops[i], loop);
    if (!lines || !fixed(k.loops[i]) || each < 2 || k.extent(i) % each) continue;
    for (const Access& a : k.accesses)
      lines &= a.store || (a.strides[i].regular && (a.strides[i].value == 1 || !a.strides[i].value));
    if (!lines) continue;
    lanes = each;
    opts.push_back({OptKind::Lane, k.loops[i].range_id(), lanes});
    if (parallel && k.extent(i) / lanes >= 4 * target.cores) threads = k.loops[i].range_id() + 1;
  }
  if (parallel && !threads && fixed(loop) && loop.hi() >= target.cores) threads = loop.range_id() + 1;
  if (threads) opts.push_back({OptKind::Thread, threads - 1, target.cores});
  opts.push_back({OptKind::Scatter, loop.range_id(), 0});
  return true;
}

// Lanes, threads and the sweep along loop `row`.
void place_sweep(const Kernel& k, const Tile& tile, std::size_t row, bool parallel, const Target& target,
                 std::vector<Opt>& opts) {
  constexpr std::int64_t kRows = 8;  // at a time
  auto id = [&](std::size_t loop) { return k.loops[loop].range_id(); };
  if (parallel)
    for (std::size_t i = 0; i < k.outputs; ++i) {
      std::int64_t n = k.extent(i) / (static_cast<int>(i) == tile.lane ? tile.lanes : 1);
      if (n < target.cores) continue;
      // Rows as long as can be, so that pages are read whole.
      opts.push_back({OptKind::Thread, id(i), i + 1 < k.outputs ? n : target.cores});
      break;
    }
  std::int64_t rows = kRows;
  while (k.extent(row) % rows) --rows;
  opts.push_back({OptKind::Sweep, id(row), rows});
}

// Outputs that leave the caches anyway and that whole lines, or neighbours one after the other, are stored
// to.
void place_streams(const Kernel& k, const Tile& tile, const Target& target, std::vector<Opt>& opts) {
  if (!target.stream_bytes || tile.lane < 0 || k.is_reduce(static_cast<std::size_t>(tile.lane))) return;
  auto lane = static_cast<std::size_t>(tile.lane);
  for (const Access& a : k.accesses) {
    if (!a.store || slot_of(a) < 0 || a.index.nsrc() > 2) continue;
    std::int64_t size = static_cast<std::int64_t>(itemsize(a.dtype)), bytes = size;
    for (std::size_t i = 0; i < k.outputs; ++i)
      if (a.strides[i].value || !a.strides[i].regular) bytes *= k.extent(i);
    bool read = std::any_of(k.accesses.begin(), k.accesses.end(),
                            [&](const Access& b) { return !b.store && slot_of(b) == slot_of(a); });
    bool whole = a.strides[lane].regular && a.strides[lane].value == 1 && k.extent(lane) % tile.lanes == 0 &&
                 (tile.lanes * size % 64 == 0 || (lane + 1 == k.outputs && k.body == k.outputs));
    if (bytes >= target.stream_bytes && whole && !read) opts.push_back({OptKind::Stream, 0, slot_of(a)});
  }
}

// One of several nests: loops that another turns in stay as they are.
void place_nest(Ref nest, const Kernel& whole, std::uint64_t outer, const Target& target,
                std::vector<Opt>& opts) {
  Kernel k(nest);
  for (std::size_t i = 0; i < k.outputs; ++i)
    if (outer >> whole.loop_of(k.loops[i]) & 1) k.pinned |= std::uint64_t{1} << i;
  CostModel model(k, target);
  Tile tile = best_tile(k, model).tile;
  place_tile(k, model, tile, opts);
  if (k.body == k.outputs) place_streams(k, tile, target, opts);
}

}  // namespace

std::vector<Opt> choose_options(Ref kernel, const Target& target) {
  Ref given = kernel;
  std::vector<Opt> dot;
  if (target.has(Op::DotBytes) && target.vector_bytes > 0 && !target.has_groups)
    if (Ref loop = loop_of_bytes(kernel))
      if (Ref words = dot_of_bytes(kernel, loop)) {
        dot.push_back({OptKind::Dot, loop.range_id(), 0});
        kernel = words;
      }
  Way way{kernel};
  Found found;
  bool tried = false;
  if (!target.has_groups && target.vector_bytes > 0) {
    Way other = with_window(kernel, target);
    if (!other.opts.empty()) {
      Kernel plain(kernel), boxed(other.kernel);
      Found a = best_tile(plain, CostModel(plain, target)), b = best_tile(boxed, CostModel(boxed, target));
      // Gates in the inner loops cost more than their count says.
      bool boxes = b.cost.cycles + other.fill <= 1.3 * a.cost.cycles;
      if (boxes) way = other;
      found = boxes ? b : a;
      tried = true;
    }
  }
  std::vector<Opt>& opts = way.opts;
  opts.insert(opts.begin(), dot.begin(), dot.end());
  Kernel k(way.kernel);
  if (k.loops.empty()) return opts;
  double work = 1;
  for (Ref l : k.loops) work *= static_cast<double>(std::max<std::int64_t>(1, l.src(0).hi()));
  // Threads only where each has enough to do to be worth waking.
  bool parallel = target.cores > 1 && work >= 32768;
  if (!target.has_groups && place_scatter(way.kernel, k, parallel, target, opts)) return opts;
  CostModel model(k, target);
  int row = -1;  // the loop of a reduction that is swept
  bool matrices = place_matrices(way.kernel, k, target, opts);
  if (target.vector_bytes > 0 && !matrices) {
    if (!tried) found = best_tile(k, model);
    if (!target.has_groups) row = swept(k, model, found.tile, parallel, target);
    // Copies are those of rows, and what is read once needs no panel.
    if (row >= 0) found = {.tile = {.lane = found.tile.lane, .lanes = found.tile.lanes}};
    Nests nests = target.has_groups || row >= 0 ? Nests() : nests_of(k);
    // Lanes along an output loop that all nests share serve them all.
    if (nests.kernels.empty() || (found.tile.lane >= 0 && nests.shared >> found.tile.lane & 1)) {
      place_tile(k, model, found.tile, opts);
    } else {
      found = {};
      for (Ref nest : nests.kernels) place_nest(nest, k, nests.outer, target, opts);
    }
  }
  auto tiled = [&] {
    Ref t = given;
    for (const Opt& o : opts) t = apply(t, o, target);
    return t;
  };
  if (target.has_groups)
    place_items(tiled(), target, opts);
  else if (row >= 0)
    place_sweep(k, found.tile, static_cast<std::size_t>(row), parallel, target, opts);
  else if (found.cost.staged)
    place_panels(k, model, found, parallel, target, opts);
  else if (model.has_reduction() && std::isfinite(found.cost.cycles) &&
           static_cast<std::size_t>(std::popcount(k.shared)) == k.outputs)
    order_loops(k, model, found.tile, target, opts);
  if (!target.has_groups && row < 0 && !found.cost.staged && parallel)
    if (Opt o = threads(Kernel(tiled()), target); o.amount) opts.push_back(o);
  if (!target.has_groups) place_streams(k, found.tile, target, opts);
  return opts;
}

}  // namespace pg::codegen
