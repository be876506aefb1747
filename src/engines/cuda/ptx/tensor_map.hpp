// The descriptor of a tensor in device memory that bulk copies take.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// CUtensorMap of the driver.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

}  // namespace kintsugi::core::cuda
