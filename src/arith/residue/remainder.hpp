// The Chinese remainder theorem for one element, in 32-bit words; recombine/residues.cpp does the
// same for many elements in doubles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"

namespace kintsugi::core {

// Number of 64-bit limbs that hold the product of the first `count` moduli.
constexpr int remainder_limbs(int count) { return (residue_bits(count) + 3 + 63) / 64; }

// Largest number of moduli whose product fits into `limbs` limbs.
constexpr int moduli_in_limbs(int limbs) {
  int count = max_moduli;
  while (remainder_limbs(count) > limbs) --count;
  return count;
}

// Constants of two residues r and r'. Their moduli m and m' differ, or both are m. M is the product of all
// moduli. Together the residues add (coefficient r + coefficient' r') * factor to the integer, where factor
// is M / (m m') for different moduli and M / m for equal ones.
template <int Limbs>
struct RemainderPair {
  std::uint32_t coefficients;                   // two of 16 bits; that of r in the low half
  std::uint32_t quotient;                       // factor / M in units of 2^-32, rounded to nearest
  std::array<std::uint32_t, 2 * Limbs> factor;  // M / (m m') or M / m

  // coefficient r + coefficient' r'. `residues` holds four residues of 8 bits; half 0 has the lower two, half
  // 1 the upper two.
  KINTSUGI_HOST_DEVICE std::uint32_t multiple(std::uint32_t residues, int half) const {
#ifdef __CUDA_ARCH__
    return half == 0 ? __dp2a_lo(coefficients, residues, 0U) : __dp2a_hi(coefficients, residues, 0U);
#else
    const std::uint32_t two = residues >> 16 * half;
    return (coefficients & 0xffffU) * (two & 0xffU) + (coefficients >> 16) * (two >> 8 & 0xffU);
#endif
  }
};

// Constants of up to MaxResidues residues, two by two.
template <int Limbs, int MaxResidues = moduli_in_limbs(Limbs)>
struct RemainderTable {
  static constexpr int words = 2 * Limbs;

  // Number of residues that kernels read at a time. Zeros follow the last residue, so kernels need not
  // compare with the count.
  static constexpr int step = 4;

  std::array<RemainderPair<Limbs>, (MaxResidues + step - 1) / step * step / 2> pairs{};
  std::array<std::uint32_t, words> minus_product{};  // -M in two's complement
  int count = 0;                                     // number of residues
};

// A residue of the modulus with index `modulus`, and its weight in the sum.
struct WeightedResidue {
  int modulus = 0;
  std::uint32_t weight = 0;
};

namespace residue_detail {

inline constexpr int no_modulus = -1;

// Product of all moduli except those with the indices first_excluded and second_excluded. The two may be
// equal, or no_modulus.
template <int Limbs>
constexpr WideInteger<Limbs> product_of_moduli(const ResidueSystem& system, int first_excluded,
                                               int second_excluded) {
  WideInteger<Limbs> product{{1}};
  for (int t = 0; t < system.count(); ++t) {
    if (t == first_excluded || t == second_excluded) continue;
    WideInteger<Limbs> next;
    next.add_multiple(product, static_cast<std::uint64_t>(system.modulus(t)));
    product = next;
  }
  return product;
}

// Inverse of M / m modulo m, where m is the modulus with index t.
constexpr int inverse_of_cofactor(const ResidueSystem& system, int t) {
  const int modulus = system.modulus(t);
  int cofactor = 1;
  for (int s = 0; s < system.count(); ++s) {
    if (s != t) cofactor = cofactor * system.modulus(s) % modulus;
  }
  return inverse_modulo(cofactor, modulus);
}

template <int Limbs>
constexpr std::array<std::uint32_t, 2 * Limbs> words_of(const WideInteger<Limbs>& x) {
  std::array<std::uint32_t, 2 * Limbs> words{};
  for (int w = 0; w < 2 * Limbs; ++w) words[w] = static_cast<std::uint32_t>(x.limb[w / 2] >> (w % 2 * 32));
  return words;
}

// Each residue stands for an integer that is `weight` modulo m and 0 modulo all other moduli: M / m times
// (weight / (M / m) modulo m). If the factor is M / (m m'), the coefficient is multiplied by m'.
template <int Limbs>
constexpr RemainderPair<Limbs> remainder_pair(const ResidueSystem& system, const WeightedResidue& x,
                                              const WeightedResidue& y) {
  const auto coefficient = [&](const WeightedResidue& residue, std::uint32_t other) {
    const auto inverse = static_cast<std::uint32_t>(inverse_of_cofactor(system, residue.modulus));
    return residue.weight * inverse % static_cast<std::uint32_t>(system.modulus(residue.modulus)) * other;
  };
  const auto first = static_cast<std::uint32_t>(system.modulus(x.modulus));
  const auto second = static_cast<std::uint32_t>(system.modulus(y.modulus));
  const bool same_modulus = x.modulus == y.modulus;
  const std::uint64_t divisor = same_modulus ? first : first * second;
  return {coefficient(x, same_modulus ? 1 : second) | coefficient(y, same_modulus ? 1 : first) << 16,
          static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor / 2) / divisor),
          words_of(product_of_moduli<Limbs>(system, x.modulus, y.modulus))};
}

}  // namespace residue_detail

