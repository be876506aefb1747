// Sums into C on the host, with alpha and beta: weighted, by residues, and exact.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/range.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/embedding.hpp"
#include "base/view.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/element_check.hpp"
#include "recombine/sum_kernels.hpp"

namespace kintsugi::core {

// ---------------------------------------------------------------- weights that are powers of two

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

// ---------------------------------------------------------------- residues, by the Chinese remainder theorem

// C(i, j) = alpha 2^-(scale_i + scale_j) N_ij + beta C(i, j), rounded once. N_ij is the integer with the same
// residues as sums_t(i, j) modulo all moduli, and with a magnitude below a quarter of the moduli's product. C
// is not read if beta = 0. `rows` and `columns`: ranges of the block's rows of A and columns of B. Elements
// of rows and columns with NaN or infinities are not written; write_special_values() writes them. For a
// complex C, sums and `columns` are as in recombine_weighted(), and each part is rounded once.
template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads);

// Data for the checks of elements. From the rounding-error bounds of row i and column j, largest_deviation()
// (arith/residue/rounding_errors.hpp) computes a bound of |(AB)_ij - N_ij|, in the units of the scaled
// integers.
struct ElementCheck {
  // closed: the result is written. open: the element must be checked. proved: the element needs no check.
  enum State : std::uint8_t { closed, open, proved };

  std::span<const RoundingBound> rows;     // bounds of the rows of A
  std::span<const RoundingBound> columns;  // bounds of the columns of B, two for a complex column
  double largest_a = 0;                    // upper bound of the magnitudes of A's integers
  double largest_b = 0;
  ElementDemand demand;
};

// Weights of the slices of vectors: weights[vector * slices + slice].
struct SliceWeights {
  const float* weights = nullptr;
  int slices = 0;

  double operator()(std::int64_t vector, int slice) const { return weights[vector * slices + slice]; }
};

// C(i, j) = alpha * 2^-(scale_i + scale_j) * sum over g of a(i, s_g) * b(j, t_g) * sums_g(i, j)
//         + beta * C(i, j)
// for integer sums of the products of slices s_g = slices[g].first of A and t_g = slices[g].second of B,
// added in double in the order of the groups. Everything else is as in recombine_weighted().
template <class T>
void recombine_by_maxima(const Accumulators& sums, std::span<const std::pair<int, int>> slices,
                         const SliceWeights& a, const SliceWeights& b, std::span<const VectorRange> rows,
                         std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                         int threads);

// Like recombine_residues(), but writes and closes only two kinds of elements: those that are proved already,
// and open ones that meet check.demand. Returns the number of elements that stay open. The state of element
// (i, j) is states[i + j * sums.rows] (ElementCheck::State). `writes`: if false, C and `states` are not
// changed.
template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const ElementCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* states,
                                        bool writes, int threads);

// Proves single elements by a lower bound of |A||B|, before their products are computed. Marks elements as
// proved if their deviation plus one rounding is at most check.demand.coefficient times a lower bound of
// (|A||B|)_ij. The lower bound, in the units of the candidate's integer products, is `unit` times group 0 of
// `sums`: the product of magnitudes that were rounded down. `parts`: 2 for complex elements, else 1; a
// complex element is proved if both parts are. The state of element (i, j) is states[i + j * sums.rows].
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* states, int threads);

// ---------------------------------------------------------------- exact sums

// Rounds a real element that was summed exactly: returns alpha * sum + beta * c, rounded once.
// arith/complex.hpp rounds complex elements. `c` is null if beta = 0.
template <class T>
T rounded_result(ExactSum& sum, T alpha, T beta, const T* c, RoundingMode rounding = RoundingMode::nearest) {
  if (!std::isfinite(alpha) || (c != nullptr && !std::isfinite(beta)))
    return special_epilogue(sum.sign(), alpha, beta, c);
  sum.multiply(static_cast<double>(alpha));
  if (c != nullptr) sum.add_product(beta, *c);
  return rounded<T>(sum, rounding);
}

// Returns the scratch bytes that multiply_exactly() needs for at most `rows` vectors of A and `vectors_b`
// vectors of B. `length`: length of the operands' vectors (k, or 2 k for complex elements).
template <class T>
std::size_t exact_scratch_bytes(std::int64_t rows, std::int64_t vectors_b, std::int64_t length, int threads);

// Sums every element exactly and rounds it once: in two doubles by `kernels`, and by a superaccumulator if
// these cannot tell the result, or if `kernels` is null. All kernels give the same bits.
// C = alpha A B + beta C, where `a` is m x k and `b` is n x k (op(B) transposed). C is not read if beta = 0.
// Each part of a complex element is rounded once; pairs are rounded to nearest alone. Elements of rows and
// columns with NaN or infinities are not written; write_special_values() writes them. `states`: if not null,
// closed elements are not computed; the state of element (i, j) is states[i + j * c.rows]
// (ElementCheck::State).
template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, const SumKernels* kernels, RoundingMode rounding,
                      std::byte* scratch, int threads);

// Computes the same of vectors that are rounded to integers first:
// C = RN(alpha 2^-(s_i + t_j) A' B' + beta C) with a'_ip = RN(2^s_i a_ip), likewise b', where s_i and t_j are
// the scales of `rows` and `columns`. Scaled magnitudes must be at most 2^51. Needs the scratch bytes of
// multiply_exactly().
template <class T>
void multiply_on_grid(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, std::byte* scratch, int threads);

}  // namespace kintsugi::core
