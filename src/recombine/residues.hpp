// Recombination of residues by the Chinese remainder theorem, alpha and beta.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core {

// C(i, j) = alpha 2^-(scale_i + scale_j) N_ij + beta C(i, j), rounded once, where N_ij is the integer below a quarter of
// the moduli's product whose residue mod moduli[t] is that of sums_t(i, j). With beta = 0, C is not read. `rows` and
// `columns` hold the ranges of A's rows and B's columns of this block; entries of a row or column with NaN or
// infinities are left alone, for put_special_values. Of a complex C, sums and `columns` are as in recombine_weighted, and
// each part is rounded once.
template <class T>
void recombine_residues(const Accumulators& sums, std::span<const VectorRange> rows,
                        std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                        int threads);

}  // namespace kintsugi::core