// Table of the given residues, paired in the given order, as the kernels read them.
template <int Limbs, int MaxResidues>
constexpr RemainderTable<Limbs, MaxResidues> remainder_table(const ResidueSystem& system,
                                                             std::span<const WeightedResidue> residues) {
  using namespace residue_detail;
  RemainderTable<Limbs, MaxResidues> table;
  table.count = static_cast<int>(residues.size());
  WideInteger<Limbs> minus_product;
  minus_product.subtract(product_of_moduli<Limbs>(system, no_modulus, no_modulus));
  table.minus_product = words_of(minus_product);
  for (std::size_t t = 0; t < residues.size(); t += 2) {
    // For an odd number of residues the last one is paired with a residue of the same modulus and weight 0.
    const WeightedResidue padding{residues[t].modulus, 0};
    table.pairs[t / 2] =
        remainder_pair<Limbs>(system, residues[t], t + 1 < residues.size() ? residues[t + 1] : padding);
  }
  return table;
}

// Table of the first `count` real moduli.
template <int Limbs, int MaxResidues = moduli_in_limbs(Limbs)>
constexpr RemainderTable<Limbs, MaxResidues> remainder_table(int count) {
  std::array<WeightedResidue, max_moduli> residues;
  for (int t = 0; t < count; ++t) residues[t] = {t, 1};
  return remainder_table<Limbs, MaxResidues>(ResidueSystem{count}, std::span(residues).first(count));
}

// Largest number of slices of a complex operand. With more slices the product of the moduli would exceed
// three limbs.
inline constexpr int max_complex_slices = 64;
constexpr int remainder_limbs(const ComplexBasis& basis) { return (residue_bits(basis) + 3 + 63) / 64; }

// The sums of all slices of a basis as residues of a part of an element (part 0: real, part 1: imaginary).
// Only the first basis.slices() elements are set.
constexpr std::array<WeightedResidue, max_complex_slices> part_residues(const ComplexBasis& basis,
                                                                        std::int64_t part) {
  std::array<WeightedResidue, max_complex_slices> residues;
  for (int t = 0; t < basis.count(); ++t) {
    const auto weights = basis.part_weights(part, t);
    for (int s = 0; s < (basis.has_root(t) ? 2 : 3); ++s)
      residues[basis.first_slice(t) + s] = {t, weights[s]};
  }
  return residues;
}

