// The Chinese remainder theorem in words, and residues of sums, against plain integers.
#include "arith/remainder.hpp"

#include <gtest/gtest.h>

#include <random>

namespace kintsugi::core {
namespace {

template <int Limbs>
std::uint32_t residue_of(const ExactNumber<Limbs>& x, int modulus) {
  std::uint64_t rest = 0;
  for (int w = 2 * Limbs - 1; w >= 0; --w)
    rest = (rest << 32 | (x.magnitude.limb[w / 2] >> (w % 2 * 32) & 0xffffffffU)) %
           static_cast<unsigned>(modulus);
  return static_cast<std::uint32_t>(x.negative && rest != 0 ? static_cast<unsigned>(modulus) - rest : rest);
}

// Integers up to a quarter of the product are found again from their residues.
template <int Limbs>
void check_numbers() {
  std::mt19937_64 random(Limbs);
  for (int count = 1; count <= moduli_in_limbs(Limbs); ++count) {
    const RemainderTable<Limbs> table = remainder_table<Limbs>(count);
    for (int draw = 0; draw < 200; ++draw) {
      ExactNumber<Limbs> number;
      WideInteger<Limbs> limit = WideInteger<Limbs>::shifted(WideInteger<1>{{1}}, residue_bits(count));
      for (auto& limb : number.magnitude.limb) limb = draw % 4 == 0 ? ~std::uint64_t{0} : random();
      const int drop = 64 * Limbs - residue_bits(count) + static_cast<int>(draw % 5 == 0 ? random() % 60 : 0);
      number.magnitude = WideInteger<Limbs>::shifted(number.magnitude, -drop);
      if (draw == 1) number.magnitude = limit;
      number.negative = draw % 2 == 0 && number.magnitude.length() != 0;
      RemainderSum<Limbs> sum;
      for (int t = 0; t < count; ++t) sum.add(table.of[t], residue_of(number, moduli[t]));
      const ExactNumber<Limbs> found = sum.number(table);
      ASSERT_EQ(found.magnitude.limb, number.magnitude.limb) << count << " moduli, draw " << draw;
      ASSERT_EQ(found.negative, number.negative) << count << " moduli, draw " << draw;
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

// Parts of a complex number from the residues that stand for it.
template <int Limbs>
void check_parts(const ComplexBasis& basis) {
  std::mt19937_64 random(basis.slices());
  const auto tables = part_tables<Limbs>(basis);
  ASSERT_LE(basis.slices(), most_entry_slices);
  for (int draw = 0; draw < 100; ++draw) {
    ExactNumber<Limbs> parts[2];
    for (auto& part : parts) {
      for (auto& limb : part.magnitude.limb) limb = random();
      part.magnitude = WideInteger<Limbs>::shifted(
          part.magnitude, residue_bits(basis) - 64 * Limbs - static_cast<int>(draw % 3));
      part.negative = random() % 2 == 0;
    }
    RemainderSum<Limbs> sums[2];
    for (int t = 0; t < basis.count(); ++t) {
      const auto m = static_cast<unsigned>(basis.modulus(t));
      const auto root = static_cast<unsigned>(basis.root(t));
      const std::uint32_t re = residue_of(parts[0], basis.modulus(t));
      const std::uint32_t im = residue_of(parts[1], basis.modulus(t));
      const std::uint32_t stands[3]{basis.has_root(t) ? (re + root * im) % m : re,
                                    basis.has_root(t) ? (re + (m - root) * im) % m : im, (re + im) % m};
      // Of a product without a root: the sums of re re', im im' and (re + im)(re' + im') with re' = 1 and im' = 0.
      const std::uint32_t products[3]{stands[0], basis.has_root(t) ? stands[1] : 0, stands[2]};
      for (int s = 0; s < (basis.has_root(t) ? 2 : 3); ++s) {
        for (int p = 0; p < 2; ++p) sums[p].add(tables[p].of[basis.first_slice(t) + s], products[s]);
      }
    }
    for (int p = 0; p < 2; ++p) {
      const ExactNumber<Limbs> found = sums[p].number(tables[p]);
      ASSERT_EQ(found.magnitude.limb, parts[p].magnitude.limb) << basis.slices() << " slices, part " << p;
      ASSERT_EQ(found.negative, parts[p].negative);
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

TEST(Remainder, ResiduesOfSumsAreThoseOfDivision) {
  std::mt19937_64 random(8);
  for (const int modulus : moduli) {
    const auto divisor = static_cast<std::uint32_t>(modulus);
    const auto reciprocal = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / divisor);
    const auto check = [&](std::int32_t sum) {
      const std::int64_t rest = std::int64_t{sum} % modulus;
      ASSERT_EQ(residue_of_sum(sum, divisor, reciprocal), rest < 0 ? rest + modulus : rest)
          << sum << " modulo " << modulus;
    };
    for (std::int32_t sum = -1000; sum < 1000; ++sum) check(sum);
    for (const std::int32_t edge :
         {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
      check(edge);
    for (int draw = 0; draw < 20000; ++draw) check(static_cast<std::int32_t>(random()));
  }
}

TEST(Remainder, SumsAreReducedAsByDivision) {
  constexpr auto largest = static_cast<std::int32_t>(SumReduction::largest_sum);
  std::mt19937_64 random(9);
  for (int modulus = 2; modulus <= 256; ++modulus) {
    const SumReduction reduction(static_cast<std::uint32_t>(modulus));
    const auto check = [&](std::int32_t sum) {
      const std::int64_t rest = std::int64_t{sum} % modulus;
      ASSERT_EQ(reduction(sum), rest < 0 ? rest + modulus : rest) << sum << " modulo " << modulus;
    };
    for (std::int32_t sum = -1000; sum < 1000; ++sum) check(sum);
    for (std::int32_t less = 0; less < 1000; ++less) {
      check(largest - less);
      check(less - largest);
    }
    for (int draw = 0; draw < 5000; ++draw) {
      const auto sum = static_cast<std::int32_t>(random());
      if (-largest <= sum && sum <= largest) check(sum);
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
