// Arithmetic of fp16x3-block: exponents of vectors and k-blocks, the order of additions, and the test by
// which an element of C is accepted. docs/schemes/fp16x3-block.md has the definition.
//
// Proof that an accepted element errs by at most (q + 8) u |A||B|, u = 2^-24, and by underflow. q is the
// smaller number of non-zero elements of its row and its column, N that of non-zero blocks. A pair of
// elements is x and y when scaled, so that |x|, |y| < 2^15. In units of u |A||B|:
//  - A pair without deep elements: |x| >= 2^-14, so that the high slice is normal and the slices leave at
//    most 2u |x|. Both factors 4, and the product of the low slices, which is left out, 4.008.
//  - A half block with t non-zero pairs takes p <= 32 / b instructions of b products with e extra bits. Each
//    truncates the accumulator and no more addends than it has pairs (schedule/accumulator.cpp):
//    2^(1 - e) t + 2 p, at most half_block_loss(), times (1 + 2^-10)^2. The first half also holds the block's
//    cross products, 2^-10 of the block, whose own runs lose as much of their 3 * 2^-11. Subnormal residuals
//    are aligned as if they were 2^-14 <= |x|, and weigh 2^-12. Together 0.005 half_block_loss() + 0.1 more,
//    or 0.3 with four products at once.
//  - Outside, a half block's sum passes at most 2N - 1 additions to a sum that is not zero, in any tree:
//    1.003 (2N - 1). Second order: at most (30 + 2N)^2 u / 2, which is below N / 8 up to k = 2^25.
//  - The last rounding: 1.001.
//  So q + 8 less all these is at least block_slack().
//  - A deep element x loses at most 2^-37 by its slices, times |y| < 2^15, and with the low slice of y at
//    most 2^-25 2^-11 2^15 (1 + 2^-8). A subnormal high slice is aligned as if it were 2^-14: each of b
//    addends may lose 2^(-14 + 15 - 23 - e) more, in its instruction; residuals weigh 2^-12 of that. Together
//    less than 2^-19, which is 2^(e + f - 47) unscaled; in all at most
//    2^-47 (d_i 2^(D_i + E_j) + d_j 2^(D_j + E_i)).
//  - |sum| 2^-8 <= (1 + 2^-4) |A||B| + this loss. With the slack, cut at 2^22, at most 1/4 of |A||B|, twice
//    the loss is compared (BlockTest has the units).
//  - Weights that are 0 lose sums below q 2^-128; subnormal weights are powers of two and lose nothing.
#pragma once

#include <bit>
#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Inner indices of a k-block, whose elements of one vector share an exponent; of half a block, whose products
// of high slices leave the matrix unit together; and of the levels of the sum outside: leaves are chains of
// half blocks, groups chains of leaves, segments chains of groups, and the sum is a chain of segments.
inline constexpr int block_depth = 64;
inline constexpr int half_block_depth = 32;
inline constexpr int block_leaf = 256;
inline constexpr int block_group = 1024;
inline constexpr int block_segment = 8192;

inline constexpr int block_top_exponent = 14;       // of a block's largest element, scaled
inline constexpr int block_residual_exponent = 12;  // residuals are multiplied by 2^12
inline constexpr int block_window = 28;             // binades in which elements keep the split's precision
inline constexpr int least_block_exponent = -112;   // smaller ones would need scales beyond FP32
inline constexpr int special_block_exponent = 128;  // of a block with NaN or infinities
inline constexpr int block_sum_exponent = 8;        // sums outside have the unit 2^-8

// Returns the exponent of a block from the pattern of its largest magnitude, the sign bit cleared.
KINTSUGI_HOST_DEVICE constexpr int block_exponent(std::uint32_t largest) {
  const int exponent = static_cast<int>(largest >> 23) - 127;
  return exponent > least_block_exponent ? exponent : least_block_exponent;
}

// 2^exponent in FP32, for normal results.
KINTSUGI_HOST_DEVICE constexpr float normal_power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// Factor of the elements of a block, which have this exponent, before they are split.
KINTSUGI_HOST_DEVICE constexpr float block_scale(int exponent) {
  return normal_power_of_two(block_top_exponent - exponent);
}

// Factor that undoes block_scale(), but for half of the unit of sums outside. The product of the factors of
// both vectors, rounded to FP32, multiplies the block's sums. It is infinite only if the largest elements
// have a product of at least 2^148, and zero only if all products are below 2^-128.
KINTSUGI_HOST_DEVICE constexpr float block_weight(int exponent) {
  return normal_power_of_two(exponent - block_top_exponent + block_sum_exponent / 2);
}

// An element is deep if it is so far below its block's largest that the split loses more than it loses of
// others: below 2^(exponent - block_window).
KINTSUGI_HOST_DEVICE constexpr bool is_deep(float x, int exponent) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const int limit = exponent - block_window;  // at least -140
  if (limit >= -126) return magnitude != 0 && static_cast<int>(magnitude >> 23) - 127 < limit;
  return magnitude != 0 && magnitude < 1U << (limit + 149);
}

// Numbers of a vector by which its elements of C are accepted. All are sums and maxima of integers.
struct BlockCounts {
  static constexpr std::int32_t none = -4096;

