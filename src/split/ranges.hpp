// Ranges of all vectors of an operand.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Fills ranges[v] for every row v of `operand` (vectors x k: op(A), or op(B) transposed); scales
// are those of `rule`. View: OperandView of any type of elements.
template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner = {});

// What a program's windows need to know of a whole operand.
struct RangeSummary {
  std::int32_t dynamic_range = 0;
  std::int32_t largest = 0;  // exponents over all vectors; 0 and 0 when the operand is zero
  std::int32_t smallest = 0;
  bool finite = true;
  // Of all vectors that are not zero: the fewest elements and the largest depth.
  std::int32_t least_elements = std::numeric_limits<std::int32_t>::max();
  std::int32_t depth = 0;
};

// Whether elements of any two vectors that meet lie at most `depth` binades below their largest on average,
// those of both added up; vectors have k elements. The arithmetic mean of numbers 2^e_p is no less than their
// geometric mean: so |A||B| is no less than the number of such pairs times 2^(both largest exponents -
// depth), however far down single elements lie.
KINTSUGI_HOST_DEVICE constexpr bool are_within_depth(const RangeSummary& a, const RangeSummary& b,
                                                     std::int64_t k, std::int32_t depth) {
  if (a.depth == VectorRange::unknown_depth || b.depth == VectorRange::unknown_depth) return false;
  // A pair has two elements that are not zero. At least so many do not miss each other.
  const std::int64_t pairs = std::int64_t{a.least_elements} + b.least_elements - k;
  return pairs > 0 && std::int64_t{a.depth} + b.depth <= depth * pairs;
}

RangeSummary summarize(std::span<const VectorRange> ranges);

}  // namespace kintsugi::core
