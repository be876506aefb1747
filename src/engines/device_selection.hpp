// Selection of a candidate on a device, the conditions that depend on it, and the report to which it adds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "arith/split_rule.hpp"
#include "split/acceptance.hpp"
#include "split/tiles.hpp"

namespace kintsugi::core {

// Result of fit_residual() for a batch item, with the weights of products. cuBLAS reads the weights as its
// scalars, from device memory.
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
  DeviceFit fit;                // only set if the candidates fit residuals
  std::uint32_t ruled_out = 0;  // only used by split_by_norms()
};

// Value in a schedule's group_exponents that stands for the exponent of DeviceFit::weight, which only the
// device knows.
inline constexpr int fitted_exponent = std::numeric_limits<std::int16_t>::min();

// Condition of a step. Its kernels exit early unless this candidate was selected; with selection = nullptr
// they always run. For a step with several batch items the selections are contiguous.
struct DeviceCondition {
  const DeviceSelection* selection = nullptr;
  std::int32_t candidate = 0;
  // True if the selection was made before the preceding step began. Kernels may then read it before their
  // grid-dependency wait and exit without waiting. So the early exits of an unselected candidate's kernels
  // overlap the products of the preceding step.
  bool selected_earlier = false;
};

// Counts of Ozaki scheme I, summed over blocks of C. Each block has its own number of slices.
struct DeviceSliceCounts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  // max_successive_slices minus the fewest slices of any block. So zeroed memory means the most slices.
  std::int32_t fewest_slices_below_most = 0;
  std::int32_t max_products = 0;
};

// Report of a call in device memory, for kintsugi_report(). select() adds to it, or writes all of it.
struct DeviceReport {
  static constexpr int max_candidates = 4;  // most candidates among which a device selects

  std::int64_t items[max_candidates] = {};  // batch items that selected each candidate
  std::int64_t scaled = 0;
  std::int64_t unreachable = 0;  // items that no candidate accepts
  std::int64_t special = 0;      // items with NaN or infinities in A or B
  std::int32_t dynamic_range_a = 0;
  std::int32_t dynamic_range_b = 0;
  std::int64_t fitted = 0;  // items whose residuals were fitted
  ResidualFit fit;          // the fit of the last of these items
  DeviceSliceCounts slices;
  std::int64_t recomputed = 0;  // elements of C that checks left open
  TileCounts tiles_a;           // tiles of A, for programs with exponents per tile
  TileCounts tiles_b;
};

struct DeviceReporting {
  DeviceReport* report = nullptr;
  bool begins = false;  // true: this is the call's only selection, so select() overwrites the report
  // True if no step depends on the selection. Then its kernel may overlap the preceding step,
  // multiply_fused(); after a short product it would otherwise take additional time.
  bool overlaps_products = false;
};

// Candidates of select(). A batch item takes the first candidate that accepts its operands.
struct DeviceCandidates {
  Acceptance acceptances[DeviceReport::max_candidates] = {};
  int count = 0;
  // True if residuals are fitted. `format` is the slices' format, residual_exponent the scale that the scheme
  // sets.
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
