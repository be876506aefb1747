// The Chinese remainder theorem by sums of digits, against integers whose residues are known.
#include "arith/residue/digit_sums.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/arith/residue/drawn_slices.hpp"

namespace kintsugi::core {
namespace {

__extension__ using Natural = unsigned __int128;

constexpr int max_residues = 40;

Natural wide(const WideInteger<2>& x) { return Natural{x.limb[1]} << 64 | x.limb[0]; }

// The largest magnitude is M / 4, rounded down.
Natural largest_magnitude(const ResidueSystem& system) {
  return wide(residue_detail::product_of_moduli<2>(system, residue_detail::no_modulus,
                                                   residue_detail::no_modulus)) >>
         2;
}

// The largest magnitude, a tie of two doubles or next to one, or a number of any length.
Natural draw_magnitude(std::mt19937_64& random, Natural largest) {
  if (largest == 0 || random() % 8 == 0) return largest;
  Natural magnitude = (Natural{random()} << 64 | random()) >> random() % 128;
  if (random() % 3 == 0) {
    const int zeros = static_cast<int>(random() % 72);
    magnitude = (magnitude >> zeros | 1U) << zeros;
    magnitude += random() % 3;
    magnitude -= 1;
  }
  return magnitude % (largest + 1);
}

// Parts of 2^s N, computed with the table's digits. The residues are in the table's order.
IntegerParts parts_of(const DigitTable<max_residues>& table, const std::vector<std::uint32_t>& residues) {
  std::array<std::uint32_t, weight_digits> sums{};
  for (int d = 0; d < weight_digits; ++d) {
    for (std::size_t t = 0; t < residues.size(); ++t)
      sums[d] += residues[t] * (table.digits[d][t / 4] >> 8 * (t % 4) & 0xffU);
  }
  const double pieces[]{shifted_piece(0, sums[0], sums[1], sums[2], sums[3]),
                        shifted_piece(1, sums[4], sums[5], sums[6], sums[7]),
                        shifted_piece(2, sums[8], sums[9], sums[10], sums[11]),
                        shifted_piece(3, sums[12], sums[13], sums[14], sums[15])};
  return parts_of_pieces(pieces, table);
}

void expect_rounded(const DigitTable<max_residues>& table, const std::vector<std::uint32_t>& residues,
                    const ExactNumber<2>& x) {
  const IntegerParts parts = parts_of(table, residues);
  EXPECT_LT(std::fabs(parts.lowest), 0x1p48);
  EXPECT_LE(std::fabs(parts.middle), 0x1p81);
  EXPECT_EQ(rounded_product(parts, power_of_two(x.exponent - table.shift)), rounded<double>(x))
      << table.count << " residues, shift " << table.shift;
}

TEST(DigitSums, GiveTheIntegerOfTheResidues) {
  std::mt19937_64 random(40);
  for (int count = 1; count <= moduli_in_limbs(2); ++count) {
    const ResidueSystem system{count};
    const auto table = digit_table<max_residues>(count);
    for (int draw = 0; draw < 2000; ++draw) {
      const Natural magnitude = draw_magnitude(random, largest_magnitude(system));
      const bool negative = random() % 2 == 0;
      std::vector<std::uint32_t> residues;
      for (int t = 0; t < count; ++t) {
        const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
        const auto residue = static_cast<std::uint32_t>(magnitude % modulus);
        residues.push_back(negative && residue != 0 ? modulus - residue : residue);
      }
      expect_rounded(table, residues,
                     {{{static_cast<std::uint64_t>(magnitude), static_cast<std::uint64_t>(magnitude >> 64)}},
                      static_cast<int>(random() % 1700) - 850,
                      negative});
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// Sums of four products' residues have up to four times as large digit sums. Residues of three products are
// drawn, those of the fourth are such that the sum has the integer's residues. Any byte may stand for a
// residue.
TEST(DigitSums, GiveTheIntegerOfSumsOfFourProducts) {
  std::mt19937_64 random(42);
  for (int count = 1; count <= moduli_in_limbs(2); ++count) {
    const ResidueSystem system{count};
    const auto table = digit_table<max_residues>(count);
    for (int draw = 0; draw < 1000; ++draw) {
      const Natural magnitude = draw_magnitude(random, largest_magnitude(system));
      std::vector<std::uint32_t> residues;
      for (int t = 0; t < count; ++t) {
        const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
        std::uint32_t sum = 0;
        for (int q = 0; q < 3; ++q) sum += draw % 4 == 0 ? 255 : static_cast<std::uint32_t>(random() % 256);
        std::uint32_t last = 255;
        while ((sum + last) % modulus != static_cast<std::uint32_t>(magnitude % modulus)) --last;
        residues.push_back(sum + last);
      }
      expect_rounded(table, residues,
                     {{{static_cast<std::uint64_t>(magnitude), static_cast<std::uint64_t>(magnitude >> 64)}},
                      static_cast<int>(random() % 1700) - 850,
                      false});
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// Every part of a complex element is a sum of all slices with the weights of the part. Slices are random:
// only their weighted sum modulo each modulus counts.
TEST(DigitSums, GivePartsOfComplexElements) {
  std::mt19937_64 random(41);
  for (int bits = 20; bits <= 124; bits += 8) {
    const ComplexBasis basis = cheapest_basis(bits);
    if (remainder_limbs(basis) > 2) continue;
    ASSERT_LE(basis.slices(), max_residues);
    const ResidueSystem system{.basis = basis};
    for (int part = 0; part < 2; ++part) {
      const auto weights = part_residues(basis, part);
      const auto table = digit_table<max_residues>(system, std::span(weights).first(basis.slices()));
      for (int draw = 0; draw < 500; ++draw) {
        const Natural magnitude = draw_magnitude(random, largest_magnitude(system));
        std::vector<std::uint32_t> residues;
        for (int t = 0; t < basis.count(); ++t) {
          const auto modulus = static_cast<std::uint32_t>(basis.modulus(t));
          append_slices(random, basis, part, t, static_cast<std::uint32_t>(magnitude % modulus), residues);
        }
        expect_rounded(
            table, residues,
            {{{static_cast<std::uint64_t>(magnitude), static_cast<std::uint64_t>(magnitude >> 64)}},
             static_cast<int>(random() % 1700) - 850,
             false});
      }
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

}  // namespace
}  // namespace kintsugi::core
