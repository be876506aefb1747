// The Chinese remainder theorem for many elements at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "arith/exact/exact_rounding.hpp"
#include "arith/range.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/finite_elements.hpp"

namespace kintsugi::core {

// Number of 64-bit limbs for the product of all moduli, which has 342 bits.
inline constexpr int residue_limbs = 6;

// Recombination by a set of moduli m_t. M is the product of the moduli, and q_t is the inverse of M / m_t
// modulo m_t. The integer with the residues r_t is
//   N = sum over t of ((r_t q_t) mod m_t) (M / m_t)   mod M.
class ChineseRemainder {
 public:
  // Elements of one column that are recombined together.
  static constexpr int lanes = 64;

  // Bits of the digits in which sums are computed. Sums of 49 products of a digit and a factor of at most 128
  // are exact in double.
  static constexpr int digit_bits = 40;
  static constexpr int max_digits = 9;

  struct Sums {
    alignas(64) double quotient[lanes];           // the sum divided by M, then rounded to an integer
    alignas(64) double digit[max_digits][lanes];  // signed digits of the sum, without carries
  };

  using Residues = std::array<const std::uint8_t*, max_moduli>;

  explicit ChineseRemainder(const ResidueSystem& system);

  // Computes the sums of `lanes` elements. residues[t] points to their residues modulo m_t.
  void sum_up(const Residues& residues, Sums& sums) const;

  // Returns the integer N, |N| < M / 4, of element `lane` from its sums.
  ExactNumber<residue_limbs> number(const Sums& sums, int lane) const;

 private:
  using Digits = std::array<double, max_digits>;

  static constexpr int no_modulus = -1;

  // Returns the product of all moduli except modulus `excluded`; of all moduli for no_modulus.
  WideInteger<residue_limbs> product_without(int excluded) const;
  int inverse_of_cofactor(int t) const;

  ResidueSystem system_;
  int digits_ = 0;  // number of digits of the product of all moduli
  Digits product_{};
  std::array<Digits, max_moduli> cofactors_{};  // M / m_t
  std::array<int, max_moduli> inverses_{};      // q_t
};

// The weights of ComplexBasis::part_weights(), computed once. A part's residue (part 0: real, part 1:
// imaginary) is the weighted sum of the two or three groups of a modulus.
class PartWeights {
 public:
  explicit PartWeights(const ComplexBasis& basis);

  const std::array<std::uint32_t, 3>& of(std::int64_t part, int t) const { return weights_[part][t]; }

 private:
  std::array<std::array<std::array<std::uint32_t, 3>, max_moduli>, 2> weights_{};
};

// Gathers the residues of `lanes` consecutive rows for ChineseRemainder::sum_up().
class ResidueLanes {
 public:
  ResidueLanes(const Accumulators& sums, const ResidueSystem& system, const PartWeights& weights)
      : sums_(sums), system_(system), weights_(weights) {}

  // Returns the residues of rows i, i + 1, ... of a column of the sums. Lanes beyond the last row are
  // unspecified.
  const ChineseRemainder::Residues& at(std::int64_t i, std::int64_t column);

  // Returns the residues of one part (0: real, 1: imaginary) of elements (i, j), (i + 1, j), ..., for a
  // complex basis.
  const ChineseRemainder::Residues& of_part(std::int64_t part, std::int64_t i, std::int64_t j);

 private:
  using Lanes = std::array<std::uint8_t, ChineseRemainder::lanes>;

  // Returns the residues of a group's sums. If the sums are residues already and no lane is beyond the last
  // row, this is a pointer into the sums. Otherwise fills `copy` and returns a pointer to it.
  const std::uint8_t* group_at(int group, int modulus, std::int64_t i, std::int64_t column,
                               Lanes& copy) const;

  const Accumulators& sums_;
  const ResidueSystem& system_;
  const PartWeights& weights_;
  ChineseRemainder::Residues pointers_{};
  std::array<Lanes, max_moduli> copies_{};
};

// The integers of an element's parts. Their exponents undo the scales.
template <std::int64_t Parts>
using ElementIntegers = std::array<ExactNumber<residue_limbs>, static_cast<std::size_t>(Parts)>;

// Calls visit(i, j, integers) for every element whose row of A and column of B are finite. For each column of
// elements, `columns` has `Parts` ranges. The sums have `Parts` columns, or one if they are sums of complex
// residues.
template <std::int64_t Parts, class Visit>
void for_each_integer(const Accumulators& sums, const ResidueSystem& system,
                      std::span<const VectorRange> rows, std::span<const VectorRange> columns, int threads,
                      const Visit& visit) {
  const ChineseRemainder remainder(system);
  const PartWeights weights(system.basis);
  const bool has_complex_sums = !system.basis.empty();
  const std::int64_t element_columns = has_complex_sums ? sums.columns : sums.columns / Parts;
  const auto visit_lanes = [&](ResidueLanes& residues, std::int64_t first, std::int64_t j) {
    std::array<ChineseRemainder::Sums, static_cast<std::size_t>(Parts)> integers;
    for (std::int64_t part = 0; part < Parts; ++part)
      remainder.sum_up(
          has_complex_sums ? residues.of_part(part, first, j) : residues.at(first, Parts * j + part),
          integers[part]);
    const std::int64_t end = std::min(sums.rows, first + ChineseRemainder::lanes);
    for (std::int64_t i = first; i < end; ++i) {
      if (!rows[i].finite()) continue;
      ElementIntegers<Parts> numbers;
      for (std::int64_t part = 0; part < Parts; ++part) {
        numbers[part] = remainder.number(integers[part], static_cast<int>(i - first));
        numbers[part].exponent = -(rows[i].scale + columns[Parts * j + part].scale);
      }
      visit(i, j, numbers);
    }
  };
  const std::int64_t tiles = (element_columns + columns_of_tile - 1) / columns_of_tile;
#pragma omp parallel for num_threads(workers_for(tiles, threads)) schedule(static)
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const FloatingEnvironment environment;
    ResidueLanes residues(sums, system, weights);
    const std::int64_t end = std::min((tile + 1) * columns_of_tile, element_columns);
    for (std::int64_t first = 0; first < sums.rows; first += ChineseRemainder::lanes) {
      for (std::int64_t j = tile * columns_of_tile; j < end; ++j) {
        if (columns[Parts * j].finite()) visit_lanes(residues, first, j);
      }
    }
  }
}

}  // namespace kintsugi::core
