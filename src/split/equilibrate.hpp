// Equilibration of the inner dimension. D is a diagonal matrix of powers of two. A D^-1 and D B have the same
// product as A and B, but narrower dynamic ranges if magnitudes differ between inner indices.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/embedding.hpp"

namespace kintsugi::core {

// Exponents of the largest and smallest finite non-zero magnitudes at one inner index, over all vectors of an
// operand.
struct InnerRange {
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  std::int32_t smallest = std::numeric_limits<std::int32_t>::max();

  constexpr bool has_elements() const { return largest >= smallest; }
};

// Fills ranges[p] for every inner index p of `operand` (vectors x k).
template <class View>
void find_inner_ranges(const View& operand, std::span<InnerRange> ranges, int threads);

// Merges the ranges of the two inner indices of an embedding (base/embedding.hpp) that belong to one complex
// element. Both then get the same factor.
void merge_ranges_of_parts(std::span<InnerRange> ranges);

// Computes the factors 2^-d_p of A and 2^d_p of B at every inner index p. After the multiplication, the ratio
// of A's largest magnitude to B's is the same for all p, up to one binade. d_p depends only on exponents, and
// does not change if A or B is multiplied by a power of two. It is limited so that no element overflows or
// loses its last bit. Returns half the difference of the largest and smallest exponent of the ratios.
// (Without the limits this is max d_p - min d_p.)
int find_inner_factors(std::span<const InnerRange> a, std::span<const InnerRange> b,
                       std::span<double> factors_a, std::span<double> factors_b);

}  // namespace kintsugi::core
