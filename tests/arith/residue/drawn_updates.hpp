// Random old elements of C for tests of integers that are added to them, and comparison of bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "arith/exact/exact_rounding.hpp"

namespace kintsugi::core {

inline double draw_significand(std::mt19937_64& random) {
  const std::uint64_t bits = random() >> 11;
  const double value =
      static_cast<double>(random() % 3 == 0 ? bits & ~std::uint64_t{0} << random() % 53 : bits);
  return random() % 2 == 0 ? value : -value;
}

// An old element: near -x, where both cancel, of x's order, of any order, or special.
template <int Limbs>
double draw_old(std::mt19937_64& random, const ExactNumber<Limbs>& x, double alpha) {
  constexpr double special[] = {0, -0.0, 5e-324, -5e-324, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023};
  constexpr int more_bits = 60 * (Limbs - 2);  // than integers of two limbs have
  const double opposite = -alpha * rounded<double>(x);
  const auto exponent = [&](int least, int count) {
    return least + static_cast<int>(random() % static_cast<unsigned>(count));
  };
  switch (random() % 8) {
    case 0: return special[random() % 6];
    case 1: return opposite;
    case 2: return std::nextafter(opposite, random() % 2 == 0 ? 1e300 : -1e300);
    case 3: return opposite + std::ldexp(opposite * draw_significand(random), -53 - exponent(0, 53));
    case 4: return std::ldexp(draw_significand(random), exponent(-1130, 2100));
    case 5: return std::ldexp(draw_significand(random), x.exponent + exponent(-75, 170 + 2 * more_bits));
    default: return std::ldexp(draw_significand(random), x.exponent + exponent(-20, 80 + more_bits));
  }
}

template <int Limbs>
void expect_bits(double found, double expected, const ExactNumber<Limbs>& x, double alpha, double old) {
  std::string limbs;
  for (const std::uint64_t limb : x.magnitude.limb) limbs = std::to_string(limb) + " " + limbs;
  ASSERT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(expected))
      << std::hexfloat << found << " instead of " << expected << ": " << alpha << " * "
      << (x.negative ? "-" : "") << "(words of 64 bits " << limbs << ") 2^" << x.exponent << ", old " << old;
}

}  // namespace kintsugi::core
