// Execution of a call's launches as one CUDA graph, if calls repeat the same kernels.
#pragma once

#include "engines/cuda/common/launch_recording.hpp"

namespace kintsugi::core::cuda {

// Executes the launches as one graph. The third call with the same kernels in the same order in this stream
// builds the graph, and later ones use it; their grids and arguments may differ. Returns false, with nothing
// done, if there is no graph.
bool launch_as_graph(const RecordedLaunches& recorded, void* stream);

// Frees all graphs. The driver keeps a graph that is being executed until its execution has ended.
void release_graphs() noexcept;

}  // namespace kintsugi::core::cuda
