// The Chinese remainder theorem by a fraction instead of an exact integer, for up to 48 residues and moduli
// whose product is below 2^200: a result is rounded in double arithmetic, and a test tells whether the
// rounding is certainly right. Nearly all elements pass the test; the others need the exact integer
// (digit_sums.hpp).
//
// The integer N, |N| <= M / 4, has the residues r_t modulo m_t, where M is the product of the moduli. With
// c_t = w_t / (M / m_t) modulo m_t (w_t is 1, or a factor of the part of a complex element)
//   N / M = sum over t of r_t c_t / m_t  modulo 1.
// Weight g_t is 2^96 c_t / m_t rounded to nearest, 12 digits of 8 bits. So
//   F = sum over t of r_t g_t  modulo 2^96,  |F - 2^96 N / M| <= n 255 / 2  for n residues,
// and the signed F is below 2^94 + 2^13 in magnitude. No multiple of M has to be found and subtracted, since
// integers wrap. u = 2^-96 M is the value of 1 in F.
//
// The sums of digits 6 and 8 begin at b = 2^30 + 2^29 - 16 instead of 0, those of the others at 0, and each
// grows by less than 2^22. So they give
//   F + 3 2^93 + 3 2^77 - 2^68 - 2^52 = x 2^64 + y 2^32 + l,
// where y < 2^48 has digits 4 to 7, l < 2^47 digits 0 to 3, and x is what digits 8 to 11 give modulo 2^32:
// the left side less y 2^32 and l is a multiple of 2^64 between 0 and 2^96. Each is put into the significand
// of a double whose last bit has the value 2^64, 2^32 or 1:
//   X = 2^116 + x 2^64,  Y = 2^84 + y 2^32,  L = 2^52 + l,
//   F = (X - 2^116 - 3 2^93 - 2^84 - 3 2^77 + 2^68) + Y + L.
// The term in parentheses, A, is exact. Then
//   high = A + Y rounded,  low = (Y - (high - A)) + L,
// where Y - (high - A) is the error of high, since A is a multiple of the last bit of Y. It is a multiple of
// 2^32 of at most 2^41, so low is an exact integer of at most 2^52 + 2^47 + 2^41, and F = high + low.
//
// m + m', two doubles of 53 bits each, is M 2^-96 cut off: less than 2^-105 of it is missing.
//   p = high m rounded,  q = low m + (high m' + (high m - p)).
// high m - p is exact. In units of u, of which low has at most 1.04 2^52, the errors of q are: 2^-9 for the
// rounding of the inner sum, which is at most 2^43; 0.6 for that of q; 1.1 for low m', which is left out;
// 2^-10 for M. So
//   |p + q - N| < n 255 / 2 + 3,
// and the table's `deviation` is two units larger: q + deviation and q - deviation, rounded, lie on either
// side of N - p. (A deviation that is added to the table's must be so much larger than needed that it covers
// this rounding, 2^-53 of it. If it is subnormal, it is wrong by 2^-28 of itself, which the two units cover.)
// Rounding is monotonic. So if p + (q + deviation) and p + (q - deviation) round to the same double, N does.
// 0 is never certain: both ends, which differ, would have to be -p.
//
// An old element c of C, times beta = 1 or -1, is added by s + t = p + beta c, exactly. The deviation's ends
// are added to t rounded up and rounded down, so that the exact sum lies between s + (upper end) and s +
// (lower end), however large t is. A NaN makes the test fail. Ends that overflow are both infinite where the
// exact sum overflows, too: q itself, of 2^53 u at most, is far from that with M < 2^200 and the scales
// below.
//
// A row's scale is a power of two, which all parts of F contain. A column's scale, and alpha = 1 or -1, are
// in m and m'. Nothing that counts underflows if both scales and their product are 2^850 at most and 2^-850
// at least (max_ordinary_exponent): M is an integer, so high, low, m and m' are multiples of 2^-850 and
// 2^(-96 - 850), and their products of 2^(-96 - 850).
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "arith/exact/double_sum.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/host_device.hpp"
#include "arith/residue/remainder.hpp"

