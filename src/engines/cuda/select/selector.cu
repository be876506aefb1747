// Selection of a candidate on the device, where the ranges are.
#include <climits>

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/report.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = selection_threads / 32;
constexpr int range_ints = sizeof(VectorRange) / sizeof(int);
static_assert(sizeof(VectorRange) % sizeof(int) == 0);

// Extremes of the ranges seen so far; `largest` stays INT_MIN while all vectors are zero.
struct Extremes {
  std::int32_t span = 0;
  std::int32_t largest = INT_MIN;
  std::int32_t smallest = INT_MAX;
  bool finite = true;
  std::int32_t elements = INT_MAX;
  std::int32_t depth = 0;

  __device__ void add(const VectorRange& range) {
    finite = finite && range.finite();
    if ((range.flags & VectorRange::all_zero) != 0) return;
    add(Extremes{range.dynamic_range(), range.largest, range.smallest, true, range.elements, range.depth});
  }
  __device__ void add(const Extremes& other) {
    span = max(span, other.span);
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
    finite = finite && other.finite;
    elements = min(elements, other.elements);
    depth = max(depth, other.depth);
  }
  __device__ RangeSummary summary() const {
    if (largest == INT_MIN) return {0, 0, 0, finite};
    return {span, largest, smallest, finite, elements, depth};
  }
};

constexpr int ranges_per_load = 64;  // ranges that a warp loads together
constexpr int loads_in_flight = 4;   // such loads in flight at the same time
using LoadedRanges = int[ranges_per_load * range_ints / 32];

// Loads up to `ranges_per_load` ranges so that neighboring lanes load neighboring ints: a range is longer
// than one access, and with a lane for each range every sector would be fetched once per int. Bypasses L1,
// which may hold lines of an earlier call where this kernel did not wait for that call.
__device__ void load_ranges(const VectorRange* ranges, std::int64_t count, LoadedRanges& loaded) {
  const int* source = reinterpret_cast<const int*>(ranges);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < ranges_per_load * range_ints / 32; ++i) {
    if (lane + 32 * i < count * range_ints) loaded[i] = __ldcg(source + lane + 32 * i);
  }
}

// Adds the loaded ranges to `extremes`; the warp's shared memory turns ints by lane into ranges by lane.
__device__ void add_ranges(const LoadedRanges& loaded, std::int64_t count,
                           int (&shared)[ranges_per_load * range_ints], Extremes& extremes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < ranges_per_load * range_ints / 32; ++i) shared[lane + 32 * i] = loaded[i];
  __syncwarp();
  for (int v = lane; v < ranges_per_load && v < count; v += 32) {
    VectorRange range;
    memcpy(&range, shared + v * range_ints, sizeof range);
    extremes.add(range);
  }
}

// Summarizes the ranges of one operand or of two; of two, each half of the warps has the ranges of one. The
// result is complete in thread 0.
template <int sides>
__device__ void summarize_by_block(const VectorRange* ranges, std::int64_t vectors,
                                   RangeSummary (&summaries)[sides]) {
  constexpr int warps_per_side = warps / sides;
  constexpr std::int64_t step = warps_per_side * ranges_per_load;
  __shared__ Extremes warp_extremes[warps];
  __shared__ int staged[warps][ranges_per_load * range_ints];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Extremes extremes;
  for (std::int64_t v = warp % warps_per_side * ranges_per_load; v < vectors; v += loads_in_flight * step) {
    LoadedRanges loaded[loads_in_flight] = {};
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i)
      load_ranges(ranges + v + i * step, vectors - v - i * step, loaded[i]);
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
      if (v + i * step < vectors) add_ranges(loaded[i], vectors - v - i * step, staged[warp], extremes);
    }
  }
  extremes = {__reduce_max_sync(~0U, extremes.span),     __reduce_max_sync(~0U, extremes.largest),
              __reduce_min_sync(~0U, extremes.smallest), __all_sync(~0U, extremes.finite) != 0,
              __reduce_min_sync(~0U, extremes.elements), __reduce_max_sync(~0U, extremes.depth)};
  if (threadIdx.x % 32 == 0) warp_extremes[threadIdx.x / 32] = extremes;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int side = 0; side < sides; ++side) {
    Extremes all;
#pragma unroll
    for (int i = 0; i < warps_per_side; ++i) all.add(warp_extremes[side * warps_per_side + i]);
    summaries[side] = all.summary();
  }
}

