#include "codegen/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

namespace pg::codegen {
namespace {

std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << i; }

// Casts of two instructions: a narrow number is widened, then made a float.
bool widens(DType from, DType to) {
  return is_float(to) && itemsize(from) < itemsize(to) && itemsize(from) <= 2;
}

}  // namespace

CostModel::CostModel(const Kernel& kernel, const Target& target) : k_(kernel), t_(target) {
  auto masks = dependences(kernel);
  for (Ref r : k_.reduces) {
    std::uint64_t loops = masks.at(r.node());
    for (Node* s : r.srcs())
      if (s->op == Op::Range) loops |= bit(static_cast<std::size_t>(k_.loop_of(s)));
    loops &= reduction_mask();
    if (double n = extents(loops); n > main_trips_ || !main_) main_ = loops, main_trips_ = std::max(1.0, n);
  }
  trips_ = extents(bit(k_.outputs) - 1) * main_trips_;
  for (const Access& a : k_.accesses) {
    widest_ = std::max(widest_, static_cast<int>(itemsize(a.dtype)));
    std::uint64_t moves = 0;
    for (std::size_t i = 0; i < k_.body; ++i)
      if (a.strides[i].value || !a.strides[i].regular || a.gated[i]) moves |= bit(i);
    moves_.push_back(moves);
    shares_.push_back(share(moves));
  }
  // A panel is for what a reduction of sizes known reads many times, from one place in the kernel. Panels are
  // bits of a word, so only the first accesses of a very wide kernel may have one.
  for (std::size_t a = 0; a < k_.accesses.size(); ++a) {
    const Access& access = k_.accesses[a];
    bool can = a < 64 && !access.store && moves_[a] & main_ && !(moves_[a] & reduction_mask() & ~main_) &&
               !t_.has_groups && slot_of(access) >= 0;
    can &= panel_elements(a) < trips_;  // what is read once needs no panel
    for (std::size_t i = 0; i < k_.body; ++i) can &= k_.loops[i].src(0).is_const();
    bool again = false;
    for (std::size_t i = 0; i < k_.outputs; ++i) again |= !(moves_[a] >> i & 1) && k_.extent(i) > 1;
    stageable_.push_back(can && again);
  }
  // Products that join an accumulator.
  absl::flat_hash_set<Node*> fused;
  for (Ref r : k_.reduces) {
    widest_ = std::max(widest_, static_cast<int>(itemsize(r.dtype())));
    Ref v = r.src(0);
    if (r.reduce_op() == Op::Add &&
        ((v.is(Op::Mul) && is_float(v.dtype()) && t_.has(Op::MulAcc)) || v.is(Op::DotBytes)))
      fused.insert(v.node());
  }
  std::uint64_t of_sums = 0;
  for (bool all : {true, false})
    for (Ref r : k_.reduces) {
      std::uint64_t loops = masks.at(r.node()), closed = 0;
      for (Node* s : r.srcs())
        if (s->op == Op::Range) closed |= bit(static_cast<std::size_t>(k_.loop_of(s)));
      if (closed != main_) continue;
      if (all)
        of_sums |= loops;
      else if (loops != of_sums)
        side_sums_.push_back(loops);
    }
  auto order = toposort(k_.sink);
  absl::flat_hash_map<Node*, std::uint64_t> panels;  // nodes in the panels of accesses
  panels_.resize(k_.accesses.size());
  for (std::size_t a = 0; a < k_.accesses.size(); ++a) {
    panels_[a].element_bytes = static_cast<double>(itemsize(k_.accesses[a].dtype));
    if (!stageable_[a]) continue;
    auto load = std::find_if(order.begin(), order.end(),
                             [&](Ref n) { return n.is(Op::Load) && same(n.src(0), k_.accesses[a].index); });
    Ref value = panel_value(*load, order, masks);
    auto held = toposort(value);
    for (std::size_t b = 0; b < k_.accesses.size(); ++b) {
      if (b == a) continue;
      bool inside =
          b < 64 && std::any_of(
                        held.begin(), held.end(),
                        [&](Ref n) { return n.is(Op::Load) && same(n.src(0), k_.accesses[b].index); });
      if (inside) panels_[a].accesses |= bit(b);
      if (!inside && slot_of(k_.accesses[b]) == slot_of(k_.accesses[a])) stageable_[a] = false;
    }
    if (!stageable_[a]) {
      panels_[a].accesses = 0;
      continue;
    }
    panels_[a].element_bytes = static_cast<double>(itemsize(value.dtype()));
    for (std::uint64_t rest = panels_[a].accesses; rest; rest &= rest - 1)
      stageable_[static_cast<std::size_t>(std::countr_zero(rest))] = false;
    for (Ref n : held) panels[n.node()] |= bit(a);
  }
  for (Ref n : order) {
    if (n.has(kElementwise) && !fused.contains(n.node()) && n.dtype() != DType::WeakInt &&
        !(n.has(kComparison) && n.src(0).dtype() == DType::WeakInt)) {
      double w = n.is(Op::Div) || n.is(Op::Sqrt)      ? 8
                 : n.is(Op::Mul) && is_int(n.dtype()) ? 2
                 : n.is(Op::Cast)                     ? widens(n.src(0).dtype(), n.dtype()) ? 2 : 0.5
                 : is_exact(n.op())                   ? 1
                 : n.is(Op::Erf) || n.is(Op::Tanh) || n.is(Op::Pow) ? 60
                                                                    : 20;
      auto in = panels.find(n.node());
      work_.push_back(
          {masks.at(n.node()), w * share(masks.at(n.node())), in == panels.end() ? 0 : in->second});
      for (std::size_t a = 0; a < panels_.size(); ++a)
        if (a < 64 && work_.back().panels >> a & 1) panels_[a].instructions += w;
      works_in_panels_ |= work_.back().panels;
    }
  }
}

