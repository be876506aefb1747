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

// Numbers of loads of ranges of a warp, and of norms of a thread, that are made at the same time. They need
// few registers, so that the selection by norms begins beside thread blocks of the kernel before it.
constexpr int few_loads = 2;
constexpr int norms_in_flight = 2;

// Calls visit(norm) for the thread's share of an operand's norms. Half of the thread block shares an operand.
// Norms of vectors of zeros and of vectors with special values are left out. The loads bypass L1 for the
// reason that load_ranges() gives.
template <class Visit>
__device__ void visit_norms(const SelectionSide& side, const Visit& visit) {
  constexpr std::int64_t step = selection_threads / 2;
#pragma unroll 1
  for (std::int64_t v = threadIdx.x % step; v < side.vectors; v += norms_in_flight * step) {
    VectorNorm norms[norms_in_flight];
    std::uint32_t flags[norms_in_flight];
#pragma unroll
    for (int i = 0; i < norms_in_flight; ++i) {
      flags[i] = VectorRange::all_zero;
      if (v + i * step >= side.vectors) continue;
      flags[i] = __ldcg(&side.ranges[v + i * step].flags);
      const auto* words = reinterpret_cast<const uint4*>(side.norms + v + i * step);
      const uint4 halves[] = {__ldcg(words), __ldcg(words + 1)};
      static_assert(sizeof halves == sizeof(VectorNorm));
      memcpy(&norms[i], halves, sizeof halves);
    }
#pragma unroll
    for (int i = 0; i < norms_in_flight; ++i) {
      if (flags[i] == 0) visit(norms[i]);
    }
  }
}

// Combines the extremes of `lanes` neighboring lanes, a power of two. All of these lanes get the result.
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
  // Extremes for one candidate.
  __device__ NormExtremes<1> load(int candidate) const {
    NormExtremes<1> extremes;
    extremes.grid[0] = grid[candidate];
    extremes.mean = mean;
    return extremes;
  }
};

// Finds the extremes of both operands' norms for the scales of each candidate. The first warp may then read
// them in stored[0] and stored[1]. Returns, for all threads, the terms that the least numbers of counted
// elements give. The extremes are the product's if these are `terms`.
__device__ NormTerms find_extremes(const SelectionTask& task, const SelectionSide& side,
                                   const NormTerms& terms, StoredExtremes (&stored)[warps]) {
  __shared__ int least[warps];
  NormsOfSide extremes;
  int elements = static_cast<int>(min(task.length, std::int64_t{INT_MAX}));
  visit_norms(side, [&](const VectorNorm& norm) {
    std::int32_t tops[candidates];
    for (int c = 0; c < candidates; ++c)
      tops[c] = norm_top(task.candidates.acceptances[c].norm_top_exponent,
                         task.candidates.acceptances[c].norm_bits, norm.bits);
    extremes.add(norm, tops, terms, task.candidates.coefficient);
    elements = min(elements, norm.elements);
  });
  max_over_lanes(extremes, 32);
  elements = __reduce_min_sync(~0U, elements);
  if (threadIdx.x % 32 == 0) {
    stored[threadIdx.x / 32].store(extremes);
    least[threadIdx.x / 32] = elements;
  }
  __syncthreads();
  int least_a = least[0];
  int least_b = least[warps_per_side];
  for (int warp = 1; warp < warps_per_side; ++warp) {
    least_a = min(least_a, least[warp]);
    least_b = min(least_b, least[warps_per_side + warp]);
  }
  __syncthreads();  // another call may write
  if (threadIdx.x < 32) {
    extremes = stored[threadIdx.x % warps].load();
    max_over_lanes(extremes, warps_per_side);
    __syncwarp();
    if (threadIdx.x < warps && threadIdx.x % warps_per_side == 0)
      stored[threadIdx.x / warps_per_side].store(extremes);
    __syncwarp();
  }
  return NormTerms::of(task.length, least_a, least_b);
}

// Returns a bit for each candidate that norms prove. `side`: the operand whose norms this half of the thread
// block visits. Each lane of the first warp tests one candidate, and the bits are complete in this warp.
// Few operands have vectors with zeros. So the extremes are first found as if there were none, and again if
// there are.
__device__ unsigned proved_candidates(const SelectionTask& task, const SelectionSide& side) {
  __shared__ StoredExtremes stored[warps];
  NormTerms terms{task.length, task.length};
#pragma unroll 1
  for (;;) {
    const NormTerms counted = find_extremes(task, side, terms, stored);
    if (counted.common == terms.common) break;
    terms = counted;
  }
  const int candidate = min(static_cast<int>(threadIdx.x), candidates - 1);
  const bool is_proved = threadIdx.x < 32 && proves(stored[0].load(candidate), stored[1].load(candidate), 0,
                                                    terms, task.candidates.coefficient);
  return __ballot_sync(~0U, is_proved) & ((1U << candidates) - 1);
}

