// Selection of a candidate on a device, the conditions that depend on it, and the report to which it adds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "arith/residual_fit.hpp"
#include "split/acceptance.hpp"
#include "split/tiles.hpp"

namespace kintsugi::core {

// Result of fit_residual() for a batch item, with the weights of products: cuBLAS reads its scalars here, in
// device memory.
struct DeviceFit {
  ResidualFit residual;
  float weight = 1;  // 2^-residual_exponent
  float one = 1;
  float zero = 0;
};

// Selection of a batch item, in device memory; written by select().
struct DeviceSelection {
  static constexpr std::int32_t scaled = -1;  // only beta C is computed: alpha is 0
  static constexpr std::int32_t none = -2;    // no candidate accepts the operands: C becomes NaN
  static constexpr std::int32_t ended = -3;   // no further checked candidate computes this block of C

  std::int32_t candidate = 0;
  RangeSummary a;
  RangeSummary b;
  DeviceFit fit;                // if the candidates fit residuals
  std::uint32_t ruled_out = 0;  // used by split_by_norms() only
};

// Stands in a schedule's group_exponents for the exponent of DeviceFit::weight, which only the device knows.
inline constexpr int fitted_exponent = std::numeric_limits<std::int16_t>::min();

// Condition of a step: its kernels exit early unless this candidate was selected. selection = nullptr: they
// always run. For a step with several batch items the selections are contiguous.
struct DeviceCondition {
  const DeviceSelection* selection = nullptr;
  std::int32_t candidate = 0;
  // True if the selection was made before the preceding step began: kernels may then read it before their
  // grid-dependency wait and exit without waiting, so that the early exits of an unselected candidate's
  // kernels overlap the products of the preceding step.
  bool selected_earlier = false;
};

// Counts of slices of Ozaki scheme I, summed over the blocks of C that each have their own number of slices.
struct DeviceSliceCounts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  // max_successive_slices less the fewest slices of any block: zeroed memory then means the most slices.
  std::int32_t fewest_slices_below_most = 0;
  std::int32_t max_products = 0;
};

// Report of a call on a device, in device memory, for kintsugi_report(); select() adds to it or writes all of
// it.
struct DeviceReport {
  static constexpr int max_candidates = 4;  // one of them is selected

  std::int64_t items[max_candidates] = {};  // batch items that selected each candidate
  std::int64_t scaled = 0;
  std::int64_t unreachable = 0;  // items that no candidate accepts
  std::int64_t special = 0;      // items with NaN or infinities in A or B
  std::int32_t dynamic_range_a = 0;
  std::int32_t dynamic_range_b = 0;
  std::int64_t fitted = 0;  // items whose residuals were fitted
  ResidualFit fit;          // of the last of these items
  DeviceSliceCounts slices;
  std::int64_t recomputed = 0;  // elements of C that a check left open
  TileCounts tiles_a;           // tiles of A, for programs with exponents per tile
  TileCounts tiles_b;
};

// The report to which select() adds its items, and how.
struct DeviceReporting {
  DeviceReport* report = nullptr;
  bool begins = false;  // true: the call's only selection, for all items; select() overwrites the report
  // True if no step depends on the selection, so that its kernel may overlap the preceding step,
  // multiply_fused(); a short product would otherwise wait for that kernel.
  bool overlaps_products = false;
};

// Candidates of select(): a batch item takes the first one that accepts() its operands.
struct DeviceCandidates {
  Acceptance acceptances[DeviceReport::max_candidates] = {};
  int count = 0;
  // If the item's residuals are fitted: the format of its slices, and the scale that the scheme sets.
  bool fits = false;
  Format format{};
  std::int32_t residual_exponent = 0;
  // Coefficient of |A||B| that norms must prove for every element of C.
  double coefficient = 0;

  bool needs_norms() const {
    return std::any_of(acceptances, acceptances + count, [](const Acceptance& a) { return a.by_norms(); });
  }
};

}  // namespace kintsugi::core
