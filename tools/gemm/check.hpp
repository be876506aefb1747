// The errors of computed results against the exact one.
#pragma once

#include "gemm/product.hpp"

namespace kintsugi::tools {

inline constexpr std::uint64_t sample_seed = 1;

// Fills in row.errors. `native` is the native product's C for le-gemm's error; null: there is none.
void measure(const Operands& operands, const Matrix* native, Row& row);

// The errors as JSON (docs/schema/gemm.schema.json).
Json errors_document(const lab::ErrorReport& errors);

}  // namespace kintsugi::tools
