#include "codegen/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/kernel.h"

namespace pg::codegen {
namespace {

constexpr std::int64_t kTiles[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};

// One way to run the inner loop: a loop for the lanes, and copies of up to two output loops in registers.
struct Tile {
  int lane = -1;
  std::int64_t lanes = 1;
  int loop[2] = {-1, -1};
  std::int64_t amount[2] = {1, 1};
};

class Model {
 public:
  Model(const Kernel& kernel, const Target& target) : k_(kernel), t_(target), masks_(dependences(kernel)) {
    for (const Access& a : k_.accesses) {
      widest_ = std::max(widest_, static_cast<int>(itemsize(a.dtype)));
      reduced_.push_back(inside_reduce(a));
    }
    for (Ref n : toposort(k_.sink)) {
      if (n.has(kElementwise) && n.dtype() != DType::WeakInt &&
          !(n.has(kComparison) && n.src(0).dtype() == DType::WeakInt)) {
        double w = n.is(Op::Div) || n.is(Op::Sqrt) ? 8 : n.is(Op::Cast) ? 0.5 : is_exact(n.op()) ? 1 : 20;
        work_.emplace_back(masks_.at(n.node()), w);
      }
    }
  }

  // Lanes worth trying for a loop: a register's worth, or the power of two that covers a short loop.
  std::int64_t lanes_for(std::size_t loop) const {
    std::int64_t full = std::max(1, t_.vector_bytes / std::max(1, widest_));
    std::int64_t n = k_.extent(loop);
    return std::min(full, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n))));
  }

  // Cycles per element of the output, or of the reduction where there is one.
  double cost(const Tile& tile) const {
    double lanes = static_cast<double>(tile.lanes);
    double useful = 1;  // share of lanes and copies that compute something wanted
    auto waste = [&](int loop, std::int64_t amount) {
      if (loop < 0 || amount <= 1) return;
      double n = static_cast<double>(k_.extent(static_cast<std::size_t>(loop)));
      useful *= n / (std::ceil(n / static_cast<double>(amount)) * static_cast<double>(amount));
    };
    waste(tile.lane, tile.lanes);
    for (int i = 0; i < 2; ++i) waste(tile.loop[i], tile.amount[i]);
    double copies_all = static_cast<double>(tile.amount[0] * tile.amount[1]);

    auto copies = [&](std::uint64_t mask) {
      double c = 1;
      for (int i = 0; i < 2; ++i)
        if (tile.loop[i] >= 0 && mask >> tile.loop[i] & 1) c *= static_cast<double>(tile.amount[i]);
      return c;
    };
    double cycles = 0, registers = 0;
    double amortise = inner_trips(tile);
    for (std::size_t a = 0; a < k_.accesses.size(); ++a) {
      const Access& access = k_.accesses[a];
      std::uint64_t mask = 0;
      bool irregular = false;
      for (std::size_t i = 0; i < k_.loops.size(); ++i)
        if (access.strides[i].value || !access.strides[i].regular || access.gated[i])
          mask |= std::uint64_t{1} << i;
      double n = copies(mask), each = 0.5;
      bool lane_matters = tile.lane >= 0 && tile.lanes > 1 && mask >> tile.lane & 1;
      if (lane_matters) {
        const Stride& s = access.strides[static_cast<std::size_t>(tile.lane)];
        irregular = !s.regular || s.value != 1;
        bool masked = access.gated[static_cast<std::size_t>(tile.lane)] ||
                      k_.extent(static_cast<std::size_t>(tile.lane)) % tile.lanes;
        if (irregular)
          each = access.store ? 2.5 * lanes : 1.2 * lanes;
        else if (masked && !t_.masks(access.dtype))
          each = 2 * lanes;
        else
          each = access.store ? 1 : masked ? 0.8 : 0.5;
        if (!s.regular) each += 4;
      }
      // Unaligned rows cross cache lines; scalars that are broadcast cost a load as well.
      for (std::size_t i = 0; i < k_.loops.size(); ++i)
        if (access.gated[i] && !(tile.lane >= 0 && static_cast<std::size_t>(tile.lane) == i)) each += 0.25;
      // What lies outside the innermost reduction happens once per run of it.
      cycles += n * each / (reduced_[a] ? 1 : amortise);
      if (reduced_[a] && !access.store) registers = std::max(registers, lane_matters ? n : 1);
    }
    for (auto [mask, w] : work_) {
      bool in_reduction = mask & reduction_mask();
      bool vector = tile.lane >= 0 && mask >> tile.lane & 1;
      cycles += copies(mask) * w * (vector || tile.lanes == 1 ? 0.5 : 0.3) /
                (in_reduction || !has_reduction() ? 1 : amortise);
    }
    if (has_reduction()) {
      // The accumulators themselves, and how well their latency is hidden.
      double accumulators = copies_all, latency = 4, per_cycle = 2;
      bool lane_reduces = tile.lane >= 0 && k_.is_reduce(static_cast<std::size_t>(tile.lane));
      double chains = accumulators * (lane_reduces ? unroll_of(tile) : 1);
      cycles += accumulators * 0.5;
      cycles = std::max(cycles, accumulators * latency / std::min(chains, latency * per_cycle) /
                                    (chains < latency * per_cycle ? 1 : per_cycle * 1.0));
      if (accumulators + registers + 1 > t_.vector_registers)
        cycles += (accumulators + registers + 1 - t_.vector_registers) * 2;
      if (lane_reduces) cycles += accumulators * 6 / amortise;  // the fold of the lanes
    } else if (copies_all > 4) {
      cycles += copies_all * 0.1;
    }
    cycles += 1;  // the loop
    return cycles / (lanes * copies_all * useful);
  }

  bool has_reduction() const { return k_.loops.size() > k_.outputs; }
  std::uint64_t reduction_mask() const {
    std::uint64_t all = k_.loops.size() >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << k_.loops.size()) - 1;
    return all & ~((std::uint64_t{1} << k_.outputs) - 1);
  }
  std::int64_t unroll_of(const Tile& tile) const { return tile.amount[0] * tile.amount[1] >= 8 ? 1 : 4; }

 private:
  double inner_trips(const Tile& tile) const {
    double n = 1;
    for (std::size_t i = k_.outputs; i < k_.loops.size(); ++i) {
      double e = static_cast<double>(k_.extent(i));
      if (tile.lane == static_cast<int>(i)) e = std::ceil(e / static_cast<double>(tile.lanes));
      n *= e;
    }
    return n;
  }
  bool inside_reduce(const Access& a) const {
    for (std::size_t i = k_.outputs; i < k_.loops.size(); ++i)
      if (a.strides[i].value || !a.strides[i].regular || a.gated[i]) return true;
    return false;
  }

  const Kernel& k_;
  const Target& t_;
  absl::flat_hash_map<Node*, std::uint64_t> masks_;
  std::vector<std::pair<std::uint64_t, double>> work_;
  std::vector<bool> reduced_;
  int widest_ = 1;
};

