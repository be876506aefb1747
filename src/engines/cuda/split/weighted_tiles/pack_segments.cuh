// Segments of four neighboring elements of a vector, as words of four bytes.
#pragma once

#include "arith/tile_arithmetic.hpp"

namespace kintsugi::core::cuda {

// Bytes 0 and 1 are the signs of x and y, eight times each.
__device__ inline std::uint32_t signs_of(float x, float y) {
  std::uint32_t signs;
  asm("prmt.b32 %0, %1, %2, 0x00fb;" : "=r"(signs) : "r"(__float_as_uint(x)), "r"(__float_as_uint(y)));
  return signs;
}

// Bytes that are 0xff where the element is negative, else 0.
__device__ inline std::uint32_t sign_bytes(const float (&elements)[4]) {
  return __byte_perm(signs_of(elements[0], elements[1]), signs_of(elements[2], elements[3]), 0x5410);
}

// Elements of tiles with smaller exponents are multiplied by 2^64 first, so that the factor to their integers
// is a normal number.
inline constexpr int least_direct_exponent = -90;

// Factor from elements of a tile with this exponent to their integers. A negative one, after a change of its
// sign, is the factor of elements that are multiplied by 2^64 first.
__device__ inline float segment_factor(int exponent, int segments) {
  const int shift = segments * segment_bits - 1 - exponent;
  if (exponent >= least_direct_exponent) return __int_as_float((shift + 127) << 23);
  return -__int_as_float((shift - 64 + 127) << 23);
}

// Words of the segments of four elements, the leading segment first.
template <int Segments>
struct SegmentWords {
  std::uint32_t words[Segments];

  // `factor` is segment_factor() of the tile, or 0 for a tile whose segments are zero.
  __device__ __forceinline__ SegmentWords(float (&magnitudes)[4], std::uint32_t signs, float factor) {
    if (factor < 0.0F) {
      factor = -factor;
#pragma unroll
      for (int e = 0; e < 4; ++e) magnitudes[e] *= 0x1p64F;
    }
    std::uint32_t integers[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) integers[e] = rounded(magnitudes[e], factor);
    gather(integers);
#pragma unroll
    for (int s = 0; s < Segments; ++s)  // a byte is at most 127, so that no carry leaves it
      words[s] = (((words[s] ^ signs) & 0x7f7f7f7fU) + (signs & 0x01010101U)) ^ (signs & 0x80808080U);
  }

 private:
  // Integer that tile_integer() gives, rounded once to nearest, ties to even. Bits from 24 on are arbitrary
  // if there are fewer than four segments: up to 21 bits are rounded by the addition of 2^23.
  __device__ __forceinline__ static std::uint32_t rounded(float magnitude, float factor) {
    if constexpr (Segments < 4) {
      return __float_as_uint(__fmaf_rn(magnitude, factor, 0x1p23F));
    } else {
      return __float2uint_rn(magnitude * factor);
    }
  }

  // Gathers the bytes of each segment. Segments are shifted to the borders of bytes two elements at a time,
  // in the halves of a word. Bit 7 of a byte is arbitrary.
  __device__ __forceinline__ void gather(const std::uint32_t (&integers)[4]) {
    const auto halves = [&](int e, unsigned bytes) {
      return __byte_perm(integers[e], integers[e + 1], bytes);
    };
    const std::uint32_t low[2]{halves(0, 0x5410), halves(2, 0x5410)};  // bits 0 ... 15
    words[Segments - 1] = __byte_perm(low[0], low[1], 0x6420);
    words[Segments - 2] = __byte_perm(low[0] << 1, low[1] << 1, 0x7531);
    if constexpr (Segments > 2) {
      const std::uint32_t middle[2]{halves(0, 0x6521), halves(2, 0x6521)};  // bits 8 ... 23
      words[Segments - 3] = __byte_perm(middle[0] >> 6, middle[1] >> 6, 0x6420);
    }
    if constexpr (Segments > 3) {
      const std::uint32_t high[2]{halves(0, 0x7632), halves(2, 0x7632)};  // bits 16 ... 31
      words[0] = __byte_perm(high[0] >> 5, high[1] >> 5, 0x6420);
    }
  }
};

}  // namespace kintsugi::core::cuda
