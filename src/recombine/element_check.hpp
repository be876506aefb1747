// Checks of one element whose product is known up to a deviation.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arith/complex.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Condition that an element must meet, or both parts of a complex element. If coefficient > 0, the deviation
// plus one rounding must be at most coefficient |AB|, which is at most coefficient |A||B|. If coefficient =
// 0, all values within the deviation must round to the same result, which is then the correctly rounded one.
struct ElementDemand {
  double coefficient = 0;
  double unit_roundoff = 0;
  RoundingMode rounding = RoundingMode::nearest;  // another one only where coefficient = 0

  // Largest deviation, relative to |A||B|, that leaves room for one rounding.
  KINTSUGI_HOST_DEVICE double max_deviation() const {
    return (coefficient - unit_roundoff) / (1 + 2 * unit_roundoff);
  }
};

namespace check_detail {

// Returns x - offset if `down`, else x + offset. The offset is in units of 2^x.exponent. The sum fits the
// limbs: x is below a quarter of what the limbs hold, and deviations are far smaller.
template <int Limbs>
KINTSUGI_HOST_DEVICE ExactNumber<Limbs> moved(const ExactNumber<Limbs>& x, const WideInteger<Limbs>& offset,
                                              bool down) {
  ExactNumber<Limbs> result = x;
  if (x.negative == down) {
    result.magnitude.add_multiple(offset, 1);
  } else if (x.magnitude.less_than(offset)) {
    result.magnitude = offset;
    result.magnitude.subtract(x.magnitude);
    result.negative = !x.negative;
  } else {
    result.magnitude.subtract(offset);
  }
  return result;
}

// Returns the least integer that is at least x; x is below what the limbs hold.
template <int Limbs>
KINTSUGI_HOST_DEVICE WideInteger<Limbs> integer_above(double x) {
  const double above = std::ceil(x);
  if (above < 0x1p53) return {{static_cast<std::uint64_t>(above)}};
  const format_detail::Parts parts = format_detail::take_apart(above);
  return WideInteger<Limbs>::shifted(WideInteger<1>{{parts.significand}}, parts.exponent - 52);
}

// Returns the magnitude rounded down to a double.
template <int Limbs>
KINTSUGI_HOST_DEVICE double magnitude_below(const WideInteger<Limbs>& x) {
  const int length = x.length();
  const int drop = length > 53 ? length - 53 : 0;
  return times_power_of_two(static_cast<double>(x.bits_from(drop)), drop);
}

// Compares words one by one. std::array's operator== calls memcmp. nvcc 13.0 generates no code for memcmp,
// and treats the code after the call as unreachable.
template <class T>
KINTSUGI_HOST_DEVICE bool same_bits(const T& x, const T& y) {
  using Bits = std::conditional_t<sizeof(RealOf<T>) == 4, std::uint32_t, std::uint64_t>;
  using Patterns = std::array<Bits, sizeof(T) / sizeof(Bits)>;  // words of all parts
  const auto patterns_x = std::bit_cast<Patterns>(x);
  const auto patterns_y = std::bit_cast<Patterns>(y);
  bool are_same = true;
  for (std::size_t word = 0; word < patterns_x.size(); ++word)
    are_same = are_same && patterns_x[word] == patterns_y[word];
  return are_same;
}

}  // namespace check_detail

// True if the deviation of AB from `exact`, plus one rounding, is at most coefficient |AB|.
template <int Limbs>
KINTSUGI_HOST_DEVICE bool keeps(const ElementDemand& demand, const ExactNumber<Limbs>& exact,
                                double deviation) {
  const double least = check_detail::magnitude_below(exact.magnitude) - deviation;
  return deviation * (1 + 2 * demand.unit_roundoff) <= (demand.coefficient - demand.unit_roundoff) * least;
}

// True if the deviation plus one rounding is at most coefficient |A||B|; `magnitudes` is a lower bound of
// |A||B| in the integers' units.
KINTSUGI_HOST_DEVICE inline bool keeps(const ElementDemand& demand, double magnitudes, double deviation) {
  return deviation == 0 || deviation * (1 + 0x1p-50) <= demand.max_deviation() * magnitudes;
}

// The integers of an element's parts, and bounds of the deviations of AB's parts from them.
template <class T, int Limbs>
using ElementNumbers = std::array<ExactNumber<Limbs>, static_cast<std::size_t>(parts_of<T>)>;
template <class T>
using ElementDeviations = std::array<double, static_cast<std::size_t>(parts_of<T>)>;

template <class T, int Limbs>
KINTSUGI_HOST_DEVICE KINTSUGI_OUTLINED T rounded_element(const ElementNumbers<T, Limbs>& exact, T alpha,
                                                         T beta, const T* c, RoundingMode rounding) {
  if constexpr (is_complex<T>) {
    return exact_epilogue(exact[0], exact[1], alpha, beta, c, rounding);
  } else if constexpr (std::is_floating_point_v<T>) {
    return exact_epilogue(exact[0], alpha, beta, c, rounding);
  } else {
    return exact_epilogue(exact[0], alpha, beta, c);  // pairs are rounded to nearest alone
  }
}

// True if the sign of a part's zero follows from the signs of its terms, which integers do not have.
template <class T>
KINTSUGI_HOST_DEVICE bool has_zero_of_unknown_sign(const ElementDemand& demand, const T& result) {
  if (demand.rounding != RoundingMode::down) return false;
  if constexpr (is_complex<T>) {
    return result.real() == 0 || result.imag() == 0;
  } else {
    return result == T(0);
  }
}

// Rounds an element into `result`; returns true if it is proved to meet the condition. Each part of AB lies
// in a range around its integer. All values in the ranges give one result if the ranges' ends (for complex
// elements, the four corners) do, since the result is linear in the parts and rounding is monotone.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE bool round_if_proved(const ElementDemand& demand, const ElementNumbers<T, Limbs>& exact,
                                          const ElementDeviations<T>& deviations, T alpha, T beta, const T* c,
                                          T& result) {
  using namespace check_detail;
  bool settled = true;  // proved by the coefficient, or exact: one rounding of `exact` is enough
  for (std::size_t part = 0; part < exact.size(); ++part) {
    const bool kept = demand.coefficient > 0 && keeps(demand, exact[part], deviations[part]);
    settled = settled && (kept || deviations[part] == 0);
  }
  std::array<WideInteger<Limbs>, static_cast<std::size_t>(parts_of<T>)> offsets{};
  for (std::size_t part = 0; !settled && part < exact.size(); ++part)
    offsets[part] = integer_above<Limbs>(deviations[part]);
  const unsigned corners = settled ? 1U : 1U << parts_of<T>;
  KINTSUGI_ROLLED
  for (unsigned corner = 0; corner < corners; ++corner) {
    ElementNumbers<T, Limbs> corner_numbers = exact;
    for (std::size_t part = 0; part < corner_numbers.size(); ++part)
      corner_numbers[part] = moved(exact[part], offsets[part], (corner >> part & 1U) == 0);
    const T corner_result = rounded_element<T, Limbs>(corner_numbers, alpha, beta, c, demand.rounding);
    if (corner > 0 && !same_bits(result, corner_result)) return false;
    result = corner_result;
  }
  return !has_zero_of_unknown_sign(demand, result);
}

}  // namespace kintsugi::core
