// The Chinese remainder theorem by leading digits, against integers whose residues are known.
#include "arith/residue/digit_sums.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "arith/exact/exact_sum.hpp"

namespace kintsugi::core {
namespace leading_digit_sums {
namespace {

constexpr int max_residues = 24;
using Integer = WideInteger<3>;

std::uint32_t remainder(const Integer& x, std::uint32_t modulus) {
  std::uint64_t rest = 0;
  for (int first = Integer::bits - 32; first >= 0; first -= 32)
    rest = (rest << 32 | (x.bits_from(first) & 0xffffffffU)) % modulus;
  return static_cast<std::uint32_t>(rest);
}

// Parts of 2^(s - 32) N from the residues of N, computed with the table's digits.
WideIntegerParts parts_of(const DigitTable<max_residues, wide_pieces>& table, const Integer& magnitude,
                          bool negative) {
  double pieces[wide_pieces];
  for (int j = 0; j < wide_pieces; ++j) {
    std::uint32_t sums[digits_of_piece]{};
    for (std::size_t t = 0; t < static_cast<std::size_t>(table.count); ++t) {
      const auto modulus = static_cast<std::uint32_t>(moduli[t]);
      const std::uint32_t rest = remainder(magnitude, modulus);
      const std::uint32_t residue = negative && rest != 0 ? modulus - rest : rest;
      for (int d = 0; d < digits_of_piece; ++d)
        sums[d] += residue * (table.digits[digits_of_piece * j + d][t / 4] >> 8 * (t % 4) & 0xffU);
    }
    pieces[j] = shifted_piece(j, sums[0], sums[1], sums[2], sums[3]);
  }
  return parts_of_pieces(pieces, table);
}

TEST(LeadingDigitSums, DifferFromTheIntegerByLessThanTheBound) {
  std::mt19937_64 random(61);
  double largest_error = 0;
  for (int count = 2; count <= max_residues; ++count) {
    const auto table = leading_digit_table<max_residues>(count);
    const int length = residue_bits(count);  // |N| < M / 4
    for (int i = 0; i < 2000; ++i) {
      const int drawn = random() % 2 == 0 ? length : static_cast<int>(random() % (length + 1));
      const Integer magnitude =
          Integer::shifted(Integer{{random(), random(), random()}}, drawn - Integer::bits);
      const bool negative = random() % 2 == 0;
      const WideIntegerParts parts = parts_of(table, magnitude, negative);
      ASSERT_LE(std::fabs(parts.upper), 0x1p119 + 0x1p111);
      ASSERT_LE(std::fabs(parts.middle), 0x1p80);
      ASSERT_LE(std::fabs(parts.lowest), 0x1p46);
      ExactSum error;
      for (const double part : {parts.top, parts.upper, parts.middle, parts.lowest}) error.add(part);
      for (int limb = 0; limb < 3; ++limb)
        error.add_integer(magnitude.limb[limb], 64 * limb + table.shift, !negative);
      largest_error = std::max(largest_error, std::fabs(error.to_double()));
    }
    ASSERT_LT(largest_error, static_cast<double>(dropped_units)) << count << " moduli";
  }
  EXPECT_GT(largest_error, 0x1p8) << "the bound would be far too large";
}

}  // namespace
}  // namespace leading_digit_sums
}  // namespace kintsugi::core
