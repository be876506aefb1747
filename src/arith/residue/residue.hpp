// Residues of integers for the Chinese remainder theorem (Ozaki scheme II).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// The largest pairwise coprime moduli up to 256, taken greedily from above: 256, 255, 253, 251, ... int8
// holds their symmetric residues. Their product has 341.9 bits.
inline constexpr int max_moduli = 49;

inline constexpr std::array<int, max_moduli> moduli = [] {
  std::array<int, max_moduli> found{};
  int count = 0;
  for (int candidate = 256; count < max_moduli; --candidate) {
    bool coprime = true;
    for (int t = 0; t < count; ++t) coprime = coprime && std::gcd(candidate, found[t]) == 1;
    if (coprime) found[count++] = candidate;
  }
  return found;
}();

namespace residue_detail {

inline constexpr auto bits_of_residues = [] {
  std::array<int, max_moduli + 1> result{};
  WideInteger<6> product{{1}};
  for (int count = 1; count <= max_moduli; ++count) {
    WideInteger<6> next;
    next.add_multiple(product, static_cast<std::uint64_t>(moduli[count - 1]));
    product = next;
    result[count] = product.length() - 3;
  }
  return result;
}();

}  // namespace residue_detail

// Largest b such that the first `count` residues determine integers of magnitude up to 2^b: 2^b is at most M
// / 4, where M is the product of the moduli. One bit is for the sign. The other bit keeps quotients by M so
// far from a tie that rounding cannot make them wrong.
KINTSUGI_HOST_DEVICE constexpr int residue_bits(int count) { return residue_detail::bits_of_residues[count]; }

// Integers of magnitude up to 2^171 are sums of limb_l 2^(42 l), |limb_l| <= 2^41. Limbs are doubles: a
// residue takes a few exact products and sums, which AVX-512 computes for eight elements at once.
inline constexpr int limb_bits = 42;
inline constexpr int max_limbs = 5;

// Number of limbs of integers of magnitude up to 2^bits.
KINTSUGI_HOST_DEVICE constexpr int limbs_of(int bits) { return bits / limb_bits + 1; }

namespace residue_detail {

// 2^(42 l) modulo a number up to 256, for each limb l, between -128 and 127.
constexpr std::array<double, max_limbs> powers_of_limbs(int modulus) {
  std::array<double, max_limbs> result{};
  int power = 1;
  for (int e = 0; e < limb_bits * max_limbs; ++e) {
    if (e % limb_bits == 0) result[e / limb_bits] = power > 127 ? power - modulus : power;
    power = 2 * power % modulus;
  }
  return result;
}

inline constexpr auto limb_residues = [] {
  std::array<std::array<double, max_limbs>, max_moduli> result{};
  for (int t = 0; t < max_moduli; ++t) result[t] = powers_of_limbs(moduli[t]);
  return result;
}();

}  // namespace residue_detail

// Returns the integer nearest to x, ties to even, for |x| <= 2^51. The rounding mode must be to nearest.
KINTSUGI_HOST_DEVICE constexpr double nearest_small_integer(double x) {
  constexpr double shift = 0x1.8p52;
  return (x + shift) - shift;
}

// Returns the integer nearest to x, ties to even, for any magnitude.
KINTSUGI_HOST_DEVICE constexpr double nearest_integer(double x) {
  const double magnitude = x < 0 ? -x : x;
  const double rounded = magnitude < 0x1p52 ? (magnitude + 0x1p52) - 0x1p52 : magnitude;
  return x < 0 ? -rounded : rounded;
}

// A power of two as two factors, which do not overflow. x * first * second is exact if it is at least
// 2^-1000.
struct TwoFactors {
  double first;
  double second;
};

KINTSUGI_HOST_DEVICE constexpr TwoFactors two_factors(int exponent) {
  return {power_of_two(exponent / 2), power_of_two(exponent - exponent / 2)};
}

// Returns limb l of an integer and subtracts it. The caller must have taken all higher limbs before.
KINTSUGI_HOST_DEVICE constexpr double take_limb(double& integer, int l) {
  const double limb = l == 0 ? integer : nearest_small_integer(integer * power_of_two(-limb_bits * l));
  integer -= limb * power_of_two(limb_bits * l);
  return limb;
}

// Returns an int8 value congruent to an integer of magnitude up to 2^52. The rounded quotient is right or off
// by one. Limbs of one number give integers below 2^51; double-double numbers, which add the limbs of two
// words, give integers below 2^52.
KINTSUGI_HOST_DEVICE constexpr std::int32_t small_residue(double integer, std::int32_t modulus,
                                                          double inverse) {
  auto residue = static_cast<std::int32_t>(integer - nearest_small_integer(integer * inverse) * modulus);
  residue -= residue > 127 ? modulus : 0;
  return residue + (residue < 128 - modulus ? modulus : 0);
}

// Calls store(t, pattern) with the int8 residue modulo moduli[t] of the integer nearest to x 2^scale, for the
// first `count` moduli; |x 2^scale| <= 2^bits.
template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_into_residues(int count, int bits, double x, int scale,
                                                        Store&& store) {
  const TwoFactors factors = two_factors(scale);
  double integer = nearest_integer(x * factors.first * factors.second);
  std::array<double, max_limbs> limbs{};
  for (int l = limbs_of(bits) - 1; l >= 0; --l) limbs[l] = take_limb(integer, l);
  for (int t = 0; t < count; ++t) {
    double sum = 0;
    for (int l = 0; l < limbs_of(bits); ++l) sum += limbs[l] * residue_detail::limb_residues[t][l];
    store(t, static_cast<std::uint64_t>(small_residue(sum, moduli[t], 1.0 / moduli[t])) & 0xffU);
  }
}

}  // namespace kintsugi::core
