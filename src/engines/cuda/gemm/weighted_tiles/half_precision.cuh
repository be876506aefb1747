// The half-precision program, for tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4). It makes digits
// of 8 bits from the original elements and multiplies them as fp16 numbers by mma.sync. One warp computes a
// fragment of 16 rows and 8 columns over all tiles that fail in its rows or columns. Its threads have the
// sums that they have in a fragment of wgmma.
#pragma once

#include "arith/exponent.hpp"
#include "arith/tile_arithmetic.hpp"
#include "base/view.hpp"
#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/ptx/mma.cuh"

namespace kintsugi::core::cuda {

// Inner indices of a piece that one thread holds. A piece is 32 inner indices of a vector, which have one
// exponent, and four threads share it. The instructions may multiply inner indices in any order that is the
// same for A and B, since sums over a piece are exact.
inline constexpr int half_elements = half_piece / 4;

// A thread's elements of a piece: integers of 48 bits with signs, and the weight that the piece's exponent
// gives.
struct Fp16Vector {
  std::uint64_t integers[half_elements];
  std::uint32_t negative = 0;  // bit e: element e
  float weight;

  // Takes elements begin ... begin + half_elements - 1 of a vector, with zeros from `end` on; NaN and
  // infinities count as zeros. The four threads of a piece call it together.
  __device__ Fp16Vector(const float* vector, std::int64_t stride, std::int64_t begin, std::int64_t end,
                        int panel_exponent) {
    float elements[half_elements];
    int exponent = TileExponent::none;
#pragma unroll
    for (int e = 0; e < half_elements; ++e) {
      const float x = begin + e < end ? vector[(begin + e) * stride] : 0.0F;
      elements[e] = x - x == 0.0F ? x : 0.0F;
      if (elements[e] != 0.0F) exponent = max(exponent, exponent_of(elements[e]));
    }
    exponent = max(exponent, __shfl_xor_sync(~0U, exponent, 1));
    exponent = max(exponent, __shfl_xor_sync(~0U, exponent, 2));
    weight = exponent == TileExponent::none ? 0.0F : tile_weight(exponent - panel_exponent);
#pragma unroll
    for (int e = 0; e < half_elements; ++e) {
      integers[e] = half_integer(elements[e], exponent);
      negative |= elements[e] < 0 ? 1U << e : 0U;
    }
  }

  // Digit `digit` of elements 2 pair and 2 pair + 1 in fp16, with the elements' signs. A digit d is converted
  // by the bits 0x6400 + d, which are those of 1024 + d for 0 <= d < 1024, and a subtraction of 1024.
  __device__ std::uint32_t digits(int digit, int pair) const {
    const int shift = half_digit_bits * (half_digits - 1 - digit);
    const auto low = static_cast<std::uint32_t>(integers[2 * pair] >> shift) & 0xffU;
    const auto high = static_cast<std::uint32_t>(integers[2 * pair + 1] >> shift) & 0xffU;
    std::uint32_t result;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(0x64006400U | low | high << 16), "r"(0x64006400U));
    return result ^ ((negative >> (2 * pair) & 1U) << 15 | (negative >> (2 * pair + 1) & 1U) << 31);
  }
};

// Digits of a piece of the warp's 16 rows. A thread has rows g and g + 8 with g = lane / 4. For each digit
// there are the registers of A's fragments for two instructions, of 16 inner indices each.
struct Fp16Rows {
  std::uint32_t digits[half_digits][2][4];
  float weights[2];

  // Sets the digits of row g (r = 0) or g + 8 (r = 1).
  __device__ void load(int r, const Fp16Vector& row) {
    weights[r] = row.weight;
#pragma unroll
    for (int s = 0; s < half_digits; ++s) {
#pragma unroll
      for (int pair = 0; pair < half_elements / 2; ++pair)
        digits[s][pair / 2][pair % 2 * 2 + r] = row.digits(s, pair);
    }
  }
};

// Digits of a piece of the warp's 8 columns. A thread has column lane / 4, but `weights` are those of the two
// columns of its sums.
struct Fp16Columns {
  std::uint32_t digits[half_digits][2][2];
  float weights[2];

