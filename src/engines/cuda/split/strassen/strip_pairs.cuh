// Pairs of vectors in a strip (strips/strips.cuh), for the kernels of Strassen's step.
#pragma once

#include "engines/cuda/split/strassen/quads.cuh"
#include "engines/cuda/split/strips/strips.cuh"

namespace kintsugi::core::cuda::strassen {

// Splits a thread block's part of a strip. It holds the part of four pairs.
template <bool right>
__device__ void write_strip(const SplitTask& task, const StripPart& part, const double* shared,
                            const Scaling* scalings) {
  using Shape = Strip<double>;
  static_assert(Shape::width == 2 * quads_of_group && strip_group == group_length);
  constexpr int pairs = Shape::width / 2;
  const int v = static_cast<int>(threadIdx.x) % pairs;
  const int pair = part.first_vector / 2 + v;
  const int first_group = part.first_element / group_length;
  const Scaling of_pair[2] = {scalings[v], scalings[v + pairs]};
  for (int g = static_cast<int>(threadIdx.x) / pairs; g < part.length / group_length;
       g += static_cast<int>(blockDim.x) / pairs) {
    const std::int64_t offset = offset_of_group(task, pair, first_group + g);
    if (part.first_vector + v >= task.vectors) {
      clear_group(task, offset);
      continue;
    }
    const double* const line = shared + v + g * Shape::group_pitch;
    double first[group_length];
    double second[group_length];
#pragma unroll
    for (int i = 0; i < group_length; ++i) {
      first[i] = line[i * Shape::width];
      second[i] = line[i * Shape::width + pairs];
    }
    write_group<right>(task, of_pair, first, second, offset);
  }
}

}  // namespace kintsugi::core::cuda::strassen
