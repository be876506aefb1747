// Digits and residues of integers, by instructions that multiply four pairs of bytes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"

namespace kintsugi::core::cuda {

// An integer of magnitude up to 2^62 as eight balanced digits: signed bytes in -128 ... 127, the least
// significant first.
struct ByteDigits {
  std::uint32_t low;
  std::uint32_t high;
};

// Balanced digits of an integer. Half of the base is added to every digit: a digit above 127, which must
// become negative, then carries. The exclusive or takes the halves off again, without carries.
KINTSUGI_HOST_DEVICE constexpr ByteDigits balanced_digits(std::int64_t integer) {
  constexpr std::uint64_t halves = 0x0080808080808080;
  const std::uint64_t digits = (static_cast<std::uint64_t>(integer) + halves) ^ halves;
  return {static_cast<std::uint32_t>(digits), static_cast<std::uint32_t>(digits >> 32)};
}

// An integer of magnitude below 2^94 as twelve balanced digits.
struct WideByteDigits {
  ByteDigits low;
  std::uint32_t top;
};

// Digits of the integer nearest to x, ties to even, for |x| <= 2^93. Adds |x - integer| to `errors`. x is cut
// into a multiple of 2^48 and a rest of at most 2^47, which is then rounded. Both are read from the low bits
// of doubles to which 3 * 2^51 was added: conversions to integers of 64 bits are slow.
KINTSUGI_HOST_DEVICE inline WideByteDigits nearest_digits(double x, double& errors) {
  __extension__ using Wide = unsigned __int128;
  constexpr int low_bits = 48;
  constexpr double units = 0x1.8p52;
  constexpr std::int64_t bits_of_units = std::bit_cast<std::int64_t>(units);
  constexpr Wide halves = static_cast<Wide>(0x00808080U) << 64 | 0x8080808080808080U;
  const double high_units = std::fma(x, power_of_two(-low_bits), units);
  const double rest = std::fma(units - high_units, power_of_two(low_bits), x);  // exact
  const std::int64_t high = std::bit_cast<std::int64_t>(high_units) - bits_of_units;
  const double low_units = rest + units;
  errors += std::fabs(rest - (low_units - units));  // exact, since both are multiples of the same last place
  const std::int64_t low = std::bit_cast<std::int64_t>(low_units) - bits_of_units;
  const Wide digits = ((static_cast<Wide>(high) << low_bits) + static_cast<Wide>(low) + halves) ^ halves;
  return {{static_cast<std::uint32_t>(digits), static_cast<std::uint32_t>(digits >> 32)},
          static_cast<std::uint32_t>(digits >> 64)};
}

// Constants of one modulus. The sum of the products of digits and weights is congruent to the integer. The
// other constants reduce such a sum to a residue.
struct ByteModulus {
  // Weights of digits 0 ... 3, 4 ... 7 and 8 ... 11, as signed bytes: the balanced residues of 256^i.
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::uint32_t top = 0;
  std::int32_t modulus = 0;
  std::uint32_t inverse = 0;  // 2^32 / modulus, rounded up
  std::int32_t offset = 0;    // a multiple of the modulus that makes sums positive
  // Added to the product of a sum and `inverse`. With it the remainders are the residues of small_residue().
  std::uint64_t shift = 0;
};

// Constants of one modulus for integers of eight digits. Sums of products are reduced by a quotient in FP32.
// These constants are apart from those of ByteModulus, because the first read of constant memory is slow.
struct FloatModulus {
  std::uint32_t low = 0;  // weights as in ByteModulus
  std::uint32_t high = 0;
  std::int32_t modulus = 0;
  std::int32_t start =
      0;  // a sum that starts with it is, read as an FP32 number, an integer in 2^23 ... 2^24
  float inverse = 0;
  float rounding = 0;  // adding it rounds to an integer, which is in the low bits
};

// Constants of one modulus for integers of twelve digits. tests/engines/cuda/split_elements_test.cpp shows
// that FP32 quotients are right for every sum.
struct WideFloatModulus {
  FloatModulus eight;     // for the sum of all twelve products
  std::uint32_t top = 0;  // weights of digits 8 ... 11
};

// Least residue that small_residue() returns. It adds the modulus to remainders below 128 - modulus;
// remainders lie between -(modulus / 2) and modulus / 2. So the least residue is 128 - modulus. If 128 -
// modulus is above modulus / 2, the modulus is added to every remainder once.
constexpr std::int32_t min_residue(int modulus) {
  return 128 - modulus <= modulus / 2 ? 128 - modulus : modulus - modulus / 2;
}

// Multiple of the modulus. If it is added, sums of magnitude up to `max_sum` become positive and not less
// than the least residue.
constexpr std::int32_t residue_offset(int modulus, int max_sum) { return (max_sum / modulus + 2) * modulus; }

// Largest magnitude of a sum of products of eight digits and the weights in `low` and `high`.
constexpr int max_sum_of_digits(std::uint32_t low, std::uint32_t high) {
  int result = 0;
  for (int i = 0; i < 32; i += 8) {
    for (const std::uint32_t word : {low, high}) {
      const int weight = static_cast<std::int8_t>(word >> i);
      result += weight < 0 ? -weight : weight;
    }
  }
  return 128 * result;
}

// Constants of residue_by_float(). That function reduces a sum s modulo m to s - q m, where q is (s + centre)
// / m rounded to nearest. `centre` makes the remainders those of small_residue(); without it they would be
// those nearest to zero. `max_sum` is the largest magnitude of a sum.
//
// A sum begins with `start`. Its bits, read as an FP32 number, are the number quotient * m + centre + s,
// which is positive and at least 2^23. The function multiplies this number by 1 / m and adds `rounding`,
// which subtracts `quotient` and adds `correction`. The sum also contains `start`. The low byte of `start`
// disappears, because subtracting m times the larger quotient subtracts `correction` times m.
//
// `start` is as small as the sums allow, because rounding errors grow with it: if it is 2^17 larger, some
// quotients by 255 are wrong.
constexpr FloatModulus float_modulus(const ByteModulus& weights, int max_sum) {
  constexpr int float_unit = 1 << 23;
  const int modulus = weights.modulus;
  FloatModulus result{.low = weights.low, .high = weights.high, .modulus = modulus};
  const int centre = -min_residue(modulus) - modulus / 2;
  const int quotient = (float_unit + max_sum) / modulus + 2;
  const int start = quotient * modulus - float_unit + centre;
  int correction = 0;
  while (correction < 255 && ((start - correction * modulus) & 0xff) != 0) ++correction;
  result.start = std::bit_cast<std::int32_t>(static_cast<float>(float_unit)) + start;
  result.inverse = 1.0F / static_cast<float>(modulus);
  result.rounding = static_cast<float>(float_unit / 2 * 3 + correction - quotient);
  return result;
}
constexpr FloatModulus float_modulus(const ByteModulus& weights) {
  return float_modulus(weights, max_sum_of_digits(weights.low, weights.high));
}

constexpr int max_sum_of_digits(const ByteModulus& weights) {
  return max_sum_of_digits(weights.low, weights.high) + max_sum_of_digits(weights.top, 0);
}

constexpr WideFloatModulus wide_float_modulus(const ByteModulus& weights) {
  return {float_modulus(weights, max_sum_of_digits(weights)), weights.top};
}

constexpr ByteModulus byte_modulus(int modulus) {
  ByteModulus result;
  int power = 1 % modulus;
  std::uint32_t* const words[] = {&result.low, &result.high, &result.top};
  for (int i = 0; i < 12; ++i) {
    const auto weight = static_cast<std::uint32_t>(power > 127 ? power - modulus : power) & 0xffU;
    *words[i / 4] |= weight << (8 * (i % 4));
    power = 256 * power % modulus;
  }
  constexpr int max_sum = 12 * 128 * 128;  // bound of a sum of twelve products
  result.modulus = modulus;
  result.inverse = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + modulus - 1) / modulus);
  result.shift = static_cast<std::uint64_t>(-std::int64_t{min_residue(modulus)}) * result.inverse;
  result.offset = residue_offset(modulus, max_sum);
  return result;
}

