// What a way to run a kernel's inner loop costs, in cycles, without running it: instructions, registers,
// lanes and copies that compute nothing wanted, lines that miss the nearest cache, panels to be filled.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/kernel.h"
#include "ir/target.h"

namespace pg::codegen {

/// Copies of an output loop worth trying.
inline constexpr std::int64_t kTiles[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};

/// One way to run the inner loop: a loop for the lanes, and copies of up to two output loops in registers.
struct Tile {
  int lane = -1;
  std::int64_t lanes = 1;
  std::array<int, 2> loop{-1, -1};
  std::array<std::int64_t, 2> amount{1, 1};
};

class CostModel {
 public:
  CostModel(const Kernel& kernel, const Target& target);

  /// Lanes worth trying for a loop: a register's worth, or the power of two that covers a short loop.
  std::int64_t lanes_for(std::size_t loop) const;

  struct Cost {
    double cycles = 0;            // per element of the output, or of the reduction where there is one
    std::uint64_t staged = 0;     // accesses that are better read from a panel, which is theirs
    std::uint64_t in_panels = 0;  // and others that such a panel reads too
  };
  Cost cost(const Tile& tile) const;

  bool has_reduction() const { return k_.body > k_.outputs; }
  std::int64_t unroll_of(const Tile& tile) const { return tile.amount[0] * tile.amount[1] >= 8 ? 1 : 4; }
  /// Loops that an access moves with.
  std::uint64_t loops_of(std::size_t access) const { return moves_[access]; }
  /// Elements of the panel of an access, over all loops it moves with.
  double panel_elements(std::size_t access) const;
  /// Of what the panel of an access holds.
  double panel_element_bytes(std::size_t access) const { return panels_[access].element_bytes; }

 private:
  double inner_trips(const Tile& tile) const;
  double steps_of_staged(const Tile& tile, std::size_t access) const;
  std::pair<double, double> lines_of(const Tile& tile, std::size_t access) const;
  double scattered(const Tile& tile, std::size_t access, double copies) const;
  double misses(const Tile& tile, std::size_t access) const;
  double streams(const Tile& tile, std::size_t access, double vectors) const;
  std::uint64_t reduction_mask() const;
  double extents(std::uint64_t loops) const;
  double share(std::uint64_t loops) const;

  const Kernel& k_;
  const Target& t_;
  struct Work {
    std::uint64_t loops;
    double instructions;   // in one turn of the inner loop
    std::uint64_t panels;  // of which accesses the panel holds its result
  };
  struct Panel {
    double element_bytes = 0, instructions = 0;  // those that fill an element, but for loads
    std::uint64_t accesses = 0;                  // others that it reads from
  };
  std::vector<Work> work_;
  std::vector<Panel> panels_;          // by access
  std::uint64_t works_in_panels_ = 0;  // accesses whose panels hold more than what is loaded
  std::vector<std::uint64_t> moves_;
  std::vector<std::uint64_t> side_sums_;  // of the inner loop, that move with fewer loops than others
  std::vector<double> shares_;            // by access
  std::uint64_t main_ = 0;                // loops of the longest reduction, which is the inner loop
  double main_trips_ = 1;
  std::vector<bool> stageable_;  // by access
  double trips_ = 1;             // of the inner loop, in all
  int widest_ = 1;
};

}  // namespace pg::codegen
