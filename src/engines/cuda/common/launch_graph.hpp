// Execution of a call's launches as one CUDA graph, if calls repeat the same kernels.
#pragma once

#include "engines/cuda/common/launch_recording.hpp"

namespace kintsugi::core::cuda {

// Executes the launches as one graph. The third call with the same kernels in the same order in this stream
// builds the graph; later calls use it. Grids and arguments may differ between calls. Returns false, and does
// nothing, if there is no graph.
bool launch_as_graph(const RecordedLaunches& recorded, void* stream);

// Frees all graphs. The driver keeps a graph in execution until it has ended.
void release_graphs() noexcept;

}  // namespace kintsugi::core::cuda