Tile best_tile(const Kernel& k, const Model& model) {
  std::vector<int> lanes{-1};
  for (std::size_t i = 0; i < k.loops.size(); ++i)
    if (k.loops[i].src(0).is_const() && model.lanes_for(i) > 1) lanes.push_back(static_cast<int>(i));
  Tile best;
  double least = std::numeric_limits<double>::infinity();
  auto consider = [&](const Tile& t) {
    double c = model.cost(t);
    if (c < least * 0.999) {
      least = c;
      best = t;
    }
  };
  for (int lane : lanes) {
    Tile t;
    t.lane = lane;
    t.lanes = lane < 0 ? 1 : model.lanes_for(static_cast<std::size_t>(lane));
    consider(t);
    for (std::size_t a = 0; a < k.outputs; ++a) {
      if (!k.loops[a].src(0).is_const()) continue;
      for (std::int64_t x : kTiles) {
        std::int64_t room_a =
            static_cast<int>(a) == lane ? (k.extent(a) + t.lanes - 1) / t.lanes : k.extent(a);
        if (x == 1 || x > room_a) continue;
        // The lane loop tiles in whole vectors only where they fit; the others must divide, to stay exact and
        // cheap.
        if (room_a % x) continue;
        t.loop[0] = static_cast<int>(a), t.amount[0] = x, t.loop[1] = -1, t.amount[1] = 1;
        if (model.has_reduction() || x <= 4) consider(t);
        if (!model.has_reduction()) continue;
        for (std::size_t b = a + 1; b < k.outputs; ++b) {
          if (!k.loops[b].src(0).is_const()) continue;
          for (std::int64_t y : kTiles) {
            std::int64_t room_b =
                static_cast<int>(b) == lane ? (k.extent(b) + t.lanes - 1) / t.lanes : k.extent(b);
            if (y == 1 || y > room_b || room_b % y || x * y > 32) continue;
            t.loop[1] = static_cast<int>(b), t.amount[1] = y;
            consider(t);
          }
        }
      }
    }
  }
  return best;
}

}  // namespace

