// Scales of residues by exact sums of integers. Ozaki, Uchino and Imamura, Ozaki Scheme II (arXiv
// 2504.08009), call scales by norms the fast mode and scales by a product the accurate mode. They round norms
// and logarithms in floating point. Here sums are integers, so neither summation order nor engine can change
// a scale.
//
// The Chinese remainder theorem recovers sums of magnitude up to 2^R, R = residue_bits(). e_i is the largest
// exponent of row i of A, e_j that of column j of B; D = magnitude_above() of scaled elements. The scale
// 2^s_i of row i is:
//
//   exponent  |a'_ip| <= 2^b, k 2^(2 b) <= 2^R
//   norm      D_ip = ceil(2^(14 - e_i) |a_ip|), 2^L_i >= sum over p of D_ip^2,
//             t_i = floor((R - L_i) / 2), s_i = 14 - e_i + t_i
//   product   D_ip = ceil(2^(5 - e_i) |a_ip|), U = D_a D_b, 2^L_i >= max over j of U_ij,
//             t_i = floor((R - L_i) / 2), s_i = 5 - e_i + t_i
//
// For t_i >= 0 the integer D_ip 2^t_i is at least 2^s_i |a_ip|. Rounding is monotone, so |a'_ip| <= D_ip
// 2^t_i. Therefore
//
//   norm      |sum a'_ip b'_pj| <= |a'_i| |b'_j|, and |a'_i|^2 <= 2^(2 t_i + L_i) <= 2^R, |b'_j|^2 likewise
//   product   |sum a'_ip b'_pj| <= 2^(t_i + t_j) U_ij
//                               <= 2^((R - L_i) / 2 + (R - L_j) / 2) min(2^L_i, 2^L_j) <= 2^R
//
// Both scales are at least the scale by exponents, because sum of D_ip^2 <= k 2^30 and U_ij <= k 2^12. If t_i
// < 0, the norm is not used: the scale by the exponent stays, which also keeps |a'_i|^2 <= k 2^(2 b) <= 2^R.
// A product requires b >= 6, which gives t_i >= 0.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/bits.hpp"

namespace kintsugi::core {

// D < 2^15, so 2^33 squares can be added in 64 bits. Rounding up increases a norm by less than 2^-13 sqrt(k)
// times the largest element.
inline constexpr int norm_digits = 14;
// D <= 2^6, which int8 holds.
inline constexpr int product_digits = 5;

// Returns the least L with sum <= 2^L; 0 if the sum is 0.
KINTSUGI_HOST_DEVICE constexpr int bits_of_sum(std::uint64_t sum) {
  return sum <= 1 ? 0 : 64 - leading_zeros(sum - 1);
}

// Exponent that the vector's largest magnitude has after scaling: by its norm, but at least top_exponent.
// sum_bits is R, norm_bits is L.
KINTSUGI_HOST_DEVICE constexpr int norm_top(int top_exponent, int sum_bits, int norm_bits) {
  const int doublings = (sum_bits - norm_bits) >> 1;
  return doublings < 0 ? top_exponent : std::max(top_exponent, norm_digits + doublings);
}

// log2 of the scale of a non-zero vector. norm_bits or product_bits is L, rule.sum_bits is R.
KINTSUGI_HOST_DEVICE constexpr int norm_scale(const VectorRange& range, const SplitRule& rule,
                                              int norm_bits) {
  return norm_top(rule.top_exponent, rule.sum_bits, norm_bits) - range.largest;
}

constexpr int product_scale(const VectorRange& range, const SplitRule& rule, int product_bits) {
  return product_digits + ((rule.sum_bits - product_bits) >> 1) - range.largest;
}

// Scales by norms in kernels: returns L of a vector of up to 2^32 elements from its sum of squares in double,
// added in any order. It may differ from the L of integers D, but bounds the integers a' = RN(2^s a) of the
// scale that follows from it:
//
// - The sum has a relative error of at most 2^-20, so 2^L is at least (1 + 2^-20) times the exact sum of
//   (2^(14 - e) a_p)^2. Squares that underflow are too small to count beside the largest element's. If they
//   could count, or if the sum could overflow, L is that of elements that all are as large as the largest.
// - So |2^s a| <= (1 - 2^-22) 2^(R/2), and |a'| <= |2^s a| + sqrt(k) / 2 <= 2^(R/2) if k 2^44 <= 2^R, which
//   integers of at least 22 bits by exponents imply.
KINTSUGI_HOST_DEVICE inline int bits_of_squares(double squares, const VectorRange& range,
                                                std::int64_t length) {
  constexpr int most = 450;  // |exponent| of the largest magnitude
  if (!range.finite() || (range.flags & VectorRange::all_zero) != 0 || range.largest < -most ||
      range.largest > most)
    return 2 * (norm_digits + 1) + 64 - leading_zeros(static_cast<std::uint64_t>(length));
  return exponent_of(squares * (1 + 0x1p-19)) + 1 + 2 * (norm_digits - range.largest);
}

}  // namespace kintsugi::core
