// The operands, results and conditions of the steps of a call on a device (engines/device_engine.hpp). All
// pointers are the device's unless they say otherwise.
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
#include "recombine/check/element_check.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"
#include "split/acceptance.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

enum class ElementType : std::uint8_t { f32, f64, c32, c64 };

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : type == ElementType::c64 ? 16 : 8;
}

// One matrix of every batch item.
struct DeviceMatrix {
  const void* data = nullptr;  // strided: of item 0; else an array of pointers, in device memory
  bool pointers = false;
  ElementType type = ElementType::f32;
  std::int64_t batch_stride = 0;  // in elements
  std::int64_t rows = 0;          // an operand: vectors, which are rows of op(A) or columns of op(B); C: m
  std::int64_t columns = 0;       // an operand: k; C: n
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  // Complex operands are read as base/embedding.hpp says: op(B) has two real vectors for each column.
  bool right = false;
  bool conjugated = false;

  constexpr bool complex() const { return type == ElementType::c32 || type == ElementType::c64; }
  // Of real vectors, and their length.
  constexpr std::int64_t vectors() const { return complex() && right ? 2 * rows : rows; }
  constexpr std::int64_t length() const { return complex() ? 2 * columns : columns; }
};

// alpha and beta of the matrices' type: values, or where they lie in device memory.
struct DeviceScalars {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;

  bool on_device() const { return device_alpha != nullptr; }
};

// fit_residual() of a batch item, with its weights where products of the vendor's read them.
struct DeviceFit {
  ResidualFit residual;
  float weight = 1;  // 2^-residual_exponent
  float one = 1;
  float zero = 0;
};

// What a batch item turned out to be, in device memory; written by select().
struct DeviceSelection {
  static constexpr std::int32_t scaled = -1;  // beta C alone: alpha is 0
  static constexpr std::int32_t none = -2;    // no candidate accepts the operands: C becomes NaN

  std::int32_t candidate = 0;
  RangeSummary a;
  RangeSummary b;
  DeviceFit fit;                // where it was asked for
  std::uint32_t ruled_out = 0;  // split_by_norms()'s own
};

// The exponent of a group whose weight is that of the item's fit.
inline constexpr int fitted_exponent = std::numeric_limits<std::int16_t>::min();

// Kernels of a step exit early unless this candidate was selected. selection = nullptr: they always run. A
// step of several batch items has their selections, stored contiguously.
struct DeviceCondition {
  const DeviceSelection* selection = nullptr;
  std::int32_t candidate = 0;
  // The selection was made before the step in front of this one began: kernels read it before their
  // grid-dependency wait, and exit without one. The exit of an unselected candidate's kernels then overlaps
  // the products in front of them.
  bool selected_earlier = false;
};

// Slices of products without an error, summed over the blocks of C that had a number of their own.
struct DeviceSliceCounts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  std::int32_t fewest_slices_below_most = 0;
  std::int32_t most_products = 0;
};

// What kintsugi_report() says of a call on a device, in device memory; added to by select(), or written
// whole.
struct DeviceReport {
  static constexpr int most_candidates = 4;

  std::int64_t items[most_candidates] = {};  // batch items that selected each candidate
  std::int64_t scaled = 0;
  std::int64_t unreachable = 0;  // items that no candidate accepts
  std::int64_t special = 0;      // items with NaN or infinities in A or B
  std::int32_t dynamic_range_a = 0;
  std::int32_t dynamic_range_b = 0;
  std::int64_t fitted = 0;  // items that were, and the last one's fit
  ResidualFit fit;
  DeviceSliceCounts slices;
  std::int64_t recomputed = 0;  // elements of C that a check left open
};

// What select() adds its items to.
struct DeviceReporting {
  DeviceReport* report = nullptr;
  bool begins = false;  // the first of the call, and of all its items: whatever the report was before
  // No step depends on the selection, so that it may overlap multiply_fused(), the step in front of it. A
  // short product would else wait for it.
  bool overlaps_products = false;
};

// One operand of one batch item; `ranges` has one for each of its vectors. Ranges, selection and
// splits take several items at once, `item` and those behind it: their ranges lie behind each other, and
// so do their slices, slices.bytes() apart. In such a step a side may also have one item, that serves all of
// the other's.
struct DeviceSide {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  std::int64_t items = 1;
  VectorNorm* norms = nullptr;  // one for each vector too, where scales or a selection depend on them
  const RangeSummary* summaries = nullptr;  // of each item's ranges, where summarize() was called before
};

