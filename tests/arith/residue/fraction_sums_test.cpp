// Results by fractions against the exact epilogue, and how often they are certain.
#include "arith/residue/fraction_sums.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/arith/residue/drawn_slices.hpp"
#include "tests/arith/residue/drawn_updates.hpp"

namespace kintsugi::core {
namespace fraction_sums {
namespace {

using Integer = WideInteger<3>;

constexpr int max_residues = 44;
constexpr int most_moduli = 24;

// Returns the leading `bits` bits of x, all others 0.
Integer leading(const Integer& x, int bits) {
  const int zeros = std::max(x.length() - bits, 0);
  return Integer::shifted(Integer::shifted(x, -zeros), zeros);
}

Integer sum(const Integer& x, std::uint64_t y) {
  Integer result = x;
  result.add_multiple(Integer{{1}}, y);
  return result;
}

// M / 4, rounded down.
Integer largest_magnitude(const ResidueSystem& system) {
  using namespace residue_detail;
  return Integer::shifted(product_of_moduli<3>(system, no_modulus, no_modulus), -2);
}

// The largest magnitude, one of few bits, a tie of two doubles or next to one, or a number of any length.
Integer draw_magnitude(std::mt19937_64& random, const Integer& largest) {
  if (random() % 16 == 0) return largest;
  const int length = static_cast<int>(random() % static_cast<unsigned>(largest.length() + 1));
  Integer x{{random(), random(), random()}};
  x = Integer::shifted(x, length - 192);
  switch (random() % 5) {
    case 0: x = leading(x, 1 + static_cast<int>(random() % 53)); break;
    case 1: x = leading(x, 54); break;
    case 2: x = sum(leading(x, 54), random() % 2); break;
    case 3: x = leading(x, 54 + static_cast<int>(random() % 64)); break;
    default: break;
  }
  return x.less_than(largest) ? x : largest;
}

std::uint32_t remainder(const Integer& x, std::uint32_t modulus) {
  std::uint64_t result = 0;
  for (int bit = 160; bit >= 0; bit -= 32)
    result = (result << 32 | (x.bits_from(bit) & 0xffffffffU)) % modulus;
  return static_cast<std::uint32_t>(result);
}

std::vector<std::uint32_t> residues_of(const ResidueSystem& system, const ExactNumber<3>& x) {
  std::vector<std::uint32_t> residues;
  for (int t = 0; t < system.count(); ++t) {
    const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
    const std::uint32_t residue = remainder(x.magnitude, modulus);
    residues.push_back(x.negative && residue != 0 ? modulus - residue : residue);
  }
  return residues;
}

Fraction fraction_of(const FractionTable<max_residues>& table, const std::vector<std::uint32_t>& residues,
                     const FractionRow& row) {
  std::uint32_t sums[fraction_digits];
  for (int d = 0; d < fraction_digits; ++d) {
    sums[d] = first_digit_sum(d);
    for (std::size_t t = 0; t < residues.size(); ++t)
      sums[d] += residues[t] * (table.digits[d][t / 4] >> 8 * (t % 4) & 0xffU);
  }
  return fraction_of_digits(sums, row);
}

// Exponents of the units of a row and a column.
struct Units {
  int row;
  int column;
};
Units draw_units(std::mt19937_64& random) {
  constexpr int most = max_ordinary_exponent;
  const auto draw = [&](int least, int largest) {
    return random() % 4 == 0
               ? (random() % 2 == 0 ? least : largest)
               : least + static_cast<int>(random() % static_cast<unsigned>(largest - least + 1));
  };
  const int row = draw(-most, most);
  return {row, draw(std::max(-most, -most - row), std::min(most, most - row))};
}

// Number of elements and of those that were certain.
struct Count {
  int all = 0;
  int certain = 0;

