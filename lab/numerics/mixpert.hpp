// Errors of products by int8 segments, three of each FP32 number: of two numbers (MixPert, Eqs. 2-6), and of
// two tiles by the ranges of their elements (Eq. 9 and the rule of 32:1).
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

// Means over products of random tiles of 16 x 32 and 32 x 8 whose elements have signs, uniformly distributed
// mantissas, and exponents uniformly distributed over `binades`.
struct RangeErrors {
  int binades = 0;
  double delta = 0;          // Eq. 9 of a tile of A, over its 32 inner indices, in units of u = 2^-24
  double failing = 0;        // share of tiles of A that fail Eq. 9
  double beyond_32 = 0;      // share of tiles of A whose largest element is more than 32 times the smallest
  double segments = 0;       // Frobenius error of level IV by segments alone, whether tiles fail or not
  double componentwise = 0;  // largest error of it relative to |A||B|
  double native = 0;         // Frobenius error of sequential FP32
};
RangeErrors measure_tile_ranges(int binades, std::int64_t tiles, std::uint64_t seed);

}  // namespace kintsugi::lab
