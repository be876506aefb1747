// The half-precision program of tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4): digits of 8 bits
// in fp16 fragments of mma.sync.
#pragma once

#include "arith/range.hpp"
#include "arith/tile_arithmetic.hpp"
#include "engines/cuda/ptx/mma.cuh"

namespace kintsugi::core::cuda {

// Inner indices of a vector that one thread decodes: four threads share a piece, 32 inner indices with one
// exponent. The instructions may multiply them in any order that is the same for A and B, since sums over a
// piece are exact.
inline constexpr int half_elements = half_piece / 4;

// A digit of 8 bits is the fp16 number digit * 2^-24, a subnormal one: its bits are the digit's. So sums of
// products of two digits are in units of 2^-48.
inline constexpr float units_of_digit_sums = 0x1p48F;

// Shift of 64 bits by any number.
__device__ inline std::uint64_t shift_right(std::uint64_t bits, int shift) {
  std::uint64_t result;
  asm("shr.b64 %0, %1, %2;" : "=l"(result) : "l"(bits), "r"(shift));
  return result;
}

// The integers of a vector's elements (half_integer() of arith/tile_arithmetic.hpp) in FP32: elements are
// scaled so that the piece's largest exponent becomes 7, or less where 2^126 does not suffice for that.
class HalfScale {
 public:
  __device__ explicit HalfScale(float largest) {
    constexpr int leading_bits = 7;
    constexpr int max_shift = 126;
    const int exponent = exponent_of(largest);
    const int shift = min(leading_bits - exponent, max_shift);
    factor_ = __int_as_float((shift + 127) << 23);
    const int scaled_exponent = exponent + shift;
    rounding_limit_ = __int_as_float((scaled_exponent - 24 + 127) << 23);
    biased_exponent_ = scaled_exponent + 127;
  }

  // Returns half_integer(x, exponent) * 2^8, with the sign of x as bit 63. Elements that have bits below the
  // integer's unit lie below rounding_limit_, where the unit is that of FP32's additions.
  __device__ std::uint64_t integer(float x) const {
    float scaled = __fmul_rn(fabsf(x), factor_);
    if (scaled < rounding_limit_) scaled = __fadd_rn(scaled, rounding_limit_) - rounding_limit_;
    const std::uint32_t bits = __float_as_uint(scaled);
    const std::uint32_t significand = (bits & 0x7fffffU) | 0x800000U;
    const int shift = biased_exponent_ - static_cast<int>(bits >> 23);  // more than 64 for zero
    const std::uint64_t sign = __float_as_uint(x) & 0x80000000U;
    return shift_right(std::uint64_t{significand} << 32, shift) | sign << 32;
  }

 private:
  float factor_;
  float rounding_limit_;
  int biased_exponent_;
};

// Words of two elements' digits 0 to 5, from HalfScale::integer() of both: the high byte of each half of a
// word has the sign, the low byte the digit.
struct Fp16Pair {
  std::uint32_t words[half_digits];

  __device__ Fp16Pair(std::uint64_t x, std::uint64_t y) {
    const auto high_x = static_cast<std::uint32_t>(x >> 32);  // sign, digits 0, 1 and 2
    const auto high_y = static_cast<std::uint32_t>(y >> 32);
    const auto low_x = static_cast<std::uint32_t>(x);  // digits 3, 4 and 5, and zeros
    const auto low_y = static_cast<std::uint32_t>(y);
    const std::uint32_t signs = __byte_perm(high_x, high_y, 0x0073);
    const std::uint32_t low = __byte_perm(low_x, low_y, 0x7632);
    words[0] = __byte_perm(high_x, high_y, 0x7632);
    words[1] = __byte_perm(high_x, high_y, 0x7531);
    words[2] = __byte_perm(high_x, high_y, 0x7430);
    words[3] = __byte_perm(low, signs, 0x5341);
    words[4] = __byte_perm(low, signs, 0x5240);
    words[5] = __byte_perm(__byte_perm(low_x, low_y, 0x0051), signs, 0x5140);
  }
};

// Scale of a vector's elements, and its weight: 2^q relative to the panel's exponent. The vector's four
// threads, neighbors in a warp, find it together.
struct HalfVectorScale {
  float weight;
  HalfScale scale;

