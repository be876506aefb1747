// Kernels that run between the checked candidates of a block of C. They select the candidate that computes
// the block next, and list the elements that the last candidate left open.
#include <algorithm>

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/checked/chain_task.hpp"

namespace kintsugi::core::cuda {

// Begins a block of C that no candidate has computed yet, with the candidate that was selected for its batch
// item.
extern "C" __global__ void begin_checks(const DeviceSelection* selection, DeviceCheckState* state) {
  begin_dependent_kernel();
  if (threadIdx.x != 0) return;
  state->current.candidate = __ldcg(&selection->candidate);
  state->open = 0;
  state->is_rewritten = state->listed = state->taken = 0;
}

// Does nothing unless candidate `index` of the chain has computed the block. Selects the candidate that
// computes the block next. Ends the chain if exact sums of the open elements are expected to take less time.
extern "C" __global__ void advance_checks(const __grid_constant__ DeviceCheckedChain chain, int index,
                                          double elements, DeviceCheckState* state) {
  begin_dependent_kernel();
  if (threadIdx.x != 0 || __ldcg(&state->current.candidate) != chain.first + index) return;
  const int next = next_candidate(chain, index, static_cast<double>(__ldcg(&state->open)) / elements);
  if (next == chain.count) {
    state->current.candidate = DeviceSelection::ended;
    return;
  }
  state->current.candidate = chain.first + next;
  state->open = 0;
  state->is_rewritten = 1;
}

// Lists the masks that have open elements. With the list, thread blocks can share these masks evenly. Many
// masks are listed row after row, so that thread blocks that run at the same time read neighboring rows of A:
// where these are adjacent in memory, they share its lines.
extern "C" __global__ void __launch_bounds__(list_threads)
    list_open_masks(const __grid_constant__ DeviceOpenElements open, std::int64_t masks) {
  begin_dependent_kernel();
  constexpr std::uint64_t many_elements = 256;
  const std::uint64_t open_elements = __ldcg(&open.state->open);
  if (open_elements == 0) return;
  const bool by_rows = open_elements >= many_elements;
  const auto columns = static_cast<std::uint32_t>(masks / open.masks_per_column);
  const unsigned lane = threadIdx.x % 32;
  for (std::int64_t first = std::int64_t{blockIdx.x} * list_threads + threadIdx.x - lane; first < masks;
       first += std::int64_t{gridDim.x} * list_threads) {
    auto mask = static_cast<std::uint32_t>(first + lane);
    const bool exists = first + lane < masks;
    if (by_rows) mask = mask / columns + mask % columns * static_cast<std::uint32_t>(open.masks_per_column);
    const bool is_open = exists && __ldcg(open.masks + mask) != 0;
    const unsigned listing_lanes = __ballot_sync(~0U, is_open);
    if (listing_lanes == 0) continue;
    unsigned begin = 0;  // the warp's first index in the list
    if (lane == 0) begin = atomicAdd(&open.state->listed, static_cast<unsigned>(__popc(listing_lanes)));
    begin = __shfl_sync(~0U, begin, 0);
    if (is_open) open.list[begin + __popc(listing_lanes & ((1U << lane) - 1))] = mask;
  }
}

}  // namespace kintsugi::core::cuda
