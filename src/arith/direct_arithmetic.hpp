// Arithmetic of bf16x6-direct: slices of unscaled elements, the order of additions, and the test by which an
// element of C is accepted. docs/schemes/bf16x6-direct.md has the definition.
//
// Proof that an accepted element errs by at most (q + 8) u |A||B| + (2q + 8) 2^-126, u = 2^-24, where q is
// the number of pairs of which neither element is zero. In units of u |A||B|:
//  - The three slices of x have 8 bits each and are rounded to nearest, so |x1| <= 2^-9 |x|, |x2| <= 2^-18
//    |x|. They are exact unless bits of x below 2^-133 are lost, at most 2^-134. Three products are left out,
//    2 * 2^-27 (1 + 2^-8): 0.26.
//  - A step with t pairs loses at most (2^-e t + p) 2^-23 of the magnitudes in the accumulator in each of its
//    six runs (schedule/accumulator.cpp), with b = 16, e = 2 or more: t / 2 + 2, with b = 8, e = 1 or more:
//    t + 4; sequential: t. Only the last run adds products of high slices, at most (1 + 2^-8)^2 of the
//    magnitudes; the two before add 2^-9 of them each. Together at most 1.02 (t + 4).
//  - Outside, H steps that are not zero take at most H - 1 additions that round, and a sum of n numbers loses
//    at most n - 1 units of their magnitudes in any order (Jeannerod and Rump, Improved error bounds for
//    inner products in floating-point arithmetic, 2013). A step also passes at most 72 additions within its
//    section and those of S <= 2^12 sections: d = 72 + S, which lose at most d (1 + d u). Steps have lost
//    2^-19 of their magnitudes or less. If H <= 2^12 + 75, (H - 1) (1 + 2^-19) is at most H, else
//    d (1 + 2^-19) (1 + 2^-11) is: at most H.
//  - The last rounding: 1.001.
//  - H is at most q - t + 1 for the t of every step, so that all of these are below q + 7.
//  - A pair loses at most 2^-134 (|x| + |y|) (1 + 2^-8) because slices cannot be smaller, and the unit aligns
//    subnormal slices as if they were 2^-126: another 2^-149 (|x| + |y|). With M, the largest element of the
//    row and the column, q pairs lose at most q 2^-132.9 M. That is at most q 2^-126 if M <= 2^6, and at most
//    2^-25 q of the sum's unit if |sum| >= 2^-84 M.
//  - Sums and products below 2^-126 are multiples of 2^-149, or lose less than 2^-146 in each run: below
//    q 2^-140.
#pragma once

#include <bit>
#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// Inner indices of a step, whose products are added in the matrix unit; and of the levels of the sum outside:
// leaves are chains of steps, groups chains of leaves, segments chains of groups, sections chains of
// segments, and the sum is a chain of sections.
inline constexpr int direct_step = 16;
inline constexpr int direct_leaf = 128;
inline constexpr int direct_group = 512;
inline constexpr int direct_segment = 16384;
inline constexpr int direct_section = 524288;

// Elements of vectors whose largest magnitudes are at most `direct_safe_largest` are accepted; others if the
// sum is at least `direct_least_share` of the larger one.
inline constexpr float direct_safe_largest = 0x1p6F;
inline constexpr float direct_least_share = 0x1p-84F;

// Largest magnitude of a vector whose high slices are all zero, but not all of its elements.
inline constexpr float direct_tiny_largest = 0x1p-149F;

// True if the element's sum is proved to keep the contract. Else the element is computed in FP32. The first
// two arguments are the largest magnitudes of high slices in its row and its column, which may be infinite,
// or direct_tiny_largest.
KINTSUGI_HOST_DEVICE constexpr bool accepts_direct_sum(float row, float column, float sum) {
  const float larger = row > column ? row : column;
  const float smaller = row > column ? column : row;
  const float magnitude = sum < 0 ? -sum : sum;
  if (!(magnitude < std::bit_cast<float>(0x7f800000U))) return false;
  return larger <= direct_safe_largest || smaller == 0 || magnitude >= larger * direct_least_share;
}

// Sum of an element over its leaves. Every chain begins at +0, so that a leaf of -0 (a tiny negative sum) is
// +0 outside, as it is if zeros are appended to k.
struct DirectSum {
  float group = 0;
  float segment = 0;
  float section = 0;
  float total = 0;

  // Adds the leaf that ends at inner index `end`; `is_last`: no leaf follows.
  KINTSUGI_HOST_DEVICE constexpr void add_leaf(float leaf, std::int64_t end, bool is_last) {
    group += leaf;
    if (end % direct_group != 0 && !is_last) return;
    segment += group;
    group = 0;
    if (end % direct_segment != 0 && !is_last) return;
    section += segment;
    segment = 0;
    if (end % direct_section != 0 && !is_last) return;
    total += section;
    section = 0;
  }
};

}  // namespace kintsugi::core
