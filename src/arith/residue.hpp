// Residues of integers for the Chinese remainder theorem (Ozaki scheme II).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "arith/host_device.hpp"
#include "arith/wide_integer.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// The largest pairwise coprime moduli whose symmetric residues int8 holds: 256, 255, 253, 251, ... taken greedily.
// Their product has 341.9 bits.
inline constexpr int most_moduli = 49;

inline constexpr std::array<int, most_moduli> moduli = [] {
  std::array<int, most_moduli> found{};
  int count = 0;
  for (int candidate = 256; count < most_moduli; --candidate) {
    bool coprime = true;
    for (int t = 0; t < count; ++t) coprime = coprime && std::gcd(candidate, found[t]) == 1;
    if (coprime) found[count++] = candidate;
  }
  return found;
}();

namespace residue_detail {

__extension__ using Wide = unsigned __int128;

// floor(2^64 / m) (m = 256: 2^56).
inline constexpr std::array<std::uint64_t, most_moduli> reciprocals = [] {
  std::array<std::uint64_t, most_moduli> result{};
  for (int t = 0; t < most_moduli; ++t)
    result[t] = static_cast<std::uint64_t>((static_cast<Wide>(1) << 64) / static_cast<unsigned>(moduli[t]));
  return result;
}();

// Powers of two are asked for up to this exponent: grids of products below 2^342 have fewer than 171 bits.
inline constexpr int most_power = 192;

inline constexpr auto powers = [] {
  std::array<std::array<std::uint8_t, most_power>, most_moduli> result{};
  for (int t = 0; t < most_moduli; ++t) {
    int power = 1;
    for (int e = 0; e < most_power; ++e) {
      result[t][e] = static_cast<std::uint8_t>(power);
      power = 2 * power % moduli[t];
    }
  }
  return result;
}();

inline constexpr auto bits_of_residues = [] {
  std::array<int, most_moduli + 1> result{};
  WideInteger<6> product{{1}};
  for (int count = 1; count <= most_moduli; ++count) {
    WideInteger<6> next;
    next.add_multiple(product, static_cast<std::uint64_t>(moduli[count - 1]));
    product = next;
    result[count] = product.length() - 3;
  }
  return result;
}();

}  // namespace residue_detail

// Bits b such that integers of magnitude up to 2^b, at most a quarter of the moduli's product, are found again from
// the first `count` residues. The spare bit beside the sign's makes the choice of the product's multiple safe.
KINTSUGI_HOST_DEVICE constexpr int residue_bits(int count) { return residue_detail::bits_of_residues[count]; }

// x mod moduli[t], 0 ... moduli[t] - 1: the quotient by the reciprocal is right or one too small.
KINTSUGI_HOST_DEVICE constexpr std::uint32_t reduce(std::uint64_t x, int t) {
  using residue_detail::Wide;
  const auto m = static_cast<std::uint64_t>(moduli[t]);
  const auto quotient =
      static_cast<std::uint64_t>((static_cast<Wide>(x) * residue_detail::reciprocals[t]) >> 64);
  const std::uint64_t rest = x - quotient * m;
  return static_cast<std::uint32_t>(rest >= m ? rest - m : rest);
}

KINTSUGI_HOST_DEVICE constexpr std::uint32_t reduce_signed(std::int64_t x, int t) {
  const std::uint32_t rest =
      reduce(x < 0 ? ~static_cast<std::uint64_t>(x) + 1 : static_cast<std::uint64_t>(x), t);
  return x < 0 && rest != 0 ? static_cast<std::uint32_t>(moduli[t]) - rest : rest;
}

// Calls store(t, pattern) with the int8 residue, between -128 and 127, of the integer nearest to x 2^scale for the
// first `count` moduli. |x 2^scale| < 2^171.
template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_into_residues(int count, double x, int scale, Store&& store) {
  using namespace format_detail;
  const Parts parts = take_apart(x);
  std::uint64_t integer = parts.significand;
  int shift = parts.exponent - 52 + scale;
  if (shift < 0) {
    integer = shift_right(integer, -shift, Rounding::nearest_even);
    shift = 0;
  }
  for (int t = 0; t < count; ++t) {
    const std::uint32_t rest =
        reduce(std::uint64_t{reduce(integer, t)} * residue_detail::powers[t][shift], t);
    int residue = static_cast<int>(rest);
    if (parts.negative) residue = -residue;
    if (residue > 127) residue -= moduli[t];
    if (residue < -128) residue += moduli[t];
    store(t, static_cast<std::uint64_t>(residue) & 0xffU);
  }
}

}  // namespace kintsugi::core
