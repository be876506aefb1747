// Reduction of int32 sums to residues in few instructions of a device.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// Sums that a reduction takes.
enum class SumRange : std::uint8_t {
  int32,  // all sums
  int25   // sums from -2^24 to 2^24 - 1; the modulus must have no factor in common with 255
};

// Reduces int32 sums modulo a number m of 2 ... 256, in four instructions, or in three for
// int25 sums.
//
// Proof. Let b_i be the four unsigned bytes of sum + 2^31 (int32) or of the sum modulo 2^32 (int25). There
// are weights w_i, |w_i| <= 128, such that the sum of w_i b_i is the sum modulo m, plus 2^31 for int32. Those
// of int32, and the lower three of int25, are 2^(8i) modulo m with the smallest magnitude. The highest byte
// of an int25 sum is 0, or 255 if the sum is negative. Then the lower bytes hold sum + 2^24, and 255 w_3 must
// be -2^24 modulo m, for which there is a w_3.
// So |sum of w_i b_i| <= max_dot. Therefore u = first + (sum of w_i b_i) is the sum modulo m, and
// 2^23 <= u < 2^24, if `first` is 2^23 + max_dot, or up to m - 1 more such that first (int32: first + 2^31)
// is 0 modulo m.
// Integers from 2^23 to 2^24 are floats whose bits increase by 1 with the integer. So the dot product
// accumulates on the bits of `first` as a float. `reciprocal` is the smallest float r >= 1 / m, and
// u (r - 1 / m) < 1 / m, which the constructor checks. Hence floor(u r) = floor(u / m) = q. 2^23 + q is below
// 2^24, so one multiplication and addition that rounds down gives it exactly. The bits of u and of 2^23 + q
// are u and q plus multiples of 256, and u - m q is in 0 ... m - 1. So the lowest byte of
// bits(u) - m bits(2^23 + q) is the residue.
template <SumRange Range>
class SumReduction {
 public:
  constexpr explicit SumReduction(std::uint32_t modulus) : minus_modulus_(0U - modulus) {
    constexpr std::uint32_t bias = Range == SumRange::int32 ? 1U << 31 : 0;
    for (int i = 0; i < 4; ++i) {
      auto weight = static_cast<std::uint32_t>((std::uint64_t{1} << 8 * i) % modulus);
      if (Range == SumRange::int25 && i == 3) weight = weight_of_sign(modulus);
      weights_ |= ((2 * weight > modulus ? weight - modulus : weight) & 0xffU) << 8 * i;
    }
    std::uint32_t first = smallest_u + max_dot;
    first += modulus - 1 - (first + bias - 1) % modulus;
    first_bits_ = std::bit_cast<std::uint32_t>(static_cast<float>(first));
    reciprocal_ = 1.0F / static_cast<float>(modulus);
    if (static_cast<double>(reciprocal_) * modulus < 1)
      reciprocal_ = std::bit_cast<float>(std::bit_cast<std::uint32_t>(reciprocal_) + 1);
    const double error = static_cast<double>(reciprocal_) * modulus - 1;  // exact: 32 bits
    if (error < 0 || error * (first + max_dot) >= 1) must_be_constant();
  }

  // Returns a word whose lowest byte is the residue; its other bytes are arbitrary.
  KINTSUGI_HOST_DEVICE std::uint32_t operator()(std::int32_t sum) const {
    constexpr std::uint32_t sign = Range == SumRange::int32 ? 1U << 31 : 0;
    const std::uint32_t bytes = static_cast<std::uint32_t>(sum) ^ sign;
#ifdef __CUDA_ARCH__
    std::uint32_t bits;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(bits) : "r"(bytes), "r"(weights_), "r"(first_bits_));
    const float quotient = __fmaf_rd(__uint_as_float(bits), reciprocal_, static_cast<float>(smallest_u));
    return bits + __float_as_uint(quotient) * minus_modulus_;
#else
    std::uint32_t bits = first_bits_;
    for (int i = 0; i < 4; ++i) {
      const auto weight = static_cast<std::int8_t>(weights_ >> 8 * i);
      bits += static_cast<std::uint32_t>(weight * static_cast<std::int32_t>(bytes >> 8 * i & 0xffU));
    }
    const double product = static_cast<double>(std::bit_cast<float>(bits)) * reciprocal_;  // exact: 48 bits
    const std::uint32_t quotient = smallest_u + static_cast<std::uint32_t>(product);       // rounded down
    return bits + std::bit_cast<std::uint32_t>(static_cast<float>(quotient)) * minus_modulus_;
#endif
  }

 private:
  static constexpr std::uint32_t smallest_u = 1U << 23;
  static constexpr std::uint32_t max_dot = 255 * 4 * 128;

  // Solves 255 w = -2^24 modulo the modulus.
  static constexpr std::uint32_t weight_of_sign(std::uint32_t modulus) {
    std::uint32_t weight = 0;
    while ((255 * weight + (1U << 24)) % modulus != 0) {
      if (++weight == modulus) must_be_constant();
    }
    return weight;
  }
  static void must_be_constant() {}  // calling it is an error in a constant expression

  std::uint32_t weights_ = 0;
  std::uint32_t first_bits_ = 0;
  float reciprocal_ = 0;
  std::uint32_t minus_modulus_;
};

// Reductions of int32 sums, by index modulus - 2.
inline constexpr auto int32_reductions = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{SumReduction<SumRange::int32>(static_cast<std::uint32_t>(I + 2))...};
}
(std::make_index_sequence<255>{});

// The modulus itself, or 256 if it has a factor in common with 255, for which there is no reduction.
constexpr std::uint32_t modulus_of_int25(std::uint32_t modulus) {
  return modulus % 3 == 0 || modulus % 5 == 0 || modulus % 17 == 0 ? 256 : modulus;
}
constexpr bool reduces_int25(std::uint32_t modulus) { return modulus_of_int25(modulus) == modulus; }

// Reductions of int25 sums, by index modulus - 2, where reduces_int25() is true.
inline constexpr auto int25_reductions = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{SumReduction<SumRange::int25>(modulus_of_int25(static_cast<std::uint32_t>(I + 2)))...};
}
(std::make_index_sequence<255>{});

}  // namespace kintsugi::core
