// Fractions of a lane's own elements by the matrix unit (arith/residue/fraction_sums.hpp). Lanes and the
// matrix unit's operands are those of digit_residues.cuh: the four lanes of a row of the left operand hold
// residues of different elements, and the right operand has zeros where the inner indices of one lane meet
// the columns of another. All lanes of a warp must call these functions together.
#pragma once

#include "arith/residue/fraction_sums.hpp"
#include "engines/cuda/ptx/integer_mma.cuh"

namespace kintsugi::core::cuda {

// Adds to `sums` two digits' sums of rows `first` and `first` + 1. words[w][r] has residues 4 w ... 4 w + 3
// of row r; `digits` are the lane's words of its digit, of the same residues.
template <int words, int rows>
__device__ void add_digit_pair(const std::uint32_t (&residues)[words][rows], int first,
                               const std::uint32_t* digits, std::uint32_t (&sums)[4]) {
#pragma unroll
  for (int w = 0; w < words; w += 2) {
    if (w + 1 == words) {
      const std::uint32_t left[2]{residues[w][first], residues[w][first + 1]};
      mma_bytes(sums, left, digits[w]);
    } else {
      const std::uint32_t left[4]{residues[w][first], residues[w][first + 1], residues[w + 1][first],
                                  residues[w + 1][first + 1]};
      const std::uint64_t both = *reinterpret_cast<const std::uint64_t*>(digits + w);
      const std::uint32_t right[2]{low_word(both), high_word(both)};
      mma_bytes(sums, left, right);
    }
  }
}

// Fractions of a lane's rows. words[w][r] has residues 4 w ... 4 w + 3 of row r. `digits` is the lane's
// address of digit 0 or 1 (SharedDigits::of_lane()), where a digit has `stride` words.
template <int stride, int words, int rows>
__device__ void find_fractions(const std::uint32_t (&residues)[words][rows], const std::uint32_t* digits,
                               const FractionRow (&scales)[rows], Fraction (&fractions)[rows]) {
  static_assert(rows % 2 == 0 && words <= stride);
  std::uint32_t sums[rows / 2][fraction_digits / 2][4];
#pragma unroll
  for (int pair = 0; pair < fraction_digits / 2; ++pair) {
#pragma unroll
    for (int i = 0; i < rows / 2; ++i) {
#pragma unroll
      for (int s = 0; s < 4; ++s) sums[i][pair][s] = first_digit_sum(2 * pair + s % 2);
      add_digit_pair(residues, 2 * i, digits + 2 * pair * stride, sums[i][pair]);
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    std::uint32_t of_row[fraction_digits];
#pragma unroll
    for (int d = 0; d < fraction_digits; ++d) of_row[d] = sums[r / 2][d / 2][r % 2 * 2 + d % 2];
    fractions[r] = fraction_of_digits(of_row, scales[r]);
  }
}

}  // namespace kintsugi::core::cuda
