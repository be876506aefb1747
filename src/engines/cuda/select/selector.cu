// Kernels that select the candidate of each batch item. Since the selection is made on the device, the host
// need not wait for the ranges.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/select_by_block.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = selection_threads / 32;

using NormsOfSide = NormExtremes<DeviceReport::max_candidates>;

// Combines the lanes' extremes. All lanes get the result.
__device__ void max_over_warp(NormsOfSide& extremes) {
  const auto max_over_lanes = [](double& x) {
    for (int lane = 1; lane < 32; lane <<= 1) x = max(x, __shfl_xor_sync(~0U, x, lane));
  };
  for (double& grid : extremes.grid) max_over_lanes(grid);
  max_over_lanes(extremes.mean);
  max_over_lanes(extremes.spread);
}

// Extremes of one operand's norms for the scales of each candidate. They are complete in thread 0.
__device__ NormsOfSide norm_extremes_by_block(const SelectionTask& task, int side, std::int64_t item) {
  constexpr int candidates = DeviceReport::max_candidates;
  __shared__ double warp_extremes[warps][candidates + 2];
  NormsOfSide extremes;
  const std::int64_t first = task.is_shared[side] ? 0 : item * task.vectors[side];
  for (std::int64_t v = first + threadIdx.x; v < first + task.vectors[side]; v += selection_threads) {
    const VectorRange& range = task.ranges[side][v];
    if (!range.finite() || (range.flags & VectorRange::all_zero) != 0) continue;
    const VectorNorm norm = task.norms[side][v];
    std::int32_t tops[candidates];
    for (int c = 0; c < candidates; ++c)
      tops[c] = norm_top(task.candidates.acceptances[c].norm_top_exponent,
                         task.candidates.acceptances[c].norm_bits, norm.bits);
    extremes.add(norm, tops, task.candidates.coefficient);
  }
  max_over_warp(extremes);
  __syncthreads();  // all threads have read the other operand's warp_extremes
  if (threadIdx.x % 32 == 0) {
    double* target = warp_extremes[threadIdx.x / 32];
    for (int c = 0; c < candidates; ++c) target[c] = extremes.grid[c];
    target[candidates] = extremes.mean;
    target[candidates + 1] = extremes.spread;
  }
  __syncthreads();
  for (int warp = 1; threadIdx.x == 0 && warp < warps; ++warp) {
    NormsOfSide other;
    for (int c = 0; c < candidates; ++c) other.grid[c] = warp_extremes[warp][c];
    other.mean = warp_extremes[warp][candidates];
    other.spread = warp_extremes[warp][candidates + 1];
    extremes.add(other);
  }
  return extremes;
}

// Returns a bit for each candidate that norms prove. The bits are complete in thread 0.
__device__ unsigned proved_candidates(const SelectionTask& task, std::int64_t item) {
  const NormsOfSide a = norm_extremes_by_block(task, 0, item);
  const NormsOfSide b = norm_extremes_by_block(task, 1, item);
  unsigned proved = 0;
#pragma unroll
  for (int c = 0; c < DeviceReport::max_candidates; ++c)
    proved |= proves(a, b, c, task.candidates.coefficient) ? 1U << c : 0U;
  return proved;
}

// Fit of the residuals to the item's largest exponent.
__device__ DeviceFit fit_of(const DeviceCandidates& candidates, const DeviceSelection& selection) {
  DeviceFit fit;
  fit.residual = fit_residual(candidates.format, candidates.residual_exponent,
                              max(selection.a.largest, selection.b.largest));
  fit.weight = static_cast<float>(power_of_two(-fit.residual.residual_exponent));
  return fit;
}

// Selects the candidate of the thread block's batch item, stores the selection and adds it to the report.
template <bool by_norms>
__device__ void select(const SelectionTask& task) {
  const DeviceReporting& reporting = task.reporting;
  launch_dependents();
  if (!reporting.overlaps_products) grid_dependency_wait();
  __shared__ RangeStaging<selection_threads> staging;
  DeviceSelection selection;
  select_by_block<selection_threads>(task, blockIdx.x, staging, selection,
                                     [&] { return by_norms ? proved_candidates(task, blockIdx.x) : 0U; });
  if (threadIdx.x != 0) return;
  const bool fits = task.candidates.fits && selection.candidate >= 0;
  if (fits) selection.fit = fit_of(task.candidates, selection);
  task.selection[blockIdx.x] = selection;
  if (reporting.report != nullptr) report(reporting, selection, fits);
  // This kernel may have overlapped the products. It ends after them, because kernels that wait for this one
  // must also wait for the products.
  if (reporting.overlaps_products) grid_dependency_wait();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(selection_threads)
    summarize_ranges(const __grid_constant__ SummaryTask task) {
  __shared__ RangeStaging<selection_threads> staging;
  const std::int64_t first_vector = blockIdx.x * task.vectors_per_block;
  const std::int64_t vectors = min(task.vectors_per_block, task.vectors - first_vector);
  RangeExtremes extremes[1];
  extremes_by_block<selection_threads>(task.ranges + blockIdx.y * task.vectors + first_vector, vectors,
                                       staging, extremes);
  if (threadIdx.x == 0) merge(task.summaries + blockIdx.y, extremes[0]);
}

extern "C" __global__ void __launch_bounds__(selection_threads)
    select_candidate(const __grid_constant__ SelectionTask task) {
  select</*by_norms=*/false>(task);
}

extern "C" __global__ void __launch_bounds__(selection_threads)
    select_candidate_by_norms(const __grid_constant__ SelectionTask task) {
  select</*by_norms=*/true>(task);
}

}  // namespace kintsugi::core::cuda
