// Rounding of exact results and of sums of a few numbers: each result is rounded once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "arith/epilogue.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "base/bits.hpp"
#include "base/rounding.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// (-1)^negative * magnitude * 2^exponent.
template <int Limbs>
struct ExactNumber {
  WideInteger<Limbs> magnitude;
  int exponent = 0;
  bool negative = false;
};

// Sign and magnitude of a sum in two's complement.
template <int Limbs>
KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> signed_number(const WideInteger<Limbs>& sum, int exponent) {
  ExactNumber<Limbs> number{{}, exponent, (sum.limb[Limbs - 1] >> 63) != 0};
  const std::uint64_t flips = 0 - std::uint64_t{number.negative};
  std::uint64_t carry = flips & 1U;
  for (int l = 0; l < Limbs; ++l) {
    const auto limb = static_cast<typename WideInteger<Limbs>::TwoLimbs>(sum.limb[l] ^ flips) + carry;
    number.magnitude.limb[l] = static_cast<std::uint64_t>(limb);
    carry = static_cast<std::uint64_t>(limb >> 64);
  }
  return number;
}

// (-1)^negative * magnitude * 2^exponent rounded once to T. Subnormal results have fewer bits, overflow gives
// infinity or the largest number, as the mode has it, and zero gives zero_sum(). If `sticky` is set, the
// exact magnitude is larger than `magnitude` by a fraction of its last bit.
template <class T>
KINTSUGI_HOST_DEVICE T rounded(std::uint64_t magnitude, int exponent, bool negative, bool sticky,
                               RoundingMode rounding = RoundingMode::nearest) {
  using limits = std::numeric_limits<T>;
  constexpr int smallest = limits::min_exponent - limits::digits;  // exponent of the smallest subnormal
  const int length = 64 - leading_zeros(magnitude);
  if (length == 0) return zero_sum<T>(rounding);
  // Bits below the exponent of the result's last place are dropped.
  const int last = std::max(exponent + length - limits::digits, smallest);
  const int drop = std::max(last - exponent, 0);
  std::uint64_t kept = drop < 64 ? magnitude >> drop : 0;
  if (rounding != RoundingMode::nearest) {
    const bool is_exact = !sticky && (drop < 64 ? kept << drop == magnitude : false);
    if (!is_exact && enlarges_magnitude(rounding, negative)) ++kept;
  } else if (drop > 0 && drop <= 64) {
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const bool low_bits = sticky || (magnitude & (half - 1)) != 0;
    if ((magnitude & half) != 0 && (low_bits || (kept & 1U) != 0)) ++kept;
  }
  auto value = static_cast<T>(times_power_of_two(static_cast<double>(kept), exponent + drop));
  if (rounding != RoundingMode::nearest && value > limits::max() && !enlarges_magnitude(rounding, negative))
    value = limits::max();
  return negative ? -value : value;
}

// x rounded once to T. The 64 leading bits are rounded; all lower bits only decide whether `sticky` is set.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T rounded(const ExactNumber<Limbs>& x, bool sticky = false,
                               RoundingMode rounding = RoundingMode::nearest) {
  const int position = std::max(x.magnitude.length() - 64, 0);
  return rounded<T>(x.magnitude.bits_from(position), x.exponent + position, x.negative,
                    sticky || x.magnitude.any_below(position), rounding);
}

// Largest |x.exponent| for rounded_ordinary(), which rounds without branches. Up to this exponent neither the
// result as a double nor the power of two that scales the leading 64 bits is subnormal.
inline constexpr int max_ordinary_exponent = 850;

// The leading 96 bits of a magnitude in 32-bit words. The first word is the leading non-zero one.
struct LeadingWords {
  std::uint32_t words[3];
  std::uint32_t low_bits;  // not zero if any bit below the three words is set
  int exponent;            // exponent of the first word's last bit, less 32
};

constexpr std::uint32_t high_word(std::uint64_t limb) { return static_cast<std::uint32_t>(limb >> 32); }
constexpr std::uint32_t low_word(std::uint64_t limb) { return static_cast<std::uint32_t>(limb); }
constexpr std::uint64_t both_words(std::uint32_t upper, std::uint32_t lower) {
  return std::uint64_t{upper} << 32 | lower;
}

template <int Limbs>
KINTSUGI_HOST_DEVICE LeadingWords leading_words(const ExactNumber<Limbs>& x) {
  const auto& limb = x.magnitude.limb;
  std::uint64_t first = limb[0];  // leading non-zero limb
  std::uint64_t second = 0;       // limb below `first`
  std::uint32_t low_bits = 0;     // bitwise or of the words of all limbs below `second`
  std::uint32_t below = 0;        // bitwise or of the words of all limbs below limb l - 1
  int exponent = x.exponent;      // exponent of the last bit of `first`
  for (int l = 1; l < Limbs; ++l) {
    const bool leads = limb[l] != 0;
    first = leads ? limb[l] : first;
    second = leads ? limb[l - 1] : second;
    low_bits = leads ? below : low_bits;
    exponent = leads ? x.exponent + 64 * l : exponent;
    below |= high_word(limb[l - 1]) | low_word(limb[l - 1]);
  }
  // The words of the two limbs are selected in the same way.
  const bool leads = high_word(first) != 0;
  return {{leads ? high_word(first) : low_word(first), leads ? low_word(first) : high_word(second),
           leads ? high_word(second) : low_word(second)},
          low_bits | (leads ? low_word(second) : 0),
          exponent - (leads ? 0 : 32)};
}

