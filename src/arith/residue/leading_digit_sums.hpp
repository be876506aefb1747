// The Chinese remainder theorem by sums of the leading digits of weights (digit_sums.hpp), for up to 24
// moduli, whose product M is below 2^192. It gives 2^s N with an error.
//
// Weights have 24 digits, of which the four lowest are left out. In units of 2^32 the sum of residue times
// weight is too small by less than 24 * 255. 2^s M without its 32 lowest bits is too small by less than 1,
// and is subtracted at most 24 * 255 times (wide_digit_sums.hpp). So the error is less than 2^13 units.
#pragma once

#include "arith/residue/wide_digit_sums.hpp"

namespace kintsugi::core {

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
