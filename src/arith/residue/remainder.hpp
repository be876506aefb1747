// The Chinese remainder theorem for one element, in words of 32 bits: what recombine/chinese_remainder.hpp
// does for many elements in doubles.
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

// 64-bit limbs that hold the product of the first `count` moduli.
constexpr int remainder_limbs(int count) { return (residue_bits(count) + 3 + 63) / 64; }

// The most moduli whose product so many limbs hold.
constexpr int moduli_in_limbs(int limbs) {
  int count = most_moduli;
  while (remainder_limbs(count) > limbs) --count;
  return count;
}

// Residues of one modulus or of two, and what they count for: coefficient r + coefficient' r' times M divided
// by their moduli, M being the product of all.
template <int Limbs>
struct RemainderPair {
  std::uint32_t coefficients;                   // in 16 bits each, the first residue's below
  std::uint32_t quotient;                       // of the factor by M, in units of 2^-32, to nearest
  std::array<std::uint32_t, 2 * Limbs> factor;  // M / m or M / (m m')

  // Of the residues in the lower (0) or upper (1) half of a word.
  KINTSUGI_HOST_DEVICE std::uint32_t multiple(std::uint32_t residues, int half) const {
#ifdef __CUDA_ARCH__
    return half == 0 ? __dp2a_lo(coefficients, residues, 0U) : __dp2a_hi(coefficients, residues, 0U);
#else
    const std::uint32_t two = residues >> 16 * half;
    return (coefficients & 0xffffU) * (two & 0xffU) + (coefficients >> 16) * (two >> 8 & 0xffU);
#endif
  }
};

// The constants of up to `Most` residues.
template <int Limbs, int Most = moduli_in_limbs(Limbs)>
struct RemainderTable {
  static constexpr int words = 2 * Limbs;

  // Residues that kernels take without a look at the count: zeros follow the last one.
  static constexpr int step = 4;

  std::array<RemainderPair<Limbs>, (Most + step - 1) / step * step / 2> of{};
  std::array<std::uint32_t, words> minus_product{};  // -M in two's complement
  int count = 0;                                     // of residues
};

// A residue of the modulus with a number, that counts for `weight` residues.
struct WeightedResidue {
  int modulus = 0;
  std::uint32_t weight = 0;
};

namespace residue_detail {

// Product of all moduli without two of them, which may be the same.
template <int Limbs>
constexpr WideInteger<Limbs> product_of_moduli(const ResidueSystem& system, int left_out, int also) {
  WideInteger<Limbs> product{{1}};
  for (int t = 0; t < system.count(); ++t) {
    if (t == left_out || t == also) continue;
    WideInteger<Limbs> next;
    next.add_multiple(product, static_cast<std::uint64_t>(system.modulus(t)));
    product = next;
  }
  return product;
}

constexpr int inverse_of_part(const ResidueSystem& system, int t) {
  const int modulus = system.modulus(t);
  int part = 1;
  for (int s = 0; s < system.count(); ++s) {
    if (s != t) part = part * system.modulus(s) % modulus;
  }
  return inverse_modulo(part, modulus);
}

template <int Limbs>
constexpr std::array<std::uint32_t, 2 * Limbs> words_of(const WideInteger<Limbs>& x) {
  std::array<std::uint32_t, 2 * Limbs> words{};
  for (int w = 0; w < 2 * Limbs; ++w) words[w] = static_cast<std::uint32_t>(x.limb[w / 2] >> (w % 2 * 32));
  return words;
}

// M / m by (weight / (M / m) modulo m) is what is `weight` modulo m and 0 modulo the others; M / (m m') is a
// divisor.
template <int Limbs>
constexpr RemainderPair<Limbs> remainder_pair(const ResidueSystem& system, const WeightedResidue& x,
                                              const WeightedResidue& y) {
  const auto coefficient = [&](const WeightedResidue& residue, std::uint32_t other) {
    const auto inverse = static_cast<std::uint32_t>(inverse_of_part(system, residue.modulus));
    return residue.weight * inverse % static_cast<std::uint32_t>(system.modulus(residue.modulus)) * other;
  };
  const auto first = static_cast<std::uint32_t>(system.modulus(x.modulus));
  const auto second = static_cast<std::uint32_t>(system.modulus(y.modulus));
  const bool same = x.modulus == y.modulus;
  const std::uint64_t divisor = same ? first : first * second;
  return {coefficient(x, same ? 1 : second) | coefficient(y, same ? 1 : first) << 16,
          static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor / 2) / divisor),
          words_of(product_of_moduli<Limbs>(system, x.modulus, y.modulus))};
}

}  // namespace residue_detail

// Of residues in their order, which the kernels take in pairs.
template <int Limbs, int Most>
constexpr RemainderTable<Limbs, Most> remainder_table(const ResidueSystem& system,
                                                      std::span<const WeightedResidue> residues) {
  using namespace residue_detail;
  RemainderTable<Limbs, Most> table;
  table.count = static_cast<int>(residues.size());
  WideInteger<Limbs> minus_product;
  minus_product.subtract(product_of_moduli<Limbs>(system, -1, -1));
  table.minus_product = words_of(minus_product);
  for (std::size_t t = 0; t < residues.size(); t += 2) {
    const WeightedResidue none{residues[t].modulus, 0};
    table.of[t / 2] =
        remainder_pair<Limbs>(system, residues[t], t + 1 < residues.size() ? residues[t + 1] : none);
  }
  return table;
}

