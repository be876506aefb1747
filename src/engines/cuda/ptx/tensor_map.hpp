// Description of a tensor in device memory, which bulk copies (ptx/tma.cuh) take.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// The driver's CUtensorMap.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

}  // namespace kintsugi::core::cuda
