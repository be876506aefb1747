// Sums of one element: the weighted sum over g of 2^exponents[g] * sum_g of its accumulators, and sums of
// exact integer products.
#pragma once

#include <cstdint>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Weighted sum of floating-point accumulators, in double.
class FloatingSum {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit FloatingSum(int) {}  // same signature as IntegerSum

  KINTSUGI_HOST_DEVICE constexpr void add(int exponent, float accumulator) {
    sum_ += power_of_two(exponent) * static_cast<double>(accumulator);
  }
  KINTSUGI_HOST_DEVICE constexpr double value() const { return sum_; }

 private:
  double sum_ = 0;
};

// Weighted sum of integer accumulators in multiples of the smallest weight: exact, then rounded to double. It
// stays below 2^126: 256 groups have sums below 2^60 (2^46 products of int8), and weights are at most 2^58
// apart.
class IntegerSum {
  __extension__ using Integer = __int128;

 public:
  KINTSUGI_HOST_DEVICE constexpr explicit IntegerSum(int smallest_exponent) : smallest_(smallest_exponent) {}

  KINTSUGI_HOST_DEVICE constexpr void add(int exponent, std::int64_t accumulator) {
    sum_ += Integer{accumulator} * (Integer{1} << (exponent - smallest_));
  }
  KINTSUGI_HOST_DEVICE constexpr double value() const {
    return static_cast<double>(sum_) * power_of_two(smallest_);
  }

 private:
  Integer sum_ = 0;
  int smallest_;
};

template <class Accumulator>
struct WeightedSumOf;
template <>
struct WeightedSumOf<float> {
  using type = FloatingSum;
};
template <>
struct WeightedSumOf<std::int64_t> {
  using type = IntegerSum;
};

// Sums of exact integer products of slices (dgemm-tc, step 3).

// An FP64 sum is an integer in units of 2^(e - 800), where e is the exponent of the row's first slice plus
// that of the column's first slice. With this unit no sum overflows, and terms that underflow are below
// 2^-1800 of the largest product that the element can have.
inline constexpr int running_exponent = 800;

// integer * 2^(800 - depth). The product of two slices has an exponent; `depth` is the number of binades by
// which this exponent lies below that of the product of the two first slices.
KINTSUGI_HOST_DEVICE inline double running_term(std::int64_t integer, int depth) {
  return times_power_of_two(static_cast<double>(integer), running_exponent - depth);
}

// Adds integer * 2^position to a sum in two's complement.
template <int Limbs>
KINTSUGI_HOST_DEVICE constexpr void add_product(WideInteger<Limbs>& sum, std::int64_t integer, int position) {
  const int first = position >> 6;
  const int offset = position & 63;
  const auto bits = static_cast<std::uint64_t>(integer);
  const std::uint64_t sign = integer < 0 ? ~std::uint64_t{0} : 0;
  const std::uint64_t low = bits << offset;
  const std::uint64_t high = offset == 0 ? sign : bits >> (64 - offset) | sign << offset;
  std::uint64_t carry = 0;
  for (int l = 0; l < Limbs; ++l) {  // constant limb indices keep the limbs of a kernel in registers
    const std::uint64_t addend = l < first ? 0 : l == first ? low : l == first + 1 ? high : sign;
    const std::uint64_t with_carry = sum.limb[l] + carry;
    const std::uint64_t total = with_carry + addend;
    carry = (with_carry < carry ? 1U : 0U) + (total < addend ? 1U : 0U);
    sum.limb[l] = total;
  }
}

// Exact weighted sum of products of 52-bit words, as one integer: the sum over g of 2^exponents[g] sum_g in
// multiples of the smallest weight. It is kept in two's complement and returned as sign and magnitude. Two
// limbs are enough for one group. Seven limbs are enough for the seven groups of four words, whose weights
// are at most 2^312 apart.
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
