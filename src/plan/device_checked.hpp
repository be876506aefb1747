// What a checked plan does on a device beside the steps of any other (plan/checked.hpp has the host's way):
//
//   margins     of all vectors, once their ranges are there
//   magnitudes  split, and multiplied tile by tile, where the contract leaves room: a lower bound of |A||B|
//   recombine   the entries that show what is asked for; the others go to a list
//   mend        the list's entries, summed exactly and rounded once
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/device_engine.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

// Rows and columns of the sums of the largest tile.
struct DeviceTileSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// One entry of the batch under a checked plan.
class DeviceChecked {
 public:
  static std::size_t bytes(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile);
  // For the products of magnitudes, which come before the tile's others.
  static std::size_t scratch_bytes(const Plan& plan, const DeviceTileSize& tile);

  // Steps leave at once unless the condition holds.
  DeviceChecked(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile, const Queue& queue,
                const DeviceSide& a, const DeviceSide& b, const DeviceCondition& condition,
                Workspace& workspace);

  void find_margins() const;
  // Of a block's rows of op(A), or of its columns of op(B): real vectors, as in a DeviceSplit.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Of the tile whose vectors begin so far behind the block's.
  void multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* scratch);
  void recombine(const Accumulators& sums, const DeviceTile& tile, DeviceReport* report) const;

 private:
  struct Memory {
    RoundingMargin* margins_a = nullptr;
    RoundingMargin* margins_b = nullptr;
    std::uint32_t* open_count = nullptr;
    std::uint32_t* open_places = nullptr;
    // Of magnitudes, whose scales are not those of the residues.
    VectorRange* ranges_a = nullptr;
    VectorRange* ranges_b = nullptr;
    Slices slices_a;
    Slices slices_b;
    Accumulators sums;
  };

  // visit(pointer, bytes) for every piece of memory, one after the other.
  template <class Visit>
  static void for_each_piece(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile,
                             Memory& memory, const Visit& visit);

  void split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
             std::int64_t first, std::int64_t vectors) const;
  DeviceCheck check() const;

  const Plan& plan_;
  const DeviceEngine& engine_;
  Queue queue_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceCondition condition_;
  Memory memory_;
};

}  // namespace kintsugi::core
