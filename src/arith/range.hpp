// Ranges of one vector along k (a row of op(A) or a column of op(B)): scale, exponents and flags. Exponents
// come from bit patterns: no log, no rounding, no dependence on the floating-point environment.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "arith/host_device.hpp"
#include "arith/split_rule.hpp"
#include "base/bits.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// floor(log2 |x|) of a finite, non-zero x, which may be subnormal.
KINTSUGI_HOST_DEVICE constexpr int exponent_of(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const int field = static_cast<int>(magnitude >> 23);
  return field != 0 ? field - 127 : -118 - leading_zeros(magnitude);
}

KINTSUGI_HOST_DEVICE constexpr int exponent_of(double x) {
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffULL;
  const int field = static_cast<int>(magnitude >> 52);
  return field != 0 ? field - 1023 : -1011 - leading_zeros(magnitude);
}

// True if the seven leading significant bits of a finite, non-zero x are all ones: 1.111111b...
KINTSUGI_HOST_DEVICE constexpr bool leading_bits_all_ones(float x) {
  std::uint32_t significand = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  if (significand < 0x800000U) significand <<= leading_zeros(significand) - 8;
  return ((significand >> 17) & 0x3fU) == 0x3fU;
}

KINTSUGI_HOST_DEVICE constexpr bool leading_bits_all_ones(double x) {
  std::uint64_t significand = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffULL;
  if (significand < 0x10000000000000ULL) significand <<= leading_zeros(significand) - 11;
  return ((significand >> 46) & 0x3fU) == 0x3fU;
}

struct VectorRange {
  enum Flag : std::uint32_t { has_nan = 1, has_plus_infinity = 2, has_minus_infinity = 4, all_zero = 8 };

  std::int32_t scale = 0;  // log2 of the factor that the split applies
  // Exponents of the largest and the smallest non-zero finite magnitude; not set if the flag all_zero is.
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  std::int32_t smallest = std::numeric_limits<std::int32_t>::max();
  // Like `largest`, but an element whose seven leading significant bits are all ones counts with its exponent
  // plus 1. With a scale from `raised` the largest magnitude lies in [63.5, 127): no element rounds to 128,
  // which int8 lacks.
  std::int32_t raised = std::numeric_limits<std::int32_t>::min();
  std::uint32_t flags = all_zero;  // all_zero: no element is finite and non-zero
  // Number of finite non-zero elements, and the sum, over these elements, of the binades by which each lies
  // below `largest`, or an upper bound of it. Devices find the two (set_depth), and so does find_depths()
  // (execute/host/acceptance.hpp); other host code leaves them unknown.
  std::int32_t elements = 0;
  std::int32_t depth = unknown_depth;

  static constexpr std::int32_t unknown_depth = std::numeric_limits<std::int32_t>::max();

  constexpr bool finite() const { return (flags & ~static_cast<std::uint32_t>(all_zero)) == 0; }
  // Binades between the largest and the smallest non-zero magnitude; 0 if all elements are zero.
  constexpr std::int32_t dynamic_range() const { return (flags & all_zero) != 0 ? 0 : largest - smallest; }
};

template <class T>
KINTSUGI_HOST_DEVICE constexpr void extend(VectorRange& range, T x) {
  if (x == T(0)) return;
  if (x - x != T(0)) {  // NaN or infinite
    range.flags |= x != x     ? VectorRange::has_nan
                   : x > T(0) ? VectorRange::has_plus_infinity
                              : VectorRange::has_minus_infinity;
    return;
  }
  const int exponent = exponent_of(x);
  range.flags &= ~static_cast<std::uint32_t>(VectorRange::all_zero);
  if (exponent > range.largest) range.largest = exponent;
  const int raised = exponent + (leading_bits_all_ones(x) ? 1 : 0);
  if (raised > range.raised) range.raised = raised;
  if (exponent < range.smallest) range.smallest = exponent;
}

// Lower limit of the mean depth that set_depth() gives to a vector with subnormal elements. Schemes with fp16
// slices accept less: at most 44 at k = 2^20. bf16x6 accepts about 170 for both operands together.
inline constexpr std::uint64_t least_subnormal_depth = 64;

// Sets the number of elements and the depth of a vector of elements of type T whose range is known.
// `elements`: number of its finite non-zero elements; `exponents`: sum of their biased exponents, which is 0
// for every subnormal number. With subnormal elements the depth is an upper bound: there are at most as many
// of them as if all other elements were as large as the largest, and each is as deep as the smallest.
template <class T>
KINTSUGI_HOST_DEVICE constexpr void set_depth(VectorRange& range, std::uint32_t elements,
                                              std::uint64_t exponents) {
  constexpr std::uint32_t max_elements = 1U << 24;
  constexpr int lowest = std::numeric_limits<T>::min_exponent - 2;  // exponent of biased exponent 0
  using Sum = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;  // 32 bits hold 2^24 * 254
  range.elements = 0;
  range.depth = VectorRange::unknown_depth;
  if (elements > max_elements) return;
  const bool is_zero = (range.flags & VectorRange::all_zero) != 0;
  const auto largest = static_cast<Sum>(is_zero || range.largest < lowest ? 0 : range.largest - lowest);
  std::uint64_t depth = std::uint64_t{elements} * largest - exponents;
  if (!is_zero && range.smallest <= lowest) {
    // A lower bound of the number of normal elements: none adds more than `largest` to `exponents`.
    const Sum normal = largest == 0 ? 0 : (static_cast<Sum>(exponents) - 1) / largest + 1;
    depth += (elements - normal) * static_cast<std::uint64_t>(lowest - range.smallest);
    if (depth < elements * least_subnormal_depth) depth = elements * least_subnormal_depth;
  }
  if (depth >= VectorRange::unknown_depth) return;
  range.elements = static_cast<std::int32_t>(elements);
  range.depth = static_cast<std::int32_t>(depth);
}

// Sets the scale. All elements must have been added before.
KINTSUGI_HOST_DEVICE constexpr void set_scale(VectorRange& range, const SplitRule& rule) {
  const bool is_scaled = rule.scale_vectors && (range.flags & VectorRange::all_zero) == 0;
  const bool may_exceed_format =
      !rule.format->floating && (rule.kind == SplitKind::rounded_residuals ||
                                 rule.kind == SplitKind::grid_digits || rule.kind == SplitKind::tiles);
  const int exponent = may_exceed_format ? range.raised : range.largest;
  range.scale = is_scaled ? rule.top_exponent - exponent : 0;
}

}  // namespace kintsugi::core
