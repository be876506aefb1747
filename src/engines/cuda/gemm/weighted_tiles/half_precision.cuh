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

// Digits of a piece in shared memory, a register quadruple or pair of mma.sync together, and the vectors'
// weights: 2^q relative to the panel's exponent. A word has digits of two neighboring elements.
template <int Panels>
struct Fp16RowPiece {
  uint4 digits[half_digits][Panels][2][32];  // of two instructions of 16 inner indices, for each lane
  float weights[Panels][16];
};
template <int Panels>
struct Fp16ColumnPiece {
  uint4 digits[half_digits][Panels][32];  // x and y are of the first instruction, z and w of the second
  float weights[Panels][8];
};

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

// Digits of half_elements elements of a vector; its four threads, neighbors in a warp, decode it together.
// NaN and infinities give any digits, since no element of C of such a vector uses sums.
struct Fp16Vector {
  std::uint32_t words[half_digits][half_elements / 2];
  float weight;

  __device__ Fp16Vector(const float (&elements)[half_elements], int panel_exponent) {
    float largest = 0;
#pragma unroll
    for (int e = 0; e < half_elements; ++e) largest = fmaxf(largest, fabsf(elements[e]));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
    weight = largest == 0.0F ? 0.0F : tile_weight(exponent_of(largest) - panel_exponent);
    const HalfScale scale(largest);
#pragma unroll
    for (int pair = 0; pair < half_elements / 2; ++pair) {
      const Fp16Pair digits(scale.integer(elements[2 * pair]), scale.integer(elements[2 * pair + 1]));
#pragma unroll
      for (int s = 0; s < half_digits; ++s) words[s][pair] = digits.words[s];
    }
  }
};

// Stores a panel of rows; a thread has the rows g and g + 8 of the panel, g = lane / 4, as in the fragments
// of A.
template <int Panels>
__device__ void store_rows_of_panel(Fp16RowPiece<Panels>& piece, int panel, const Fp16Vector& low,
                                    const Fp16Vector& high) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int s = 0; s < half_digits; ++s) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      piece.digits[s][panel][step][lane] = {low.words[s][2 * step], high.words[s][2 * step],
                                            low.words[s][2 * step + 1], high.words[s][2 * step + 1]};
    }
  }
  if (lane % 4 != 0) return;
  piece.weights[panel][lane / 4] = low.weight;
  piece.weights[panel][lane / 4 + 8] = high.weight;
}

// Stores a panel of columns; a thread has column lane / 4.
template <int Panels>
__device__ void store_columns_of_panel(Fp16ColumnPiece<Panels>& piece, int panel, const Fp16Vector& column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int s = 0; s < half_digits; ++s) {
    const std::uint32_t(&words)[half_elements / 2] = column.words[s];
    piece.digits[s][panel][lane] = {words[0], words[1], words[2], words[3]};
  }
  if (lane % 4 == 0) piece.weights[panel][lane / 4] = column.weight;
}

// A thread's registers of B, of 8 columns in a piece, and the weights of the two columns of its sums.
struct Fp16Columns {
  uint4 digits[half_digits];
  float weights[2];

  template <int Panels>
  __device__ Fp16Columns(const Fp16ColumnPiece<Panels>& piece, int panel) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int s = 0; s < half_digits; ++s) digits[s] = piece.digits[s][panel][lane];
#pragma unroll
    for (int e = 0; e < 2; ++e) weights[e] = piece.weights[panel][lane % 4 * 2 + e];
  }
};

__device__ inline void mma_fp16(float (&sums)[4], const uint4& a, std::uint32_t b_low, std::uint32_t b_high) {
  mma_fp16(sums, {a.x, a.y, a.z, a.w}, {b_low, b_high});
}

// Adds one piece to a thread's sums of 16 rows and 8 columns, which are those of FailingSums. The products of
// digits s and w - s, for all s, have one sum; these sums are added with w descending, as half_value()
// (arith/tile_arithmetic.hpp) adds them. Successive instructions have different sums, so that none waits for
// the one before.
template <int Panels>
__device__ void add_half_piece(float (&sums)[4], const Fp16RowPiece<Panels>& rows, int panel,
                               const Fp16Columns& columns) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float digit_sums[half_digits][4] = {};
#pragma unroll
  for (int s = 0; s < half_digits; ++s) {
    const uint4 first = rows.digits[s][panel][0][lane];
    const uint4 second = rows.digits[s][panel][1][lane];
#pragma unroll
    for (int t = 0; s + t < half_digits; ++t)
      mma_fp16(digit_sums[s + t], first, columns.digits[t].x, columns.digits[t].y);
#pragma unroll
    for (int t = 0; s + t < half_digits; ++t)
      mma_fp16(digit_sums[s + t], second, columns.digits[t].z, columns.digits[t].w);
  }
  const float weights[2]{rows.weights[panel][lane / 4], rows.weights[panel][lane / 4 + 8]};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float value = digit_sums[half_digits - 1][i];
#pragma unroll
    for (int w = half_digits - 2; w >= 0; --w) value = __fmaf_rn(value, 0x1p-8F, digit_sums[w][i]);
    sums[i] = __fmaf_rn(__fmul_rn(value, units_of_digit_sums),
                        __fmul_rn(weights[i / 2], columns.weights[i % 2]), sums[i]);
  }
}

}  // namespace kintsugi::core::cuda
