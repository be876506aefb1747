// Ranges of all vectors of an operand.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/norm_proof.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Fills ranges[v] for every row v of `operand` (vectors x k: op(A), or op(B) transposed), with scales by
// `rule`. View: OperandView of any element type. `inner_factors`: factors of the inner indices; empty: none.
// `norms`: for real elements without such factors, the vectors' norms, found while their elements are in the
// caches (split/norms.hpp); empty: they are not found.
template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner_factors = {}, std::span<VectorNorm> norms = {});

// Sets ranges[v] for every row v of a matrix of at most vectors_per_strip rows, without scales.
template <class T>
void find_few_ranges(const MatrixView<const T>& vectors, std::span<VectorRange> ranges);

// Sets the scales of the vectors by the exponents in `ranges`. Vectors that share tiles get the same scale.
// The first vector must begin a tile.
void set_scales(std::span<VectorRange> ranges, const SplitRule& rule);

// Summary of a whole operand's ranges, by which windows are tested.
struct RangeSummary {
  std::int32_t dynamic_range = 0;
  std::int32_t largest = 0;   // largest exponent of all vectors; 0 if the operand is zero
  std::int32_t smallest = 0;  // smallest exponent of all vectors; 0 if the operand is zero
  bool finite = true;
  // Over all vectors that are not zero: the smallest VectorRange::elements and the largest
  // VectorRange::depth.
  std::int32_t min_elements = std::numeric_limits<std::int32_t>::max();
  std::int32_t depth = 0;
};

// Returns the summary of one vector.
constexpr RangeSummary summary_of(const VectorRange& range) {
  RangeSummary summary;
  summary.finite = range.finite();
  if ((range.flags & VectorRange::all_zero) != 0) return summary;
  summary.dynamic_range = range.dynamic_range();
  summary.largest = range.largest;
  summary.smallest = range.smallest;
  summary.min_elements = range.elements;
  summary.depth = range.depth;
  return summary;
}

// True if every row and column together have at most the mean depth `depth`. For a pair of non-zero elements
// that are multiplied, add up the binades by which the two elements lie below the largest elements of their
// vectors. The mean depth is the mean of this number over all pairs. Vectors have k elements. The arithmetic
// mean of numbers 2^e_p is at least their geometric mean. Therefore |A||B| is at least the number of pairs
// times 2^(sum of both largest exponents - depth), however small single elements are.
KINTSUGI_HOST_DEVICE constexpr bool are_within_depth(const RangeSummary& a, const RangeSummary& b,
                                                     std::int64_t k, std::int32_t depth) {
  if (a.depth == VectorRange::unknown_depth || b.depth == VectorRange::unknown_depth) return false;
  // Lower bound of the number of pairs of two non-zero elements at the same inner index.
  const std::int64_t pairs = std::int64_t{a.min_elements} + b.min_elements - k;
  return pairs > 0 && std::int64_t{a.depth} + b.depth <= depth * pairs;
}

RangeSummary summarize(std::span<const VectorRange> ranges);

// Sets ranges[v] as find_ranges() does, without scales, but with `elements` and `depth`, by which candidates
// accept operands of wide dynamic range (are_within_depth()). A depth that needs more than 31 bits becomes
// unknown_depth. View: OperandView of any element type.
template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads);

}  // namespace kintsugi::core
