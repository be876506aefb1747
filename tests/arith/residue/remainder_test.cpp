// Tests the Chinese remainder theorem in 64-bit limbs, and residues of sums, against plain integers.
#include "arith/residue/remainder.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kintsugi::core {
namespace {

template <int Limbs>
std::uint32_t residue_of(const ExactNumber<Limbs>& x, int modulus) {
  std::uint64_t remainder = 0;
  for (int w = 2 * Limbs - 1; w >= 0; --w)
    remainder = (remainder << 32 | (x.magnitude.limb[w / 2] >> (w % 2 * 32) & 0xffffffffU)) %
                static_cast<unsigned>(modulus);
  return static_cast<std::uint32_t>(x.negative && remainder != 0 ? static_cast<unsigned>(modulus) - remainder
                                                                 : remainder);
}

// Returns the integer with the given residues, added in pairs as kernels add them.
template <int Limbs, int Most>
ExactNumber<Limbs> number_of(const RemainderTable<Limbs, Most>& table,
                             const std::vector<std::uint32_t>& residues) {
  RemainderSum<Limbs> sum;
  for (std::size_t t = 0; t < residues.size(); t += 2) {
    const std::uint32_t second = t + 1 < residues.size() ? residues[t + 1] : 0;
    const RemainderPair<Limbs>& pair = table.pairs[t / 2];
    const std::uint32_t multiple = pair.multiple(residues[t] | second << 8, 0);
    EXPECT_EQ(pair.multiple(residues[t] << 16 | second << 24, 1), multiple);
    sum.add(pair, multiple);
  }
  return sum.number(table, -7);
}

template <int Limbs>
void expect_number(const ExactNumber<Limbs>& found, const ExactNumber<Limbs>& number) {
  ASSERT_EQ(found.magnitude.limb, number.magnitude.limb);
  ASSERT_EQ(found.negative, number.negative);
  ASSERT_EQ(found.exponent, -7);
}

// The largest integer below a quarter of the product of moduli.
template <int Limbs>
WideInteger<Limbs> largest_integer(const ResidueSystem& system) {
  WideInteger<Limbs> largest{{1}};
  for (int t = 0; t < system.count(); ++t) {
    WideInteger<Limbs> next;
    next.add_multiple(largest, static_cast<std::uint64_t>(system.modulus(t)));
    largest = next;
  }
  largest.subtract({{1}});
  return WideInteger<Limbs>::shifted(largest, -2);
}

// Draws an integer: random, of few bits, close to the largest one, or close to zero.
template <int Limbs>
ExactNumber<Limbs> draw_number(std::mt19937_64& random, const ResidueSystem& system, int bits, int draw) {
  ExactNumber<Limbs> number{largest_integer<Limbs>(system)};
  if (draw % 4 != 0) {
    for (auto& limb : number.magnitude.limb) limb = draw % 4 == 1 ? ~std::uint64_t{0} : random();
    const int drop = 64 * Limbs - bits + static_cast<int>(draw % 5 == 0 ? random() % 60 : 0);
    number.magnitude = WideInteger<Limbs>::shifted(number.magnitude, -drop);
  } else if (draw % 8 == 0) {
    number.magnitude.subtract({{draw == 0 ? 0 : random() % 8}});
  } else {
    number.magnitude = {{random() % 8}};
  }
  number.negative = random() % 2 == 0 && number.magnitude.length() != 0;
  return number;
}

// Checks that integers up to a quarter of the product of moduli are found from their residues.
template <int Limbs>
void check_numbers() {
  std::mt19937_64 random(Limbs);
  for (int count = 1; count <= moduli_in_limbs(Limbs); ++count) {
    const RemainderTable<Limbs> table = remainder_table<Limbs>(count);
    for (int draw = 0; draw < 400; ++draw) {
      const auto number = draw_number<Limbs>(random, ResidueSystem{count}, residue_bits(count), draw);
      std::vector<std::uint32_t> residues;
      for (int t = 0; t < count; ++t) residues.push_back(residue_of(number, moduli[t]));
      ASSERT_NO_FATAL_FAILURE(expect_number(number_of(table, residues), number))
          << count << " moduli, draw " << draw;
    }
  }
}

TEST(Remainder, FindsTheIntegerOfEveryNumberOfModuli) {
  check_numbers<1>();
  check_numbers<2>();
  check_numbers<3>();
  check_numbers<4>();
  check_numbers<5>();
  check_numbers<6>();
}

// Checks that both parts of a complex number are found from its residues.
template <int Limbs>
void check_parts(const ComplexBasis& basis) {
  std::mt19937_64 random(basis.slices());
  const auto tables = part_tables<Limbs>(basis);
  ASSERT_LE(basis.slices(), max_complex_slices);
  for (int draw = 0; draw < 200; ++draw) {
    const ExactNumber<Limbs> parts[2]{
        draw_number<Limbs>(random, ResidueSystem{0, basis}, residue_bits(basis), draw),
        draw_number<Limbs>(random, ResidueSystem{0, basis}, residue_bits(basis), draw / 4 + draw % 4)};
    std::vector<std::uint32_t> residues;
    for (int t = 0; t < basis.count(); ++t) {
      const auto m = static_cast<unsigned>(basis.modulus(t));
      const auto root = static_cast<unsigned>(basis.root(t));
      const std::uint32_t re = residue_of(parts[0], basis.modulus(t));
      const std::uint32_t im = residue_of(parts[1], basis.modulus(t));
      if (basis.has_root(t)) {
        residues.insert(residues.end(), {(re + root * im) % m, (re + (m - root) * im) % m});
      } else {  // the sums of re re', im im' and (re + im)(re' + im') with re' = 1 and im' = 0
        residues.insert(residues.end(), {re, 0, (re + im) % m});
      }
    }
    for (int p = 0; p < 2; ++p) {
      ASSERT_NO_FATAL_FAILURE(expect_number(number_of(tables[p], residues), parts[p]))
          << basis.slices() << " slices, part " << p << ", draw " << draw;
    }
  }
}

TEST(Remainder, FindsThePartsOfComplexIntegers) {
  for (int count = 2; remainder_limbs(count) <= 3; ++count) {
    const ComplexBasis basis = cheapest_basis(residue_bits(count));
    ASSERT_LE(remainder_limbs(basis), 3) << "kernels hold no more, and real moduli " << count;
    if (remainder_limbs(basis) <= 2) check_parts<2>(basis);
    check_parts<3>(basis);
  }
}

TEST(Remainder, ResiduesOfSumsEqualThoseOfDivision) {
  std::mt19937_64 random(8);
  for (const int modulus : moduli) {
    const auto divisor = static_cast<std::uint32_t>(modulus);
    const auto reciprocal = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / divisor);
    const auto check = [&](std::int32_t sum) {
      const std::int64_t remainder = std::int64_t{sum} % modulus;
      ASSERT_EQ(residue_of_sum(sum, divisor, reciprocal), remainder < 0 ? remainder + modulus : remainder)
          << sum << " modulo " << modulus;
    };
    for (std::int32_t sum = -1000; sum < 1000; ++sum) check(sum);
    for (const std::int32_t edge :
         {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
      check(edge);
    for (int draw = 0; draw < 20000; ++draw) check(static_cast<std::int32_t>(random()));
  }
}

}  // namespace
}  // namespace kintsugi::core
