// One step of Strassen's algorithm, in Winograd's form, for products of residues: seven products of
// matrices of half the size instead of eight. Residues are added and subtracted modulo the modulus, so the
// step is exact: it changes no residue of the result.
//
// Rows of A, columns of B and inner indices are divided into two halves each. Groups of four consecutive
// indices belong to the halves in turn, so that the indices of both halves that meet in a sum are close
// together in memory. With A11 the elements of the first half of the rows and of k, A12 those of the first
// half of the rows and the second half of k, and so on:
//
//   product   left operand              right operand
//   0         A11                       B11
//   1         A12                       B21
//   2         A12 - A21 - A22 + A11     B22
//   3         A22                       B21 - B22 + B12 - B11
//   4         A21 + A22                 B12 - B11
//   5         A21 + A22 - A11           B22 - B12 + B11
//   6         A11 - A21                 B22 - B12
//
//   C11 = P0 + P1,  C12 = P0 + P5 + P4 + P2,  C21 = P0 + P5 + P6 + P3,  C22 = P0 + P5 + P6 + P4
//
// The operand of product 3 has the opposite sign of Winograd's, so that products are only added. (Winograd,
// "On multiplication of 2 x 2 matrices", Linear Algebra and its Applications 4, 1971.)
#pragma once

#include <array>
#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core {

inline constexpr int strassen_products = 7;

// Consecutive indices that belong to the same half.
inline constexpr int strassen_group = 4;

// Length of each half of a dimension of length n. Indices beyond n stand for zeros.
KINTSUGI_HOST_DEVICE constexpr std::int64_t strassen_half(std::int64_t n) {
  return (n + 2 * strassen_group - 1) / (2 * strassen_group) * strassen_group;
}

// Half to which index i belongs (0 or 1), and its index in that half.
KINTSUGI_HOST_DEVICE constexpr std::int64_t half_of(std::int64_t i) { return i / strassen_group % 2; }
KINTSUGI_HOST_DEVICE constexpr std::int64_t index_in_half(std::int64_t i) {
  return i / (2 * strassen_group) * strassen_group + i % strassen_group;
}

// Elements of the seven operands from the elements of the four quadrants of A (x21: second half of the rows,
// first half of k) and of B (x21: second half of k, first half of the columns). Number is an integer type or
// residues whose sums are reduced later.
template <class Number>
KINTSUGI_HOST_DEVICE constexpr std::array<Number, strassen_products> left_operands(Number x11, Number x12,
                                                                                   Number x21, Number x22) {
  const Number sum = x21 + x22;
  const Number difference = sum - x11;
  return {x11, x12, x12 - difference, x22, sum, difference, x11 - x21};
}
template <class Number>
KINTSUGI_HOST_DEVICE constexpr std::array<Number, strassen_products> right_operands(Number x11, Number x12,
                                                                                    Number x21, Number x22) {
  const Number difference = x12 - x11;
  const Number sum = x22 - difference;
  return {x11, x21, x22, x21 - sum, difference, sum, x22 - x12};
}

// True if product q is a term of a quadrant of C: 2 (half of the rows) + half of the columns.
KINTSUGI_HOST_DEVICE constexpr bool is_in_quadrant(int q, int quadrant) {
  constexpr std::uint32_t products[4]{0b0000011, 0b0110101, 0b1101001, 0b1110001};
  return (products[quadrant] >> q & 1) != 0;
}

}  // namespace kintsugi::core
