// Slices of the seven operands of one step of Strassen's algorithm (arith/residue/strassen.hpp). A pair of
// vectors are vectors v and v + 4 of an operand, of which the first is in the first half of the vectors. A
// group are eight inner indices, of which the first four are in the first half of k. A pair has four quads
// in a group: elements of the four quadrants at the same indices.
#pragma once

#include <array>
#include <utility>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/split/elements/byte_elements.cuh"

namespace kintsugi::core::cuda::strassen {

inline constexpr int quads_of_group = strassen_group;
inline constexpr int group_length = 2 * strassen_group;

// Constants of a modulus for sums of up to four integers. tests/engines/cuda/split_elements_test.cpp shows
// for every modulus and sum that quotients are exact.
constexpr FloatModulus sum_modulus(const ByteModulus& weights) {
  return float_modulus(weights, 4 * max_sum_of_digits(weights.low, weights.high));
}

// Digits of a pair's integers in a group: those of the first vector, then those of the second.
using PairDigits = ByteDigits[2][group_length];

// The seven operands' elements from a quad's: `along` is the element of the same vector in the second half of
// k, `across` the one of the same inner index in the second vector.
template <bool right, class Number>
__device__ __forceinline__ std::array<Number, strassen_products> operands_of(Number first, Number along,
                                                                             Number across, Number last) {
  if constexpr (right) {
    return right_operands(first, across, along, last);
  } else {
    return left_operands(first, along, across, last);
  }
}

// Writes the slices of a modulus, four bytes of each operand. A quad's sums of digit products are combined
// before they are reduced. Each combination must contain FloatModulus::start once: `starts` tells how often
// it does if three of a left operand's elements and all of a right operand's begin with it.
template <bool right>
__device__ __forceinline__ void write_modulus(const FloatModulus& modulus, const PairDigits& digits,
                                              std::byte* target, std::int64_t operand_stride) {
  constexpr int across_starts = right ? 1 : 0;
  const auto start = static_cast<std::uint32_t>(modulus.start);
  const auto starts = operands_of<right, std::uint32_t>(1, 1, across_starts, 1);
  std::uint32_t residues[strassen_products][quads_of_group];
#pragma unroll
  for (int i = 0; i < quads_of_group; ++i) {
    const auto sum = [&](const ByteDigits& integer, int begin) {
      return static_cast<std::uint32_t>(sum_of_bytes(integer, modulus, begin));
    };
    const auto operands = operands_of<right, std::uint32_t>(
        sum(digits[0][i], modulus.start), sum(digits[0][i + quads_of_group], modulus.start),
        sum(digits[1][i], across_starts * modulus.start), sum(digits[1][i + quads_of_group], modulus.start));
#pragma unroll
    for (int q = 0; q < strassen_products; ++q)
      residues[q][i] =
          residue_by_float(static_cast<std::int32_t>(operands[q] + (1 - starts[q]) * start), modulus);
  }
#pragma unroll
  for (int q = 0; q < strassen_products; ++q, target += operand_stride) store_bytes(target, residues[q]);
}

// Writes the slices of the first `count` moduli.
template <bool right, int... moduli_index>
__device__ __forceinline__ void write_moduli(std::integer_sequence<int, moduli_index...>, int count,
                                             std::int64_t slice_stride, const PairDigits& digits,
                                             std::byte* target) {
  const std::int64_t operand_stride = count * slice_stride;
  const auto write = [&]<int t>(std::integral_constant<int, t>) {
    if (t >= count) return false;
    constexpr FloatModulus modulus = sum_modulus(byte_modulus(moduli[t]));
    write_modulus<right>(modulus, digits, target, operand_stride);
    target += slice_stride;
    return true;
  };
  (write(std::integral_constant<int, moduli_index>{}) && ...);
}

// Sets the digits of a vector's integers in a group. Elements that are not finite count as zero.
__device__ __forceinline__ void set_digits(const Scaling& scaling, double (&x)[group_length],
                                           ByteDigits (&digits)[group_length]) {
  if (!scaling.plain) {
#pragma unroll
    for (double& element : x) element = element - element == 0 ? element : 0.0;
  }
  to_digits(scaling, x, digits);
}

// Writes the slices of a pair in a group. `offset` is the index of the first byte in each slice.
template <bool right>
__device__ __forceinline__ void write_group(const SplitTask& task, const Scaling (&scalings)[2],
                                            double (&first)[group_length], double (&second)[group_length],
                                            std::int64_t offset) {
  PairDigits digits;
  set_digits(scalings[0], first, digits[0]);
  set_digits(scalings[1], second, digits[1]);
  write_moduli<right>(std::make_integer_sequence<int, unrolled_residues>{},
                      task.rule.slices / strassen_products, task.slice_stride, digits,
                      slices_of(task) + offset);
}

// Writes zeros to a group of a pair of padding.
__device__ inline void clear_group(const SplitTask& task, std::int64_t offset) {
  std::byte* target = slices_of(task) + offset;
  for (int s = 0; s < task.rule.slices; ++s, target += task.slice_stride)
    *reinterpret_cast<std::uint32_t*>(target) = 0;
}

// Index in each slice of the first byte of a group. `pair` counts the operand's pairs: vector `pair` of the
// half.
__device__ inline std::int64_t offset_of_group(const SplitTask& task, int pair, int group) {
  return std::int64_t{pair} * (task.vector_stride / 2) + group * quads_of_group;
}

// Scaling of a vector that does not exist and whose elements are zeros in shared memory.
__device__ inline Scaling scaling_of_padding() { return {.plain = true}; }

}  // namespace kintsugi::core::cuda::strassen
