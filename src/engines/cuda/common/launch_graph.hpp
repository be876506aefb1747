// Graphs of launches that calls repeat with other arguments.
#pragma once

#include "engines/cuda/common/launch_recording.hpp"

namespace kintsugi::core::cuda {

// Makes the launches as one graph, which an earlier call with the same kernels in the same order has built
// for this stream; the third such call builds it. Grids and arguments may differ. Returns false, with nothing
// done, if there is no graph.
bool launch_as_graph(const RecordedLaunches& recorded, void* stream);

// Frees all graphs; those that the device executes are freed when it has ended.
void release_graphs() noexcept;

}  // namespace kintsugi::core::cuda
