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
    double cycles = 0;         // per element of the output, or of the reduction where there is one
    std::uint64_t staged = 0;  // accesses that are better read from a panel
  };
  Cost cost(const Tile& tile) const;

  bool has_reduction() const { return k_.body > k_.outputs; }
  std::int64_t unroll_of(const Tile& tile) const { return tile.amount[0] * tile.amount[1] >= 8 ? 1 : 4; }
  /// Loops that an access moves with.
  std::uint64_t loops_of(std::size_t access) const { return moves_[access]; }
  /// Elements of the panel of an access, over all loops it moves with.
  double panel_elements(std::size_t access) const;

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
  std::vector<std::pair<std::uint64_t, double>> work_;  // loops of an operation, its instructions
  std::vector<std::uint64_t> moves_;
  std::uint64_t main_ = 0;  // loops of the longest reduction, which is the inner loop
  double main_trips_ = 1;
  std::vector<bool> stageable_;  // by access
  double trips_ = 1;             // of the inner loop, in all
  int widest_ = 1;
};

}  // namespace pg::codegen