// Adds the products of four pairs of signed bytes to `sum`.
KINTSUGI_HOST_DEVICE constexpr std::int32_t add_byte_products(std::uint32_t a, std::uint32_t b,
                                                              std::int32_t sum) {
#ifdef __CUDA_ARCH__
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#else
  for (int i = 0; i < 32; i += 8) sum += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  return sum;
#endif
}

// Residue, in small_residue()'s range, of a sum of digit products and ByteModulus::offset. The quotient is
// exact: sums are below 2^19, even after the least residue is subtracted, and 2^19 (inverse modulus - 2^32) <
// 2^32.
KINTSUGI_HOST_DEVICE constexpr std::int32_t residue_of_bytes(std::int32_t sum, const ByteModulus& modulus) {
  const auto quotient = static_cast<std::int32_t>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(sum)) * modulus.inverse + modulus.shift) >> 32);
  return sum - quotient * modulus.modulus;
}

// `start` plus the products of eight digits and their weights.
template <class Modulus>
KINTSUGI_HOST_DEVICE constexpr std::int32_t sum_of_bytes(ByteDigits digits, const Modulus& modulus,
                                                         std::int32_t start) {
  return add_byte_products(digits.high, modulus.high, add_byte_products(digits.low, modulus.low, start));
}

// Returns an integer whose low byte is the residue of a sum of eight digit products and FloatModulus::start.
// tests/engines/cuda/split_elements_test.cpp shows for every modulus and sum that the FP32 quotient is the
// nearest integer.
KINTSUGI_HOST_DEVICE inline std::uint32_t residue_by_float(std::int32_t sum, const FloatModulus& modulus) {
#ifdef __CUDA_ARCH__
  const std::uint32_t quotient =
      __float_as_uint(__fmaf_rn(__int_as_float(sum), modulus.inverse, modulus.rounding));
#else
  const auto quotient =
      std::bit_cast<std::uint32_t>(std::fma(std::bit_cast<float>(sum), modulus.inverse, modulus.rounding));
#endif
  return static_cast<std::uint32_t>(sum) - quotient * static_cast<std::uint32_t>(modulus.modulus);
}