// x rounded once to T, from the leading bits alone: the last of them is set if any lower bit is set. They
// round like the whole integer, since they are at least two bits more than the result has. A double is
// rounded by the conversion of 64 bits. A float, which may be subnormal, is rounded by the last cast, from 32
// bits that a double holds exactly.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T rounded_ordinary(const ExactNumber<Limbs>& x) {
  const LeadingWords leading = leading_words(x);
  const int shift = leading_zeros(leading.words[0]);
  const std::uint32_t upper = high_word(both_words(leading.words[0], leading.words[1]) << shift);
  const std::uint64_t lower = both_words(leading.words[1], leading.words[2]) << shift;
  int exponent = leading.exponent - shift;
  std::uint32_t low_bits = leading.low_bits | low_word(lower);
  double integer;
  if constexpr (sizeof(T) == 4) {
    low_bits |= high_word(lower);
    exponent += 32;
    integer = static_cast<double>(upper | (low_bits != 0 ? 1U : 0U));
  } else {
    integer = static_cast<double>(both_words(upper, high_word(lower) | (low_bits != 0 ? 1U : 0U)));
  }
  // 2^1024 has the bit pattern of infinity: results that are too large for a double become infinite.
  const std::uint32_t unit = static_cast<std::uint32_t>(std::min(exponent, 1024) + 1023) << 20;
  const std::uint32_t sign = std::uint32_t{x.negative} << 31;
  return static_cast<T>(
      std::fma(integer, std::bit_cast<double>(both_words(unit | sign, 0)), 0.0));  // + 0.0 turns -0 into 0
}

namespace exact_detail {

// Returns a finite number as integer and exponent.
constexpr ExactNumber<1> exact(double x) {
  const format_detail::Parts parts = format_detail::take_apart(x);
  return {{{parts.significand}}, parts.exponent - 52, parts.negative};
}

// x * y, exact in one limb more.
template <int Limbs>
constexpr ExactNumber<Limbs + 1> times(const ExactNumber<Limbs>& x, const ExactNumber<1>& y) {
  ExactNumber<Limbs + 1> product;
  product.magnitude.add_multiple(WideInteger<Limbs + 1>::shifted(x.magnitude, 0), y.magnitude.limb[0]);
  product.exponent = x.exponent + y.exponent;
  product.negative = x.negative != y.negative;
  return product;
}

// x + y rounded once, in a window of two limbs more than x. The window holds all bits of the larger number
// and at least 126 zeros below them. A smaller number that has bits below the window is therefore too small
// to cancel the larger one, and these bits only decide on which side of a tie the sum lies.
template <class T, int Limbs, int OtherLimbs>
KINTSUGI_HOST_DEVICE T rounded_sum(const ExactNumber<Limbs>& x, const ExactNumber<OtherLimbs>& y,
                                   RoundingMode rounding) {
  constexpr int width = Limbs + 2;
  constexpr int top = WideInteger<width>::bits - 2;
  static_assert(OtherLimbs <= Limbs);
  const int length_x = x.magnitude.length();
  const int length_y = y.magnitude.length();
  constexpr bool sticky = false;
  if (length_y == 0) return rounded<T>(x, sticky, rounding);
  if (length_x == 0) return rounded<T>(y, sticky, rounding);
  const int exponent = std::max(x.exponent + length_x, y.exponent + length_y) - top;
  const auto placed = [&](const auto& number) {
    return WideInteger<width>::shifted(number.magnitude, number.exponent - exponent);
  };
  const bool lost =
      x.magnitude.any_below(exponent - x.exponent) || y.magnitude.any_below(exponent - y.exponent);
  ExactNumber<width> larger{placed(x), exponent, x.negative};
  ExactNumber<width> smaller{placed(y), exponent, y.negative};
  if (larger.magnitude.less_than(smaller.magnitude)) std::swap(larger, smaller);
  if (larger.negative == smaller.negative) {
    larger.magnitude.add_multiple(smaller.magnitude, 1);
  } else {
    larger.magnitude.subtract(smaller.magnitude);
    if (lost) larger.magnitude.subtract({{1}});  // the lost bits borrow from the last unit
  }
  return rounded<T>(larger, lost, rounding);
}

}  // namespace exact_detail

// alpha * x + beta * c rounded once; c is null when beta = 0. If alpha, beta or c is infinite or NaN, the
// result is that of IEEE 754 arithmetic with the sign of x in place of x.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T exact_epilogue(const ExactNumber<Limbs>& x, T alpha, T beta, const T* c,
                                      RoundingMode rounding = RoundingMode::nearest) {
  using namespace exact_detail;
  constexpr bool sticky = false;
  if (c == nullptr && alpha == T(1)) return rounded<T>(x, sticky, rounding);
  const T old = c == nullptr ? T(0) : *c;
  if (!std::isfinite(alpha) || !std::isfinite(beta) || !std::isfinite(old)) {
    const int sign = x.magnitude.length() == 0 ? 0 : x.negative ? -1 : 1;
    return special_epilogue(sign, alpha, beta, c);
  }
  const auto product = times(x, exact(static_cast<double>(alpha)));
  if (c == nullptr) return rounded<T>(product, sticky, rounding);
  return rounded_sum<T>(product, times(exact(static_cast<double>(beta)), exact(static_cast<double>(old))),
                        rounding);
}

// The exponents of the terms below may be any; no accumulator spans their whole range.

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
KINTSUGI_HOST_DEVICE T rounded_sum(std::array<ExactNumber<Limbs>, Count> terms,
                                   RoundingMode rounding = RoundingMode::nearest) {
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
  return rounded<T>(sum, lost, rounding);
}

}  // namespace kintsugi::core
