// Products of slices of 52-bit words.
#pragma once

#include <cstdint>

#include "engines/cuda/step_data.hpp"
#include "recombine/accumulators.hpp"

namespace kintsugi::core::cuda {

// Computes all products of a schedule. In the schedule the products of slices s and t with the same s + t
// must form a group.
void multiply_words(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums);

// Tiles of products of integers that no matrix unit multiplies.

inline constexpr int integer_side = 16;  // threads along a tile's rows, and along its columns
inline constexpr int integer_threads = integer_side * integer_side;
inline constexpr int integer_tile = 64;   // rows of a tile, and its columns
inline constexpr int integer_depth = 16;  // inner indices per step; divides the slices' padded length

// Operands and sums. Group g is the sum over s of the products of slice s of A and slice g - s of B.
struct WordProducts {
  const std::int64_t* a = nullptr;
  const std::int64_t* b = nullptr;
  std::int64_t slice_stride_a = 0;
  std::int64_t slice_stride_b = 0;
  std::int64_t vector_stride = 0;  // stride of both operands
  std::int32_t words = 0;          // number of slices of each operand
  Integer128* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

}  // namespace kintsugi::core::cuda
