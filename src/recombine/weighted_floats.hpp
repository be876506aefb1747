// Vectorised recombination of real fp32 results from fp32 sums.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/view.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core {

// Vectorised form of recombine_weighted() (recombine/weighted.hpp). Gives the same bits.
void recombine_weighted_floats(const Accumulators& sums, std::span<const int> group_exponents,
                               std::span<const VectorRange> rows, std::span<const VectorRange> columns,
                               float alpha, float beta, const MatrixView<float>& c, int threads);

}  // namespace kintsugi::core