// Tables of an element's real part (0) and imaginary part (1), from the sums of all slices of the basis.
template <int Limbs>
constexpr std::array<RemainderTable<Limbs, max_complex_slices>, 2> part_tables(const ComplexBasis& basis) {
  const auto table = [&](std::int64_t part) {
    const auto residues = part_residues(basis, part);
    return remainder_table<Limbs, max_complex_slices>(ResidueSystem{0, basis},
                                                      std::span(residues).first(basis.slices()));
  };
  return {table(0), table(1)};
}

// The integer with given residues and a magnitude below M / 4.
template <int Limbs>
class RemainderSum {
 public:
  static constexpr int words = 2 * Limbs;

  KINTSUGI_HOST_DEVICE constexpr void add(const RemainderPair<Limbs>& pair, std::uint32_t multiple) {
    quotient_ += std::uint64_t{multiple} * pair.quotient;
    for (int w = 0; w < words - 1; ++w) word_[w] += std::uint64_t{multiple} * pair.factor[w];
    top_ += multiple * pair.factor[words - 1];
  }

  // Returns the integer in two's complement. Carries are propagated here, not in add(). The top word may
  // wrap, since the integer fits.
  template <int MaxResidues>
  KINTSUGI_HOST_DEVICE constexpr WideInteger<Limbs> integer(
      const RemainderTable<Limbs, MaxResidues>& table) const {
    static_assert((MaxResidues + 1) / 2 <= max_pairs);
    // (sum / M) rounded to nearest: M is subtracted this many times.
    const std::uint32_t multiples_of_m =
        static_cast<std::uint32_t>(quotient_ >> 32) + (static_cast<std::uint32_t>(quotient_) >> 31);
    WideInteger<Limbs> sum;
    std::uint64_t carry = 0;
    for (int w = 0; w < words - 1; ++w) {
      carry += word_[w] + std::uint64_t{multiples_of_m} * table.minus_product[w];
      sum.limb[w / 2] |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(carry)) << (w % 2 * 32);
      carry >>= 32;
    }
    const std::uint32_t top =
        top_ + multiples_of_m * table.minus_product[words - 1] + static_cast<std::uint32_t>(carry);
    sum.limb[Limbs - 1] |= static_cast<std::uint64_t>(top) << 32;
    return sum;
  }

  // Returns the integer times 2^exponent.
  template <int MaxResidues>
  KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> number(const RemainderTable<Limbs, MaxResidues>& table,
                                                           int exponent) const {
    return signed_number(integer(table), exponent);
  }

 private:
  // Bounds. The multiple of a pair is below 510 m m' < 2^25. The number of times that M is subtracted is
  // below 510. So the products of max_pairs pairs with words stay below 2^63. Each pair adds an error of at
  // most half a unit to the quotient; in all the quotient is wrong by less than a quarter.
  static constexpr std::uint64_t max_pairs = 32;
  static constexpr std::uint64_t max_multiple = std::uint64_t{510} * 256 * 255;
  static_assert(max_multiple < 1 << 25 && max_pairs * max_multiple / 2 < 1 << 30);

  std::array<std::uint64_t, words - 1> word_{};
  std::uint32_t top_ = 0;
  std::uint64_t quotient_ = 0;
};

// Returns an int32 sum modulo a number below 2^16, in 0 ... modulus - 1. `reciprocal` is floor(2^32 /
// modulus): the quotient computed with it is right or one too small.
KINTSUGI_HOST_DEVICE constexpr std::uint32_t residue_of_sum(std::int32_t sum, std::uint32_t modulus,
                                                            std::uint32_t reciprocal) {
  const std::uint32_t magnitude =
      sum < 0 ? 0U - static_cast<std::uint32_t>(sum) : static_cast<std::uint32_t>(sum);
  std::uint32_t remainder =
      magnitude - static_cast<std::uint32_t>(std::uint64_t{magnitude} * reciprocal >> 32) * modulus;
  remainder -= remainder >= modulus ? modulus : 0;
  return sum < 0 && remainder != 0 ? modulus - remainder : remainder;
}

}  // namespace kintsugi::core
