// Device memory for calls without a workspace, from the library's own memory pool.
#pragma once

#include <cstddef>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// Largest number of freed bytes that stay in a pool once nothing large was allocated for a second; the driver
// frees the rest when a stream is synchronized. Until then the pool keeps all freed memory: mapping 4 GiB
// again takes 12 ms, as long as a product of n = 8192. Workspaces of FP32 products up to n = 4096 fit.
inline constexpr std::size_t kept_bytes_of_pool = std::size_t{256} << 20;

// Creates the pool of the calling thread's device, if that was not tried before.
void prepare_pool();

// Allocates from the device's pool in stream order. The driver knows which stream freed a piece of memory,
// and reuses the piece without a wait if that is safe. So the library needs no table of streams.
Result allocate_in_stream(Address* result, std::size_t bytes, Stream stream);

// Returns all kept memory to the driver, except what work in a stream still uses.
void trim_pools() noexcept;

}  // namespace kintsugi::core::cuda
