// What the exponents of an operand say: sizes, spans, zeros and special values.
#pragma once

#include <cstdint>
#include <optional>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Of the vectors along k: rows of op(A), columns of op(B). Exponents are those of finite elements that are
// not zero; a span is the difference of the largest and the smallest of a vector, 0 where it has none.
struct OperandFacts {
  std::int64_t vectors = 0;
  std::int64_t length = 0;
  std::optional<int> largest;  // exponents over all vectors; nothing where no element has one
  std::optional<int> smallest;
  int widest_span = 0;
  int median_span = 0;  // the lower one of two
  std::int64_t widest_vector = 0;
  std::int64_t largest_vector = 0;  // that of the largest exponent
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;

  bool finite() const { return nans == 0 && infinities == 0; }
};

template <class T>
OperandFacts operand_facts(core::MatrixView<const T> vectors);

extern template OperandFacts operand_facts(core::MatrixView<const float>);
extern template OperandFacts operand_facts(core::MatrixView<const double>);

Json facts_document(const OperandFacts& facts);

}  // namespace kintsugi::tools