namespace kintsugi::core {

inline constexpr int fraction_digits = 12;

// m, m' and the deviation of the header comment, times a power of two.
struct FractionFactor {
  double high;
  double low;
  double deviation;  // times 2^-116, for FractionRow::offset

  // `signed_power` is power_of_two or -power_of_two.
  KINTSUGI_HOST_DEVICE constexpr FractionFactor times(double power_of_two, double signed_power) const {
    return {high * signed_power, low * signed_power, deviation * power_of_two};
  }
};

// Weights of up to MaxResidues residues.
template <int MaxResidues>
struct FractionTable {
  static_assert(MaxResidues % 4 == 0 && MaxResidues <= 48);
  static constexpr int max_residues = MaxResidues;

  // Word [d][t] has digit d of the weights of residues 4 t ... 4 t + 3, the first of them in its lowest byte.
  // Digit 0 is the lowest. Zeros follow the last residue.
  std::array<std::array<std::uint32_t, MaxResidues / 4>, fraction_digits> digits{};
  FractionFactor factor{};
  int count = 0;  // number of residues
};

namespace fraction_detail {

// 2^96 c / m rounded to nearest, for c < m, in words of 32 bits.
constexpr std::array<std::uint32_t, 3> fraction_words(std::uint32_t c, std::uint32_t m) {
  std::array<std::uint32_t, 3> words{};
  std::uint64_t remainder = c;
  for (int w = 2; w >= 0; --w) {
    const std::uint64_t dividend = remainder << 32;
    words[w] = static_cast<std::uint32_t>(dividend / m);
    remainder = dividend % m;
  }
  bool carries = 2 * remainder >= m;
  for (int w = 0; w < 3 && carries; ++w) carries = ++words[w] == 0;
  return words;
}

// Double of the `bits` leading bits of x below bit `end`, times 2^exponent.
template <int Limbs>
constexpr double leading_bits(const WideInteger<Limbs>& x, int end, int exponent) {
  constexpr int bits = 53;
  const int first = end - bits;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const std::uint64_t all = first >= 0 ? x.bits_from(first) : end <= 0 ? 0 : x.limb[0] << -first;
  return static_cast<double>(all & mask) * power_of_two(first + exponent);
}

}  // namespace fraction_detail

// Table of the given residues in the given order. It is empty, with count 0, for more than MaxResidues
// residues, and if the moduli's product is 2^200 or more.
template <int MaxResidues>
constexpr FractionTable<MaxResidues> fraction_table(const ResidueSystem& system,
                                                    std::span<const WeightedResidue> residues) {
  using namespace residue_detail;
  using namespace fraction_detail;
  FractionTable<MaxResidues> table;
  const auto product = product_of_moduli<6>(system, no_modulus, no_modulus);
  const int length = product.length();
  constexpr int most_bits = 200;
  if (residues.size() > MaxResidues || length > most_bits) return table;
  table.count = static_cast<int>(residues.size());
  for (std::size_t t = 0; t < residues.size(); ++t) {
    const auto modulus = static_cast<std::uint32_t>(system.modulus(residues[t].modulus));
    const auto inverse = static_cast<std::uint32_t>(inverse_of_cofactor(system, residues[t].modulus));
    const auto words = fraction_words(residues[t].weight * inverse % modulus, modulus);
    for (int d = 0; d < fraction_digits; ++d)
      table.digits[d][t / 4] |= (words[d / 4] >> 8 * (d % 4) & 0xffU) << 8 * (t % 4);
  }
  table.factor.high = leading_bits(product, length, -fraction_digits * 8);
  table.factor.low = leading_bits(product, length - 53, -fraction_digits * 8);
  table.factor.deviation = table.factor.high * (255.0 / 2 * table.count + 5) * 0x1p-116;
  return table;
}

// Table of the first `count` real moduli.
template <int MaxResidues>
constexpr FractionTable<MaxResidues> fraction_table(int count) {
  std::array<WeightedResidue, max_moduli> residues;
  for (int t = 0; t < count; ++t) residues[t] = {t, 1};
  return fraction_table<MaxResidues>(ResidueSystem{count}, std::span(residues).first(count));
}

// Constants of a row of C, for its unit: the power of two by which its integers are multiplied.
struct FractionRow {
  double offset;  // (2^116 + 3 2^93 + 2^84 + 3 2^77 - 2^68) unit

