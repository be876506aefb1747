// The half-precision program of tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4): digits of 8 bits
// in fp16 fragments of mma.sync.
#pragma once

#include "arith/exponent.hpp"
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

// The integers of a vector's elements (half_integer() of arith/tile_arithmetic.hpp) in three parts of 16
// bits. They are computed by FP32 operations: an SM issues twice as many of them as of integer operations.
class HalfScale {
 public:
  __device__ explicit HalfScale(float largest) {
    constexpr int leading_exponent = 15;  // of the vector's largest element, scaled
    constexpr int max_shift = 127;
    const int shift = leading_exponent - exponent_of(largest);
    const int first_shift = min(shift, max_shift);
    first_factor_ = __int_as_float((first_shift + 127) << 23);
    second_factor_ = __int_as_float((shift - first_shift + 127) << 23);
  }

  // The low 16 bits of each part are two digits. Adding 2^23 makes the part's unit that of its last bit, and
  // all differences are exact. The last part is rounded and can become 2^16. Fp16Pair then increases the part
  // before it, which is below 2^8.
  struct Parts {
    std::uint32_t high;
    std::uint32_t middle;
    std::uint32_t low;
  };
  __device__ Parts parts(float x) const {
    constexpr float unit = 0x1p23F;
    constexpr float part = 0x1p16F;
    const float scaled = __fmul_rn(fabsf(x), first_factor_);
    const float high = __fmaf_rz(scaled, second_factor_, unit);
    const float after_high = __fmaf_rn(scaled, second_factor_, -__fsub_rn(high, unit));
    const float middle = __fmaf_rz(after_high, part, unit);
    const float after_middle = __fmaf_rn(after_high, part, -__fsub_rn(middle, unit));
    const float low = __fmaf_rn(after_middle, part, unit);
    return {__float_as_uint(high), __float_as_uint(middle), __float_as_uint(low)};
  }

 private:
  float first_factor_;   // both together scale the largest exponent to leading_exponent;
  float second_factor_;  // more than 2^127 is no FP32 number
};

// Words of two elements' digits 0 to 5: the high byte of each half of a word has the sign, the low byte the
// digit.
struct Fp16Pair {
  std::uint32_t words[half_digits];

  __device__ Fp16Pair(const HalfScale& scale, float x, float y) {
    const HalfScale::Parts parts_x = scale.parts(x);
    const HalfScale::Parts parts_y = scale.parts(y);
    const std::uint32_t signs = __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7030) & 0x80008000U;
    const std::uint32_t carries = __byte_perm(parts_x.low, parts_y.low, 0x7632) & 0x00010001U;
    const std::uint32_t pairs[half_digits / 2]{__byte_perm(parts_x.high, parts_y.high, 0x5410),
                                               __byte_perm(parts_x.middle, parts_y.middle, 0x5410) + carries,
                                               __byte_perm(parts_x.low, parts_y.low, 0x5410)};
#pragma unroll
    for (int part = 0; part < half_digits / 2; ++part) {
      words[2 * part] = __byte_perm(pairs[part], signs, 0x7351);
      words[2 * part + 1] = __byte_perm(pairs[part], signs, 0x7250);
    }
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
      const Fp16Pair of_low(low_scale, low[e], low[e + 1]);
      const Fp16Pair of_high(high_scale, high[e], high[e + 1]);
#pragma unroll
      for (int s = 0; s < half_digits; ++s) {
        digits[s][2 * pair] = of_low.words[s];
        digits[s][2 * pair + 1] = of_high.words[s];
      }
    }
  }

  // Shared memory holds the digits of each lane.
  __device__ explicit Fp16Rows(const uint4 (&stored)[half_digits][32]) {
#pragma unroll
    for (int s = 0; s < half_digits; ++s) {
      const uint4 four = stored[s][threadIdx.x % 32];
      digits[s][0] = four.x;
      digits[s][1] = four.y;
      digits[s][2] = four.z;
      digits[s][3] = four.w;
    }
  }
  __device__ void store(uint4 (&stored)[half_digits][32]) const {
#pragma unroll
    for (int s = 0; s < half_digits; ++s)
      stored[s][threadIdx.x % 32] = {digits[s][0], digits[s][1], digits[s][2], digits[s][3]};
  }
};

// A thread's registers of B: digits of one column, for one of those two instructions.
struct Fp16Columns {
  std::uint32_t digits[half_digits][2];

  __device__ Fp16Columns(const float (&elements)[half_elements], const HalfScale& scale, int instruction) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int e = 4 * instruction + 2 * pair;
      const Fp16Pair of_pair(scale, elements[e], elements[e + 1]);
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
