// Residues of integers of twelve digits by tensor cores (mma.sync): each lane of a warp has eight elements of
// a vector, and gets their residues.
//
// One instruction multiplies the digits of two elements of each lane by the weights of two moduli. Lane 4 g +
// j holds the j-th four of 16 bytes of rows g and g + 8 of the first factor, and again of the next 16 bytes:
// its two elements' digits 0 ... 3 and 4 ... 7. Columns 2 j and 2 j + 1 of the second factor have weights in
// the bytes of lane j, and zeros in those of the other lanes. Lane 4 g + j gets these two columns of rows g
// and g + 8: the sums of its own elements. So no lane needs another lane's digits or sums. A second
// instruction adds the products of digits 8 ... 11.
#pragma once

#include "engines/cuda/ptx/integer_mma.cuh"
#include "engines/cuda/split/elements/byte_elements.cuh"
#include "engines/cuda/split/streaming/streaming.hpp"

namespace kintsugi::core::cuda {

inline constexpr int elements_of_lane = 8;

// Weights of pairs of moduli as the lanes of a warp hold them, in shared memory.
class WeightsOfPairs {
 public:
  // All threads of the thread block must call this together, and wait for each other before they read.
  __device__ void fill() {
    for (int i = static_cast<int>(threadIdx.x); i < pairs * 32; i += static_cast<int>(blockDim.x)) {
      const int lane = i % 32;
      const int column = lane / 4;
      const WideFloatModulus& modulus = modulus_table.wide_moduli[i / 32 * 2 + column % 2];
      words_[i / 32][lane] =
          column / 2 == lane % 4 ? uint4{modulus.eight.low, modulus.eight.high, modulus.top, 0} : uint4{};
    }
  }
  // Weights for digits 0 ... 3, 4 ... 7 and 8 ... 11. Lane 4 n + j holds those in column n for the bytes of
  // lane j.
  __device__ uint4 of_lane(int pair) const { return words_[pair][threadIdx.x % 32]; }

 private:
  static constexpr int pairs = streaming_moduli / 2;
  uint4 words_[pairs][32];
};

// Adds to `sums` the product of 16 rows and 8 columns over 16 inner indices; elements are signed bytes.
__device__ inline void add_signed_bytes(std::int32_t (&sums)[4], const std::uint32_t (&a)[2],
                                        std::uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// Stores the low byte of each integer if the condition holds, without a branch: after one the compiler would
// not let products of the next moduli begin early.
__device__ __forceinline__ void store_bytes_if(bool condition, std::byte* target,
                                               const std::uint32_t (&integers)[elements_of_lane]) {
  const std::uint32_t low = low_bytes({integers[0], integers[1], integers[2], integers[3]});
  const std::uint32_t high = low_bytes({integers[4], integers[5], integers[6], integers[7]});
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v2.b32 [%1], {%2, %3};\n}" ::"r"(
                   condition ? 1 : 0),
               "l"(target), "r"(low), "r"(high));
}

// Writes the lane's residues modulo moduli t and t + 1, those modulo t + 1 only if `writes_second` is true.
template <int t>
__device__ __forceinline__ void write_residue_pair(const WideByteDigits (&digits)[elements_of_lane],
                                                   const uint4& weights, std::byte* target,
                                                   std::int64_t slice_stride, bool writes_first,
                                                   bool writes_second) {
  constexpr FloatModulus pair[2] = {known_modulus<WideByteDigits, t>().eight,
                                    known_modulus<WideByteDigits, t + 1>().eight};
  constexpr std::int32_t start[4] = {pair[0].start, pair[1].start, pair[0].start, pair[1].start};
  std::uint32_t residues[2][elements_of_lane];
#pragma unroll
  for (int i = 0; i < elements_of_lane; i += 2) {
    const WideByteDigits& first = digits[i];
    const WideByteDigits& second = digits[i + 1];
    std::int32_t sums[4];  // of the first element for both moduli, then of the second
    mma_signed_bytes(sums, {first.low.low, second.low.low, first.low.high, second.low.high},
                     {weights.x, weights.y}, start);
    add_signed_bytes(sums, {first.top, second.top}, weights.z);
#pragma unroll
    for (int j = 0; j < 4; ++j) residues[j % 2][i + j / 2] = residue_by_float(sums[j], pair[j % 2]);
  }
  store_bytes_if(writes_first, target, residues[0]);
  store_bytes_if(writes_second, target + slice_stride, residues[1]);
}

// Writes the slices of the lane's elements from `target` on, if `writes` is true. All lanes of the warp must
// call it together. Instructions for `pairs` pairs of moduli have their constants; there are at most so many.
template <int... pairs>
__device__ __forceinline__ void write_residue_pairs(std::integer_sequence<int, pairs...>,
                                                    const WideByteDigits (&digits)[elements_of_lane],
                                                    const WeightsOfPairs& weights, int slices,
                                                    std::int64_t slice_stride, std::byte* target,
                                                    bool writes) {
  const auto write = [&]<int pair>(std::integral_constant<int, pair>) {
    constexpr int t = 2 * pair;
    if (t >= slices) return false;
    write_residue_pair<t>(digits, weights.of_lane(pair), target, slice_stride, writes,
                          writes && t + 1 < slices);
    target += 2 * slice_stride;
    return true;
  };
  (write(std::integral_constant<int, pairs>{}) && ...);
}

}  // namespace kintsugi::core::cuda
