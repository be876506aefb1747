// Errors of computed results relative to the exact result.
#pragma once

#include "gemm/product.hpp"

namespace kintsugi::tools {

inline constexpr std::uint64_t sample_seed = 1;

// Sets row.errors. `native` is the C of the native product, with which le-gemm's error measures compare;
// nullptr: there is none.
void measure(const Operands& operands, const Matrix* native, Row& row);

// The accuracy by which a measured row is judged, and whether C meets it.
struct ContractVerdict {
  std::string accuracy;
  double coefficient;  // of |A||B|; 0: C must be correctly rounded
  bool named;          // true: a setting names the accuracy; false: it is the accuracy of the operands' type
  bool met;
};
ContractVerdict judge(const Row& row);

// Returns the errors as JSON (docs/schema/gemm.schema.json).
Json errors_document(const measure::ErrorReport& errors);

}  // namespace kintsugi::tools
