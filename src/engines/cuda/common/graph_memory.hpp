// Device memory for work that is captured into a graph. CUDA refuses a child graph with memory nodes, which
// stream-ordered allocations under capture would become. So the memory is allocated at once, and the graph
// retains it by a CUDA user object, as do its clones and executable graphs.
#pragma once

#include <cstddef>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

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
// most `limit` bytes, if `limit` is not 0. Returns error_out_of_memory beyond that, unless a graph has memory
// of this size already and an eighth of the device's memory stays free: programs that update executable
// graphs, as XLA does, capture the same call again while the first graph exists, and the new graph must have
// the same kernels.
Result allocate_for_graph(Address* result, std::size_t bytes, const CapturedStream& captured,
                          std::size_t limit);

// Lets later calls in the same captured stream use the memory. Returns false, and does nothing, if the
// address was not returned by allocate_for_graph().
bool deallocate_for_graph(Address address) noexcept;

// Frees memory whose graphs were destroyed. Waits for the device if there is such memory.
void release_graph_memory() noexcept;

}  // namespace kintsugi::core::cuda
