// Sums of exact integer products of slices (dgemm-tc, step 3).
#pragma once

#include <cstdint>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"

namespace kintsugi::core {

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

}  // namespace kintsugi::core
