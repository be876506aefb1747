// One-byte slices of a few elements of one vector: rounded residuals (`quantised`), digits of a grid,
// residues. `offset` is the index of the first element in each slice.
#pragma once

#include <type_traits>
#include <utility>

#include "engines/cuda/common/any_element.cuh"
#include "engines/cuda/split/scaling.hpp"

namespace kintsugi::core::cuda {

// Returns a word of the low bytes of four integers.
__device__ inline std::uint32_t low_bytes(const std::uint32_t (&integers)[4]) {
  const std::uint32_t low = __byte_perm(integers[0], integers[1], 0x0040);
  const std::uint32_t high = __byte_perm(integers[2], integers[3], 0x0040);
  return __byte_perm(low, high, 0x5410);
}

// Stores the low byte of each integer. Four of these bytes are stored as one word.
template <int count>
__device__ void store_bytes(std::byte* target, const std::uint32_t (&integers)[count]) {
  std::uint32_t words[count / 4];
#pragma unroll
  for (int i = 0; i < count / 4; ++i) {
    const std::uint32_t low = __byte_perm(integers[4 * i], integers[4 * i + 1], 0x0040);
    const std::uint32_t high = __byte_perm(integers[4 * i + 2], integers[4 * i + 3], 0x0040);
    words[i] = __byte_perm(low, high, 0x5410);
  }
  store_words(target, words);
}

// Writes slices of rounded residuals. Nothing saturates, because |x 2^scale| < 127, and a residual is at most
// 1/2 before it is scaled. FP32 may drop bits of x; they are far below the last slice.
template <int count>
__device__ void write_quantised(const SplitTask& task, const Scaling& scaling, const float (&x)[count],
                                std::int64_t offset) {
  const float residual_factor = static_cast<float>(power_of_two(task.rule.residual_exponent));
  const auto first_factor = static_cast<float>(scaling.first);
  const auto second_factor = static_cast<float>(scaling.second);
  float residual[count];
#pragma unroll
  for (int i = 0; i < count; ++i) residual[i] = x[i] * first_factor * second_factor;
  std::byte* target = slices_of(task) + offset;
  for (int s = 0; s < task.rule.slices; ++s) {
    constexpr float units = 0x1.8p23F;  // x + units has the integer nearest to x in its low bits
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float rounded = residual[i] + units;
      integers[i] = __float_as_uint(rounded);
      residual[i] = (residual[i] - (rounded - units)) * residual_factor;
    }
    store_bytes(target, integers);
    target += task.slice_stride;
  }
}

// Sets digits[i] to the digits of the integer nearest to the scaled x[i].
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], ByteDigits (&digits)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(x[i]) * scaling.first * scaling.second;
    digits[i] = balanced_digits(__double2ll_rn(scaled));
  }
}

// Writes slices of digits. The last slice is written first, since it has the least significant digits.
template <class Source, int count>
__device__ void write_digits(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                             std::int64_t offset) {
  ByteDigits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + offset + (task.rule.slices - 1) * task.slice_stride;
  for (int s = task.rule.slices - 1; s >= 0; --s) {
    std::uint32_t integers[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      integers[i] = digits[i].low;
      digits[i].low = __funnelshift_r(digits[i].low, digits[i].high, 8);
      digits[i].high >>= 8;
    }
    store_bytes(target, integers);
    target -= task.slice_stride;
  }
}

// Adds the elements' rounding errors to `errors`.
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], WideByteDigits (&digits)[count],
                          double& errors) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    digits[i] = nearest_digits(static_cast<double>(x[i]) * scaling.first * scaling.second, errors);
}
template <class Source, int count>
__device__ void to_digits(const Scaling& scaling, const Source (&x)[count], WideByteDigits (&digits)[count]) {
  double errors = 0;
  to_digits(scaling, x, digits, errors);
}

// Constants of modulus t for integers with digits of type Digits. With `known_modulus` they are known when
// the instructions are compiled.
template <class Digits>
__device__ auto modulus_of_digits(int t) {
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    return modulus_table.float_moduli[t];
  } else {
    return modulus_table.wide_moduli[t];
  }
}
template <class Digits, int t>
constexpr auto known_modulus() {
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    return float_modulus(byte_modulus(moduli[t]));
  } else {
    return wide_float_modulus(byte_modulus(moduli[t]));
  }
}

// Writes slice t of residues. Its constants become part of the instructions if `modulus` is known when they
// are compiled.
template <class Modulus, class Digits, int count>
__device__ __forceinline__ void write_residue(const Modulus& modulus, const Digits (&digits)[count],
                                              std::byte* target) {
  std::uint32_t integers[count];
#pragma unroll
  for (int i = 0; i < count; ++i) integers[i] = byte_residue(digits[i], modulus);
  store_bytes(target, integers);
}

// Number of slices whose constants are part of the instructions: all that FP64 results need.
template <class Digits>
inline constexpr int unrolled_residues = std::is_same_v<Digits, ByteDigits> ? 16 : 19;

// Writes the slices of the first `slices` of these moduli.
template <int... moduli_index, class Digits, int count>
__device__ __forceinline__ void write_first_residues(std::integer_sequence<int, moduli_index...>, int slices,
                                                     std::int64_t slice_stride, const Digits (&digits)[count],
                                                     std::byte* target) {
  const auto write = [&]<int t>(std::integral_constant<int, t>) {
    if (t >= slices) return false;
    constexpr auto modulus = known_modulus<Digits, t>();
    write_residue(modulus, digits, target);
    target += slice_stride;
    return true;
  };
  (write(std::integral_constant<int, moduli_index>{}) && ...);
}

// Writes slices of residues, which are computed from the digits of the elements' integers.
template <class Digits, class Source, int count>
__device__ void write_residues(const SplitTask& task, const Scaling& scaling, const Source (&x)[count],
                               std::int64_t offset) {
  constexpr int unrolled = unrolled_residues<Digits>;
  Digits digits[count];
  to_digits(scaling, x, digits);
  std::byte* target = slices_of(task) + offset;
  write_first_residues(std::make_integer_sequence<int, unrolled>{}, task.rule.slices, task.slice_stride,
                       digits, target);
  target += unrolled * task.slice_stride;
#pragma unroll 1
  for (int t = unrolled; t < task.rule.slices; ++t, target += task.slice_stride)
    write_residue(modulus_of_digits<Digits>(t), digits, target);
}

}  // namespace kintsugi::core::cuda
