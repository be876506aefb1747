// Data of the steps of a call on a device (steps.hpp): operands, selection, splits, products and expected
// times. All pointers are device pointers unless a comment says otherwise.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/norm_proof.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "arith/split_rule.hpp"
#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/rounding.hpp"
#include "base/view.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/accumulator.hpp"
#include "schedule/schedule.hpp"
#include "split/acceptance.hpp"
#include "split/ranges.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// At most one value for each operand of a product.
template <class T>
class OfSides {
 public:
  OfSides() = default;
  explicit OfSides(std::span<const T> values) {
    for (const T& value : values) push_back(value);
  }

  void push_back(const T& value) { values_[count_++] = value; }
  T* begin() { return values_; }
  T* end() { return values_ + count_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + count_; }
  T& front() { return values_[0]; }
  T& back() { return values_[count_ - 1]; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  T values_[2] = {};
  std::size_t count_ = 0;
};

// One matrix of each batch item.
struct DeviceMatrix {
  const void* data = nullptr;  // the matrix of item 0; if `pointers`, an array of all items' addresses
  bool pointers = false;
  ElementType type = ElementType::f32;
  std::int64_t batch_stride = 0;  // elements from an item to the next
  std::int64_t rows = 0;          // operand: vectors, which are rows of op(A) or columns of op(B); C: m
  std::int64_t columns = 0;       // operand: k; C: n
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  // Complex operands are read as in base/embedding.hpp, where op(B) has two real vectors per column.
  bool right = false;  // the matrix is op(B)
  bool conjugated = false;

  constexpr bool complex() const { return type == ElementType::c32 || type == ElementType::c64; }
  // Number of real vectors of the operand, and their length.
  constexpr std::int64_t vectors() const { return complex() && right ? 2 * rows : rows; }
  constexpr std::int64_t length() const { return complex() ? 2 * columns : columns; }
};

// alpha and beta, of the matrices' type. They are read from device memory if the addresses are not null; else
// the values are used.
struct DeviceScalars {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;
  RoundingMode rounding = RoundingMode::nearest;  // of C's elements, in exact sums and beta C

  bool on_device() const { return device_alpha != nullptr; }
};

// RangeSummary of a batch item in device memory, into which many thread blocks merge (merge() in
// cuda/select/select_by_block.cuh). All words begin at zero and only grow. Both biased exponents are 0 while
// all vectors are zero.
struct MergedSummary {
  std::uint32_t dynamic_range = 0;
  std::uint32_t biased_largest = 0;      // exponent_bias + largest exponent
  std::uint32_t biased_smallest = 0;     // exponent_bias - smallest exponent
  std::uint32_t has_special = 0;         // 1 if a vector has NaN or infinities
  std::uint32_t elements_below_max = 0;  // INT_MAX - RangeSummary::min_elements
  std::uint32_t depth = 0;
};

// One operand of `items` batch items, from `item` on. `ranges` has one element per vector, contiguous for all
// items. Slices of successive items are slices.bytes() apart. A side with a single item serves all items of
// the other side. Only the steps for ranges, selection and splits take sides with several items.
struct DeviceSide {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  std::int64_t items = 1;
  VectorNorm* norms = nullptr;               // one for each vector, if scales or a selection depend on norms
  const MergedSummary* summaries = nullptr;  // one per item, if summarize() was called before
  // One for each vector, if find_scaling_norms() finds them. Without them rounding errors take another read.
  VectorMagnitudes* magnitudes = nullptr;
};

// A side without vectors, for steps that have nothing to do for one of the operands.
inline DeviceSide no_side(std::int64_t items) {
  DeviceSide side;
  side.items = items;
  return side;
}

// Selection of a candidate on a device, the conditions that depend on it, and the report to which it adds.

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
  // True if no step depends on the selection. Then its kernel may overlap the preceding step, a fused kernel;
  // after a short product it would otherwise take additional time.
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

// Products and recombination on a device.

// Tile of C: `rows` x `columns` elements from (first_row, first_column) on.
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
  // Number of batch items from `item` on, each with its own selection. It is 1 except for
  // multiply_unsliced() and select_or_multiply_unsliced(). Fused kernels read DeviceFusedProduct::items
  // instead.
  std::int64_t items = 1;
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
  bool keeps_contract = false;  // alpha must multiply sums, as the bound of native products requires
};