// A vector that is not of any operand.
__device__ VectorRange no_range{.flags = 0};
__device__ VectorNorm no_norm{};

// Sets the selection's candidate and summaries by norms. They are complete in thread 0.
//
// The instructions run once, and fetching them takes longer than executing them. So they run twice: first on
// a vector of no operand, while the kernels before this one still work, and then on the operands.
__device__ void select_by_norms(const SelectionTask& task, RangeStaging<selection_threads>& staging,
                                DeviceSelection& selection) {
  constexpr int last_pass = 1;
  int pass = 0;
  asm volatile("" : "+r"(pass));  // the compiler must not separate the passes
#pragma unroll 1
  for (; pass <= last_pass; ++pass) {
    SelectionSide a(&no_range, &no_norm, 1);
    SelectionSide b = a;
    if (pass == last_pass) {
      grid_dependency_wait();
      selection.candidate = DeviceSelection::scaled;
      if (is_zero(task.alpha)) return;
      a = {task, 0, blockIdx.x};
      b = {task, 1, blockIdx.x};
    }
    summarize_sides<selection_threads, few_loads>(a, b, staging, selection);
    const unsigned proved = proved_candidates(task, threadIdx.x < selection_threads / 2 ? a : b);
    selection.candidate = first_candidate(task.candidates, selection.a, selection.b, task.length, proved);
    __syncthreads();  // shared memory is used again
  }
}

// Fit of the residuals to the item's largest exponent.
__device__ DeviceFit fit_of(const DeviceCandidates& candidates, const DeviceSelection& selection) {
  DeviceFit fit;
  fit.residual = fit_residual(candidates.format, candidates.residual_exponent,
                              max(selection.a.largest, selection.b.largest));
  fit.weight = static_cast<float>(power_of_two(-fit.residual.residual_exponent));
  return fit;
}

// Stores the selection of the thread block's batch item and adds it to the report. One thread must call it.
__device__ void store(const SelectionTask& task, DeviceSelection& selection) {
  const DeviceReporting& reporting = task.reporting;
  const bool fits = task.candidates.fits && selection.candidate >= 0;
  if (fits) selection.fit = fit_of(task.candidates, selection);
  task.selection[blockIdx.x] = selection;
  if (reporting.report != nullptr) report(reporting, selection, fits);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(selection_threads)
    summarize_ranges(const __grid_constant__ SummaryTask task) {
  __shared__ RangeStaging<selection_threads> staging;
  const std::int64_t first_vector = blockIdx.x * task.vectors_per_block;
  const std::int64_t vectors = min(task.vectors_per_block, task.vectors - first_vector);
  RangeExtremes extremes[1];
  extremes_by_block<selection_threads, many_loads>(task.ranges + blockIdx.y * task.vectors + first_vector,
                                                   vectors, staging, extremes);
  if (threadIdx.x == 0) merge(task.summaries + blockIdx.y, extremes[0]);
}

extern "C" __global__ void __launch_bounds__(selection_threads)
    select_candidate(const __grid_constant__ SelectionTask task) {
  const bool overlaps_products = task.reporting.overlaps_products;
  launch_dependents();
  if (!overlaps_products) grid_dependency_wait();
  __shared__ RangeStaging<selection_threads> staging;
  DeviceSelection selection;
  select_by_block<selection_threads>(task, blockIdx.x, staging, selection);
  if (threadIdx.x != 0) return;
  store(task, selection);
  // This kernel may have overlapped the products. It ends after them, because kernels that wait for this one
  // must also wait for the products.
  if (overlaps_products) grid_dependency_wait();
}

extern "C" __global__ void __launch_bounds__(selection_threads, 2)
    select_candidate_by_norms(const __grid_constant__ SelectionTask task) {
  launch_dependents();
  __shared__ RangeStaging<selection_threads> staging;
  DeviceSelection selection;
  select_by_norms(task, staging, selection);
  if (threadIdx.x == 0) store(task, selection);
}

}  // namespace kintsugi::core::cuda
