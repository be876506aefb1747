// Equilibration of the inner dimension: A D^-1 and D B, D a diagonal of powers of two, have the product of A
// and B, and smaller dynamic ranges if inner indices differ in magnitude.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/embedding.hpp"

namespace kintsugi::core {

// Exponents of the finite non-zero magnitudes at one inner index, over all vectors of an operand.
struct InnerRange {
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  std::int32_t smallest = std::numeric_limits<std::int32_t>::max();

  constexpr bool has_elements() const { return largest >= smallest; }
};

// Fills ranges[p] for every inner index p of `operand` (vectors x k).
template <class View>
void find_inner_ranges(const View& operand, std::span<InnerRange> ranges, int threads);

// Merges, for an embedding (base/embedding.hpp), the ranges of a complex element's two parts, so that both
// get one factor.
void merge_ranges_of_parts(std::span<InnerRange> ranges);

// Computes factors 2^-d_p of A and 2^d_p of B after which the ratio of A's largest magnitude to B's is the
// same at every inner index p, up to one binade. d_p depends on exponents alone and does not change if A or B
// is multiplied by a power of two; it is limited so that no element overflows double's range or loses its
// last bit. Returns half the difference of the ratios' largest and smallest exponent: max d_p - min d_p, if
// no limit took effect.
int find_inner_factors(std::span<const InnerRange> a, std::span<const InnerRange> b,
                       std::span<double> factors_a, std::span<double> factors_b);

}  // namespace kintsugi::core
