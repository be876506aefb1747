// The Chinese remainder theorem by sums of 20 digits, against integers whose residues are known.
#include "arith/residue/digit_sums.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kintsugi::core {
namespace wide_digit_sums {
namespace {

constexpr int max_residues = 24;
constexpr int most_moduli = 20;
using Integer = WideInteger<3>;
using Table = DigitTable<max_residues, wide_pieces>;

Integer product_of(const ResidueSystem& system) {
  return residue_detail::product_of_moduli<3>(system, residue_detail::no_modulus, residue_detail::no_modulus);
}

std::uint32_t remainder(const Integer& x, std::uint32_t modulus) {
  std::uint64_t rest = 0;
  for (int first = Integer::bits - 32; first >= 0; first -= 32)
    rest = (rest << 32 | (x.bits_from(first) & 0xffffffffU)) % modulus;
  return static_cast<std::uint32_t>(rest);
}

// A magnitude below M / 4: the largest, a number of any length with any number of zeros below, or a tie of
// two doubles or next to one.
Integer draw_magnitude(std::mt19937_64& random, const Integer& product) {
  const int length = std::max(product.length() - 3, 0);  // 2^length <= M / 4
  const Integer largest = Integer::shifted(product, -2);
  if (random() % 8 == 0) return largest;
  Integer x{{random(), random(), random()}};
  const int drawn = random() % 2 == 0 ? length : static_cast<int>(random() % (length + 1));
  x = Integer::shifted(x, drawn - Integer::bits);
  if (random() % 2 == 0) {
    const int zeros = static_cast<int>(random() % 150);
    x = Integer::shifted(Integer::shifted(x, -zeros), zeros);
    if (zeros < drawn && random() % 2 == 0) x.limb[zeros / 64] |= std::uint64_t{1} << zeros % 64;
    if (drawn > 0 && random() % 3 == 0) x.limb[0] |= 1;
  }
  return x;
}

std::vector<std::uint32_t> residues_of(const ResidueSystem& system, const Integer& magnitude, bool negative) {
  std::vector<std::uint32_t> residues;
  for (int t = 0; t < system.real_count; ++t) {
    const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
    const std::uint32_t residue = remainder(magnitude, modulus);
    residues.push_back(negative && residue != 0 ? modulus - residue : residue);
  }
  return residues;
}

// Parts of 2^s N, computed with the table's digits.
WideIntegerParts parts_of(const Table& table, const std::vector<std::uint32_t>& residues) {
  double pieces[wide_pieces];
  for (int j = 0; j < wide_pieces; ++j) {
    std::uint32_t sums[digits_of_piece]{};
    for (int d = 0; d < digits_of_piece; ++d) {
      for (std::size_t t = 0; t < residues.size(); ++t)
        sums[d] += residues[t] * (table.digits[digits_of_piece * j + d][t / 4] >> 8 * (t % 4) & 0xffU);
    }
    pieces[j] = shifted_piece(j, sums[0], sums[1], sums[2], sums[3]);
  }
  return parts_of_pieces(pieces, table);
}

struct Drawn {
  ExactNumber<3> number;
  WideIntegerParts parts;
  double unit;
};

Drawn draw(std::mt19937_64& random, const ResidueSystem& system, const Table& table) {
  const bool negative = random() % 2 == 0;
  const Integer magnitude = draw_magnitude(random, product_of(system));
  const ExactNumber<3> number{magnitude, static_cast<int>(random() % 1700) - 850, negative};
  return {number, parts_of(table, residues_of(system, magnitude, negative)),
          power_of_two(number.exponent - table.shift)};
}

TEST(WideDigitSums, GiveTheIntegerOfTheResidues) {
  std::mt19937_64 random(42);
  for (int count = 2; count <= most_moduli; ++count) {
    const ResidueSystem system{count};
    const auto table = digit_table<max_residues, wide_pieces>(count);
    for (int i = 0; i < 4000; ++i) {
      const Drawn x = draw(random, system, table);
      EXPECT_LE(std::fabs(x.parts.top), 0x1p158);
      EXPECT_LE(std::fabs(x.parts.upper), 0x1p119 + 0x1p111);
      EXPECT_LE(std::fabs(x.parts.middle), 0x1p80);
      EXPECT_LE(std::fabs(x.parts.lowest), 0x1p46);
      EXPECT_EQ(rounded_product(x.parts, x.unit), rounded<double>(x.number))
          << count << " moduli, shift " << table.shift;
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// A residue of the largest sum of digits: every piece is as large as its bound allows.
TEST(WideDigitSums, AddTheLargestResidues) {
  std::mt19937_64 random(43);
  const ResidueSystem system{most_moduli};
  const auto table = digit_table<max_residues, wide_pieces>(most_moduli);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint32_t> residues;
    for (int t = 0; t < most_moduli; ++t) {
      const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
      residues.push_back(modulus - 1 - static_cast<std::uint32_t>(random() % (i == 0 ? 1 : 3)));
    }
    RemainderSum<3> sum;
    const auto remainders = remainder_table<3>(most_moduli);
    for (int t = 0; t < most_moduli; t += 2) {
      const auto& pair = remainders.pairs[t / 2];
      sum.add(pair, pair.multiple(residues[t] | residues[t + 1] << 8, 0));
    }
    const ExactNumber<3> number = sum.number(remainders, 0);
    if (number.magnitude.length() > product_of(system).length() - 3) continue;  // beyond M / 4
    EXPECT_EQ(rounded_product(parts_of(table, residues), power_of_two(-table.shift)),
              rounded<double>(number));
  }
}

}  // namespace
}  // namespace wide_digit_sums
}  // namespace kintsugi::core