std::vector<Opt> choose_options(Ref kernel, const Target& target) {
  Kernel k(kernel);
  std::vector<Opt> opts;
  double work = 1;
  for (Ref l : k.loops) work *= static_cast<double>(std::max<std::int64_t>(1, l.src(0).hi()));
  if (target.vector_bytes > 0 && !k.loops.empty()) {
    Model model(k, target);
    Tile tile = best_tile(k, model);
    if (tile.lanes > 1)
      opts.push_back({OptKind::Lane, k.loops[static_cast<std::size_t>(tile.lane)].range_id(), tile.lanes});
    for (int i = 0; i < 2; ++i)
      if (tile.amount[i] > 1)
        opts.push_back(
            {OptKind::Upcast, k.loops[static_cast<std::size_t>(tile.loop[i])].range_id(), tile.amount[i]});
    // A reduction along the lanes with few accumulators waits for each addition: several at once.
    if (tile.lane >= 0 && k.is_reduce(static_cast<std::size_t>(tile.lane))) {
      std::int64_t left = (k.extent(static_cast<std::size_t>(tile.lane)) + tile.lanes - 1) / tile.lanes,
                   unroll = model.unroll_of(tile);
      if (unroll > 1 && left % unroll == 0 && left > 1)
        opts.push_back({OptKind::Unroll, k.loops[static_cast<std::size_t>(tile.lane)].range_id(), unroll});
    }
  }
  // Threads: enough chunks for every core, each worth waking one for.
  if (target.cores > 1 && work >= 32768) {
    Ref tiled = kernel;
    for (const Opt& o : opts) tiled = apply(tiled, o, target);
    Kernel t(tiled);
    std::int64_t best = 0, amount = 0;
    for (std::size_t i = 0; i < t.outputs; ++i) {
      if (t.loops[i].range_kind() != RangeKind::Loop || !t.loops[i].src(0).is_const()) continue;
      std::int64_t n = t.extent(i);
      // The outermost loop that splits evenly among the cores; else the one with the least rest.
      for (std::int64_t chunks = std::min<std::int64_t>(n, 4 * target.cores); chunks >= target.cores;
           --chunks)
        if (n % chunks == 0 && chunks % target.cores == 0) {
          best = t.loops[i].range_id();
          amount = chunks;
          break;
        }
      if (amount) break;
    }
    if (!amount)
      for (std::size_t i = 0; i < t.outputs && !amount; ++i)
        if (t.loops[i].range_kind() == RangeKind::Loop && t.loops[i].src(0).is_const() &&
            t.extent(i) >= 2 * target.cores) {
          best = t.loops[i].range_id();
          amount = target.cores;
        }
    if (amount) opts.push_back({OptKind::Thread, best, amount});
  }
  return opts;
}

}  // namespace pg::codegen