std::int64_t CostModel::lanes_for(std::size_t loop) const {
  std::int64_t full = std::max(1, t_.vector_bytes / std::max(1, widest_));
  return std::min(full,
                  static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(k_.extent(loop)))));
}

std::uint64_t CostModel::reduction_mask() const {
  std::uint64_t all = k_.body >= 64 ? ~std::uint64_t{0} : bit(k_.body) - 1;
  return all & ~(bit(k_.outputs) - 1);
}

double CostModel::extents(std::uint64_t loops) const {
  double n = 1;
  for (std::size_t i = 0; i < k_.body; ++i)
    if (loops >> i & 1) n *= static_cast<double>(k_.extent(i));
  return n;
}

// How often what moves with these loops happens in one turn of the inner loop.
double CostModel::share(std::uint64_t loops) const {
  return has_reduction() ? std::min(1.0, extents(loops & reduction_mask()) / main_trips_) : 1;
}

double CostModel::panel_elements(std::size_t access) const { return extents(moves_[access]); }

double CostModel::inner_trips(const Tile& tile) const {
  bool lanes = tile.lane >= 0 && main_ >> tile.lane & 1;
  return lanes ? std::ceil(main_trips_ / static_cast<double>(tile.lanes)) : main_trips_;
}

// Cycles to fill the panel, per turn of the inner loop of all threads together. Each thread fills its own,
// unless they share out a loop that the access moves with.
double CostModel::steps_of_staged(const Tile& tile, std::size_t access) const {
  const Access& a = k_.accesses[access];
  bool contiguous = false;
  for (std::size_t i = 0; i < k_.body; ++i)
    contiguous |= a.strides[i].regular && a.strides[i].value == 1 &&
                  (i >= k_.outputs || tile.lane == static_cast<int>(i));
  bool lanes_move = tile.lane >= 0 && moves_[access] >> tile.lane & 1;
  if (lanes_move)
    contiguous = a.strides[static_cast<std::size_t>(tile.lane)].regular &&
                 a.strides[static_cast<std::size_t>(tile.lane)].value == 1;
  double each = contiguous                          ? 0.4
                : lanes_move && t_.gathers(a.dtype) ? 1.2
                                                    : 2,
         lanes = static_cast<double>(t_.lanes_of(f32));
  const Panel& panel = panels_[access];
  each += 0.5 * panel.instructions / lanes + 0.25 * std::popcount(panel.accesses);
  if (std::find(a.gated.begin(), a.gated.end(), true) != a.gated.end()) each += 1;
  double turns = trips_ / static_cast<double>(tile.lanes * tile.amount[0] * tile.amount[1]);
  bool shared = lanes_move && tile.lane < static_cast<int>(k_.outputs);
  return panel_elements(access) * each / turns * (shared ? 1 : std::min(2, t_.cores));
}

