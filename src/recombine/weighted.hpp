// Recombination of sums whose weights are powers of two, with alpha and beta.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/view.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core {

// C(i, j) = alpha * 2^-(scale_i + scale_j) * sum over g of 2^group_exponents[g] * sums_g(i, j)
//         + beta * C(i, j)
// Floating-point sums are added in double. Integer sums are added exactly, then rounded to double. The last
// step rounds to T. C is not read if beta = 0. `rows` and `columns`: ranges of the block's rows of A and
// columns of B. Elements of rows and columns with NaN or infinities are not written; write_special_values()
// writes them. For a complex C, sums and `columns` have two columns for each column of C: its real and its
// imaginary part (base/embedding.hpp).
template <class T>
void recombine_weighted(const Accumulators& sums, std::span<const int> group_exponents,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads);

}  // namespace kintsugi::core
