// Kernel that sets a few bytes to zero between kernels that overlap. cuMemsetD8Async would wait for the end
// of the kernel before it, and the next kernel for the end of cuMemsetD8Async.
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
