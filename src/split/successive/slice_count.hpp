// Algorithm 3 of dgemm-tc. It finds the number of slices for which the error is like that of native
// arithmetic.
//
//   s_i = 2 sqrt(k) u (|A| |B| e)_i       t_i(d) = (d + 1) (|2^c A_d| |B| e)_i
//   enough for row i: s_i > t_i(d)
//
// The comparison is in arith/successive.hpp. All sums are exact and rounded once, so the number of slices
// depends neither on threads nor on the order of k.
#pragma once

#include <cstdint>
#include <span>

#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "arith/successive.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Computes |B| e: weights[p] = sum over all vectors v of |b(v, p)|. Vectors with NaN or infinities are left
// out. `b` is vectors x k.
template <class View>
void sum_vectors(const View& b, std::span<const VectorRange> ranges, double* weights, int threads);

// Sets weighted[v] = sum over p of |a(v, p)| weights[p]; 0 for vectors with NaN or infinities.
template <class View>
void multiply_magnitudes(const View& a, std::span<const VectorRange> ranges, const double* weights,
                         Scaled* weighted, int threads);

}  // namespace kintsugi::core
