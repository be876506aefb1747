// Recombination of sums whose weights are powers of two, with alpha and beta.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core {

// C(i, j) = alpha * 2^-(scale_i + scale_j) * sum over g of 2^group_exponents[g] * sums_g(i, j)
//         + beta * C(i, j)
// Floating-point sums are added in double; integer sums exactly, then rounded to double; the last step rounds
// to T. With beta = 0, C is not read. `rows` and `columns` hold the ranges of A's rows and B's columns of
// this block; elements of a row or column with NaN or infinities are not written; write_special_values writes
// them. For a complex C, the sums have two columns for each of C's, its real and its imaginary part
// (base/embedding.hpp), and so has `columns`.
template <class T>
void recombine_weighted(const Accumulators& sums, std::span<const int> group_exponents,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads);

}  // namespace kintsugi::core
