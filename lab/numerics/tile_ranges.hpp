// Errors of products of two tiles by the ranges of their elements: MixPert, Eq. 9 and the rule of 32:1.
#pragma once

#include <cstdint>

namespace kintsugi::lab {

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