  __device__ HalfVectorScale(const float (&elements)[half_elements], int panel_exponent)
      : HalfVectorScale(largest_of(elements), panel_exponent) {}

 private:
  __device__ HalfVectorScale(float largest, int panel_exponent)
      : weight(largest == 0.0F ? 0.0F : tile_weight(exponent_of(largest) - panel_exponent)), scale(largest) {}

  __device__ static float largest_of(const float (&elements)[half_elements]) {
    float largest = 0;
#pragma unroll
    for (int e = 0; e < half_elements; ++e) largest = fmaxf(largest, fabsf(elements[e]));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    return fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
  }
};

// A thread's registers of A: digits of two rows, for the first or the second of a piece's two instructions of
// 16 inner indices. NaN and infinities give any digits, since no element of C of such a vector uses sums.
struct Fp16Rows {
  std::uint32_t digits[half_digits][4];

  __device__ Fp16Rows(const float (&low)[half_elements], const float (&high)[half_elements],
                      const HalfScale& low_scale, const HalfScale& high_scale, int instruction) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int e = 4 * instruction + 2 * pair;
      const Fp16Pair of_low(low_scale.integer(low[e]), low_scale.integer(low[e + 1]));
      const Fp16Pair of_high(high_scale.integer(high[e]), high_scale.integer(high[e + 1]));
#pragma unroll
      for (int s = 0; s < half_digits; ++s) {
        digits[s][2 * pair] = of_low.words[s];
        digits[s][2 * pair + 1] = of_high.words[s];
      }
    }
  }
};

// A thread's registers of B: digits of one column, for one of those two instructions.
struct Fp16Columns {
  std::uint32_t digits[half_digits][2];

  __device__ Fp16Columns(const float (&elements)[half_elements], const HalfScale& scale, int instruction) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int e = 4 * instruction + 2 * pair;
      const Fp16Pair of_pair(scale.integer(elements[e]), scale.integer(elements[e + 1]));
#pragma unroll
      for (int s = 0; s < half_digits; ++s) digits[s][pair] = of_pair.words[s];
    }
  }
};

// A thread's sums of products of digits of 16 rows and 8 columns in one piece. The products of digits s and
// w - s, for all s, have one sum.
class DigitSums {
 public:
  // Successive instructions have different sums, so that none waits for the one before.
  __device__ void add(const Fp16Rows& rows, const Fp16Columns& columns) {
#pragma unroll
    for (int s = 0; s < half_digits; ++s) {
#pragma unroll
      for (int t = 0; s + t < half_digits; ++t) mma_fp16(sums_[s + t], rows.digits[s], columns.digits[t]);
    }
  }

  // Adds the piece to the lane's sums, which are those of FailingSums: with w descending, as half_value()
  // (arith/tile_arithmetic.hpp) does. A thread has the weights of its rows and of its column in registers of
  // mma.sync; its sums are of two other columns.
  __device__ void add_to(float (&sums)[4][32], float low_weight, float high_weight,
                         float column_weight) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float row_weights[2]{low_weight, high_weight};
    float column_weights[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) column_weights[e] = __shfl_sync(~0U, column_weight, (lane % 4 * 2 + e) * 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float value = sums_[half_digits - 1][i];
#pragma unroll
      for (int w = half_digits - 2; w >= 0; --w) value = __fmaf_rn(value, 0x1p-8F, sums_[w][i]);
      sums[i][lane] = __fmaf_rn(__fmul_rn(value, units_of_digit_sums),
                                __fmul_rn(row_weights[i / 2], column_weights[i % 2]), sums[i][lane]);
    }
  }

 private:
  float sums_[half_digits][4] = {};
};

}  // namespace kintsugi::core::cuda
