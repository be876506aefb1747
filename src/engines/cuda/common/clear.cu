// Kernel that sets bytes to zero, 4096 by each thread block. Unlike cuMemsetD8Async it can overlap the
// kernels before and after it, and be recorded.
#include <cstdint>

#include "engines/cuda/ptx/griddepcontrol.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void clear_bytes(std::uint8_t* target, std::int32_t bytes) {
  begin_dependent_kernel();
  const auto first = static_cast<std::int32_t>(blockIdx.x) * 4096;
  const std::int32_t end = min(first + 4096, bytes);
  for (std::int32_t i = first + static_cast<std::int32_t>(threadIdx.x); i < end;
       i += static_cast<std::int32_t>(blockDim.x))
    target[i] = 0;
}

}  // namespace kintsugi::core::cuda