constexpr int summary_ints = sizeof(RangeSummary) / sizeof(int);
static_assert(sizeof(RangeSummary) % sizeof(int) == 0);

// Loads a summary, bypassing L1 as load_ranges() does.
__device__ RangeSummary load(const RangeSummary* source) {
  int loaded[summary_ints];
  for (int i = 0; i < summary_ints; ++i) loaded[i] = __ldcg(reinterpret_cast<const int*>(source) + i);
  RangeSummary summary;
  memcpy(&summary, loaded, sizeof summary);
  return summary;
}

// Stores all ints of a summary, padding included.
__device__ void store(RangeSummary* target, const RangeSummary& summary) {
  int stored[summary_ints];
  memcpy(stored, &summary, sizeof summary);
  for (int i = 0; i < summary_ints; ++i) reinterpret_cast<int*>(target)[i] = stored[i];
}

// Sets selection.a and selection.b, which are complete in thread 0.
__device__ void summarize_sides(const SelectionTask& task, std::int64_t item, DeviceSelection& selection) {
  const auto item_of = [&](int side) { return task.is_shared[side] ? 0 : item; };
  RangeSummary known[2];
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    if (threadIdx.x == 0 && task.summaries[side] != nullptr)
      known[side] = load(task.summaries[side] + item_of(side));
  }
  const int warp_side = static_cast<int>(threadIdx.x) / (selection_threads / 2);
  RangeSummary found[2];
  summarize_by_block(task.ranges[warp_side] + item_of(warp_side) * task.vectors[warp_side],
                     task.summaries[warp_side] == nullptr ? task.vectors[warp_side] : 0, found);
  selection.a = task.summaries[0] == nullptr ? found[0] : known[0];
  selection.b = task.summaries[1] == nullptr ? found[1] : known[1];
}

using NormsOfSide = NormExtremes<DeviceReport::max_candidates>;

__device__ void add_over_warp(NormsOfSide& extremes) {
  const auto largest = [](double& x) {
    for (int lane = 1; lane < 32; lane <<= 1) x = max(x, __shfl_xor_sync(~0U, x, lane));
  };
  for (double& grid : extremes.grid) largest(grid);
  largest(extremes.mean);
  largest(extremes.spread);
}

// Extremes of one operand's norms under the scales of all candidates, complete in thread 0.
__device__ NormsOfSide extremes_by_block(const SelectionTask& task, int side, std::int64_t item) {
  constexpr int candidates = DeviceReport::max_candidates;
  __shared__ double warp_extremes[warps][candidates + 2];
  NormsOfSide extremes;
  const std::int64_t first = task.is_shared[side] ? 0 : item * task.vectors[side];
  for (std::int64_t v = first + threadIdx.x; v < first + task.vectors[side]; v += selection_threads) {
    const VectorRange& range = task.ranges[side][v];
    if (!range.finite() || (range.flags & VectorRange::all_zero) != 0) continue;
    const VectorNorm norm = task.norms[side][v];
    std::int32_t tops[candidates];
    for (int r = 0; r < candidates; ++r)
      tops[r] = norm_top(task.candidates.acceptances[r].norm_top_exponent,
                         task.candidates.acceptances[r].norm_bits, norm.bits);
    extremes.add(norm, tops, task.candidates.coefficient);
  }
  add_over_warp(extremes);
  __syncthreads();  // no thread reads warp_extremes any more
  if (threadIdx.x % 32 == 0) {
    double* target = warp_extremes[threadIdx.x / 32];
    for (int r = 0; r < candidates; ++r) target[r] = extremes.grid[r];
    target[candidates] = extremes.mean;
    target[candidates + 1] = extremes.spread;
  }
  __syncthreads();
  for (int warp = 1; threadIdx.x == 0 && warp < warps; ++warp) {
    NormsOfSide other;
    for (int r = 0; r < candidates; ++r) other.grid[r] = warp_extremes[warp][r];
    other.mean = warp_extremes[warp][candidates];
    other.spread = warp_extremes[warp][candidates + 1];
    extremes.add(other);
  }
  return extremes;
}

