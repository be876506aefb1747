// Digits and residues of an integer of 63 bits at four bytes an instruction.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue.hpp"

namespace kintsugi::core::cuda {

// An integer of at most 62 bits as eight digits of 8 bits, -128...127, the last one first; the first has the sign.
struct ByteDigits {
  std::uint32_t low;
  std::uint32_t high;
};

// Adding half of the base to every digit carries as balanced digits do; the other half of each comes off without one.
KINTSUGI_HOST_DEVICE constexpr ByteDigits balanced_digits(std::int64_t integer) {
  constexpr std::uint64_t halves = 0x0080808080808080;
  const std::uint64_t digits = (static_cast<std::uint64_t>(integer) + halves) ^ halves;
  return {static_cast<std::uint32_t>(digits), static_cast<std::uint32_t>(digits >> 32)};
}

// One modulus: 256^i modulo it in balanced form, and what finds the residue of their sum.
struct ByteModulus {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::int32_t modulus = 0;
  std::uint32_t inverse = 0;  // 2^32 / modulus, rounded up
  std::int32_t offset = 0;    // congruent to modulus - 128, makes sums positive
};

constexpr ByteModulus byte_modulus(int modulus) {
  ByteModulus result;
  int power = 1 % modulus;
  for (int i = 0; i < 8; ++i) {
    const auto weight = static_cast<std::uint32_t>(power > 127 ? power - modulus : power) & 0xffU;
    (i < 4 ? result.low : result.high) |= weight << (8 * (i % 4));
    power = 256 * power % modulus;
  }
  constexpr int most = 8 * 128 * 128;  // of a sum of eight products
  result.modulus = modulus;
  result.inverse = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + modulus - 1) / modulus);
  result.offset = (most / modulus + 2) * modulus + modulus - 128;
  return result;
}

// sum + the products of four signed bytes each.
KINTSUGI_HOST_DEVICE constexpr std::int32_t add_byte_products(std::uint32_t a, std::uint32_t b,
                                                              std::int32_t sum) {
#ifdef __CUDA_ARCH__
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#else
  for (int i = 0; i < 32; i += 8) sum += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  return sum;
#endif
}

// The residue from 128 - modulus to 127. Sums are below 2^19, and so the quotient is exact: 2^19 (inverse modulus - 2^32)
// < 2^32.
KINTSUGI_HOST_DEVICE constexpr std::int32_t byte_residue(ByteDigits digits, const ByteModulus& modulus) {
  const std::int32_t sum = add_byte_products(digits.high, modulus.high,
                                             add_byte_products(digits.low, modulus.low, modulus.offset));
  const auto quotient = static_cast<std::int32_t>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(sum)) * modulus.inverse) >> 32);
  return sum - quotient * modulus.modulus + 128 - modulus.modulus;
}

}  // namespace kintsugi::core::cuda
