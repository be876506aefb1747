// The Chinese remainder theorem by sums of digits (digit_sums.hpp), for moduli whose product M is below
// 2^160: weights of 20 digits in five pieces, and up to 24 residues.
//
// A piece is below 24 * 255 * 2^32 < 2^45, as a multiple of 2^(32 j). The four lower pieces are below 2^142
// together, less than 2^-17 of 2^s M >= 2^159. So the topmost piece alone gives the quotient q, at most 24 *
// 255 < 2^13, and each piece less q times 32 bits of 2^s M is exact and at most 2^45 in magnitude.
#pragma once

#include "arith/residue/digit_sums.hpp"
#include "arith/residue/wide_integer_update.hpp"

namespace kintsugi::core {

inline constexpr int wide_pieces = 5;

// Returns 2^s N, |2^s N| < 2^158, from its pieces. Piece j has 2^(52 + 32 j) added (shifted_piece()). The
// lowest part of the result is an integer of at most 2^46 in magnitude.
template <int MaxResidues>
KINTSUGI_HOST_DEVICE inline WideIntegerParts parts_of_pieces(
    const double (&pieces)[wide_pieces], const DigitTable<MaxResidues, wide_pieces>& table) {
  using namespace update_detail;
  static_assert(MaxResidues <= 24);
  double p0 = pieces[0] - 0x1p52;
  double p1 = pieces[1] - 0x1p84;
  double p2 = pieces[2] - 0x1p116;
  double p3 = pieces[3] - 0x1p148;
  double p4 = pieces[4] - 0x1p180;
  constexpr double to_integer = 0x1.8p52;
  const double minus_quotient = to_integer - std::fma(p4, table.inverse, to_integer);
  p0 = std::fma(minus_quotient, table.product[0], p0);
  p1 = std::fma(minus_quotient, table.product[1], p1);
  p2 = std::fma(minus_quotient, table.product[2], p2);
  p3 = std::fma(minus_quotient, table.product[3], p3);
  p4 = std::fma(minus_quotient, table.product[4], p4);
  const double above_120 = nearest_multiple<120>(p3);
  const double above_80 = nearest_multiple<80>(p2);
  const double above_40 = nearest_multiple<40>(p1);
  return {p4 + above_120, (p3 - above_120) + above_80, (p2 - above_80) + above_40, p0 + (p1 - above_40)};
}

}  // namespace kintsugi::core
