// Algorithm 1 of dgemm-tc in integers: slices by successive roundings. Each vector of a slice has a grid of
// its own.
//
//   tau_s = ceil(log2 max_p |residual_p|)
//   slice_s = RN(residual 2^(bits - tau_s))
//   residual -= 2^(tau_s - bits) slice_s
//
// These steps are repeated until every residual is zero. Then x = sum over s of 2^exponent_s slice_s, with
// |slice_s| <= 2^bits. With `by_sigma`, RN is the paper's fl((residual + sigma) - sigma), whose grid is twice
// as coarse for positive residuals. A residual is stored as a 53-bit integer times the power of two of its
// element's last bit. Therefore nothing overflows, elements are not scaled, and subnormal elements need no
// special case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "arith/successive.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// State of the split of one operand's block; the caller owns the memory.
struct SuccessiveSplit {
  Slices slices;  // as many slices as memory was provided for
  // Exponent of (slice, vector). If a vector of a slice is zero, it has the same exponent as in the slice
  // before.
  MatrixView<std::int32_t> exponents{};
  Residual* residuals = nullptr;  // vectors x k
  std::int32_t* tops = nullptr;   // tau_s of each vector's current residuals
  int bits = 0;
  bool by_sigma = false;
};

// Sets the residuals before the first slice to the elements of `operand` (vectors x k). Vectors with NaN or
// infinities count as zero, so that they do not influence other elements. View: OperandView of any element
// type.
template <class View>
void set_first_residuals(const View& operand, std::span<const VectorRange> ranges,
                         const SuccessiveSplit& split, int threads);

// True if an element has a residual that is not zero.
bool any_residual(const SuccessiveSplit& split);

// Computes slice s of all vectors, including padding. If `weights` (one number for each inner index) is not
// null, also sets weighted[v] = sum over p of |2^exponent_s slice_s(v, p)| weights[p]. This sum is rounded
// once, so it does not depend on the order of additions.
void take_slice(const SuccessiveSplit& split, int s, const double* weights, Scaled* weighted, int threads);

// Algorithm 3 of dgemm-tc. It finds the number of slices for which the error is like that of native
// arithmetic.
//
//   s_i = 2 sqrt(k) u (|A| |B| e)_i       t_i(d) = (d + 1) (|2^c A_d| |B| e)_i
//   enough for row i: s_i > t_i(d)
//
// The comparison is in arith/successive.hpp. All sums are exact and rounded once, so the number of slices
// depends neither on threads nor on the order of k.

// Computes |B| e: weights[p] = sum over all vectors v of |b(v, p)|. Vectors with NaN or infinities are left
// out. `b` is vectors x k.
template <class View>
void sum_vectors(const View& b, std::span<const VectorRange> ranges, double* weights, int threads);

// Sets weighted[v] = sum over p of |a(v, p)| weights[p]; 0 for vectors with NaN or infinities.
template <class View>
void multiply_magnitudes(const View& a, std::span<const VectorRange> ranges, const double* weights,
                         Scaled* weighted, int threads);

}  // namespace kintsugi::core
