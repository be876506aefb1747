// alpha X + beta C, rounded once in double arithmetic for nearly any alpha and beta
// (arith/exact/double_sum.hpp).
#pragma once

#include "arith/exact/double_sum.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Magnitudes within which all products of a sum are exact: scalars are 0 or between 2^-scalar_limit and
// 2^scalar_limit, elements of C are in units of X's last bit 0 or between 2^-element_limit and
// 2^element_limit.
inline constexpr int scalar_limit = 100;
inline constexpr int element_limit = 700;

// Exponent of x, for normal numbers.
__device__ inline int exponent_of(double x) {
  return static_cast<int>(high_word(std::bit_cast<std::uint64_t>(x)) >> 20 & 0x7ffU) - 1023;
}
__device__ inline bool is_moderate(double x) {
  const int exponent = exponent_of(x);
  return x == 0 || (-scalar_limit <= exponent && exponent < scalar_limit);
}
template <class T>
__device__ bool is_moderate_scalar(const T& x) {
  if constexpr (is_complex<T>) {
    return is_moderate(x.real()) && is_moderate(x.imag());
  } else {
    return is_moderate(x);
  }
}
template <class T>
__device__ bool are_moderate(const Scalars<T>& scalars) {
  return is_moderate_scalar(scalars.alpha) && is_moderate_scalar(scalars.beta) && scalars.alpha != T(0);
}

// Adds factor * c / 2^exponent to the sum. Returns false if it cannot be added exactly.
__device__ inline bool add_old(DoubleSum& sum, double c, double factor, int exponent) {
  if (c == 0) return true;
  constexpr int not_finite = 1024;
  constexpr int subnormal = -1023;
  const int exponent_of_c = exponent_of(c);
  if (exponent_of_c == not_finite || exponent_of_c == subnormal ||
      std::abs(exponent_of_c - exponent) >= element_limit)
    return false;
  sum.add_product(factor, c * core::power_of_two(-exponent));
  return true;
}

// Replaces a real element by alpha X 2^exponent + beta C, rounded once. Returns false if doubles cannot tell
// how it is rounded; then the element is as it was. The scalars must be moderate.
template <class T, class Integer>
__device__ bool update_element(const Integer (&x)[1], const int (&exponent)[1], const Scalars<T>& scalars,
                               T& element) {
  DoubleSum sum;
  add_multiple(sum, x[0], scalars.alpha);
  if (scalars.beta != T(0) && !add_old(sum, element, scalars.beta, exponent[0])) return false;
  const auto result = sum.rounded<T>(exponent[0]);
  if (result.is_certain) element = result.value;
  return result.is_certain;
}

// One part of an element of a complex matrix: 0 is the real part, 1 the imaginary part.
template <class Z, class Integer>
__device__ CertainlyRounded<RealOf<Z>> updated_part(int part, const Integer (&x)[2], const int (&exponent)[2],
                                                    const Scalars<Z>& scalars, const Z& element) {
  const int other = 1 - part;
  const double sign = part == 0 ? -1 : 1;  // i * i = -1
  const double old[2]{element.real(), element.imag()};
  const int unit = exponent[part];
  bool is_exact = true;
  DoubleSum sum;
  if (scalars.alpha.real() != 0) add_multiple(sum, x[part], scalars.alpha.real());
  if (scalars.alpha.imag() != 0) {
    const int difference = exponent[other] - unit;
    is_exact = std::abs(difference) <= scalar_limit;
    if (is_exact) add_multiple(sum, x[other], sign * scalars.alpha.imag() * core::power_of_two(difference));
  }
  if (scalars.beta.real() != 0) is_exact &= add_old(sum, old[part], scalars.beta.real(), unit);
  if (scalars.beta.imag() != 0) is_exact &= add_old(sum, old[other], sign * scalars.beta.imag(), unit);
  auto result = sum.rounded<RealOf<Z>>(unit);
  result.is_certain &= is_exact;
  return result;
}

// The same for a complex element.
template <class Z, class Integer>
__device__ bool update_element(const Integer (&x)[2], const int (&exponent)[2], const Scalars<Z>& scalars,
                               Z& element) {
  const auto real = updated_part(0, x, exponent, scalars, element);
  const auto imaginary = updated_part(1, x, exponent, scalars, element);
  const bool is_certain = real.is_certain && imaginary.is_certain;
  if (is_certain) element = {real.value, imaginary.value};
  return is_certain;
}

}  // namespace kintsugi::core::cuda
