// Descriptor of a tensor in device memory, as bulk copies use it.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// The driver's CUtensorMap.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

}  // namespace kintsugi::core::cuda
