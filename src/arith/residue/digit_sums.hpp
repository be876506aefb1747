// The Chinese remainder theorem by sums of digits, for matrix units that multiply 8-bit integers.
//
// Residue r_t has the weight W_t = 2^s (M / m_t) (w_t / (M / m_t) modulo m_t), where M is the product of the
// moduli and w_t is 1, or a factor of the part of a complex element. The integer N, |N| < M / 4, satisfies
//   2^s N = sum over t of r_t W_t  modulo 2^s M.
// A weight has 16 digits of 8 bits, so the sum of r_t times digit d of W_t over all t is an element of a
// product of two matrices of bytes. s is as large as 16 digits allow.
//
// Four neighboring digit sums make a piece: sum over t of r_t (W_t / 2^(32 j) modulo 2^32), j = 0 ... 3. With
// up to 64 residues it is below 64 * 255 * 2^32 < 2^46, exact in a double. The number of times q that 2^s M
// is subtracted is the topmost piece times 2^96 / (2^s M), rounded to nearest: the other pieces, below 2^111
// together, are less than 2^-15 of 2^s M >= 2^127, and the quotient is 2^s N / (2^s M) = N / M, |N / M| <
// 1/4, away from an integer. q is at most 64 * 255 < 2^14. So each piece less q times 32 bits of 2^s M is
// exact.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "arith/host_device.hpp"
#include "arith/residue/integer_update.hpp"
#include "arith/residue/remainder.hpp"

namespace kintsugi::core {

inline constexpr int weight_digits = 16;
inline constexpr int digits_of_piece = 4;
inline constexpr int weight_pieces = weight_digits / digits_of_piece;

// Weights of up to MaxResidues residues, of 32 * Pieces bits. parts_of_pieces() takes five pieces.
template <int MaxResidues, int Pieces = weight_pieces>
struct DigitTable {
  static_assert(MaxResidues % 4 == 0 && MaxResidues <= 64);
  static constexpr int digits_of_weight = digits_of_piece * Pieces;

