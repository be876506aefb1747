// Errors of a product of two FP32 numbers in three int8 segments each: MixPert, Eqs. 2-6.
#pragma once

#include <cstdint>

namespace kintsugi::lab {

// Eq. 6 under the paper's assumptions: x_0 from 64 to 127 with x_0 y_0 < 2^13 (no carry), x_1 and x_2 from 0
// to 127, and x_3 one of 0, 16, 32, 48, all equally likely; discarded bits are rounded towards zero.
struct EnumeratedErrors {
  double expectation = 0;    // mean of e_gamma over all operands
  double worst = 0;          // x_0 = 64, x_1 = x_2 = 0, x_3 = 48 in both
  double worst_nearest = 0;  // rounded to nearest: half a unit of the last segment, x_3 = 64, the tie
};
EnumeratedErrors enumerate_segment_products();

// Relative errors of the eight products of level IV against x y, for random mantissas.
struct SimulatedErrors {
  double mean = 0;  // mean of the magnitudes
  double largest = 0;
};
enum class SegmentRounding : std::uint8_t { nearest, towards_zero };
// Returns errors of `samples` products of numbers of [1, 2) with uniformly distributed mantissas.
// towards_zero: as the paper assumes.
SimulatedErrors simulate_segment_products(std::int64_t samples, std::uint64_t seed, SegmentRounding rounding);

// Largest relative error of the split of an FP32 number into three segments, over all mantissas.
double largest_segment_error();

// Mean relative errors of products by level IV's eight products and by all nine, each rounded once to FP32.
struct NinthProduct {
  double eight = 0;
  double nine = 0;
};
NinthProduct simulate_ninth_product(std::int64_t samples, std::uint64_t seed);

}  // namespace kintsugi::lab
