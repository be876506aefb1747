// Pairs of vectors in a strip (strips/strips.cuh), for the kernels of Strassen's step.
#pragma once

#include "engines/cuda/split/strassen/operand_residues.cuh"
#include "engines/cuda/split/strips/strips.cuh"

namespace kintsugi::core::cuda::strassen {

// Writes the slices of a thread block's part of a strip, which has the part of four pairs.
__device__ inline void write_strip(const SplitTask& task, const StripPart& part, const double* shared,
                                   const Scaling* scalings, const SideWeights& weights) {
  using Shape = Strip<double>;
  static_assert(Shape::width == 2 * quads_of_group && strip_group == group_length);
  constexpr int pairs = Shape::width / 2;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int v = warp % pairs;
  const bool exists = part.first_vector + v < task.vectors;
  const int groups = part.length / group_length;
  const double* const vector =
      shared + v + vector_of_lane() * pairs + half_of_lane() * quads_of_group * Shape::width;
  for (int first = warp / pairs * groups_of_warp; first < groups;
       first += static_cast<int>(blockDim.x) / 32 / pairs * groups_of_warp) {
    const int group = first + group_of_lane();
    const bool writes = group < groups;  // their number is even
    const std::int64_t offset =
        offset_of_group(task, part.first_vector / 2 + v, part.first_element / group_length + group);
    if (!exists) {
      clear_groups(task, offset, writes);
      continue;
    }
    const double* const line = vector + (writes ? group : 0) * Shape::group_pitch;
    LaneElements x;
#pragma unroll
    for (int j = 0; j < groups_of_lane; ++j) {
#pragma unroll
      for (int i = 0; i < quads_of_group; ++i) x[j][i] = line[j * Shape::group_pitch + i * Shape::width];
    }
    write_groups(task, scalings[v + vector_of_lane() * pairs], x, offset, writes, weights);
  }
}

}  // namespace kintsugi::core::cuda::strassen
