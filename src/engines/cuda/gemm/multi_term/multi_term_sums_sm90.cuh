// A warpgroup's sums in device memory, in the order in which the warpgroup's threads hold them.
#pragma once

#include "engines/cuda/gemm/warp_specialization.cuh"

namespace kintsugi::core::cuda {

template <int Count>
__device__ void save_sums(float4* memory, const float (&sums)[Count], int thread) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i)
    memory[i * warpgroup + thread] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
}

// Calls use(sum, stored sum) for each sum.
template <int Count, class Use>
__device__ void read_sums(const float4* memory, float (&sums)[Count], int thread, const Use& use) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i) {
    const float4 four = __ldcg(memory + i * warpgroup + thread);
    use(sums[4 * i], four.x);
    use(sums[4 * i + 1], four.y);
    use(sums[4 * i + 2], four.z);
    use(sums[4 * i + 3], four.w);
  }
}

}  // namespace kintsugi::core::cuda
