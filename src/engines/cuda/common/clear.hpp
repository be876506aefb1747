// Clearing of device memory.
#pragma once

#include <cstddef>

#include "base/queue.hpp"

namespace kintsugi::core::cuda {

void clear(const Queue& queue, void* target, std::size_t bytes);

}  // namespace kintsugi::core::cuda
