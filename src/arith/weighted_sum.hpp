// Weighted sums of one element's accumulators: sum over g of 2^exponents[g] * sum_g.
#pragma once

#include <cstdint>

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

}  // namespace kintsugi::core
