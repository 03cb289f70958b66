#include "codegen/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <string>

#include "codegen/choose.h"
#include "codegen/cost_model.h"

namespace pg::codegen {
namespace {

using Options = std::vector<Opt>;

std::string key_of(const Options& options) {
  std::string key;
  for (const Opt& o : options) key += to_string(o);
  return key;
}

std::vector<std::int64_t> other_amounts(const Opt& o) {
  if (o.kind == OptKind::Upcast) {
    const auto* at = std::lower_bound(std::begin(kTiles), std::end(kTiles), o.amount);
    std::vector<std::int64_t> out;
    if (at != std::begin(kTiles)) out.push_back(at[-1]);
    if (at != std::end(kTiles) && at + 1 != std::end(kTiles)) out.push_back(at[1]);
    return out;
  }
  bool scales = o.kind == OptKind::Split || o.kind == OptKind::Lane || o.kind == OptKind::Unroll ||
                o.kind == OptKind::Thread || o.kind == OptKind::Local || o.kind == OptKind::Group;
  if (!scales) return {};
  if (o.amount < 4) return {o.amount * 2};
  return {o.amount / 2, o.amount * 2};
}

}  // namespace

std::vector<Options> one_step_from(const Options& options, Ref kernel, const Target& target) {
  Kernel k(kernel);
  std::vector<Options> out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (std::int64_t amount : other_amounts(options[i])) {
      out.push_back(options);
      out.back()[i].amount = amount;
    }
    if (options[i].kind == OptKind::Lane)
      for (std::size_t l = 0; l < k.body; ++l) {
        if (k.loops[l].range_id() == options[i].loop) continue;
        out.push_back(options);
        out.back()[i].loop = k.loops[l].range_id();
      }
    if (options[i].kind == OptKind::Split) continue;  // later options name its loops
    out.push_back(options);
    out.back().erase(out.back().begin() + static_cast<std::ptrdiff_t>(i));
  }
  auto has = [&](OptKind kind, auto matches) {
    return std::any_of(options.begin(), options.end(),
                       [&](const Opt& o) { return o.kind == kind && matches(o); });
  };
  // What shapes the inner loop stands before what splits and orders the rest.
  auto after_tile = std::find_if(options.begin(), options.end(), [](const Opt& o) {
    return o.kind != OptKind::Window && o.kind != OptKind::Dot && o.kind != OptKind::Lane &&
           o.kind != OptKind::Upcast && o.kind != OptKind::Unroll && o.kind != OptKind::PadTo &&
           o.kind != OptKind::TensorCore;
  });
  auto insert = [&](const Opt& o) {
    out.push_back(options);
    out.back().insert(out.back().begin() + (after_tile - options.begin()), o);
  };
  for (std::size_t l = 0; l < k.body; ++l) {
    std::int64_t id = k.loops[l].range_id();
    OptKind kind = k.is_reduce(l) ? OptKind::Unroll : OptKind::Upcast;
    if (!k.loops[l].src(0).is_const() || has(kind, [&](const Opt& o) { return o.loop == id; })) continue;
    for (std::int64_t amount : {2, 4}) insert({kind, id, amount});
  }
  if (!has(OptKind::Lane, [](const Opt&) { return true; }))
    for (std::size_t l = 0; l < k.body; ++l)
      insert({OptKind::Lane, k.loops[l].range_id(), std::max<std::int64_t>(2, target.lanes_of(f32))});
  if (!target.has_groups)
    for (const Access& a : k.accesses) {
      std::int64_t slot = slot_of(a);
      if (!a.store || slot < 0 || !is_concrete(a.index.src(0).src(0)) ||
          has(OptKind::Stream, [&](const Opt& o) { return o.amount == slot; }))
        continue;
      std::int64_t bytes = numel(a.index.src(0).src(0)) * static_cast<std::int64_t>(itemsize(a.dtype));
      if (bytes < target.l2) continue;
      out.push_back(options);
      out.back().push_back({OptKind::Stream, 0, slot});
    }
  if (!target.has_groups && k.body > k.outputs)
    for (const Access& a : k.accesses) {
      std::int64_t slot = slot_of(a);
      if (a.store || slot < 0) continue;
      if (has(OptKind::Stage, [&](const Opt& o) { return o.amount == slot; })) continue;
      out.push_back(options);
      out.back().push_back({OptKind::Stage, kWholeKernel, slot});
    }
  return out;
}

SearchResult search(const UOp& kernel, const Target& target, const SearchLimits& limits, const Trial& trial,
                    const Options* so_far) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  struct Tried {
    Options options;
    double seconds;
  };
  std::vector<Tried> best;
  std::set<std::string> seen;
  SearchResult out;
  auto attempt = [&](std::span<const Options> lists) {
    std::vector<double> seconds = trial(lists);
    out.trials += static_cast<int>(lists.size());
    for (std::size_t i = 0; i < lists.size(); ++i)
      if (std::isfinite(seconds[i])) best.push_back({lists[i], seconds[i]});
  };
  // Those that were not tried yet.
  auto fresh = [&](std::vector<Options> lists) {
    std::erase_if(lists, [&](const Options& o) { return !seen.insert(key_of(o)).second; });
    return lists;
  };
  auto sort = [&] {
    std::sort(best.begin(), best.end(), [](const Tried& a, const Tried& b) { return a.seconds < b.seconds; });
  };
  {
    GraphScope scope;
    out.options = choose_options(kernel, target);
  }
  std::vector<Options> first{out.options};
  attempt(fresh(first));
  if (best.empty()) return out;
  out.first = out.seconds = best[0].seconds;
  if (so_far) attempt(fresh({*so_far}));
  sort();
  auto end = begin + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(std::min(limits.seconds, limits.runs * out.first)));
  auto over = [&] { return Clock::now() >= std::min(end, limits.until); };
  for (double before = best[0].seconds; !over(); before = best[0].seconds) {
    std::vector<Options> next;
    {
      GraphScope scope;
      for (const Tried& t : best)
        for (Options& o : one_step_from(t.options, kernel, target)) next.push_back(std::move(o));
    }
    next = fresh(std::move(next));
    for (std::size_t at = 0; at < next.size() && !over(); at += limits.batch)
      attempt(std::span(next).subspan(at, std::min(limits.batch, next.size() - at)));
    sort();
    if (best.size() > limits.width) best.resize(limits.width);
    if (best[0].seconds > before * (1 - limits.worth)) break;
  }
  out.finished = Clock::now() < limits.until;
  out.options = best[0].options;
  out.seconds = best[0].seconds;
  return out;
}

}  // namespace pg::codegen