  std::int32_t largest = least_block_exponent;  // largest exponent of a block
  std::int32_t deep_largest = none;             // largest exponent of a block with deep elements
  std::int32_t deep = 0;                        // number of deep elements
  std::int32_t nonzero = 0;                     // number of elements that are not zero
  std::int32_t blocks = 0;                      // number of blocks that are not zero

  KINTSUGI_HOST_DEVICE constexpr void add(const BlockCounts& other) {
    if (other.largest > largest) largest = other.largest;
    if (other.deep_largest > deep_largest) deep_largest = other.deep_largest;
    deep += other.deep;
    nonzero += other.nonzero;
    blocks += other.blocks;
  }
  KINTSUGI_HOST_DEVICE constexpr bool finite() const { return largest < special_block_exponent; }

  friend constexpr bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

// Returns the counts of one block of at most block_depth elements.
KINTSUGI_HOST_DEVICE constexpr BlockCounts count_block(const float* elements, int length, int exponent) {
  BlockCounts counts{.largest = exponent};
  for (int p = 0; p < length; ++p) {
    if (elements[p] == 0) continue;
    ++counts.nonzero;
    if (is_deep(elements[p], exponent)) ++counts.deep;
  }
  if (counts.deep > 0) counts.deep_largest = exponent;
  counts.blocks = counts.nonzero > 0 ? 1 : 0;
  return counts;
}

// Description of the matrix unit for the bound of a half block's sum: products that are added at once, and
// extra bits (schedule/accumulator.hpp). 0 products: sequential additions in FP32.
struct BlockUnit {
  int products = 16;
  int extra_bits = 2;
};

// Returns a bound of the loss of a half block's sum in the unit, in units of 2^-24 of its magnitudes, where
// `products` pairs of elements of the whole vectors are not zero.
KINTSUGI_HOST_DEVICE constexpr std::int64_t half_block_loss(std::int64_t products, const BlockUnit& unit) {
  const std::int64_t most = products < half_block_depth ? products : half_block_depth;
  if (unit.products == 0) return most;
  return ((2 * most) >> unit.extra_bits) + 2 * (half_block_depth / unit.products);
}

// Returns the part of the contract's (q + 8) 2^-24 |A||B| that is left for deep elements, in units of 2^-24
// |A||B|; negative: the element is not proved. q: least number of non-zero elements of row and column;
// blocks: that of blocks that are not zero.
KINTSUGI_HOST_DEVICE constexpr std::int64_t block_slack(std::int64_t q, std::int64_t blocks,
                                                        const BlockUnit& unit) {
  return q - 2 * blocks - blocks / 8 - half_block_loss(q, unit) - 1;
}

inline constexpr std::int64_t most_block_slack = std::int64_t{1} << 22;  // of which the test makes use

// A row or a column as the test of its elements needs it.
struct BlockTest {
  double deep = 0;           // number of deep elements times 2^deep_largest
  double largest = 0;        // 2^(largest - 14)
  std::int32_t nonzero = 0;  // number of elements that are not zero; -1: NaN or infinities among them
  std::int32_t blocks = 0;

  BlockTest() = default;
  KINTSUGI_HOST_DEVICE explicit constexpr BlockTest(const BlockCounts& counts)
      : deep(counts.deep == 0 ? 0.0 : counts.deep * power_of_two(counts.deep_largest)),
        largest(power_of_two(counts.largest - block_top_exponent)),
        nonzero(counts.finite() ? counts.nonzero : -1), blocks(counts.blocks) {}

  // True if the element's sum, as it is outside the unit, is proved to keep the contract. Else the element is
  // computed in FP32.
  KINTSUGI_HOST_DEVICE constexpr bool accepts(const BlockTest& other, float sum,
                                              const BlockUnit& unit = {}) const {
    const std::int32_t q = nonzero < other.nonzero ? nonzero : other.nonzero;
    if (q < 0 || sum - sum != 0) return false;
    if (q == 0) return true;
    const std::int64_t slack = block_slack(q, blocks < other.blocks ? blocks : other.blocks, unit);
    if (slack < 0) return false;
    const double usable = static_cast<double>(slack < most_block_slack ? slack : most_block_slack);
    const double magnitude = sum < 0 ? -static_cast<double>(sum) : static_cast<double>(sum);
    // The loss of the deep elements of both (docs/schemes/fp16x3-block.md).
    return magnitude * usable >= deep * other.largest + other.deep * largest;
  }
};

KINTSUGI_HOST_DEVICE constexpr bool accepts_block_sum(const BlockCounts& row, const BlockCounts& column,
                                                      float sum, const BlockUnit& unit = {}) {
  return BlockTest(row).accepts(BlockTest(column), sum, unit);
}

// Sum of an element over its leaves. Every chain begins at +0, so that a leaf of -0 (a tiny negative sum) is
// +0 outside, as it is if zeros are appended to k.
struct BlockSum {
  float group = 0;
  float segment = 0;
  float total = 0;

  // Adds the leaf that ends at inner index `end`; `is_last`: no leaf follows.
  KINTSUGI_HOST_DEVICE constexpr void add_leaf(float leaf, std::int64_t end, bool is_last) {
    group += leaf;
    if (end % block_group != 0 && !is_last) return;
    segment += group;
    group = 0;
    if (end % block_segment != 0 && !is_last) return;
    total += segment;
    segment = 0;
  }
};

}  // namespace kintsugi::core
