// Kernels that select the candidate of each batch item. Since the selection is made on the device, the host
// need not wait for the ranges.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/select_by_block.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = selection_threads / 32;

using NormsOfSide = NormExtremes<DeviceReport::max_candidates>;

constexpr int candidates = DeviceReport::max_candidates;
constexpr int warps_per_side = warps / 2;
static_assert(2 * warps_per_side <= 32 && candidates <= 32);

// The operand whose vectors this thread visits: the first half of the warps A, the second half B.
__device__ int side_of_thread() { return static_cast<int>(threadIdx.x) / (selection_threads / 2); }

// Calls visit(norm) for the thread's share of the norms of its operand's vectors, but for those of vectors of
// zeros and vectors with special values.
template <class Visit>
__device__ void visit_norms(const SelectionTask& task, std::int64_t item, const Visit& visit) {
  const int side = side_of_thread();
  const std::int64_t first = task.is_shared[side] ? 0 : item * task.vectors[side];
  for (std::int64_t v = threadIdx.x % (selection_threads / 2); v < task.vectors[side];
       v += selection_threads / 2) {
    const VectorNorm norm = task.norms[side][first + v];
    const VectorRange& range = task.ranges[side][first + v];
    if (range.finite() && (range.flags & VectorRange::all_zero) == 0) visit(norm);
  }
}

// Returns to all threads how many inner indices have elements of any two vectors that count in their depths.
__device__ NormTerms terms_by_block(const SelectionTask& task, std::int64_t item) {
  __shared__ int least[2];
  constexpr std::int64_t most = INT_MAX;
  if (threadIdx.x < 2) least[threadIdx.x] = static_cast<int>(min(task.length, most));
  __syncthreads();
  int elements = INT_MAX;
  visit_norms(task, item, [&](const VectorNorm& norm) { elements = min(elements, norm.elements); });
  elements = __reduce_min_sync(~0U, elements);
  if (threadIdx.x % 32 == 0) atomicMin(&least[side_of_thread()], elements);
  __syncthreads();
  return NormTerms::of(task.length, least[0], least[1]);
}

// Combines the extremes of `lanes` neighboring lanes, a power of two; all of them get the result.
__device__ void max_over_lanes(NormsOfSide& extremes, int lanes) {
  const auto max_of = [lanes](double& x) {
    for (int lane = 1; lane < lanes; lane <<= 1) x = max(x, __shfl_xor_sync(~0U, x, lane));
  };
  for (double& grid : extremes.grid) max_of(grid);
  max_of(extremes.mean);
}

// Extremes in shared memory.
struct StoredExtremes {
  double grid[candidates];
  double mean;

  __device__ void store(const NormsOfSide& extremes) {
    for (int c = 0; c < candidates; ++c) grid[c] = extremes.grid[c];
    mean = extremes.mean;
  }
  __device__ NormsOfSide load() const {
    NormsOfSide extremes;
    for (int c = 0; c < candidates; ++c) extremes.grid[c] = grid[c];
    extremes.mean = mean;
    return extremes;
  }
  // Those for one candidate.
  __device__ NormExtremes<1> load(int candidate) const {
    NormExtremes<1> extremes;
    extremes.grid[0] = grid[candidate];
    extremes.mean = mean;
    return extremes;
  }
};

// Finds the extremes of both operands' norms under the scales of all candidates: stored[0] and stored[1] have
// them for the first warp.
__device__ void find_extremes(const SelectionTask& task, std::int64_t item, const NormTerms& terms,
                              StoredExtremes (&stored)[warps]) {
  NormsOfSide extremes;
  visit_norms(task, item, [&](const VectorNorm& norm) {
    std::int32_t tops[candidates];
    for (int c = 0; c < candidates; ++c)
      tops[c] = norm_top(task.candidates.acceptances[c].norm_top_exponent,
                         task.candidates.acceptances[c].norm_bits, norm.bits);
    extremes.add(norm, tops, terms, task.candidates.coefficient);
  });
  max_over_lanes(extremes, 32);
  if (threadIdx.x % 32 == 0) stored[threadIdx.x / 32].store(extremes);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  extremes = stored[threadIdx.x % warps].load();
  max_over_lanes(extremes, warps_per_side);
  __syncwarp();
  if (threadIdx.x < warps && threadIdx.x % warps_per_side == 0)
    stored[threadIdx.x / warps_per_side].store(extremes);
  __syncwarp();
}

// Returns a bit for each candidate that norms prove, complete in the first warp, whose lanes have a candidate
// each.
__device__ unsigned proved_candidates(const SelectionTask& task, std::int64_t item) {
  __shared__ StoredExtremes stored[warps];
  const NormTerms terms = terms_by_block(task, item);
  find_extremes(task, item, terms, stored);
  const int candidate = min(static_cast<int>(threadIdx.x), candidates - 1);
  const bool is_proved =
      proves(stored[0].load(candidate), stored[1].load(candidate), 0, terms, task.candidates.coefficient);
  return __ballot_sync(~0U, is_proved) & ((1U << candidates) - 1);
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