// Returns an integer whose low byte is the residue of the digits' integer.
KINTSUGI_HOST_DEVICE inline std::uint32_t byte_residue(ByteDigits digits, const FloatModulus& modulus) {
  return residue_by_float(sum_of_bytes(digits, modulus, modulus.start), modulus);
}
KINTSUGI_HOST_DEVICE inline std::uint32_t byte_residue(const WideByteDigits& digits,
                                                       const WideFloatModulus& modulus) {
  const std::int32_t sum = sum_of_bytes(digits.low, modulus.eight, modulus.eight.start);
  return residue_by_float(add_byte_products(digits.top, modulus.top, sum), modulus.eight);
}

// Residues of complex integers from the digits of their parts (arith/residue/complex_residue.hpp).

// Constants of one modulus. `real` turns the digits of a real part into residues. low, high and top are
// weights of the digits of an imaginary part, as in ByteModulus: the balanced residues of 256^i w, where w is
// the root of -1. If the modulus has no such root, they are those of 256^i.
struct ComplexByteModulus {
  ByteModulus real;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::uint32_t top = 0;
};

// `root` is a root of -1 modulo `modulus`, or 0 if there is none.
constexpr ComplexByteModulus complex_byte_modulus(int modulus, int root) {
  ComplexByteModulus result{byte_modulus(modulus)};
  int power = (root == 0 ? 1 : root) % modulus;
  std::uint32_t* const words[] = {&result.low, &result.high, &result.top};
  for (int i = 0; i < 12; ++i) {
    const auto weight = static_cast<std::uint32_t>(power > 127 ? power - modulus : power) & 0xffU;
    *words[i / 4] |= weight << (8 * (i % 4));
    power = 256 * power % modulus;
  }
  constexpr int max_sum = 2 * 12 * 128 * 128;  // bound of two sums of twelve products
  result.real.offset = residue_offset(modulus, max_sum);
  return result;
}

// Constants of one modulus for complex integers of eight digits. Sums are reduced by a quotient in FP32.
struct ComplexFloatModulus {
  FloatModulus real;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

constexpr ComplexFloatModulus complex_float_modulus(const ComplexByteModulus& weights) {
  const int max_sum =
      max_sum_of_digits(weights.real.low, weights.real.high) + max_sum_of_digits(weights.low, weights.high);
  return {float_modulus(weights.real, max_sum), weights.low, weights.high};
}

// Sum of the products of digits and weights.
KINTSUGI_HOST_DEVICE constexpr std::int32_t weighted_sum(ByteDigits digits, std::uint32_t low,
                                                         std::uint32_t high) {
  return add_byte_products(digits.high, high, add_byte_products(digits.low, low, 0));
}
KINTSUGI_HOST_DEVICE constexpr std::int32_t weighted_sum(const WideByteDigits& digits, std::uint32_t low,
                                                         std::uint32_t high, std::uint32_t top) {
  return add_byte_products(digits.top, top, weighted_sum(digits.low, low, high));
}

// Residues that stand for a complex integer a + i b modulo m: a + w b and a - w b if -1 has a root w modulo
// m; a, b and a + b otherwise. Each residue is the low byte of an integer. Quotients are exact, because sums
// are below 2^21 and 2^21 (inverse modulus - 2^32) < 2^32.
KINTSUGI_HOST_DEVICE constexpr void complex_residues(const WideByteDigits& re, const WideByteDigits& im,
                                                     const ComplexByteModulus& modulus, bool has_root,
                                                     std::uint32_t (&residues)[3]) {
  const ByteModulus& real = modulus.real;
  const std::int32_t a = weighted_sum(re, real.low, real.high, real.top) + real.offset;
  const std::int32_t b = weighted_sum(im, modulus.low, modulus.high, modulus.top);  // w b if there is a root
  const auto residue = [&](std::int32_t sum) {
    return static_cast<std::uint32_t>(residue_of_bytes(sum, real));
  };
  residues[0] = residue(has_root ? a + b : a);
  residues[1] = residue(has_root ? a - b : b + real.offset);
  residues[2] = has_root ? 0 : residue(a + b);
}
KINTSUGI_HOST_DEVICE inline void complex_residues(ByteDigits re, ByteDigits im,
                                                  const ComplexFloatModulus& modulus, bool has_root,
                                                  std::uint32_t (&residues)[3]) {
  const FloatModulus& real = modulus.real;
  const std::int32_t a = sum_of_bytes(re, real, real.start);
  const std::int32_t b = weighted_sum(im, modulus.low, modulus.high);
  residues[0] = residue_by_float(has_root ? a + b : a, real);
  residues[1] = residue_by_float(has_root ? a - b : b + real.start, real);
  residues[2] = has_root ? 0 : residue_by_float(a + b, real);
}

}  // namespace kintsugi::core::cuda