  __device__ explicit Fp16Columns(const Fp16Vector& column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int e = 0; e < 2; ++e) weights[e] = __shfl_sync(~0U, column.weight, (lane % 4 * 2 + e) * 4);
#pragma unroll
    for (int s = 0; s < half_digits; ++s) {
#pragma unroll
      for (int pair = 0; pair < half_elements / 2; ++pair)
        digits[s][pair / 2][pair % 2] = column.digits(s, pair);
    }
  }
};

// Adds the products of one piece to the sums of a fragment. The products of digits s and w - s for all s are
// added first. These sums are added with w descending, as in half_value() (arith/tile_arithmetic.hpp).
__device__ inline void add_half_piece(float (&sums)[4], const Fp16Rows& rows, const Fp16Columns& columns) {
  float value[4];
#pragma unroll
  for (int w = half_digits - 1; w >= 0; --w) {
    float digit_sums[4] = {};
#pragma unroll
    for (int s = 0; s <= w; ++s) {
#pragma unroll
      for (int step = 0; step < 2; ++step)
        mma_fp16(digit_sums, rows.digits[s][step], columns.digits[w - s][step]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      value[i] = w == half_digits - 1 ? digit_sums[i] : __fmaf_rn(value[i], 0x1p-8F, digit_sums[i]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    sums[i] = __fmaf_rn(value[i], __fmul_rn(rows.weights[i / 2], columns.weights[i % 2]), sums[i]);
}

// One panel of an operand: vectors first ... first + count - 1, and the weights of their tiles.
struct Fp16Panel {
  MatrixView<const float> elements;  // vectors x k
  std::int64_t first;
  int count;
  const int* scales;     // scales of the panel's vectors, in shared memory
  const float* weights;  // weights of the panel's tiles, `stride` apart; -0 where the tile fails
  std::int64_t stride;

  __device__ bool fails(int tile) const {
    return __float_as_uint(__ldcg(weights + tile * stride)) >> 31 != 0;
  }

  // Returns the thread's elements of vector v of the panel in the piece that begins at inner index `piece`.
  // Beyond the last vector the elements are zeros.
  __device__ Fp16Vector vector(int v, std::int64_t piece) const {
    const bool exists = v < count;
    const std::int64_t begin = piece + threadIdx.x % 4 * half_elements;
    // A vector with NaN or infinities has no scale in `scales`, and its elements of C do not use the sums.
    const int scale = exists && scales[v] != special_scale ? scales[v] : 0;
    return Fp16Vector(&elements(first + (exists ? v : 0), 0), elements.column_stride, begin,
                      exists ? elements.columns : 0, -scale);
  }
};

// Adds all pieces of the tiles that fail in the rows' panel `a` or in the columns' panel `b`, in ascending k.
// `depth`: inner indices of a tile. All threads of a warp call it together.
__device__ inline void add_half_fragment(float (&sums)[4], const Fp16Panel& a, const Fp16Panel& b,
                                         int depth) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto tiles = static_cast<int>((a.elements.columns + depth - 1) / depth);
#pragma unroll 1
  for (int first = 0; first < tiles; first += 32) {
    const int tile = first + lane;
    unsigned failing = __ballot_sync(~0U, tile < tiles && (a.fails(tile) || b.fails(tile)) ? 1 : 0);
#pragma unroll 1
    for (; failing != 0; failing &= failing - 1) {
      const std::int64_t begin = std::int64_t{first + __ffs(static_cast<int>(failing)) - 1} * depth;
      const std::int64_t end = min(begin + depth, a.elements.columns);
#pragma unroll 1
      for (std::int64_t piece = begin; piece < end; piece += half_piece) {
        Fp16Rows rows;
        rows.load(0, a.vector(lane / 4, piece));
        rows.load(1, a.vector(lane / 4 + 8, piece));
        const Fp16Columns columns(b.vector(lane / 4, piece));
        add_half_piece(sums, rows, columns);
      }
    }
  }
}

}  // namespace kintsugi::core::cuda