// Splits vectors first ... first + slices.vectors - 1, padding included. Ranges that are not known are found
// in the same pass, and written; the scale is written either way.
struct DeviceSplit {
  DeviceSide side;
  std::int64_t first = 0;
  const SplitRule* rule = nullptr;
  Slices slices;
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;  // in the place of the rule's own
  // This candidate is expected to be selected for few operands: the split has few thread blocks, which exit
  // soonest and take longer where it is selected.
  bool unlikely = false;
  bool finds_depth = false;  // of FP32 vectors whose slices are fp16, with ranges that are not known
};

// Rounding-error bounds (arith/rounding_bound.hpp) of one operand's vectors, scaled to 2^top_exponent as
// SplitRule says.
struct DeviceRoundingBounds {
  DeviceSide side;
  int top_exponent = 0;
  RoundingBound* bounds = nullptr;
};

// select(): a batch item takes the first candidate that accepts() its operands.
struct DeviceCandidates {
  Acceptance acceptances[DeviceReport::most_candidates] = {};
  int count = 0;
  // Where the item's residuals are to be fitted: the format of its slices, and the scale that was asked for.
  bool fits = false;
  Format format{};
  std::int32_t residual_exponent = 0;
  // Coefficient of |A||B| that norms must prove for every element of C.
  double coefficient = 0;

  bool asks_for_norms() const {
    return std::any_of(acceptances, acceptances + count, [](const Acceptance& a) { return a.by_norms(); });
  }
};

// One tile of C: the sums of vectors first_row..., first_column... (of real vectors, where C is complex).
struct DeviceTile {
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  std::int64_t item = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;  // of C
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // of C
  DeviceScalars scalars;
  DeviceCondition condition;
  std::int64_t items = 1;  // multiply_unsplit() takes those behind it too, each with a selection of its own
};

// What the elements of a checked tile must show (recombine/residues.hpp has the host's), pointers to device
// memory.
struct DeviceCheck {
  const RoundingBound* rows = nullptr;  // of all of the operands' vectors
  const RoundingBound* columns = nullptr;
  double largest_a = 0;  // bounds of the integers' magnitudes
  double largest_b = 0;
  ElementDemand demand;
  // Products of magnitudes rounded down, laid out as the sums are, `magnitude_unit` each in the integers'
  // products; nullptr: there are none, only the integers themselves show what is asked for.
  const std::int64_t* magnitudes = nullptr;
  double magnitude_unit = 0;
};

// Elements of a tile that a check left open, in device memory: how many, and i + j rows of each, in any
// order.
struct DeviceOpenElements {
  std::uint32_t* count = nullptr;
  std::uint32_t* places = nullptr;
  // Sums in the elements' own arithmetic will do where nothing can overflow or underflow.
  bool plainly = false;
};

// A product of the vendor's, in BLAS's terms: column-major.
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

// Products of slices of some batch items, whole rows and columns of them, whose sums become C at once.
struct DeviceFusedProduct {
  const Schedule* schedule = nullptr;
  Slices a;  // of the first item; those of the others lie behind each other
  Slices b;
  bool shares_a = false;  // all items have the same slices, and ranges
  bool shares_b = false;
  DeviceTile tile;  // of the first item; selections and ranges of the others lie behind its own
  std::int64_t items = 1;
};

// A product of FP32 by fused steps, or by residues of complex elements.
struct DeviceShape {
  const Schedule& schedule;
  FormatId format;
  ElementType type;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t items;
  bool prepared_a;  // its slices are there
  bool prepared_b;
};

// In microseconds.
struct DeviceTimes {
  double emulated;  // with ranges, selections, and splits of what is not prepared
  double native;    // at least
};

// A product of a type's own arithmetic.
struct NativeShape {
  ElementType type = ElementType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t items = 1;
};

// Expected times of native products under a contract, in microseconds: by our own kernels, which test every
// sum, or by the vendor's and a kernel that looks at the sums; and the same where they are added to C.
struct NativeTimes {
  double own;
  double own_added;
  double vendor_looked_at;
  double vendor_added;
};

// When a plan prefers an emulation, and how many candidates it takes.
struct DeviceThresholds {
  double least_gain = 0.95;  // an emulation must be expected to take less than this part of the native time
  // A product expected to take less, in microseconds, has one emulation; one that takes less than the other
  // time, two.
  double one_candidate_time = 100;
  double two_candidates_time = 300;
  // Real vectors beside a prepared operand up to which there is one emulation: kernels of another candidate
  // take up to a tenth of the time to exit early.
  std::int64_t few_vectors = 128;
  // Multiply-adds of a batch item up to which splits of all but the first candidate have few thread blocks:
  // else one that exits early takes a tenth of the item's time.
  double small_item_products = 2e9;
};

}  // namespace kintsugi::core