  // Word [d][t] has digit d of the weights of residues 4 t ... 4 t + 3, the first of them in its lowest byte.
  // Digit 0 is the lowest. Zeros follow the last residue.
  std::array<std::array<std::uint32_t, MaxResidues / 4>, digits_of_weight> digits{};
  std::array<double, Pieces> product{};  // bits 32 j ... 32 j + 31 of 2^s M, as a multiple of 2^(32 j)
  double inverse = 0;                    // 1 / (2^s M), rounded
  int shift = 0;                         // s
  int count = 0;                         // number of residues
};

// Table of the given residues in the given order. M must be below 2^(32 * Pieces).
template <int MaxResidues, int Pieces = weight_pieces>
constexpr DigitTable<MaxResidues, Pieces> digit_table(const ResidueSystem& system,
                                                      std::span<const WeightedResidue> residues) {
  using namespace residue_detail;
  constexpr int limbs = (Pieces + 1) / 2;
  using Integer = WideInteger<limbs>;
  DigitTable<MaxResidues, Pieces> table;
  const Integer product = product_of_moduli<limbs>(system, no_modulus, no_modulus);
  table.count = static_cast<int>(residues.size());
  table.shift = 32 * Pieces - product.length();
  for (std::size_t t = 0; t < residues.size(); ++t) {
    const int modulus = system.modulus(residues[t].modulus);
    const auto inverse = static_cast<std::uint32_t>(inverse_of_cofactor(system, residues[t].modulus));
    Integer weight;
    weight.add_multiple(product_of_moduli<limbs>(system, residues[t].modulus, no_modulus),
                        residues[t].weight * inverse % static_cast<std::uint32_t>(modulus));
    weight = Integer::shifted(weight, table.shift);
    for (int d = 0; d < table.digits_of_weight; ++d)
      table.digits[d][t / 4] |= static_cast<std::uint32_t>(weight.bits_from(8 * d) & 0xffU) << 8 * (t % 4);
  }
  const Integer shifted = Integer::shifted(product, table.shift);
  double sum = 0;
  for (int j = Pieces - 1; j >= 0; --j) {
    table.product[j] = static_cast<double>(shifted.bits_from(32 * j) & 0xffffffffU) * power_of_two(32 * j);
    sum += table.product[j];
  }
  table.inverse = 1 / sum;
  return table;
}

// Table of the first `count` real moduli.
template <int MaxResidues, int Pieces = weight_pieces>
constexpr DigitTable<MaxResidues, Pieces> digit_table(int count) {
  std::array<WeightedResidue, max_moduli> residues;
  for (int t = 0; t < count; ++t) residues[t] = {t, 1};
  return digit_table<MaxResidues, Pieces>(ResidueSystem{count}, std::span(residues).first(count));
}

// Piece j from the sums of its four digits, the lowest first: the double 2^(52 + 32 j) plus the piece. The
// piece is put into the significand, whose last bit has the value 2^(32 j).
KINTSUGI_HOST_DEVICE constexpr double shifted_piece(int j, std::uint32_t d0, std::uint32_t d1,
                                                    std::uint32_t d2, std::uint32_t d3) {
  const std::uint32_t exponent = static_cast<std::uint32_t>(1075 + 32 * j) << 20;
  return std::bit_cast<double>(both_words(exponent, d0 + 256 * d1) + std::uint64_t{d2 + 256 * d3} * 65536);
}

// Pieces of 2^s N from those of the weighted residues, less a multiple of 2^s M. Piece j has 2^(52 + 32 j)
// added before (shifted_piece()).
template <int MaxResidues, int Pieces>
KINTSUGI_HOST_DEVICE inline std::array<double, Pieces> reduced_pieces(
    const double (&pieces)[Pieces], const DigitTable<MaxResidues, Pieces>& table) {
  std::array<double, Pieces> p{};
  for (int j = 0; j < Pieces; ++j) p[j] = pieces[j] - power_of_two(52 + 32 * j);
  constexpr double to_integer = 0x1.8p52;
  const double minus_quotient = to_integer - std::fma(p[Pieces - 1], table.inverse, to_integer);
  for (int j = 0; j < Pieces; ++j) p[j] = std::fma(minus_quotient, table.product[j], p[j]);
  return p;
}

// Returns 2^s N from its pieces.
template <int MaxResidues>
KINTSUGI_HOST_DEVICE inline IntegerParts parts_of_pieces(const double (&pieces)[weight_pieces],
                                                         const DigitTable<MaxResidues>& table) {
  using namespace update_detail;
  const auto [p0, p1, p2, p3] = reduced_pieces(pieces, table);
  const double above_80 = nearest_multiple<80>(p2);
  const double above_40 = nearest_multiple<40>(p1);
  return {p3 + above_80, (p2 - above_80) + above_40, p0 + (p1 - above_40)};
}

// Sums of digits for moduli whose product M is below 2^160: weights of 20 digits in five pieces, and up to 24
// residues.
//
// A piece is below 24 * 255 * 2^32 < 2^45, as a multiple of 2^(32 j). The four lower pieces are below 2^142
// together, less than 2^-17 of 2^s M >= 2^159. So the topmost piece alone gives the quotient q, at most 24 *
// 255 < 2^13, and each piece less q times 32 bits of 2^s M is exact and at most 2^45 in magnitude.

inline constexpr int wide_pieces = 5;

// Returns 2^s N, |2^s N| < 2^158, from its pieces. The lowest part of the result is an integer of at most
// 2^46 in magnitude.
template <int MaxResidues>
KINTSUGI_HOST_DEVICE inline WideIntegerParts parts_of_pieces(
    const double (&pieces)[wide_pieces], const DigitTable<MaxResidues, wide_pieces>& table) {
  using namespace update_detail;
  static_assert(MaxResidues <= 24);
  const auto [p0, p1, p2, p3, p4] = reduced_pieces(pieces, table);
  const double above_120 = nearest_multiple<120>(p3);
  const double above_80 = nearest_multiple<80>(p2);
  const double above_40 = nearest_multiple<40>(p1);
  return {p4 + above_120, (p3 - above_120) + above_80, (p2 - above_80) + above_40, p0 + (p1 - above_40)};
}

// Sums of the leading digits of weights, for up to 24 moduli, whose product M is below 2^192. It gives 2^s N
// with an error.
//
// Weights have 24 digits, of which the four lowest are left out. In units of 2^32 the sum of residue times
// weight is too small by less than 24 * 255. 2^s M without its 32 lowest bits is too small by less than 1,
// and is subtracted at most 24 * 255 times. So the error is less than 2^13 units.

// Upper bound of the error, in units of the integers that parts_of_pieces() returns.
inline constexpr float dropped_units = 0x1p13F;

// Table whose parts_of_pieces() are 2^(s - 32) N, rounded. Its shift is s - 32.
template <int MaxResidues>
constexpr DigitTable<MaxResidues, wide_pieces> leading_digit_table(int count) {
  const auto all = digit_table<MaxResidues, wide_pieces + 1>(count);
  DigitTable<MaxResidues, wide_pieces> table;
  for (int d = 0; d < table.digits_of_weight; ++d) table.digits[d] = all.digits[d + digits_of_piece];
  for (int j = 0; j < wide_pieces; ++j) table.product[j] = all.product[j + 1] * 0x1p-32;
  table.inverse = all.inverse * 0x1p32;
  table.shift = all.shift - 32;
  table.count = all.count;
  return table;
}

}  // namespace kintsugi::core
