// Recombination of residues by the Chinese remainder theorem, with alpha and beta.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/rounding_bound.hpp"
#include "base/embedding.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/check/element_check.hpp"

namespace kintsugi::core {

// C(i, j) = alpha 2^-(scale_i + scale_j) N_ij + beta C(i, j), rounded once, where N_ij is the integer of
// magnitude below a quarter of the moduli's product whose residue modulo modulus t is that of sums_t(i, j).
// With beta = 0, C is not read. `rows` and `columns` hold the ranges of A's rows and B's columns of this
// block; elements of a row or column with NaN or infinities are not written; write_special_values writes
// them. For a complex C, sums and `columns` are as in recombine_weighted, and each part is rounded once.
template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads);

// Data of the checks of elements. The rounding-error bounds of row i and column j bound the deviation of
// (AB)_ij, in the units of the scaled integers, from the integer N_ij (largest_deviation() of
// arith/rounding_bound.hpp).
struct ElementCheck {
  // State of an element: closed (its result is written), open, or proved (accepted without a check).
  enum State : std::uint8_t { closed, open, proved };

  std::span<const RoundingBound> rows;     // of A
  std::span<const RoundingBound> columns;  // of B; a complex column has two
  double largest_a = 0;                    // upper bounds of the magnitudes of the integers of A and of B
  double largest_b = 0;
  ElementDemand demand;
};

// Like recombine_residues(), but accepts only elements that are proved already, or that are open and meet
// check.demand: it writes and closes them. states[i + j * sums.rows] is the ElementCheck::State of element
// (i, j). Returns the number of elements that stay open. With writes = false it only counts them: C and
// `states` stay unchanged.
template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const ElementCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* states,
                                        bool writes, int threads);

}  // namespace kintsugi::core
