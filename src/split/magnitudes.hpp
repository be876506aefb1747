// Largest and smallest magnitudes of vectors of reals, many elements at a time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/view.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

// Patterns of magnitudes, which have the order of the magnitudes; infinities and NaN are the largest.
template <class T>
using MagnitudeBits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;

// Largest magnitude of each vector of a block, and the smallest minus one unit, which is the largest number
// where all elements are zero.
template <class T>
struct Magnitudes {
  std::array<MagnitudeBits<T>, vectors_per_block> largest{};
  std::array<MagnitudeBits<T>, vectors_per_block> below_smallest;

  Magnitudes() { below_smallest.fill(~MagnitudeBits<T>{0}); }
};

// Looks at all elements of at most vectors_per_block vectors.
Magnitudes<float> find_magnitudes(const MatrixView<const float>& vectors);
Magnitudes<double> find_magnitudes(const MatrixView<const double>& vectors);

}  // namespace kintsugi::core
