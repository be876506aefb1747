// The errors of computed results against the exact one.
#pragma once

#include "gemm/product.hpp"

namespace kintsugi::tools {

inline constexpr std::uint64_t sample_seed = 1;

// Fills in row.errors. `native` is the native product's C for le-gemm's error; null: there is none.
void measure(const Operands& operands, const Matrix* native, Row& row);

// What a measured row is judged by, and whether C is within: the accuracy that was named, else that of the
// operands' type.
struct ContractVerdict {
  std::string accuracy;
  double coefficient;  // of |A||B|; 0: C is to be correctly rounded
  bool named;
  bool met;
};
ContractVerdict judge(const Row& row);

// The errors as JSON (docs/schema/gemm.schema.json).
Json errors_document(const lab::ErrorReport& errors);

}  // namespace kintsugi::tools
