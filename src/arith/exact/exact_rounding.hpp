// Rounding of exact results: each result is rounded once.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "arith/epilogue.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "base/bits.hpp"
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

// (-1)^negative * magnitude * 2^exponent rounded once to T, ties to even. Subnormal results have fewer bits,
// overflow gives infinity, zero gives +0. If `sticky` is set, the exact magnitude is larger than `magnitude`
// by a fraction of its last bit.
template <class T>
KINTSUGI_HOST_DEVICE T rounded(std::uint64_t magnitude, int exponent, bool negative, bool sticky) {
  using limits = std::numeric_limits<T>;
  constexpr int smallest = limits::min_exponent - limits::digits;  // exponent of the smallest subnormal
  const int length = 64 - leading_zeros(magnitude);
  if (length == 0) return 0;
  // Bits below the exponent of the result's last place are dropped.
  const int last = std::max(exponent + length - limits::digits, smallest);
  const int drop = std::max(last - exponent, 0);
  std::uint64_t kept = drop < 64 ? magnitude >> drop : 0;
  if (drop > 0 && drop <= 64) {
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const bool low_bits = sticky || (magnitude & (half - 1)) != 0;
    if ((magnitude & half) != 0 && (low_bits || (kept & 1U) != 0)) ++kept;
  }
  const double value = times_power_of_two(static_cast<double>(kept), exponent + drop);
  return static_cast<T>(negative ? -value : value);
}

// x rounded once to T. The 64 leading bits are rounded; all lower bits only decide whether `sticky` is set.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T rounded(const ExactNumber<Limbs>& x, bool sticky = false) {
  const int position = std::max(x.magnitude.length() - 64, 0);
  return rounded<T>(x.magnitude.bits_from(position), x.exponent + position, x.negative,
                    sticky || x.magnitude.any_below(position));
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
KINTSUGI_HOST_DEVICE T rounded_sum(const ExactNumber<Limbs>& x, const ExactNumber<OtherLimbs>& y) {
  constexpr int width = Limbs + 2;
  constexpr int top = WideInteger<width>::bits - 2;
  static_assert(OtherLimbs <= Limbs);
  const int length_x = x.magnitude.length();
  const int length_y = y.magnitude.length();
  if (length_y == 0) return rounded<T>(x);
  if (length_x == 0) return rounded<T>(y);
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
  return rounded<T>(larger, lost);
}

}  // namespace exact_detail

// alpha * x + beta * c rounded once; c is null when beta = 0. If alpha, beta or c is infinite or NaN, the
// result is that of IEEE 754 arithmetic with the sign of x in place of x.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T exact_epilogue(const ExactNumber<Limbs>& x, T alpha, T beta, const T* c) {
  using namespace exact_detail;
  if (c == nullptr && alpha == T(1)) return rounded<T>(x);
  const T old = c == nullptr ? T(0) : *c;
  if (!std::isfinite(alpha) || !std::isfinite(beta) || !std::isfinite(old)) {
    const int sign = x.magnitude.length() == 0 ? 0 : x.negative ? -1 : 1;
    return special_epilogue(sign, alpha, beta, c);
  }
  const auto product = times(x, exact(static_cast<double>(alpha)));
  if (c == nullptr) return rounded<T>(product);
  return rounded_sum<T>(product, times(exact(static_cast<double>(beta)), exact(static_cast<double>(old))));
}

}  // namespace kintsugi::core
