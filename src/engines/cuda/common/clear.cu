// Kernel that sets a few bytes to zero. Unlike cuMemsetD8Async it can overlap the kernels before and after
// it.
#include <cstdint>

#include "engines/cuda/ptx/griddepcontrol.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void clear_bytes(std::uint8_t* target, std::int32_t bytes) {
  begin_dependent_kernel();
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < bytes;
       i += static_cast<std::int32_t>(blockDim.x))
    target[i] = 0;
}

}  // namespace kintsugi::core::cuda