// Of the first `count` real moduli.
template <int Limbs>
constexpr RemainderTable<Limbs> remainder_table(int count) {
  std::array<WeightedResidue, most_moduli> residues;
  for (int t = 0; t < count; ++t) residues[t] = {t, 1};
  return remainder_table<Limbs, moduli_in_limbs(Limbs)>(ResidueSystem{count},
                                                        std::span(residues).first(count));
}

// Slices of a complex operand whose moduli's product three limbs hold: at most so many.
inline constexpr int most_element_slices = 64;
constexpr int remainder_limbs(const ComplexBasis& basis) { return (residue_bits(basis) + 3 + 63) / 64; }

// Of an element's parts 0 and 1, from the sums of all slices of the basis.
template <int Limbs>
constexpr std::array<RemainderTable<Limbs, most_element_slices>, 2> part_tables(const ComplexBasis& basis) {
  std::array<std::array<WeightedResidue, most_element_slices>, 2> residues;
  for (int t = 0; t < basis.count(); ++t) {
    for (std::int64_t part = 0; part < 2; ++part) {
      const auto weights = basis.part_weights(part, t);
      for (int s = 0; s < (basis.has_root(t) ? 2 : 3); ++s)
        residues[part][basis.first_slice(t) + s] = {t, weights[s]};
    }
  }
  const auto table = [&](int part) {
    return remainder_table<Limbs, most_element_slices>(ResidueSystem{0, basis},
                                                       std::span(residues[part]).first(basis.slices()));
  };
  return {table(0), table(1)};
}

// The integer of magnitude below M / 4 with given residues.
template <int Limbs>
class RemainderSum {
 public:
  static constexpr int words = 2 * Limbs;

  KINTSUGI_HOST_DEVICE constexpr void add(const RemainderPair<Limbs>& of, std::uint32_t multiple) {
    quotient_ += std::uint64_t{multiple} * of.quotient;
    for (int w = 0; w < words - 1; ++w) word_[w] += std::uint64_t{multiple} * of.factor[w];
    top_ += multiple * of.factor[words - 1];
  }

  // Words were not carried; the top one needs no more than its own bits, as the number fits.
  template <int Most>
  KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> number(const RemainderTable<Limbs, Most>& table,
                                                           int exponent) const {
    static_assert((Most + 1) / 2 <= most_pairs);
    const std::uint32_t multiple =
        static_cast<std::uint32_t>(quotient_ >> 32) + (static_cast<std::uint32_t>(quotient_) >> 31);
    WideInteger<Limbs> sum;
    std::uint64_t carry = 0;
    for (int w = 0; w < words - 1; ++w) {
      carry += word_[w] + std::uint64_t{multiple} * table.minus_product[w];
      sum.limb[w / 2] |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(carry)) << (w % 2 * 32);
      carry >>= 32;
    }
    const std::uint32_t top =
        top_ + multiple * table.minus_product[words - 1] + static_cast<std::uint32_t>(carry);
    sum.limb[Limbs - 1] |= static_cast<std::uint64_t>(top) << 32;
    return signed_number(sum, exponent);
  }

 private:
  // A pair's multiple is below 510 m m': below 2^25, and that of M below 510. So many pairs' products with
  // words stay below 2^63, and the quotient, each pair's with an error of half a unit, is less than a quarter
  // off.
  static constexpr std::uint64_t most_pairs = 32;
  static constexpr std::uint64_t most_multiple = std::uint64_t{510} * 256 * 255;
  static_assert(most_multiple < 1 << 25 && most_pairs * most_multiple / 2 < 1 << 30);

  std::array<std::uint64_t, words - 1> word_{};
  std::uint32_t top_ = 0;
  std::uint64_t quotient_ = 0;
};

// An int32 sum modulo a number below 2^16, in 0 ... modulus - 1. reciprocal: 2^32 / modulus rounded down, so
// that the quotient is right or one too small.
KINTSUGI_HOST_DEVICE constexpr std::uint32_t residue_of_sum(std::int32_t sum, std::uint32_t modulus,
                                                            std::uint32_t reciprocal) {
  const std::uint32_t magnitude =
      sum < 0 ? 0U - static_cast<std::uint32_t>(sum) : static_cast<std::uint32_t>(sum);
  std::uint32_t rest =
      magnitude - static_cast<std::uint32_t>(std::uint64_t{magnitude} * reciprocal >> 32) * modulus;
  rest -= rest >= modulus ? modulus : 0;
  return sum < 0 && rest != 0 ? modulus - rest : rest;
}

// The same of sums of at most 131,071 products of int8, in fewer instructions: a multiple of the modulus
// makes them positive.
class SumReduction {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit SumReduction(std::uint32_t modulus)
      : modulus_(modulus), reciprocal_(~0U / modulus),
        multiple_((largest_sum + modulus - 1) / modulus * modulus) {}

  KINTSUGI_HOST_DEVICE constexpr std::uint32_t operator()(std::int32_t sum) const {
    const std::uint32_t positive = static_cast<std::uint32_t>(sum) + multiple_;
    const std::uint32_t quotient =
        static_cast<std::uint32_t>(std::uint64_t{positive} * reciprocal_ >> 32);  // or one too small
    const std::uint32_t rest = positive - quotient * modulus_;
    const std::uint32_t less = rest - modulus_;
    return rest < less ? rest : less;
  }

  static constexpr std::uint32_t largest_sum = 131071U << 14;

 private:
  std::uint32_t modulus_;
  std::uint32_t reciprocal_;
  std::uint32_t multiple_;
};

}  // namespace kintsugi::core
