// Sums of a few numbers, rounded once. The exponents may be any; no accumulator spans their whole range.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "arith/exact/exact_rounding.hpp"

namespace kintsugi::core {

namespace exact_detail {

// Empty bits that separate two clusters of terms. The terms below a gap add up to less than 2^-64 of the last
// bit of the cluster above, so they cannot cancel a non-zero cluster.
inline constexpr int cluster_gap = 72;

// Exponent of the first bit above all bits of x; the smallest int if x is zero.
template <int Limbs>
KINTSUGI_HOST_DEVICE constexpr int top_of(const ExactNumber<Limbs>& x) {
  const int length = x.magnitude.length();
  return length == 0 ? std::numeric_limits<int>::min() : x.exponent + length;
}

template <int Limbs, std::size_t Count>
KINTSUGI_HOST_DEVICE constexpr void sort_by_top(std::array<ExactNumber<Limbs>, Count>& terms) {
  KINTSUGI_ROLLED
  for (std::size_t last = 1; last < Count; ++last) {
    KINTSUGI_ROLLED
    for (std::size_t t = last; t > 0 && top_of(terms[t - 1]) < top_of(terms[t]); --t)
      std::swap(terms[t - 1], terms[t]);
  }
}

// Adds x * 2^shift to a sum in two's complement, or subtracts it; shift >= 0.
template <int Limbs, int OtherLimbs>
KINTSUGI_HOST_DEVICE constexpr void add_shifted(WideInteger<Limbs>& sum, const WideInteger<OtherLimbs>& x,
                                                int shift, bool negative) {
  std::uint64_t carry = negative ? 1 : 0;
  KINTSUGI_ROLLED
  for (int l = shift / 64; l < Limbs; ++l) {
    const std::uint64_t bits = x.bits_from(64 * l - shift);
    const std::uint64_t addend = negative ? ~bits : bits;
    const std::uint64_t with_carry = sum.limb[l] + carry;
    const std::uint64_t total = with_carry + addend;
    carry = (with_carry < carry ? 1 : 0) + (total < addend ? 1 : 0);
    sum.limb[l] = total;
  }
}

// Limbs for the bits of a cluster, the gaps inside it, a carry, and 64 zeros below its last bit.
template <int Limbs, std::size_t Count>
inline constexpr int cluster_limbs = static_cast<int>(Count) * Limbs + 1 +
                                     ((static_cast<int>(Count) - 1) * cluster_gap + 2 + 63) / 64;

// Returns the exact sum of the cluster that begins at term `next`, with 64 zeros below its last bit. Moves
// `next` to the first term after the cluster. The terms must be sorted.
template <int Limbs, std::size_t Count>
KINTSUGI_HOST_DEVICE constexpr auto take_cluster(const std::array<ExactNumber<Limbs>, Count>& terms,
                                                 std::size_t& next) {
  constexpr int width = cluster_limbs<Limbs, Count>;
  const std::size_t first = next;
  int bottom = terms[first].exponent;
  for (++next; next < Count && top_of(terms[next]) >= bottom - cluster_gap; ++next)
    bottom = std::min(bottom, terms[next].exponent);
  ExactNumber<width> sum;
  sum.exponent = bottom - 64;
  KINTSUGI_ROLLED
  for (std::size_t t = first; t < next; ++t)
    add_shifted(sum.magnitude, terms[t].magnitude, terms[t].exponent - sum.exponent, terms[t].negative);
  sum.negative = (sum.magnitude.limb[width - 1] >> 63) != 0;
  if (sum.negative) {
    const WideInteger<width> complement = sum.magnitude;
    constexpr bool negates = true;
    sum.magnitude = {};
    add_shifted(sum.magnitude, complement, 0, negates);
  }
  return sum;
}

}  // namespace exact_detail

// Returns the sum of the terms, rounded once. The first cluster whose sum is not zero gives the result;
// clusters below it only decide on which side of a tie the sum lies.
template <class T, int Limbs, std::size_t Count>
KINTSUGI_HOST_DEVICE T rounded_sum(std::array<ExactNumber<Limbs>, Count> terms) {
  using namespace exact_detail;
  sort_by_top(terms);
  std::size_t count = 0;
  while (count < Count && terms[count].magnitude.length() != 0) ++count;
  std::size_t next = 0;
  ExactNumber<cluster_limbs<Limbs, Count>> sum;
  KINTSUGI_ROLLED
  while (next < count && sum.magnitude.length() == 0) sum = take_cluster(terms, next);
  bool lost = false;
  KINTSUGI_ROLLED
  while (next < count && !lost) {
    const auto next_cluster = take_cluster(terms, next);
    lost = next_cluster.magnitude.length() != 0;
    // Lower terms of the other sign lower the magnitude by a fraction of a unit: one unit is subtracted, and
    // `lost` stands for the fraction that remains.
    if (lost && next_cluster.negative != sum.negative) sum.magnitude.subtract({{1}});
  }
  return rounded<T>(sum, lost);
}

}  // namespace kintsugi::core
