// The Chinese remainder theorem for one entry, in words of 32 bits: what recombine/chinese_remainder.hpp does for many
// entries in doubles.
#pragma once

#include <array>
#include <cstdint>

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

// The constants of the first `count` moduli; M is their product.
template <int Limbs>
struct RemainderTable {
  static constexpr int words = 2 * Limbs;
  static constexpr int most = moduli_in_limbs(Limbs);

  // A residue's factor: what is 1 modulo its own modulus and 0 modulo the others.
  struct Modulus {
    std::uint32_t quotient;                   // of the factor by M, in units of 2^-32
    std::array<std::uint32_t, words> factor;  // 0 ... M - 1
  };

  // Moduli that a kernel takes in one go: zeros follow the last one.
  static constexpr int together = 8;

  std::array<Modulus, (most + together - 1) / together * together> of{};
  std::array<std::uint32_t, words> product{};
  int count = 0;
};

namespace residue_detail {

// Product of the first `count` moduli without number `left_out`.
template <int Limbs>
constexpr WideInteger<Limbs> product_of_moduli(int count, int left_out) {
  WideInteger<Limbs> product{{1}};
  for (int t = 0; t < count; ++t) {
    if (t == left_out) continue;
    WideInteger<Limbs> next;
    next.add_multiple(product, static_cast<std::uint64_t>(moduli[t]));
    product = next;
  }
  return product;
}

constexpr int inverse_of_part(int count, int t) {
  int part = 1;
  for (int s = 0; s < count; ++s) {
    if (s != t) part = part * moduli[s] % moduli[t];
  }
  int inverse = 1;
  while (inverse * part % moduli[t] != 1 % moduli[t]) ++inverse;
  return inverse;
}

template <int Limbs>
constexpr std::array<std::uint32_t, 2 * Limbs> words_of(const WideInteger<Limbs>& x) {
  std::array<std::uint32_t, 2 * Limbs> words{};
  for (int w = 0; w < 2 * Limbs; ++w) words[w] = static_cast<std::uint32_t>(x.limb[w / 2] >> (w % 2 * 32));
  return words;
}

}  // namespace residue_detail

template <int Limbs>
constexpr RemainderTable<Limbs> remainder_table(int count) {
  using namespace residue_detail;
  RemainderTable<Limbs> table;
  table.count = count;
  table.product = words_of(product_of_moduli<Limbs>(count, -1));
  for (int t = 0; t < count; ++t) {
    const auto inverse = static_cast<std::uint64_t>(inverse_of_part(count, t));
    WideInteger<Limbs> factor;
    factor.add_multiple(product_of_moduli<Limbs>(count, t), inverse);
    table.of[t] = {static_cast<std::uint32_t>((inverse << 32) / static_cast<std::uint64_t>(moduli[t])),
                   words_of(factor)};
  }
  return table;
}

// The integer of magnitude below M / 4 with given residues.
template <int Limbs>
class RemainderSum {
 public:
  using Table = RemainderTable<Limbs>;

  KINTSUGI_HOST_DEVICE constexpr void add(const typename Table::Modulus& of, std::uint32_t residue) {
    quotient_ += std::uint64_t{residue} * of.quotient;
    for (int w = 0; w < Table::words; ++w) word_[w] += std::uint64_t{residue} * of.factor[w];
  }

  // Words were not carried: 49 products of 8 and 32 bits. The quotient of the sum by M is within a quarter, and
  // 49 * 2^-24 of the quotients' errors, of the multiple that is taken away.
  KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> number(const Table& table) const {
    const std::uint64_t multiple = (quotient_ + (std::uint64_t{1} << 31)) >> 32;
    ExactNumber<Limbs> result;
    std::int64_t carry = 0;
    for (int w = 0; w < Table::words; ++w) {
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
  std::array<std::uint64_t, Table::words> word_{};
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
