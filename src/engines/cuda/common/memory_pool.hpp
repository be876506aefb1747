// Device memory for calls without a workspace: from the library's own memory pool, and for captured graphs.
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

// ---------------------------------------------------------------- captured graphs

// CUDA refuses a child graph with memory nodes, which
// stream-ordered allocations under capture would become. So the memory is allocated at once, and the graph
// retains it by a CUDA user object, as do its clones and executable graphs.

// A stream in a capture. Work of one stream is ordered; that of several streams of a capture, its branches,
// is not.
struct CapturedStream {
  Stream stream = nullptr;
  unsigned long long capture = 0;  // id; no two captures have the same
  Graph graph = nullptr;           // graph that work is captured into; nullptr: the stream is not captured
};

// Fails with device_error while a capture forbids the use of the stream.
CapturedStream captured_stream(Stream stream);

// Returns memory that the graph retains. Memory that was deallocated before in the same captured stream is
// used again; so is memory whose graphs were destroyed. The latter is freed, with a wait for the device, if
// it has more than kept_bytes_of_pool or leaves too little room. The memory of all graphs on the device is at
// most `limit` bytes, if `limit` is not 0. Beyond that, while an eighth of the device's memory stays free,
// pieces of one size count once: XLA makes a graph of each product, and to update executable graphs it
// captures the same call again while the first graph exists; the new graph must have the same kernels. Else
// returns error_out_of_memory.
Result allocate_for_graph(Address* result, std::size_t bytes, const CapturedStream& captured,
                          std::size_t limit);

// Lets later calls in the same captured stream use the memory. Returns false, and does nothing, if the
// address was not returned by allocate_for_graph().
bool deallocate_for_graph(Address address) noexcept;

// Frees memory whose graphs were destroyed. Waits for the device if there is such memory.
void release_graph_memory() noexcept;

}  // namespace kintsugi::core::cuda