// Cycles of one turn of the inner loop that it takes to bring in the vectors of a reduction along the lanes:
// whole rows pass between two uses, of this access and all others.
double CostModel::streams(const Tile& tile, std::size_t access, double vectors) const {
  const Access& a = k_.accesses[access];
  auto lane = static_cast<std::size_t>(tile.lane);
  if (!a.strides[lane].regular || std::abs(a.strides[lane].value) != 1) return 0;
  double bytes = vectors * static_cast<double>(tile.lanes) * static_cast<double>(itemsize(a.dtype));
  // The innermost output loop sweeps over all of what moves with it, and past the same of the rest; and all
  // of that passes for each turn of the loops in which a window is filled.
  std::uint64_t around = k_.pinned & (bit(k_.outputs) - 1);
  bool swept = (k_.outputs > 0 && moves_[access] >> (k_.outputs - 1) & 1) || around & ~moves_[access];
  double passed =
      swept ? panel_elements(access) * static_cast<double>(itemsize(a.dtype)) : 2 * bytes * inner_trips(tile);
  return passed > static_cast<double>(t_.l2) * 0.75 ? bytes / t_.l3_bytes_per_cycle : 0;
}

// Lines that the lanes and copies of a tile touch: runs of neighbours, and how many lines each has.
std::pair<double, double> CostModel::lines_of(const Tile& tile, std::size_t access) const {
  const Access& a = k_.accesses[access];
  auto size = static_cast<double>(itemsize(a.dtype));
  double runs = 1, length = 1;
  auto spread = [&](int loop, double amount) {
    const Stride& s = a.strides[static_cast<std::size_t>(loop)];
    double gap = s.regular ? std::abs(static_cast<double>(s.value)) * size : 64;
    if (gap >= 64)
      runs *= amount;
    else if (gap > 0)
      length *= std::max(1.0, amount * gap / 64);
  };
  for (std::size_t i = 0; i < 2; ++i)
    if (tile.loop[i] >= 0)
      spread(tile.loop[i],
             static_cast<double>(tile.amount[i] * (tile.loop[i] == tile.lane ? tile.lanes : 1)));
  if (tile.lane >= 0 && tile.lane != tile.loop[0] && tile.lane != tile.loop[1])
    spread(tile.lane, static_cast<double>(tile.lanes));
  return {runs, length};
}

// Cycles to store a tile whose lanes lie apart: one by one, and each line is brought in for some of it.
double CostModel::scattered(const Tile& tile, std::size_t access, double copies) const {
  const Access& a = k_.accesses[access];
  const Stride& s = a.strides[static_cast<std::size_t>(tile.lane)];
  auto [runs, length] = lines_of(tile, access);
  bool far = !s.regular || std::abs(s.value) * static_cast<std::int64_t>(itemsize(a.dtype)) >= 2048;
  return copies * static_cast<double>(tile.lanes) * 1.2 + runs * length * (far ? 6 : 2);
}

// Cycles of one turn of the inner loop spent waiting for lines.
double CostModel::misses(const Tile& tile, std::size_t access) const {
  const Access& a = k_.accesses[access];
  if (!(moves_[access] & main_)) return 0;
  auto inner = static_cast<std::size_t>(std::bit_width(main_) - 1);
  auto size = static_cast<double>(itemsize(a.dtype));
  double step = std::abs(static_cast<double>(a.strides[inner].value)) * size;
  if (!a.strides[inner].regular) return 0;
  if (tile.lane == static_cast<int>(inner)) {
    // Rows that other copies read again, from further away than the nearest cache.
    double rows = 1;
    for (std::size_t i = 0; i < 2; ++i)
      if (tile.loop[i] >= 0 && moves_[access] >> tile.loop[i] & 1)
        rows *= static_cast<double>(tile.amount[i]);
    bool again = ~moves_[access] & (bit(k_.outputs) - 1);
    double bytes = static_cast<double>(k_.extent(inner)) * size;
    return again && rows * bytes > static_cast<double>(t_.l1) / 2
               ? rows * static_cast<double>(tile.lanes) * size / t_.l2_bytes_per_cycle
               : 0;
  }
  // Copies that are neighbours in memory share lines, and lines that are neighbours come cheaper.
  auto [runs, length] = lines_of(tile, access);
  double lines = runs * length;
  double fresh = std::min(1.0, step / 64);  // share of them that are new at each turn
  // Steps of a page share few sets of the caches.
  bool crowded = step >= 4096 && std::fmod(step, 4096) == 0;
  double footprint = static_cast<double>(k_.extent(inner)) * lines * fresh * 64 * (crowded ? 8 : 1);
  bool far = footprint >= static_cast<double>(t_.l2);
  // Steps that no prefetcher follows, through what no cache holds: each line is waited for.
  bool cold = step >= 2048 && panel_elements(access) * size > static_cast<double>(t_.l2);
  double wait = cold ? 20 : far ? 10 : footprint > static_cast<double>(t_.l1) / 2 ? 3 : 0.2;
  return runs * (1 + (far ? 0.4 : 0.8) * (length - 1)) * fresh * wait;
}

