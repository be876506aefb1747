// Clearing of device memory.
#pragma once

#include <cstddef>

#include "base/queue.hpp"

namespace kintsugi::core::cuda {

// Sets bytes to zero in stream order. A few bytes are set by a kernel that may overlap others, more bytes by
// cuMemsetD8Async.
void clear(const Queue& queue, void* target, std::size_t bytes);

}  // namespace kintsugi::core::cuda
