// Ranges of all vectors of an operand.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Fills ranges[v] for every row v of `operand` (vectors x k: op(A), or op(B) transposed); scales
// are those of `rule`. View: OperandView of any type of entries.
template <class View>
void find_ranges(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads,
                 std::span<const double> inner = {});

// What a program's windows need to know of a whole operand.
struct RangeSummary {
  std::int32_t largest_span = 0;
  std::int32_t largest = 0;  // exponents over all vectors; 0 and 0 when the operand is zero
  std::int32_t smallest = 0;
  bool finite = true;
};

RangeSummary summarize(std::span<const VectorRange> ranges);

}  // namespace kintsugi::core
