// The Chinese remainder theorem for one entry, in words of 32 bits: what recombine/chinese_remainder.hpp does for many
// entries in doubles.
#pragma once

#include <array>
#include <cstdint>

#include "arith/complex_residue.hpp"
#include "arith/exact_rounding.hpp"
#include "arith/host_device.hpp"
#include "arith/residue.hpp"
#include "arith/wide_integer.hpp"

namespace kintsugi::core {

// 64-bit limbs that hold the product of the first `count` moduli.
constexpr int remainder_limbs(int count) { return (residue_bits(count) + 3 + 63) / 64; }

// The most moduli whose product so many limbs hold.
constexpr int moduli_in_limbs(int limbs) {
  int count = most_moduli;
  while (remainder_limbs(count) > limbs) --count;
  return count;
}

// What a residue counts for in the sum: of a modulus' own, what is 1 modulo it and 0 modulo the others.
template <int Limbs>
struct RemainderFactor {
  std::uint32_t quotient;                       // of the factor by M, in units of 2^-32
  std::array<std::uint32_t, 2 * Limbs> factor;  // 0 ... M - 1
};

// The constants of up to `Most` residues; M is the product of their moduli.
template <int Limbs, int Most = moduli_in_limbs(Limbs)>
struct RemainderTable {
  static constexpr int words = 2 * Limbs;

  // Residues that a kernel takes in one go: zeros follow the last one.
  static constexpr int together = 8;

  std::array<RemainderFactor<Limbs>, (Most + together - 1) / together * together> of{};
  std::array<std::uint32_t, words> product{};
  int count = 0;
};

namespace residue_detail {

// Product of all moduli without number `left_out`.
template <int Limbs>
constexpr WideInteger<Limbs> product_of_moduli(const ResidueSystem& system, int left_out) {
  WideInteger<Limbs> product{{1}};
  for (int t = 0; t < system.count(); ++t) {
    if (t == left_out) continue;
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

}  // namespace residue_detail

// One modulus: the product of the others, and what makes it 1.
template <int Limbs>
struct OtherModuli {
  WideInteger<Limbs> product;
  std::uint64_t inverse;
  std::uint64_t modulus;

  constexpr OtherModuli(const ResidueSystem& system, int t)
      : product(residue_detail::product_of_moduli<Limbs>(system, t)),
        inverse(static_cast<std::uint64_t>(residue_detail::inverse_of_part(system, t))),
        modulus(static_cast<std::uint64_t>(system.modulus(t))) {}

  // Of a residue that counts for `weight` residues.
  constexpr RemainderFactor<Limbs> factor(std::uint32_t weight) const {
    const std::uint64_t multiple = weight * inverse % modulus;
    WideInteger<Limbs> whole;
    whole.add_multiple(product, multiple);
    return {static_cast<std::uint32_t>((multiple << 32) / modulus), residue_detail::words_of(whole)};
  }
};

// Of the first `count` real moduli.
template <int Limbs>
constexpr RemainderTable<Limbs> remainder_table(int count) {
  const ResidueSystem system{count};
  RemainderTable<Limbs> table;
  table.count = count;
  table.product = residue_detail::words_of(residue_detail::product_of_moduli<Limbs>(system, -1));
  for (int t = 0; t < count; ++t) table.of[t] = OtherModuli<Limbs>(system, t).factor(1 % moduli[t]);
  return table;
}

// Slices of a complex operand whose moduli's product three limbs hold: at most so many.
inline constexpr int most_entry_slices = 64;
constexpr int remainder_limbs(const ComplexBasis& basis) { return (residue_bits(basis) + 3 + 63) / 64; }

// Of an entry's parts 0 and 1, from the sums of all slices of the basis.
template <int Limbs>
constexpr std::array<RemainderTable<Limbs, most_entry_slices>, 2> part_tables(const ComplexBasis& basis) {
  const ResidueSystem system{0, basis};
  std::array<RemainderTable<Limbs, most_entry_slices>, 2> tables;
  for (auto& table : tables) {
    table.count = basis.slices();
    table.product = residue_detail::words_of(residue_detail::product_of_moduli<Limbs>(system, -1));
  }
  for (int t = 0; t < basis.count(); ++t) {
    const OtherModuli<Limbs> others(system, t);
    for (std::int64_t part = 0; part < 2; ++part) {
      const auto weights = basis.part_weights(part, t);
      for (int s = 0; s < (basis.has_root(t) ? 2 : 3); ++s)
        tables[part].of[basis.first_slice(t) + s] = others.factor(weights[s]);
    }
  }
  return tables;
}

// The integer of magnitude below M / 4 with given residues.
template <int Limbs>
class RemainderSum {
 public:
  static constexpr int words = 2 * Limbs;

  KINTSUGI_HOST_DEVICE constexpr void add(const RemainderFactor<Limbs>& of, std::uint32_t residue) {
    quotient_ += std::uint64_t{residue} * of.quotient;
    for (int w = 0; w < words; ++w) word_[w] += std::uint64_t{residue} * of.factor[w];
  }

  // Words were not carried: up to 64 products of 8 and 32 bits. The quotient of the sum by M is within a quarter, and
  // 64 * 2^-24 of the quotients' errors, of the multiple that is taken away.
  template <int Most>
  KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> number(const RemainderTable<Limbs, Most>& table) const {
    const std::uint64_t multiple = (quotient_ + (std::uint64_t{1} << 31)) >> 32;
    ExactNumber<Limbs> result;
    std::int64_t carry = 0;
    for (int w = 0; w < words; ++w) {
      carry += static_cast<std::int64_t>(word_[w] - multiple * table.product[w]);
      result.magnitude.limb[w / 2] |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(carry))
                                      << (w % 2 * 32);
      carry >>= 32;
    }
    result.negative = carry < 0;
    if (result.negative) {
      WideInteger<Limbs> magnitude;
      magnitude.subtract(result.magnitude);
      result.magnitude = magnitude;
    }
    return result;
  }

 private:
  std::array<std::uint64_t, words> word_{};
  std::uint64_t quotient_ = 0;
};

// An int32 sum modulo a number below 2^16, in 0 ... modulus - 1. reciprocal: 2^32 / modulus rounded down, so that the
// quotient is right or one too small.
KINTSUGI_HOST_DEVICE constexpr std::uint32_t residue_of_sum(std::int32_t sum, std::uint32_t modulus,
                                                            std::uint32_t reciprocal) {
  const std::uint32_t magnitude =
      sum < 0 ? 0U - static_cast<std::uint32_t>(sum) : static_cast<std::uint32_t>(sum);
  std::uint32_t rest =
      magnitude - static_cast<std::uint32_t>(std::uint64_t{magnitude} * reciprocal >> 32) * modulus;
  rest -= rest >= modulus ? modulus : 0;
  return sum < 0 && rest != 0 ? modulus - rest : rest;
}

// The same of sums of at most 131,071 products of int8, in fewer instructions: a multiple of the modulus makes them
// positive.
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