// `proved`: bit i is set if norms prove all elements of C for candidate i.
__device__ std::int32_t first_candidate(const DeviceCandidates& candidates, const RangeSummary& a,
                                        const RangeSummary& b, std::int64_t k, unsigned proved) {
  for (int candidate = 0; candidate < candidates.count; ++candidate) {
    if (accepts(candidates.acceptances[candidate], a, b, k, (proved >> candidate & 1U) != 0))
      return candidate;
  }
  return DeviceSelection::none;
}

__device__ unsigned proved_candidates(const SelectionTask& task, std::int64_t item) {
  const NormsOfSide a = extremes_by_block(task, 0, item);
  const NormsOfSide b = extremes_by_block(task, 1, item);
  unsigned proved = 0;
#pragma unroll
  for (int r = 0; r < DeviceReport::max_candidates; ++r)
    proved |= proves(a, b, r, task.candidates.coefficient) ? 1U << r : 0U;
  return proved;
}

__device__ DeviceFit fit_of(const DeviceCandidates& candidates, const DeviceSelection& selection) {
  DeviceFit fit;
  fit.residual = fit_residual(candidates.format, candidates.residual_exponent,
                              max(selection.a.largest, selection.b.largest));
  fit.weight = static_cast<float>(power_of_two(-fit.residual.residual_exponent));
  return fit;
}

__device__ void report(const DeviceReporting& reporting, const DeviceSelection& selection, bool fits) {
  DeviceReport& report = *reporting.report;
  if (reporting.begins) report = {};
  add_to_report(report, selection);
  if (!fits) return;
  count(report.fitted);
  report.fit = selection.fit.residual;
}

template <bool by_norms>
__device__ void select(const SelectionTask& task) {
  const DeviceReporting& reporting = task.reporting;
  launch_dependents();
  if (!reporting.overlaps_products) grid_dependency_wait();
  DeviceSelection selection;
  if (is_zero(task.alpha)) {
    selection.candidate = DeviceSelection::scaled;
  } else {
    const std::int64_t item = blockIdx.x;
    summarize_sides(task, item, selection);
    selection.candidate = first_candidate(task.candidates, selection.a, selection.b, task.length,
                                          by_norms ? proved_candidates(task, item) : 0);
  }
  if (threadIdx.x != 0) return;
  const bool fits = task.candidates.fits && selection.candidate >= 0;
  if (fits) selection.fit = fit_of(task.candidates, selection);
  task.selection[blockIdx.x] = selection;
  if (reporting.report != nullptr) report(reporting, selection, fits);
  if (reporting.overlaps_products)
    grid_dependency_wait();  // kernels that wait for this one then wait for the products too
}

}  // namespace

extern "C" __global__ void __launch_bounds__(selection_threads)
    summarize_ranges(const __grid_constant__ SummaryTask task) {
  RangeSummary summary[1];
  summarize_by_block(task.ranges + blockIdx.x * task.vectors, task.vectors, summary);
  if (threadIdx.x == 0) store(task.summaries + blockIdx.x, summary[0]);
}

extern "C" __global__ void __launch_bounds__(selection_threads)
    select_candidate(const __grid_constant__ SelectionTask task) {
  select<false>(task);
}

extern "C" __global__ void __launch_bounds__(selection_threads)
    select_candidate_by_norms(const __grid_constant__ SelectionTask task) {
  select<true>(task);
}

}  // namespace kintsugi::core::cuda
