// Data of checked candidates on a device: the check, the elements that it leaves open, and the decision which
// candidate computes a block of C next. All pointers are device pointers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/step_data.hpp"
#include "recombine/element_check.hpp"

namespace kintsugi::core {

// Rounding errors of an operand's vectors first ... first + vectors - 1. The side's ranges have the scales of
// their split. `errors` has an element for each vector of the operand.
struct DeviceRoundingErrors {
  DeviceSide side;
  RoundingErrors* errors = nullptr;
  std::int64_t first = 0;
  std::int64_t vectors = 0;
};

// Test that the elements of a checked tile must pass (host: recombine/recombine.hpp).
struct DeviceCheck {
  const RoundingErrors* rows = nullptr;  // of all vectors of A
  const RoundingErrors* columns = nullptr;
  ElementDemand demand;
  // Products of magnitudes rounded down, laid out as the sums. Times magnitude_unit they are in the units of
  // the integers' products. nullptr: there are none; then only the integers themselves can prove an element.
  const std::int64_t* magnitudes = nullptr;
  double magnitude_unit = 0;
};

// Checked candidates of a plan, the cheapest first.
struct DeviceCheckedChain {
  static constexpr int max_candidates = DeviceReport::max_candidates;

  int first = 0;  // index of the chain's first candidate among the plan's candidates
  int count = 0;
  double terms[max_candidates] = {};  // cost of each candidate: products of slices per element of C
  // SplitRule::top_exponent of each candidate's splits.
  int top_a[max_candidates] = {};
  int top_b[max_candidates] = {};
  int sum_bits[max_candidates] = {};  // SplitRule::sum_bits of splits that scale by norms, else 0
  double exact_sum_cost = 0;          // cost of the exact sum of one element, in the unit of `terms`
};

// Progress of one block of C, and the sample that decides which candidate a batch item begins with.
struct DeviceCheckState {
  DeviceSelection current;            // selects the candidate that computes the block next
  std::uint64_t open = 0;             // number of elements that the last candidate left open
  std::uint32_t is_rewritten = 0;     // 1 if another candidate has computed the block before
  std::uint32_t listed = 0;           // number of listed masks (DeviceOpenElements::list)
  std::uint32_t taken = 0;            // number of listed masks that a thread block has begun to recompute
  std::uint32_t sampling_blocks = 0;  // thread blocks that have added to the sample
  // Expected number of sampled elements that each candidate leaves open, in units of 2^-chance_bits.
  static constexpr int chance_bits = 24;
  std::uint64_t chances[DeviceCheckedChain::max_candidates] = {};
};

// Elements of a block of C, or of a tile of it, that the last checked candidate left open.
struct DeviceOpenElements {
  DeviceCheckState* state = nullptr;  // state of the block
  // Bit i % 32 of masks[i / 32 + j masks_per_column] is set if element (i, j) of the block or tile is open. A
  // column of masks has one bit per row; the number of rows is rounded up to a multiple of 128.
  std::uint32_t* masks = nullptr;
  std::int64_t masks_per_column = 0;
  std::uint32_t* list = nullptr;  // indices of the masks that are not zero
  // True if open elements may be summed in their own type (FP32 or FP64) unless they can overflow or
  // underflow. False if all of them are summed exactly.
  bool in_own_arithmetic = false;

  static constexpr std::int64_t row_multiple = 128;
  static constexpr std::int64_t rows_per_mask = 32;
  static constexpr std::int64_t masks_for_rows(std::int64_t rows) {
    return divide_up(rows, row_multiple) * (row_multiple / rows_per_mask);
  }

  // Open elements of the tile that begins at (row, column) of the block. `row` must be a multiple of 128.
  DeviceOpenElements tile(std::int64_t row, std::int64_t column) const {
    DeviceOpenElements elements = *this;
    elements.masks += row / rows_per_mask + column * masks_per_column;
    return elements;
  }
};

// Probability that the check leaves an element open. The element's exact value is within `deviation` of
// `sum`, and it stays open if this interval contains a boundary at which the rounding to `digits` bits
// changes.
KINTSUGI_HOST_DEVICE inline double chance_of_open(double sum, double deviation, int digits) {
  if (deviation == 0) return 0;
  if (sum == 0) return 1;
  const double last_place = times_power_of_two(1, exponent_of(sum) + 1 - digits);
  return std::min(1.0, 2 * deviation / last_place);
}

// Returns the index in the chain of the cheapest candidate from `begin` on, and sets `cost` to its cost. The
// cost includes the exact sums of the elements that stay open. open[c] is the share of elements that
// candidate c is expected to leave open.
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

// Returns the index in the chain of the candidate that computes a block after candidate `index`, which left
// the share `open` of its elements open. Returns chain.count if exact sums of these elements are expected to
// take less time. Each additional bit of the integers halves the number of open elements.
KINTSUGI_HOST_DEVICE inline int next_candidate(const DeviceCheckedChain& chain, int index, double open) {
  constexpr int least_exponent = -60;  // 2^-60 of all elements is less than one element
  double shares[DeviceCheckedChain::max_candidates] = {};
  for (int c = index + 1; c < chain.count; ++c)
    shares[c] = times_power_of_two(open, std::max(chain.top_a[index] - chain.top_a[c], least_exponent));
  if (index + 1 >= chain.count) return chain.count;
  double cost = 0;
  const int next = cheapest_candidate(chain, index + 1, shares, cost);
  return cost < chain.exact_sum_cost * open ? next : chain.count;
}

}  // namespace kintsugi::core
