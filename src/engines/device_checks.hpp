// Candidates whose elements are checked, on a device: the check, the elements that it leaves open, and the
// decision which candidate computes a block of C next. All pointers are device pointers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/exponent.hpp"
#include "arith/host_device.hpp"
#include "engines/device.hpp"
#include "recombine/check/element_check.hpp"

namespace kintsugi::core {

// Test that the elements of a checked tile must pass (host: recombine/residues.hpp).
struct DeviceCheck {
  const RoundingBound* rows = nullptr;  // bounds of all vectors of the operands
  const RoundingBound* columns = nullptr;
  double largest_a = 0;  // bounds of the integers' magnitudes
  double largest_b = 0;
  ElementDemand demand;
  // Products of magnitudes rounded down, laid out as the sums; multiplied by magnitude_unit they are in the
  // units of the integers' products. nullptr: there are none, and only the integers themselves can prove an
  // element.
  const std::int64_t* magnitudes = nullptr;
  double magnitude_unit = 0;
};

// Checked candidates of a plan, the cheapest first.
struct DeviceCheckedChain {
  static constexpr int max_candidates = DeviceReport::max_candidates;

  int first = 0;  // index of the first one among the plan's candidates
  int count = 0;
  double terms[max_candidates] = {};  // each candidate's cost: its products of slices, for one element of C
  // SplitRule::top_exponent of each candidate's splits of A and B.
  int top_a[max_candidates] = {};
  int top_b[max_candidates] = {};
  double exact_sum_cost = 0;  // cost of the exact sum of one element, in the unit of `terms`
};

// Progress of one block of C, and the sample by which the first candidate of a batch item is chosen.
struct DeviceCheckState {
  DeviceSelection current;            // its candidate computes the block next
  std::uint64_t open = 0;             // number of elements that the last candidate left open
  std::uint32_t is_rewritten = 0;     // 1 if another candidate has computed the block before
  std::uint32_t listed = 0;           // number of listed masks (DeviceOpenElements::list)
  std::uint32_t taken = 0;            // number of listed masks that a thread block has begun to recompute
  std::uint32_t sampling_blocks = 0;  // thread blocks that have added to the sample
  // For each candidate, the sum over the sampled elements of the chance that the element stays open after it,
  // in units of 2^-chance_bits.
  static constexpr int chance_bits = 24;
  std::uint64_t chances[DeviceCheckedChain::max_candidates] = {};
};

// Elements of a block of C, or of a tile of it, that the last checked candidate left open.
struct DeviceOpenElements {
  DeviceCheckState* state = nullptr;  // state of the block
  // Bit i % 32 of masks[i / 32 + j masks_per_column] is set if element (i, j) of the block, or tile, is open.
  // A column of masks has a bit for every row, their number rounded up to a multiple of 128.
  std::uint32_t* masks = nullptr;
  std::int64_t masks_per_column = 0;
  std::uint32_t* list = nullptr;  // indices of the masks that are not zero
  // True if open elements may be summed in their own type (FP32 or FP64) where nothing can overflow or
  // underflow; false if all are summed exactly.
  bool in_own_arithmetic = false;

  static constexpr std::int64_t row_multiple = 128;
  static constexpr std::int64_t rows_per_mask = 32;
  static constexpr std::int64_t masks_for_rows(std::int64_t rows) {
    return divide_up(rows, row_multiple) * (row_multiple / rows_per_mask);
  }

  // Open elements of the tile that begins at (row, column) of the block; `row` is a multiple of 128.
  DeviceOpenElements tile(std::int64_t row, std::int64_t column) const {
    DeviceOpenElements elements = *this;
    elements.masks += row / rows_per_mask + column * masks_per_column;
    return elements;
  }
};

// Probability that the check leaves an element open whose exact value is within `deviation` of `sum`: the
// probability that this interval contains a boundary at which the rounding to `digits` bits changes.
KINTSUGI_HOST_DEVICE inline double chance_of_open(double sum, double deviation, int digits) {
  if (deviation == 0) return 0;
  if (sum == 0) return 1;
  const double last_place = times_power_of_two(1, exponent_of(sum) + 1 - digits);
  return std::min(1.0, 2 * deviation / last_place);
}

// Returns the index in the chain of the cheapest candidate from `begin` on, and sets `cost` to its cost,
// exact sums of open elements included. open[c] is the share of elements that candidate c is expected to
// leave open.
KINTSUGI_HOST_DEVICE inline int cheapest_candidate(const DeviceCheckedChain& chain, int begin,
                                                   const double* open, double& cost) {
  int cheapest = begin;
  for (int c = begin; c < chain.count; ++c) {
    const double total = chain.terms[c] + chain.exact_sum_cost * open[c];
    if (c > begin && total >= cost) continue;
    cheapest = c;
    cost = total;
  }
  return cheapest;
}

// Returns the index in the chain of the candidate that follows candidate `index`, which left the share `open`
// of the elements of a block open; chain.count if summing these exactly is expected to take less time. Each
// further bit of the integers halves the number of open elements.
KINTSUGI_HOST_DEVICE inline int next_candidate(const DeviceCheckedChain& chain, int index, double open) {
  constexpr int least_exponent = -60;  // 2^-60 of all elements is none
  double shares[DeviceCheckedChain::max_candidates] = {};
  for (int c = index + 1; c < chain.count; ++c)
    shares[c] = times_power_of_two(open, std::max(chain.top_a[index] - chain.top_a[c], least_exponent));
  if (index + 1 >= chain.count) return chain.count;
  double cost = 0;
  const int next = cheapest_candidate(chain, index + 1, shares, cost);
  return cost < chain.exact_sum_cost * open ? next : chain.count;
}

}  // namespace kintsugi::core
