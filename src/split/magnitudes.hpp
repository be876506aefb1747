// Finds the largest and smallest magnitudes of real vectors by vectorised integer comparisons.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/view.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

// Bit patterns of magnitudes as unsigned integers. Their order is the order of the magnitudes. Infinities and
// NaN are above all numbers.
template <class T>
using MagnitudeBits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;

// Largest magnitude of each vector of a block, and the smallest non-zero magnitude minus one unit in the last
// place. A zero minus one wraps around to the largest integer, so zeros do not count in the minimum.
template <class T>
struct Magnitudes {
  std::array<MagnitudeBits<T>, vectors_per_block> largest{};
  std::array<MagnitudeBits<T>, vectors_per_block> below_smallest;

  Magnitudes() { below_smallest.fill(~MagnitudeBits<T>{0}); }
};

// Searches all elements of `vectors`, which has at most vectors_per_block rows.
Magnitudes<float> find_magnitudes(const MatrixView<const float>& vectors);
Magnitudes<double> find_magnitudes(const MatrixView<const double>& vectors);

}  // namespace kintsugi::core
