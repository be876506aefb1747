// Residues of complex integers from the digits of their parts (arith/residue/complex_residue.hpp).
#pragma once

#include "arith/residue/complex_residue.hpp"
#include "engines/cuda/split/elements/integer_elements.hpp"

namespace kintsugi::core::cuda {

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
