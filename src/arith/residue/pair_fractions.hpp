// The Chinese remainder theorem by a fraction for double-double results: as in fraction_sums.hpp, but with 20
// digits of 8 bits. A result is rounded in double arithmetic, and a test tells whether it is certainly right.
//
// The integer N, |N| <= M / 4, has the residues r_t modulo m_t, where M is the product of the moduli.
// Weight g_t is 2^160 c_t / m_t rounded to nearest, with c_t as in fraction_sums.hpp. So for n residues
//   F = sum over t of r_t g_t  modulo 2^160,  |F - 2^160 N / M| <= n 255 / 2.
// u = 2^-160 M is the value of 1 in F. F is the exact sum of f1, f2 and f3, doubles of 53 bits, but for
// its lowest bit; M 2^-160 is that of m1, m2 and m3, cut off. Of f M the products f1 m1, f1 m2 and f2 m1
// count with their errors (two_product), and f1 m3, f3 m1 and f2 m2 rounded. All other terms and
// roundings are below 2^-155 M = 32 u. So the sums that two_sum and its like form,
//   hi + lo + rest,  |lo| <= ulp(hi) / 2,  |rest| <= ulp(lo) / 2,
// differ from N by less than (n 255 / 2 + 64) u. The table's deviation d is larger by another 64 u, which
// covers the rounding of rest + d and rest - d. N is certainly rounded to the pair (hi, lo) if
//   RN(lo + (rest + d)) = RN(lo + (rest - d)) = lo,  RN(hi + (1 + 2^-40) lo) = hi:
// by the first, N - hi rounds to lo and is within (1 + 2^-40) lo; by the second, N rounds to hi. lo = 0
// is never certain. No number that counts underflows where scales are ordinary (max_ordinary_exponent),
// since N is an integer; NaN, from terms that overflow, fails.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "arith/residue/fraction_sums.hpp"

namespace kintsugi::core {

struct PairFractions {
  static constexpr int digits = 20;
  static constexpr int max_words = 8;  // of four residues

  // digit[d][w] has digit d, the lowest first, of the weights of residues 4 w ... 4 w + 3.
  std::array<std::array<std::uint32_t, max_words>, digits> digit{};
  std::array<double, 3> product{};  // m1, m2 and m3
  double deviation = 0;
  int count = 0;  // number of residues
};

namespace fraction_detail {

// 2^160 c / m rounded to nearest, for c < m, in words of 32 bits.
constexpr std::array<std::uint32_t, PairFractions::digits / 4> pair_words(std::uint32_t c, std::uint32_t m) {
  std::array<std::uint32_t, PairFractions::digits / 4> words{};
  std::uint64_t remainder = c;
  for (std::size_t w = words.size(); w-- > 0;) {
    const std::uint64_t dividend = remainder << 32;
    words[w] = static_cast<std::uint32_t>(dividend / m);
    remainder = dividend % m;
  }
  bool carries = 2 * remainder >= m;
  for (std::size_t w = 0; w < words.size() && carries; ++w) carries = ++words[w] == 0;
  return words;
}

}  // namespace fraction_detail

// Constants for the first `count` real moduli.
constexpr PairFractions pair_fractions(int count) {
  using namespace residue_detail;
  using namespace fraction_detail;
  const ResidueSystem system{count};
  PairFractions table;
  table.count = count;
  for (int t = 0; t < count; ++t) {
    const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
    const auto words = pair_words(static_cast<std::uint32_t>(inverse_of_cofactor(system, t)), modulus);
    for (int d = 0; d < PairFractions::digits; ++d) {
      table.digit[static_cast<std::size_t>(d)][static_cast<std::size_t>(t) / 4] |=
          (words[static_cast<std::size_t>(d) / 4] >> 8 * (d % 4) & 0xffU) << 8 * (t % 4);
    }
  }
  const auto product = product_of_moduli<6>(system, no_modulus, no_modulus);
  constexpr int exponent = -8 * PairFractions::digits;
  const int length = product.length();
  table.product = {leading_bits(product, length, exponent), leading_bits(product, length - 53, exponent),
                   leading_bits(product, length - 106, exponent)};
  table.deviation = table.product[0] * (255.0 / 2 * count + 128);
  return table;
}

}  // namespace kintsugi::core
