// Addresses in shared memory.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace kintsugi::core::cuda
