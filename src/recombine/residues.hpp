// Recombination of residues by the Chinese remainder theorem, alpha and beta.
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

// C(i, j) = alpha 2^-(scale_i + scale_j) N_ij + beta C(i, j), rounded once, where N_ij is the integer below a
// quarter of the moduli's product whose residues are those of sums_t(i, j) modulo the system's moduli. With
// beta = 0, C is not read. `rows` and `columns` hold the ranges of A's rows and B's columns of this block;
// elements of a row or column with NaN or infinities are left alone, for put_special_values. Of a complex C,
// sums and `columns` are as in recombine_weighted, and each part is rounded once.
template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads);

// What an element must show. AB lies within the deviation of its integer that the bounds give
// (arith/rounding_bound.hpp).
struct ElementCheck {
  // What is known of an element.
  enum State : std::uint8_t { closed, open, proved };

  std::span<const RoundingBound> rows;
  std::span<const RoundingBound> columns;
  double largest_a = 0;  // bounds of the integers' magnitudes
  double largest_b = 0;
  ElementDemand demand;
};

// As recombine_residues, of those elements alone that are proved, or open and show what is checked; they are
// closed. open(i, j) is element i + j rows. Returns how many stay open. With write = false, C and `open` stay
// as they are.
template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const ElementCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* open,
                                        bool write, int threads);

}  // namespace kintsugi::core
