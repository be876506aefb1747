// Device memory for calls that were given no workspace, from a memory pool of the library's own.
#pragma once

#include <cstddef>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// At most this many freed bytes stay in a pool for the next call; the driver gives the rest back when a
// stream is synchronized. Workspaces of FP32 products up to n = 4096 fit.
inline constexpr std::size_t kept_bytes_of_pool = std::size_t{256} << 20;

// Creates the pool of the calling thread's device, unless that was tried before.
void prepare_pool();

// Allocates from the device's pool in stream order. The driver records which stream freed a piece of memory.
// So pieces are reused without waiting where that is safe, and the library needs no table of streams.
Result allocate_in_stream(Address* result, std::size_t bytes, Stream stream);

// Returns to the driver all kept memory that no work in a stream still uses.
void trim_pools() noexcept;

}  // namespace kintsugi::core::cuda
