// Memory of calls that bring none, from a pool of the library's own.
#pragma once

#include <cstddef>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// A pool keeps so much memory that was freed for the next call; the driver gives the rest back when a stream
// is synchronized. Workspaces of FP32 products up to n = 4096 fit.
inline constexpr std::size_t kept_bytes_of_pool = std::size_t{256} << 20;

// Makes the pool of the calling thread's device, where it can have one: not while a stream is captured.
void prepare_pool();

// From the device's pool, in the order of the stream; the driver knows which stream freed a piece, so that
// one is used again without waiting where that is right, and no table of streams can grow old.
Result allocate_in_stream(Address* result, std::size_t bytes, Stream stream);

// Gives back what all pools keep and no work in a stream still uses.
void trim_pools() noexcept;

}  // namespace kintsugi::core::cuda