// Products of slices of some batch items, over all of k. The same kernel turns the sums into elements of C.
struct DeviceFusedProduct {
  const Schedule* schedule = nullptr;
  Slices a;  // slices of the first item; those of all items are contiguous
  Slices b;
  bool shares_a = false;  // all items have the same slices and ranges
  bool shares_b = false;
  DeviceTile tile;  // tile of the first item; selections and ranges of all items are contiguous
  std::int64_t items = 1;
  bool has_cleared_counters = false;  // the product need not clear its counters (DeviceSplit::cleared)
  DeviceReport* report = nullptr;     // to which kernels that test elements add those that they recompute
};

// Slices with exponents per tile (MixPert) whose tiles the report counts. They belong to whole operands, or
// to the vectors of one block of C.
struct DeviceTileCount {
  Slices a;  // slices of the first item; data = nullptr: they have been counted already
  Slices b;
  bool shares_a = false;  // all items have the same slices, which are counted once per item
  bool shares_b = false;
  std::int64_t items = 1;
  DeviceCondition condition;
};

// Splits of operands on a device.

// Counters of a product in scratch memory. They must be 0 when the product begins.
struct DeviceCounters {
  std::uint32_t* first = nullptr;
  std::int64_t count = 0;
};

// Split of vectors first ... first + slices.vectors - 1, padding included. It writes the scales. If the
// ranges are not known, it also finds and writes them in the same pass.
struct DeviceSplit {
  DeviceSide side;
  std::int64_t first = 0;
  const SplitRule* rule = nullptr;
  Slices slices;
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;  // if not null, replaces the rule's residual_exponent and first_rounding
  // True if this candidate is rarely selected. The kernel then gets few thread blocks: an early exit takes
  // less time, but a split that is computed takes more.
  bool unlikely = false;
  // True if the split also finds `elements` and `depth` of the ranges. It can only do so for FP32 vectors
  // with fp16 slices and unknown ranges.
  bool finds_depth = false;
  // False if nothing reads vectors of padding: tensor maps end with the operand, and the copies after its end
  // are zeros. Then long vectors of padding are not written.
  bool needs_padding = true;
  DeviceCounters cleared{};  // counters of a later product of one batch item, which the split sets to 0
};

// Shapes of products on a device and their expected times.

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
  bool is_aligned = true;  // NativeShape::is_aligned
  bool adds_to_c = false;
  bool is_along_k_a = true;  // rows of op(A), columns of op(B) are contiguous in memory
  bool is_along_k_b = true;
};

// Expected times in microseconds.
struct DeviceTimes {
  double emulated;  // includes ranges, selections, and splits of operands that are not prepared
  double native;    // of the vendor library; a lower estimate
};

// Shape of a product in a type's own arithmetic.
struct NativeShape {
  ElementType type = ElementType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t items = 1;
  bool is_aligned = true;  // leading dimensions of A and B are whole multiples of 16 bytes
  bool adds_to_c = false;  // beta is not 0
};

// Limits by which a plan decides whether to emulate and how many candidates to have.
struct DeviceThresholds {
  double max_time_ratio = 0.95;  // an emulation must be expected to take less than this share of native time
  // The same for emulations that norms prove. For data of wide range they have more slices, and take up to
  // 1.3 times as long as with the fewest; with this limit they are then still faster than native (FP64,
  // phi 2, n = 2560: 1.02; at 2048, where the ratio is 0.89, it would be 0.83).
  double max_time_ratio_by_norms = 0.82;
  // A product that is expected to take less than this time, in microseconds, is fast. It has at most two
  // emulations.
  double two_candidates_time = 100;
  // max_time_ratio of fast products with two emulations. It is stricter, because data of wide range get the
  // second emulation, which takes up to 1.6 times as long as native.
  double max_time_ratio_if_fast = 0.85;
  // With a prepared operand and at most this number of real vectors beside it, there is one emulation. The
  // early exits of another candidate's kernels would take up to a tenth of the time.
  std::int64_t few_vectors = 128;
  // max_time_ratio of such products. They take less than expected, and cuBLAS more, whose best layout the
  // expected time is of: 2, 16 and 32 rows by weights of 4096 took 34.5 us and cuBLAS 64, 77 and 39, where 41
  // and 40 were expected.
  double max_time_ratio_by_few = 1.05;
  // Up to this number of multiply-adds per batch item, splits of all candidates except the first have few
  // thread blocks. With more thread blocks the early exits of one split would take a tenth of the item's
  // time.
  double small_item_products = 2e9;
  // Products of int8 slices, per element of C, that take as long as the exact sum of one element.
  double exact_sum_terms = 17000;
};

}  // namespace kintsugi::core
