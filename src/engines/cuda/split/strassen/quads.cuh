// Quads of one step of Strassen's algorithm (arith/residue/strassen.hpp). A pair of vectors are vectors v and
// v + 4 of an operand, of which the first is in the first half of the vectors. A group are eight inner
// indices of a pair, of which the first four are in the first half of k. A pair has four quads in a group:
// elements of the four quadrants at the same indices.
#pragma once

#include <cstdint>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda::strassen {

inline constexpr int quads_of_group = strassen_group;
inline constexpr int group_length = 2 * strassen_group;

// Index in each slice of the first byte of a group. `pair` is the index in the first half of the pair's first
// vector.
__device__ inline std::int64_t offset_of_group(const SplitTask& task, int pair, int group) {
  return std::int64_t{pair} * (task.vector_stride / 2) + group * quads_of_group;
}

}  // namespace kintsugi::core::cuda::strassen
