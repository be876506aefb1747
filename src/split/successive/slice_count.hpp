// Algorithm 3 of dgemm-tc: the number of slices with which the error is that expected of native arithmetic.
//
//   s_i = 2 sqrt(k) u (|A| |B| e)_i       t_i(d) = (d + 1) (|2^c A_d| |B| e)_i
//   enough for row i: s_i > t_i(d)
//
// The comparison is in arith/slice_count.hpp. All sums are exact and rounded once, so that neither threads
// nor the order of k can change a number of slices.
#pragma once

#include <cstdint>
#include <span>

#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "arith/slice_count.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// |B| e: weights[p] = sum over the vectors of |b(v, p)|, without vectors that have NaN or infinities; b is
// vectors x k.
template <class View>
void sum_vectors(const View& b, std::span<const VectorRange> ranges, double* weights, int threads);

// weighted[v] = sum over p of |a(v, p)| weights[p]; 0 for vectors with NaN or infinities.
template <class View>
void multiply_magnitudes(const View& a, std::span<const VectorRange> ranges, const double* weights,
                         Scaled* weighted, int threads);

}  // namespace kintsugi::core
