// Exact weighted sums of products of 52-bit words, as one integer.
#pragma once

#include <cstdint>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"

namespace kintsugi::core {

// Sum over g of 2^exponents[g] sum_g in multiples of the smallest weight. It is kept in two's complement and
// returned as sign and magnitude. Two limbs are enough for one group. Seven limbs are enough for the seven
// groups of four words, whose weights are at most 2^312 apart.
template <int Limbs>
class WordSum {
  __extension__ using Integer = __int128;

 public:
  KINTSUGI_HOST_DEVICE constexpr explicit WordSum(int smallest_exponent) : smallest_(smallest_exponent) {}

  KINTSUGI_HOST_DEVICE constexpr void add(int exponent, Integer group_sum) {
    const auto bits = static_cast<Unsigned>(group_sum);
    const bool negative = (bits >> 127) != 0;
    const Unsigned magnitude = negative ? -bits : bits;
    const WideInteger<2> limbs{
        {static_cast<std::uint64_t>(magnitude), static_cast<std::uint64_t>(magnitude >> 64)}};
    const auto shifted = WideInteger<Limbs>::shifted(limbs, exponent - smallest_);
    if (negative) {
      sum_.subtract(shifted);
    } else {
      sum_.add_multiple(shifted, 1);
    }
  }

  KINTSUGI_HOST_DEVICE constexpr ExactNumber<Limbs> value() const { return signed_number(sum_, smallest_); }

 private:
  using Unsigned = typename WideInteger<Limbs>::TwoLimbs;

  WideInteger<Limbs> sum_;
  int smallest_;
};

}  // namespace kintsugi::core