CostModel::Cost CostModel::cost(const Tile& tile) const {
  Cost out;
  double lanes = static_cast<double>(tile.lanes);
  double useful = 1;  // share of lanes and copies that compute something wanted
  auto waste = [&](int loop, std::int64_t amount) {
    if (loop < 0 || amount <= 1) return;
    double n = static_cast<double>(k_.extent(static_cast<std::size_t>(loop)));
    useful *= n / (std::ceil(n / static_cast<double>(amount)) * static_cast<double>(amount));
  };
  std::array<std::int64_t, 2> amount = tile.amount;
  if (tile.lane >= 0) {
    std::int64_t whole = tile.lanes;
    for (std::size_t i = 0; i < 2; ++i)
      if (tile.loop[i] == tile.lane) whole *= std::exchange(amount[i], 1);
    waste(tile.lane, whole);
  }
  for (std::size_t i = 0; i < 2; ++i) waste(tile.loop[i], amount[i]);
  double copies_all = static_cast<double>(tile.amount[0] * tile.amount[1]);

  auto copies = [&](std::uint64_t mask) {
    double c = 1;
    for (std::size_t i = 0; i < 2; ++i)
      if (tile.loop[i] >= 0 && mask >> tile.loop[i] & 1) c *= static_cast<double>(tile.amount[i]);
    return c;
  };
  // Whether copies along a loop end in the middle of one: exact only behind a gate.
  auto ragged = [&](std::uint64_t mask) {
    for (std::size_t i = 0; i < 2; ++i)
      if (tile.loop[i] >= 0 && mask >> tile.loop[i] & 1) {
        std::int64_t whole = tile.amount[i] * (tile.loop[i] == tile.lane ? tile.lanes : 1);
        if (k_.extent(static_cast<std::size_t>(tile.loop[i])) % whole) return true;
      }
    return false;
  };
  double memory = 0, arithmetic = 0, held = 0;  // held: copies of the factor that has fewer
  double amortise = inner_trips(tile);
  // Of an access in place, for one turn of the inner loop.
  auto direct_cost = [&](std::size_t a) {
    const Access& access = k_.accesses[a];
    std::uint64_t mask = moves_[a];
    double each = 0.5;
    bool apart = false;
    bool lane_matters = tile.lane >= 0 && tile.lanes > 1 && mask >> tile.lane & 1;
    if (lane_matters) {
      const Stride& s = access.strides[static_cast<std::size_t>(tile.lane)];
      bool irregular = !s.regular || s.value != 1;
      apart = irregular;
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
    for (std::size_t i = 0; i < k_.body; ++i)
      if (access.gated[i] && !(tile.lane >= 0 && static_cast<std::size_t>(tile.lane) == i)) each += 0.25;
    if (ragged(mask)) each += 1.5;
    double n = copies(mask), cost = n * each;
    if (access.store && apart && !(mask & main_)) return scattered(tile, a, n) * shares_[a];
    if (mask & main_) cost += misses(tile, a);
    if (mask & main_ && lane_matters && k_.is_reduce(static_cast<std::size_t>(tile.lane)))
      cost += streams(tile, a, n);
    return cost * shares_[a];
  };
  // What stands outside of lanes that add up happens once for all of them.
  bool lanes_add = tile.lane >= 0 && main_ >> tile.lane & 1;
  auto arithmetic_of = [&](const Work& work) {
    bool vector = tile.lane >= 0 && work.loops >> tile.lane & 1;
    if (lanes_add && !(work.loops & main_)) return copies(work.loops) * work.instructions * 0.3 * lanes;
    return copies(work.loops) * work.instructions * (vector || tile.lanes == 1 ? 0.5 : 0.3);
  };
  absl::InlinedVector<double, 8> direct;
  for (std::size_t a = 0; a < k_.accesses.size(); ++a) direct.push_back(direct_cost(a));
  // Of memory and arithmetic the larger counts, and a fifth of the other (see below).
  double work_in_memory = 0;
  if (works_in_panels_) {
    double all = copies_all * 0.5;
    for (const Work& work : work_) all += arithmetic_of(work);
    work_in_memory = all > std::accumulate(direct.begin(), direct.end(), 0.0) ? 5 : 0.2;
  }
  for (std::size_t a = 0; a < k_.accesses.size(); ++a) {
    std::uint64_t mask = moves_[a];
    if (!stageable_[a] || !(mask & main_)) continue;
    double n = copies(mask), in_place = direct[a];
    bool lane_matters = tile.lane >= 0 && tile.lanes > 1 && mask >> tile.lane & 1;
    // Lanes along the reduction: a panel turns what does not lie along them.
    if (tile.lane >= static_cast<int>(k_.outputs)) {
      const Stride& s = k_.accesses[a].strides[static_cast<std::size_t>(tile.lane)];
      if (!lane_matters || (s.regular && s.value == 1)) continue;
    }
    for (std::uint64_t rest = panels_[a].accesses; rest; rest &= rest - 1)
      in_place += direct[static_cast<std::size_t>(std::countr_zero(rest))];
    if (works_in_panels_ >> a & 1)
      for (const Work& work : work_)
        if (work.panels >> a & 1) in_place += work_in_memory * arithmetic_of(work);
    double lines = n * (lane_matters ? lanes : 1) * panels_[a].element_bytes / 64;
    double passed = amortise * lines * 64;
    double rate = passed < static_cast<double>(t_.l2) * 0.4 ? t_.l2_bytes_per_cycle : t_.l3_bytes_per_cycle;
    bool near = passed < static_cast<double>(t_.l1) * 0.75;
    // Lanes of several images in one panel: no block of it could be near.
    bool spread = lane_matters && n > copies(mask & bit(static_cast<std::size_t>(tile.lane))) &&
                  panel_elements(a) * panels_[a].element_bytes > static_cast<double>(t_.l2);
    double staged =
        (n * (spread ? 1.5 : 0.5) + (near ? 0 : lines * 64 / rate) + steps_of_staged(tile, a)) * shares_[a];
    if (staged >= in_place * 0.95) continue;
    out.staged |= bit(a);
    out.in_panels |= bit(a) | panels_[a].accesses;
    direct[a] = staged;
  }
  for (std::size_t a = 0; a < k_.accesses.size(); ++a) {
    if (a < 64 && (out.in_panels & ~out.staged) >> a & 1) continue;
    memory += direct[a];
    double n = copies(moves_[a]);
    if (moves_[a] & main_ && !k_.accesses[a].store) held = held > 0 ? std::min(held, n) : n;
  }
  for (const Work& work : work_)
    if (!(work.panels & out.staged)) arithmetic += arithmetic_of(work);
  if (has_reduction()) {
    // The accumulators themselves, and how well their latency is hidden.
    double accumulators = copies_all, latency = 4, per_cycle = 2;
    bool lane_reduces = tile.lane >= 0 && k_.is_reduce(static_cast<std::size_t>(tile.lane));
    double chains = accumulators * (lane_reduces ? static_cast<double>(unroll_of(tile)) : 1);
    for (std::uint64_t loops : side_sums_) {
      held += copies(loops);
      arithmetic += copies(loops) * 0.5;
    }
    arithmetic += accumulators * 0.5;
    arithmetic = std::max(arithmetic, accumulators * latency / std::min(chains, latency * per_cycle) /
                                          (chains < latency * per_cycle ? 1 : per_cycle));
    // What does not fit is stored and loaded again.
    if (accumulators + held + 1 > t_.vector_registers)
      memory += (accumulators + held + 1 - t_.vector_registers) * 6;
    if (lane_reduces) arithmetic += accumulators * 6 / amortise;  // the fold of the lanes
  } else if (copies_all > 4) {
    arithmetic += copies_all * 0.1;
  }
  // Both go on at once, not quite; and the loop itself.
  double cycles = std::max(memory, arithmetic) + 0.2 * std::min(memory, arithmetic) + 1;
  out.cycles = cycles / (lanes * copies_all * useful);
  return out;
}

}  // namespace pg::codegen
