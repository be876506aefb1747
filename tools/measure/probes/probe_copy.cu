// Kernels that copy device memory to device memory, 16 bytes per access.
#include "probe_values.hpp"

namespace kintsugi::measure {

// Writes the words to be copied; unit i has words 4 i to 4 i + 3.
extern "C" __global__ void fill_words(uint4* target, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::uint64_t first = 4 * static_cast<std::uint64_t>(i);
    target[i] = {probe_word(first), probe_word(first + 1), probe_word(first + 2), probe_word(first + 3)};
  }
}

// Copies 4 blockDim.x units in a block. Each thread loads its four units before it stores the first, so that
// enough accesses are in flight to keep the memory busy. The total is a multiple of what a block copies.
extern "C" __global__ void __launch_bounds__(256)
    copy_units(uint4* __restrict__ target, const uint4* __restrict__ source) {
  constexpr int units = 4;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * units * blockDim.x + threadIdx.x;
  uint4 values[units];
#pragma unroll
  for (int u = 0; u < units; ++u) values[u] = __ldcs(source + first + u * blockDim.x);
#pragma unroll
  for (int u = 0; u < units; ++u) __stcs(target + first + u * blockDim.x, values[u]);
}

}  // namespace kintsugi::measure
