// Powers of two along the inner dimension: A D^-1 and D B have the same product as A and B, and other dynamic
// ranges.
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

  constexpr bool any() const { return largest >= smallest; }
};

template <class View>
void find_inner_ranges(const View& operand, std::span<InnerRange> ranges, int threads);

// Gives, for an embedding (base/embedding.hpp), both parts of an element one range, and so one factor.
void merge_ranges_of_parts(std::span<InnerRange> ranges);

// Computes factors 2^-d_p of A and 2^d_p of B that bring the largest magnitudes of both to the same distance
// at every inner index p, up to one binade. d_p depends on exponents alone, and is the same for A and B as
// for their multiples by powers of two; it is limited so that no element of double's range overflows or loses
// its last bit. Returns approximately by how many binades the d_p differ.
int balance(std::span<const InnerRange> a, std::span<const InnerRange> b, std::span<double> factors_a,
            std::span<double> factors_b);

}  // namespace kintsugi::core
