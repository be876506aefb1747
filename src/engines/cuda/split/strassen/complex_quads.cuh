// Residues of the seven operands of one step of Strassen's algorithm (arith/residue/strassen.hpp), of
// complex elements. Pairs, groups and quads are those of quads.cuh.
#pragma once

#include <array>

#include "engines/cuda/split/elements/complex_elements.hpp"
#include "engines/cuda/split/strassen/quads.cuh"

namespace kintsugi::core::cuda::strassen {

// Digits of a pair's integers in a group: those of the first vector, then those of the second.
struct ComplexPairDigits {
  ByteDigits re[2][group_length];
  ByteDigits im[2][group_length];
};

// Sums of the digits' products for the slices of one element: two if the modulus has a root of -1, else
// three. Each sum begins with `start`.
template <bool has_root>
__device__ __forceinline__ auto slice_sums(ByteDigits re, ByteDigits im, const ComplexFloatModulus& modulus,
                                           std::int32_t start) {
  const auto a = static_cast<std::uint32_t>(sum_of_bytes(re, modulus.real, start));
  const auto b = static_cast<std::uint32_t>(weighted_sum(im, modulus.low, modulus.high));
  if constexpr (has_root) {
    return std::array<std::uint32_t, 2>{a + b, a - b};
  } else {
    return std::array<std::uint32_t, 3>{a, b + static_cast<std::uint32_t>(start), a + b};
  }
}

// Puts the low byte of `integer` into byte i of `word`, whose bytes from i on have no value yet.
template <int i>
__device__ __forceinline__ std::uint32_t with_byte(std::uint32_t word, std::uint32_t integer) {
  constexpr std::uint32_t selectors[strassen_group] = {0, 0x0040, 0x0410, 0x4210};
  return i == 0 ? integer : __byte_perm(word, integer, selectors[i]);
}

// Bytes of one modulus at four consecutive indices of a half vector, for each operand and slice.
template <bool has_root>
using OperandWords = std::uint32_t[strassen_products][has_root ? 2 : 3];

// Adds the residues of quad i to the words. Sums of digit products are combined before they are reduced. Each
// combination must contain FloatModulus::start once. `starts` tells how often it does if three of a left
// operand's elements and all of a right operand's begin with it.
template <bool right, bool has_root, int i>
__device__ __forceinline__ void add_quad(const ComplexFloatModulus& modulus, const ComplexPairDigits& digits,
                                         OperandWords<has_root>& words) {
  constexpr std::uint32_t across_starts = right ? 1 : 0;
  const auto starts = operands_of<right, std::uint32_t>(1, 1, across_starts, 1);
  const auto start = modulus.real.start;
  const auto sums_of = [&](int v, int p, std::int32_t begin) {
    return slice_sums<has_root>(digits.re[v][p], digits.im[v][p], modulus, begin);
  };
  const auto first = sums_of(0, i, start);
  const auto along = sums_of(0, i + strassen_group, start);
  const auto across = sums_of(1, i, across_starts == 1 ? start : 0);
  const auto last = sums_of(1, i + strassen_group, start);
#pragma unroll
  for (int s = 0; s < static_cast<int>(first.size()); ++s) {
    const auto sums = operands_of<right>(first[s], along[s], across[s], last[s]);
#pragma unroll
    for (int q = 0; q < strassen_products; ++q) {
      const std::uint32_t sum = sums[q] + (1 - starts[q]) * static_cast<std::uint32_t>(start);
      words[q][s] = with_byte<i>(words[q][s], residue_by_float(static_cast<std::int32_t>(sum), modulus.real));
    }
  }
}

// Writes the slices of one modulus, four bytes each.
template <bool right, bool has_root>
__device__ __forceinline__ void write_complex_modulus(const ComplexFloatModulus& modulus,
                                                      const ComplexPairDigits& digits,
                                                      std::int64_t slice_stride, std::int64_t operand_stride,
                                                      std::byte* target) {
  OperandWords<has_root> words = {};
  add_quad<right, has_root, 0>(modulus, digits, words);
  add_quad<right, has_root, 1>(modulus, digits, words);
  add_quad<right, has_root, 2>(modulus, digits, words);
  add_quad<right, has_root, 3>(modulus, digits, words);
#pragma unroll
  for (int q = 0; q < strassen_products; ++q, target += operand_stride) {
    std::byte* slice = target;
    for (const std::uint32_t word : words[q]) {
      *reinterpret_cast<std::uint32_t*>(slice) = word;
      slice += slice_stride;
    }
  }
}

}  // namespace kintsugi::core::cuda::strassen
