// Statistics of an operand's exponents: sizes, dynamic ranges, zeros and special values.
#pragma once

#include <cstdint>
#include <optional>

#include "support.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

// Facts about the vectors along k: rows of op(A), columns of op(B). Exponents are those of finite non-zero
// elements; a vector without such elements has the dynamic range 0.
struct OperandFacts {
  std::int64_t vectors = 0;
  std::int64_t length = 0;
  std::optional<int> largest_exponent;  // of all vectors; nothing if all elements are zero or not finite
  std::optional<int> smallest_exponent;
  int widest_dynamic_range = 0;     // in binades
  int median_dynamic_range = 0;     // lower median over the vectors
  std::int64_t widest_vector = 0;   // index of the vector with the widest dynamic range
  std::int64_t largest_vector = 0;  // index of the vector with the largest exponent
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool is_finite() const { return nans == 0 && infinities == 0; }
};

template <class T>
OperandFacts operand_facts(core::MatrixView<const T> vectors);

extern template OperandFacts operand_facts(core::MatrixView<const float>);
extern template OperandFacts operand_facts(core::MatrixView<const double>);

Json facts_document(const OperandFacts& facts);

}  // namespace kintsugi::tools