  KINTSUGI_HOST_DEVICE static constexpr FractionRow of_unit(double unit) {
    return {(0x1p116 + 0x3p93 + 0x1p84 + 0x3p77 - 0x1p68) * unit};
  }
};

// F, times a row's unit.
struct Fraction {
  double high;
  double low;
};

// Number at which the sum of digit d begins.
KINTSUGI_HOST_DEVICE constexpr std::uint32_t first_digit_sum(int d) {
  return d == 6 || d == 8 ? (3U << 29) - 16 : 0;
}

// F from the sums of the table's digits, the lowest first.
KINTSUGI_HOST_DEVICE constexpr Fraction fraction_of_digits(const std::uint32_t (&sums)[fraction_digits],
                                                           const FractionRow& row) {
  const auto pair = [&](int d) { return sums[d] + 256 * sums[d + 1]; };
  const std::uint32_t exponent = high_word(std::bit_cast<std::uint64_t>(row.offset)) & 0xfff00000U;
  constexpr std::uint32_t word_exponent = 32U << 20;
  const auto x = std::bit_cast<double>(both_words(exponent, pair(8) + 65536 * pair(10)));
  const auto y =
      std::bit_cast<double>(both_words(exponent - word_exponent, pair(4)) + std::uint64_t{pair(6)} * 65536);
  const auto l = std::bit_cast<double>(both_words(exponent - 2 * word_exponent, pair(0)) +
                                       std::uint64_t{pair(2)} * 65536);
  const double a = x - row.offset;
  const double high = a + y;
  return {high, (y - (high - a)) + l};
}

namespace fraction_detail {

// p of the header comment, and the ends of the interval around q.
struct Enclosure {
  double p;
  double upper;
  double lower;
};
KINTSUGI_HOST_DEVICE inline Enclosure enclosure(const Fraction& x, const FractionRow& row,
                                                const FractionFactor& factor) {
  const double p = x.high * factor.high;
  const double q =
      std::fma(x.low, factor.high, std::fma(x.high, factor.low, std::fma(x.high, factor.high, -p)));
  return {p, std::fma(row.offset, factor.deviation, q), std::fma(-row.offset, factor.deviation, q)};
}

}  // namespace fraction_detail

// N times the unit of its row and its factor, rounded once. It is not certain for N = 0.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> rounded_product(const Fraction& x,
                                                                     const FractionRow& row,
                                                                     const FractionFactor& factor) {
  const fraction_detail::Enclosure part = fraction_detail::enclosure(x, row, factor);
  const double most = part.p + part.upper;
  return {most, most == part.p + part.lower};
}

// The same number plus beta c, rounded once, for beta = 1 or -1.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> rounded_update(const Fraction& x, const FractionRow& row,
                                                                    const FractionFactor& factor, double beta,
                                                                    double c) {
  using namespace fraction_detail;
  const Enclosure part = enclosure(x, row, factor);
  // two_sum(p, beta c)
  const double sum = std::fma(beta, c, part.p);
  const double old = sum - part.p;
  const double error = (part.p - (sum - old)) + std::fma(beta, c, -old);
  const double most = sum + sum_above(error, part.upper);
  return {most, most == sum + sum_below(error, part.lower)};
}

}  // namespace kintsugi::core
