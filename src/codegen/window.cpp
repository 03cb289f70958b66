#include "codegen/window.h"

#include <algorithm>
#include <cstdlib>

#include <absl/container/inlined_vector.h>

#include "codegen/kernel.h"
#include "codegen/stage.h"
#include "rewrite/rewrite.h"
#include "rules/symbolic.h"

namespace pg::codegen {
namespace {

// A position in the input: factor * loop + factor * loop + ...
struct Coordinate {
  std::int64_t step = 0;  // in memory
  std::vector<std::pair<std::size_t, std::int64_t>> terms;
  std::int64_t least = 0, size = 1;
  std::int64_t reach = 1;  // size by the loops of the reduction alone
};

class Windows {
 public:
  Windows(Ref kernel, const Target& target) : k_(kernel), t_(target), masks_(dependences(k_)) {}

  Window run(std::int64_t slot) {
    const Access* access = nullptr;
    for (const Access& a : k_.accesses)
      if (slot_of(a) == slot) {
        if (access || a.store) return {};
        access = &a;
      }
    if (!access || access->index.nsrc() < 3 || !find(*access)) return {};
    Ref gate = access->index.src(2);
    if (!along(gate)) return {};

    Fresh fresh(k_.sink);
    std::vector<Ref> dims, read;
    absl::InlinedVector<std::pair<Ref, Ref>, 8> at;
    Window out{nullptr, 1, 1};
    for (const Coordinate& c : coordinates_) {
      dims.push_back(range(fresh.range++, RangeKind::Loop, idx(c.size)));
      Ref place = idx(-c.least), back = dims.back() + c.least;
      // The loop that moves by one step takes the whole position.
      auto unit =
          std::find_if(c.terms.begin(), c.terms.end(), [](auto& t) { return std::abs(t.second) == 1; });
      for (auto it = c.terms.begin(); it != c.terms.end(); ++it) {
        Ref loop = k_.loops[it->first];
        place = place + loop * it->second;
        at.emplace_back(loop, it == unit ? back * it->second : idx(0));
        out.reads *= static_cast<double>(k_.extent(it->first));
      }
      read.push_back(place);
      out.elements *= static_cast<double>(c.size);
    }
    for (std::size_t i = 0; i < k_.outputs; ++i)
      if (!(panel_ >> i & 1) && !(masks_.at(access->index.node()) >> i & 1))
        out.reads *= static_cast<double>(k_.extent(i));

    auto order = toposort(k_.sink);
    Ref load;
    for (Ref n : order)
      if (n.is(Op::Load) && same(n.src(0), access->index)) load = n;
    if (load.nsrc() > 1) return {};
    Ref value = whole(load, order);
    Ref filling = rewrite(substitute(value, at), rules::symbolic(), {.name = "simplify window"});
    absl::InlinedVector<std::pair<Ref, Ref>, 1> one{{value, panel(filling, dims, read, fresh, t_)}};
    out.kernel = rewrite(substitute(k_.sink, one), rules::symbolic(), {.name = "simplify window"});
    return out;
  }

 private:
  // Coordinates: the loops of the reduction, each with the output loops whose boxes overlap along it.
  bool find(const Access& a) {
    std::uint64_t gated = 0;
    for (std::size_t i = 0; i < k_.body; ++i) {
      if (!a.strides[i].regular) return false;
      if (a.gated[i]) gated |= std::uint64_t{1} << i;
    }
    auto add = [&](Coordinate& c, std::size_t i) {
      std::int64_t factor = a.strides[i].value / c.step, last = factor * (k_.extent(i) - 1);
      c.terms.emplace_back(i, factor);
      c.least += std::min<std::int64_t>(0, last);
      c.size += std::abs(last);
      panel_ |= std::uint64_t{1} << i;
      if (i >= k_.outputs) c.reach = c.size;
    };
    bool slides = false;
    for (std::size_t i = k_.body; i-- > 0;) {
      std::int64_t step = std::abs(a.strides[i].value);
      if (!step) {
        if (gated >> i & 1) return false;
        continue;
      }
      if (!k_.loops[i].src(0).is_const()) return false;
      bool output = i < k_.outputs;
      auto same_line = std::find_if(coordinates_.begin(), coordinates_.end(), [&](const Coordinate& c) {
        return step % c.step == 0 && step / c.step < c.reach;
      });
      if (same_line != coordinates_.end()) {
        slides = true;
        add(*same_line, i);
      } else if (!output || gated >> i & 1) {
        coordinates_.push_back({.step = step, .terms = {}});
        add(coordinates_.back(), i);
      }
    }
    std::sort(coordinates_.begin(), coordinates_.end(), [](auto& x, auto& y) { return x.step > y.step; });
    return slides && !coordinates_.empty();
  }

  // What is computed from the load and from others that move as it does, step by step up from it.
  Ref whole(Ref load, std::span<const Ref> order) {
    std::uint64_t outputs = (std::uint64_t{1} << k_.outputs) - 1, allowed = panel_ | masks_.at(load.node());
    Ref top = load;
    for (Ref n : order) {
      bool stands_on =
          std::any_of(n.srcs().begin(), n.srcs().end(), [&](Node* s) { return s == top.node(); });
      if (!stands_on) continue;
      bool fits = n.has(kElementwise) && !(masks_.at(n.node()) & outputs & ~allowed) && along(n);
      if (!fits) break;
      top = n;
    }
    return top;
  }

  // Whether x depends on the loops of the panel only through the coordinates.
  bool along(Ref x) {
    if (!(masks_.at(x.node()) & panel_)) return true;
    // A sum, or two that are compared: what counts is their difference.
    bool compares = x.has(kComparison) && x.src(0).dtype() == DType::WeakInt;
    if (compares || x.is(Op::Range) || x.is(Op::Add) || x.is(Op::Sub) || x.is(Op::Neg) ||
        (x.is(Op::Mul) && x.src(1).is_const())) {
      std::vector<Stride> strides(k_.loops.size());
      collect_strides(compares ? x.src(0) : x, 1, k_, masks_, strides);
      if (compares) collect_strides(x.src(1), -1, k_, masks_, strides);
      bool regular = true;
      for (std::size_t i = 0; i < k_.body; ++i) regular &= !(panel_ >> i & 1) || strides[i].regular;
      if (regular) {
        for (const Coordinate& c : coordinates_)
          for (auto [i, factor] : c.terms)
            if (strides[i].value * c.terms[0].second != strides[c.terms[0].first].value * factor)
              return false;
        return true;
      }
    }
    if (x.is(Op::Range) || x.is(Op::Reduce) || (x.is(Op::Load) && !x.src(0).is(Op::Index))) return false;
    for (Node* s : x.srcs())
      if (!along(s)) return false;
    return true;
  }

  Kernel k_;
  const Target& t_;
  absl::flat_hash_map<Node*, std::uint64_t> masks_;
  std::vector<Coordinate> coordinates_;
  std::uint64_t panel_ = 0;  // loops that the coordinates are made of
};

}  // namespace

Window window(Ref kernel, std::int64_t slot, const Target& target) {
  return Windows(kernel, target).run(slot);
}

}  // namespace pg::codegen