  void add(const CertainlyRounded<double>& result, double expected, const ExactNumber<3>& x, double alpha,
           double old) {
    ++all;
    if (!result.is_certain) return;
    ++certain;
    expect_bits(result.value, expected, x, alpha, old);
  }
};

void compare(std::mt19937_64& random, const FractionTable<max_residues>& table,
             const std::vector<std::uint32_t>& residues, const Integer& magnitude, bool negative,
             Count& count) {
  const Units units = draw_units(random);
  const ExactNumber<3> x{magnitude, units.row + units.column, negative};
  const double alpha = random() % 2 == 0 ? 1 : -1;
  const double beta = random() % 2 == 0 ? 1 : -1;
  const FractionRow row = FractionRow::of_unit(power_of_two(units.row));
  const FractionFactor factor =
      table.factor.times(power_of_two(units.column), alpha * power_of_two(units.column));
  const Fraction fraction = fraction_of(table, residues, row);
  count.add(rounded_product(fraction, row, factor), exact_epilogue<double>(x, alpha, 0, nullptr), x, alpha,
            0);
  const double old = draw_old(random, x, alpha * beta);
  count.add(rounded_update(fraction, row, factor, beta, old), exact_epilogue<double>(x, alpha, beta, &old), x,
            alpha, beta * old);
}

TEST(FractionSums, AreTheExactSumRoundedOnceWhereCertain) {
  std::mt19937_64 random(96);
  for (int moduli = 1; moduli <= most_moduli; ++moduli) {
    const ResidueSystem system{moduli};
    const auto table = fraction_table<max_residues>(moduli);
    const Integer largest = largest_magnitude(system);
    Count count;
    for (int draw = 0; draw < 50000 && !testing::Test::HasFailure(); ++draw) {
      const Integer magnitude = draw_magnitude(random, largest);
      const bool negative = random() % 2 == 0;
      const auto residues = residues_of(system, {magnitude, 0, negative});
      compare(random, table, residues, magnitude, negative, count);
    }
    EXPECT_GT(count.certain, count.all / 8) << moduli << " moduli";
    EXPECT_LT(count.certain, count.all) << moduli << " moduli";
  }
}

// Numbers of the usual magnitude, M / 2^11, have some 70 known bits.
TEST(FractionSums, NearlyAllUsualElementsAreCertain) {
  std::mt19937_64 random(97);
  for (int moduli = 10; moduli <= most_moduli; ++moduli) {
    const ResidueSystem system{moduli};
    const auto table = fraction_table<max_residues>(moduli);
    const FractionRow row = FractionRow::of_unit(1);
    const int length = largest_magnitude(system).length() - 9;
    int uncertain = 0;
    for (int draw = 0; draw < 10000; ++draw) {
      const Integer magnitude = Integer::shifted(Integer{{random(), random(), random()}}, length - 192);
      const Fraction fraction = fraction_of(table, residues_of(system, {magnitude, 0, false}), row);
      uncertain += rounded_product(fraction, row, table.factor).is_certain ? 0 : 1;
      uncertain +=
          rounded_update(fraction, row, table.factor, 1, rounded<double>(ExactNumber<3>{magnitude}) / 3)
                  .is_certain
              ? 0
              : 1;
    }
    EXPECT_LE(uncertain, 3) << moduli << " moduli";
  }
}

// Ties, integers next to ties, and small integers of many moduli cannot be certain.
TEST(FractionSums, WhatCannotBeKnownIsNotCertain) {
  std::mt19937_64 random(98);
  constexpr int moduli = 15;  // M / 4 has 116 bits
  const ResidueSystem system{moduli};
  const auto table = fraction_table<max_residues>(moduli);
  const FractionRow row = FractionRow::of_unit(1);
  const auto is_certain = [&](const Integer& magnitude) {
    return rounded_product(fraction_of(table, residues_of(system, {magnitude, 0, false}), row), row,
                           table.factor)
        .is_certain;
  };
  for (int draw = 0; draw < 1000; ++draw) {
    const std::uint64_t odd = (random() >> 10) | 1U | std::uint64_t{1} << 53;  // 54 bits
    const Integer tie = Integer::shifted(Integer{{odd}}, 60);
    EXPECT_FALSE(is_certain(tie));
    EXPECT_FALSE(is_certain(sum(tie, 1)));
    EXPECT_TRUE(is_certain(sum(tie, std::uint64_t{1} << 50)));
    EXPECT_TRUE(is_certain(Integer::shifted(Integer{{odd ^ 1U}}, 60)));
    EXPECT_FALSE(is_certain(Integer{{random() >> 20}}));
  }
  EXPECT_FALSE(is_certain({}));
}

// Old elements whose half last place is next to the number: the sum of both is next to a tie, and the ends of
// the interval are rounded when the error of a sum is added to them.
TEST(FractionSums, SumsNextToTiesAreRightWhereCertain) {
  std::mt19937_64 random(100);
  for (int moduli = 10; moduli <= 14; ++moduli) {
    const ResidueSystem system{moduli};
    const auto table = fraction_table<max_residues>(moduli);
    const FractionRow row = FractionRow::of_unit(1);
    Count count;
    for (int k = 60; k < largest_magnitude(system).length() - 1; ++k) {
      for (int draw = 0; draw < 40 && !testing::Test::HasFailure(); ++draw) {
        const Integer power = Integer::shifted(Integer{{1}}, k);
        const Integer magnitude = draw % 2 == 0
                                      ? sum(power, random() % 4)
                                      : Integer::shifted(sum(Integer::shifted(power, 2), ~0ULL), -2);
        const bool negative = random() % 2 == 0;
        const std::uint64_t odd = std::uint64_t{1} << 52 | (draw % 4 < 2 ? 1 : random() >> 12 | 1U);
        const double old = std::ldexp(static_cast<double>(odd), k + 1) * (random() % 2 == 0 ? 1 : -1);
        const ExactNumber<3> x{magnitude, 0, negative};
        const Fraction fraction = fraction_of(table, residues_of(system, x), row);
        count.add(rounded_update(fraction, row, table.factor, 1, old), exact_epilogue<double>(x, 1, 1, &old),
                  x, 1, old);
      }
    }
    EXPECT_GT(count.certain, 0) << moduli << " moduli";
  }
}

__extension__ using Wide = unsigned __int128;

// The number below the product of the first moduli that has these residues.
Wide number_of(const ResidueSystem& system, const std::vector<std::uint32_t>& residues) {
  Wide number = 0;
  Wide product = 1;
  for (int t = 0; t < system.count(); ++t) {
    const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
    while (number % modulus != residues[static_cast<std::size_t>(t)]) number += product;
    product *= modulus;
  }
  return number;
}

// Weight t of the table, rounded to nearest, is below its exact value.
bool is_rounded_down(const FractionTable<max_residues>& table, std::size_t t, std::uint32_t modulus) {
  Wide weight = 0;
  for (int d = fraction_digits - 1; d >= 0; --d)
    weight = weight << 8 | (table.digits[d][t / 4] >> 8 * (t % 4) & 0xffU);
  return (weight * modulus >> 95 & 1U) != 0;  // 2^96 c / m times m is a multiple of 2^96
}

// Residues are the largest ones where weights are rounded to one side, 0 elsewhere, and any modulo the first
// few moduli, so that the error of F is as large as it can be, or a large part of that.
TEST(FractionSums, IntervalsContainTheNumber) {
  __extension__ using Signed = __int128;
  std::mt19937_64 random(101);
  for (int moduli = 8; moduli <= 15; ++moduli) {
    const ResidueSystem system{moduli};
    const auto table = fraction_table<max_residues>(moduli);
    const FractionRow row = FractionRow::of_unit(1);
    Wide product = 1;
    for (int t = 0; t < moduli; ++t) product *= static_cast<Wide>(system.modulus(t));
    double most = 0;
    for (int draw = 0; draw < 2000; ++draw) {
      std::vector<std::uint32_t> residues;
      for (int t = 0; t < moduli; ++t) {
        const auto modulus = static_cast<std::uint32_t>(system.modulus(t));
        const bool is_down = is_rounded_down(table, static_cast<std::size_t>(t), modulus);
        residues.push_back(t < 1 + draw % 3             ? static_cast<std::uint32_t>(random() % modulus)
                           : is_down == (draw % 2 == 0) ? modulus - 1
                                                        : 0);
      }
      const Wide number = number_of(system, residues);
      if (number > product / 4 && number < product - product / 4) continue;
      const Signed signed_number =
          number > product / 2 ? -static_cast<Signed>(product - number) : static_cast<Signed>(number);
      const auto part = fraction_detail::enclosure(fraction_of(table, residues, row), row, table.factor);
      if (std::fabs(part.p) < 0x1p53) continue;  // p is not an integer
      const auto rest = static_cast<long double>(signed_number - static_cast<Signed>(part.p));
      EXPECT_LE(static_cast<long double>(part.lower), rest) << moduli << " moduli";
      EXPECT_GE(static_cast<long double>(part.upper), rest) << moduli << " moduli";
      const double middle = 0.5 * part.lower + 0.5 * part.upper;
      most = std::max(most,
                      std::fabs(static_cast<double>(rest) - middle) / (0.5 * part.upper - 0.5 * part.lower));
    }
    EXPECT_GT(most, 0.15) << moduli << " moduli";  // the draws come near what the proof allows
  }
}

TEST(FractionSums, TablesOfTooManyResiduesAreEmpty) {
  EXPECT_EQ(fraction_table<16>(16).count, 16);
  EXPECT_EQ(fraction_table<16>(17).count, 0);
  EXPECT_EQ(fraction_table<44>(24).count, 24);
  EXPECT_EQ(fraction_table<44>(28).count, 0);
}

TEST(FractionSums, OldElementsThatAreNotFiniteAreNotCertain) {
  const auto table = fraction_table<max_residues>(15);
  const FractionRow row = FractionRow::of_unit(1);
  for (const std::uint32_t residue : {0U, 5U}) {
    const Fraction x = fraction_of(table, std::vector<std::uint32_t>(15, residue), row);
    for (const double beta : {1, -1}) {
      EXPECT_FALSE(
          rounded_update(x, row, table.factor, beta, std::numeric_limits<double>::infinity()).is_certain);
      EXPECT_FALSE(
          rounded_update(x, row, table.factor, beta, std::numeric_limits<double>::quiet_NaN()).is_certain);
    }
  }
}

// Every part of a complex element is a sum of all slices with the weights of the part. Slices are random:
// only their weighted sum modulo each modulus counts.
TEST(FractionSums, GivePartsOfComplexElements) {
  std::mt19937_64 random(99);
  for (int bits = 20; bits <= 124; bits += 8) {
    const ComplexBasis basis = cheapest_basis(bits);
    if (basis.slices() > max_residues) continue;
    const ResidueSystem system{.basis = basis};
    for (int part = 0; part < 2; ++part) {
      const auto weights = part_residues(basis, part);
      const auto table = fraction_table<max_residues>(system, std::span(weights).first(basis.slices()));
      Count count;
      for (int draw = 0; draw < 500 && !testing::Test::HasFailure(); ++draw) {
        const Integer magnitude = draw_magnitude(random, largest_magnitude(system));
        std::vector<std::uint32_t> residues;
        for (int t = 0; t < basis.count(); ++t) {
          const auto modulus = static_cast<std::uint32_t>(basis.modulus(t));
          append_slices(random, basis, part, t, remainder(magnitude, modulus), residues);
        }
        compare(random, table, residues, magnitude, false, count);
      }
      EXPECT_GT(count.certain, 0);
    }
  }
}

}  // namespace
}  // namespace fraction_sums
}  // namespace kintsugi::core
