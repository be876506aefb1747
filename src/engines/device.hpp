// Operands, results and conditions of the steps of a call on a device (engines/device_engine.hpp). All
// pointers are device pointers unless a comment says otherwise.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "arith/range.hpp"
#include "arith/residual_fit.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/norm_proof.hpp"
#include "arith/rounding_bound.hpp"
#include "arith/split_rule.hpp"
#include "base/memory.hpp"
#include "base/queue.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"
#include "split/acceptance.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"
#include "split/tiles.hpp"

namespace kintsugi::core {

enum class ElementType : std::uint8_t { f32, f64, c32, c64 };

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : type == ElementType::c64 ? 16 : 8;
}

// One matrix of each batch item.
struct DeviceMatrix {
  const void* data = nullptr;  // strided: matrix of item 0; else an array of pointers, in device memory
  bool pointers = false;
  ElementType type = ElementType::f32;
  std::int64_t batch_stride = 0;  // elements from an item to the next
  std::int64_t rows = 0;          // operand: vectors, which are rows of op(A) or columns of op(B); C: m
  std::int64_t columns = 0;       // operand: k; C: n
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  // Complex operands are read as in base/embedding.hpp: op(B) has two real vectors for each column.
  bool right = false;
  bool conjugated = false;

  constexpr bool complex() const { return type == ElementType::c32 || type == ElementType::c64; }
  // Number of real vectors, and their length.
  constexpr std::int64_t vectors() const { return complex() && right ? 2 * rows : rows; }
  constexpr std::int64_t length() const { return complex() ? 2 * columns : columns; }
};

// alpha and beta in the matrices' type: values, or addresses in device memory.
struct DeviceScalars {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;

  bool on_device() const { return device_alpha != nullptr; }
};

// Result of fit_residual() for a batch item, with its weights where products of the vendor library read them.
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

// Exponent of a group whose weight is that of the item's fit.
inline constexpr int fitted_exponent = std::numeric_limits<std::int16_t>::min();

// Condition of a step: its kernels exit early unless this candidate was selected. selection = nullptr: they
// always run. For a step with several batch items the selections are contiguous.
struct DeviceCondition {
  const DeviceSelection* selection = nullptr;
  std::int32_t candidate = 0;
  // The selection was made before the preceding step began, so kernels read it before their grid-dependency
  // wait and exit without waiting. The early exits of an unselected candidate's kernels then overlap the
  // products of the preceding step.
  bool selected_earlier = false;
};

// Counts of slices of Ozaki scheme I, summed over the blocks of C that each have their own number of slices.
struct DeviceSliceCounts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  std::int32_t fewest_slices_below_most = 0;
  std::int32_t max_products = 0;
};

// Report of a call on a device, in device memory, for kintsugi_report(); select() adds to it or writes all of
// it.
struct DeviceReport {
  static constexpr int max_candidates = 4;  // of which one is selected

  std::int64_t items[max_candidates] = {};  // batch items that selected each candidate
  std::int64_t scaled = 0;
  std::int64_t unreachable = 0;  // items that no candidate accepts
  std::int64_t special = 0;      // items with NaN or infinities in A or B
  std::int32_t dynamic_range_a = 0;
  std::int32_t dynamic_range_b = 0;
  std::int64_t fitted = 0;  // items whose residuals were fitted, and the last one's fit
  ResidualFit fit;
  DeviceSliceCounts slices;
  std::int64_t recomputed = 0;  // elements of C that a check left open
  TileCounts tiles_a;           // of programs with exponents per tile
  TileCounts tiles_b;
};

// Report to which select() adds its items.
struct DeviceReporting {
  DeviceReport* report = nullptr;
  bool begins = false;  // first of the call, with all of its items: select() overwrites the report
  // True: no step depends on the selection, so it may overlap the preceding step, multiply_fused(). A short
  // product would otherwise wait for it.
  bool overlaps_products = false;
};

// One operand of one batch item; `ranges` has one element for each of its vectors. Ranges, selection and
// splits take several items at once: `item` and those after it, with contiguous ranges, and contiguous slices
// slices.bytes() apart. In such a step a side may also have one item that serves all items of the other side.
struct DeviceSide {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  std::int64_t items = 1;
  VectorNorm* norms = nullptr;              // one for each vector, if scales or a selection depend on norms
  const RangeSummary* summaries = nullptr;  // of each item's ranges, if summarize() was called before
};

// Split of vectors first ... first + slices.vectors - 1, padding included. Ranges that are not known are
// found and written in the same pass; the scale is written in both cases.
struct DeviceSplit {
  DeviceSide side;
  std::int64_t first = 0;
  const SplitRule* rule = nullptr;
  Slices slices;
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;  // replaces the rule's own fit
  // This candidate is expected to be selected for few operands: the split gets few thread blocks, which exit
  // early soonest but take longer if it is selected.
  bool unlikely = false;
  bool finds_depth = false;  // for FP32 vectors with fp16 slices and unknown ranges
};

// Rounding-error bounds (arith/rounding_bound.hpp) of an operand's vectors first ... first + vectors - 1,
// scaled to 2^top_exponent as in SplitRule. `bounds` has an element for each vector of the operand.
struct DeviceRoundingBounds {
  DeviceSide side;
  int top_exponent = 0;
  RoundingBound* bounds = nullptr;
  std::int64_t first = 0;
  std::int64_t vectors = 0;
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

// One tile of C: the sums of vectors first_row..., first_column... (of real vectors if C is complex).
struct DeviceTile {
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  std::int64_t item = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;  // first column of C
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // columns of C
  DeviceScalars scalars;
  DeviceCondition condition;
  std::int64_t items = 1;  // multiply_unsplit() also takes the items after it, each with its own selection
};

// Product of the vendor library in BLAS's terms: column-major.
struct DeviceBlasProduct {
  ElementType type = ElementType::f32;
  int op_a = 0, op_b = 0;  // 0: as it is, 1: transposed, 2: conjugated and transposed
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool pointers = false;  // a, b and c are arrays of pointers, in device memory
  std::int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
  std::int64_t batch_count = 1;
  DeviceScalars scalars;
  std::size_t scratch_bytes = 0;
};

// Products of slices of some batch items, over all of k, whose sums become elements of C in the same kernel.
struct DeviceFusedProduct {
  const Schedule* schedule = nullptr;
  Slices a;  // of the first item; slices of all items are contiguous
  Slices b;
  bool shares_a = false;  // all items have the same slices and ranges
  bool shares_b = false;
  DeviceTile tile;  // of the first item; selections and ranges of all items are contiguous
  std::int64_t items = 1;
};

// Tiles of the operands of a fused product that are counted in the report, those of the whole operand at once
// or of the vectors of a block of C.
struct DeviceTileCount {
  Slices a;  // of the first item; no slices (data = nullptr) if they were counted before
  Slices b;
  bool shares_a = false;  // all items have the same slices, which are counted for each of them
  bool shares_b = false;
  std::int64_t items = 1;
  DeviceCondition condition;
};

// Shape of a product of FP32 matrices by fused steps, or by residues of complex elements.
struct DeviceShape {
  const Schedule& schedule;
  FormatId format;
  ElementType type;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t items;
  bool prepared_a;  // its slices exist already
  bool prepared_b;
};

// Expected times in microseconds.
struct DeviceTimes {
  double emulated;  // with ranges, selections, and splits of operands that are not prepared
  double native;    // a lower estimate
};

// Shape of a product in a type's own arithmetic.
struct NativeShape {
  ElementType type = ElementType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t items = 1;
};

// Expected times of native products under a contract, in microseconds: by our own kernels, which test every
// sum, or by the vendor library's and a kernel that tests the sums; and both with sums added to C.
struct NativeTimes {
  double own;
  double own_added;
  double vendor_tested;
  double vendor_added;
};

// Limits by which a plan decides on an emulation and on its number of candidates.
struct DeviceThresholds {
  double max_time_ratio = 0.95;  // an emulation must be expected to take less than this part of native time
  // A product that is expected to take less than the first time, in microseconds, has one emulation; one
  // below the second time has two.
  double one_candidate_time = 100;
  double two_candidates_time = 300;
  // Real vectors beside a prepared operand up to which there is one emulation: the early exits of another
  // candidate's kernels would take up to a tenth of the time.
  std::int64_t few_vectors = 128;
  // Multiply-adds of a batch item up to which splits of all candidates but the first have few thread blocks:
  // otherwise the early exits of one take a tenth of the item's time.
  double small_item_products = 2e9;
  // Products of int8 slices, per element of C, that take as long as the exact sum of one element.
  double exact_sum_terms = 17000;
};

}  // namespace kintsugi::core
