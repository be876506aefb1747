// Kernels that select the candidate of each batch item. Since the selection is made on the device, the host
// need not wait for the ranges.
#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/select/select_by_block.cuh"
#include "engines/cuda/select/selected_moduli.hpp"

namespace kintsugi::core::cuda {

namespace {

// Extremes of one operand's ranges and norms. All of them are maxima of integers, which one instruction finds
// over a warp. Numbers whose minimum is wanted are negative.
struct SideExtremes {
  static constexpr int candidates = NormCandidates::max_candidates;

  enum Index : int { dynamic_range, largest, smallest, special, elements, depth, counted, mean, grid };
  static constexpr int count = grid + candidates;

  int maxima[count];

  // Extremes of no vector.
  __device__ static int none(int index, std::int64_t length) {
    switch (index) {
      case dynamic_range:
      case special:
      case depth: return 0;
      case smallest:
      case elements: return -INT_MAX;
      case counted: return -static_cast<int>(min(length, std::int64_t{INT_MAX}));
      default: return INT_MIN;
    }
  }
  __device__ explicit SideExtremes(std::int64_t length) {
#pragma unroll
    for (int i = 0; i < count; ++i) maxima[i] = none(i, length);
  }

  __device__ void raise(int index, int number) { maxima[index] = max(maxima[index], number); }

  __device__ void add(const VectorRange& range) {
    raise(special, range.finite() ? 0 : 1);
    if ((range.flags & VectorRange::all_zero) != 0) return;
    raise(dynamic_range, range.dynamic_range());
    raise(largest, range.largest);
    raise(smallest, -range.smallest);
    raise(elements, -range.elements);
    raise(depth, range.depth);
  }
  __device__ void add(const VectorNorm& norm, const NormCandidates& chain, const NormTerms& terms) {
    std::int32_t tops[candidates];
#pragma unroll
    for (int c = 0; c < candidates; ++c)
      tops[c] = norm_top(chain.acceptances[c].norm_top_exponent, chain.acceptances[c].norm_bits, norm.bits);
    NormExtremes<candidates> extremes;
    extremes.add(norm, tops, terms, chain.coefficient);
    raise(counted, -norm.elements);
    raise(mean, extremes.mean);
#pragma unroll
    for (int c = 0; c < candidates; ++c) raise(grid + c, extremes.grid[c]);
  }
};

// Extremes of one operand in shared memory.
struct StoredExtremes {
  int maxima[SideExtremes::count];

  __device__ RangeSummary summary() const {
    return RangeExtremes{.dynamic_range = maxima[SideExtremes::dynamic_range],
                         .largest = maxima[SideExtremes::largest],
                         .smallest = -maxima[SideExtremes::smallest],
                         .finite = maxima[SideExtremes::special] == 0,
                         .elements = -maxima[SideExtremes::elements],
                         .depth = maxima[SideExtremes::depth]}
        .summary();
  }
  __device__ NormExtremes<1> norms(int candidate) const {
    NormExtremes<1> extremes;
    extremes.grid[0] = maxima[SideExtremes::grid + candidate];
    extremes.mean = maxima[SideExtremes::mean];
    return extremes;
  }
};

// Number of thread blocks of a batch item, which are a cluster, and the number of this one.
__device__ int blocks_of_item() {
#if __CUDA_ARCH__ >= 900
  return cluster_size();
#else
  return 1;
#endif
}
__device__ int block_of_item() {
#if __CUDA_ARCH__ >= 900
  return block_rank_in_cluster();
#else
  return 0;
#endif
}

// Sets the extremes to those of no vectors, after all threads have read the last ones. Arrives at the
// cluster's barrier, at which merge_blocks() waits.
__device__ void clear(StoredExtremes (&stored)[2], std::int64_t length) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (thread < 2 * SideExtremes::count)
    stored[thread / SideExtremes::count].maxima[thread % SideExtremes::count] =
        SideExtremes::none(thread % SideExtremes::count, length);
  __syncthreads();
#if __CUDA_ARCH__ >= 900
  if (blocks_of_item() > 1) cluster_arrive();
#endif
}

// Merges the extremes of all thread blocks of the item, so that each block has the item's, after all blocks
// have called clear().
__device__ void merge_blocks(StoredExtremes (&stored)[2]) {
#if __CUDA_ARCH__ >= 900
  const int blocks = cluster_size();
  if (blocks == 1) return;
  cluster_wait();
  constexpr int numbers = 2 * SideExtremes::count;
  for (int i = static_cast<int>(threadIdx.x); i < blocks * numbers; i += selection_threads) {
    int* number = &stored[i % numbers / SideExtremes::count].maxima[i % SideExtremes::count];
    asm volatile("red.relaxed.cluster.shared::cluster.max.s32 [%0], %1;" ::"r"(
                     map_to_block(shared_address(number), static_cast<unsigned>(i / numbers))),
                 "r"(*number)
                 : "memory");
  }
  cluster_arrive();
  cluster_wait();
#endif
}

// Finds the extremes of both operands. The first half of the threads visits the vectors of A, the second half
// those of B; `side` is the operand of this thread's half. Returns, for all threads, the terms that the least
// numbers of counted elements give. The extremes are the product's if these are `terms`.
__device__ NormTerms find_extremes(const SelectionTask& task, const NormCandidates& chain,
                                   const SelectionSide& side, const NormTerms& terms,
                                   StoredExtremes (&stored)[2]) {
  constexpr int threads_of_side = selection_threads / 2;
  const int thread = static_cast<int>(threadIdx.x);
  clear(stored, task.length);
  SideExtremes extremes(task.length);
  const std::int64_t step = blocks_of_item() * threads_of_side * side.norm_step;
  std::int64_t v = (block_of_item() * threads_of_side + thread % threads_of_side) * side.norm_step;
#pragma unroll 1
  for (; v < side.vectors; v += step) {
    const VectorRange range = side.ranges[v];
    extremes.add(range);
    if (range.flags == 0) extremes.add(side.norms[v], chain, terms);
  }
#pragma unroll
  for (int i = 0; i < SideExtremes::count; ++i) {
    const int most = __reduce_max_sync(~0U, extremes.maxima[i]);
    if (thread % 32 == 0) atomicMax(&stored[thread / threads_of_side].maxima[i], most);
  }
  __syncthreads();
  merge_blocks(stored);
  return NormTerms::of(task.length, -stored[0].maxima[SideExtremes::counted],
                       -stored[1].maxima[SideExtremes::counted]);
}

// Finds the summaries of both operands' ranges, and returns a bit for each candidate that norms prove. Each
// lane of the first warp tests one candidate, and the bits are complete in this warp. Few operands have
// vectors with zeros. So the extremes are first found as if there were none, and again if there are.
__device__ unsigned summarize_and_prove(const SelectionTask& task, const NormCandidates& chain,
                                        const SelectionSide& side, DeviceSelection& selection) {
  constexpr int candidates = NormCandidates::max_candidates;
  __shared__ StoredExtremes stored[2];
  NormTerms terms{task.length, task.length};
#pragma unroll 1
  for (;;) {
    const NormTerms counted = find_extremes(task, chain, side, terms, stored);
    if (counted.common == terms.common) break;
    terms = counted;
  }
  selection.a = stored[0].summary();
  selection.b = stored[1].summary();
  const int candidate = min(static_cast<int>(threadIdx.x), candidates - 1);
  const bool is_proved = threadIdx.x < 32 && proves(stored[0].norms(candidate), stored[1].norms(candidate), 0,
                                                    terms, chain.coefficient);
  return __ballot_sync(~0U, is_proved) & ((1U << candidates) - 1);
}

// A vector that is not of any operand.
__device__ VectorRange no_range{.flags = 0};
__device__ VectorNorm no_norm{};

// Returns the first candidate that accepts the operands, of which norms prove those in `proved`. A chain
// whose candidates are all accepted by norms has no other acceptances.
__device__ std::int32_t first_of_chain(const SelectionTask& task, const NormCandidates& chain,
                                       const DeviceSelection& selection, unsigned proved) {
  if (task.candidates.count == 0) return __ffs(static_cast<int>(proved | 1U << chain.count)) - 1;
  return first_candidate(task.candidates, selection.a, selection.b, task.length, proved);
}

// Sets the selection's candidate and summaries by norms. They are complete in thread 0.
//
// The instructions run once, and fetching them takes longer than executing them. So they run twice: first on
// a vector of no operand, while the kernels before this one still work, and then on the operands.
__device__ void select_by_norms(const SelectionTask& task, const NormCandidates& chain,
                                DeviceSelection& selection) {
  constexpr int last_pass = 1;
  const int item = static_cast<int>(blockIdx.x) / blocks_of_item();
  const int side = threadIdx.x < selection_threads / 2 ? 0 : 1;
  int pass = 0;
  asm volatile("" : "+r"(pass));  // the compiler must not separate the passes
#pragma unroll 1
  for (; pass <= last_pass; ++pass) {
    SelectionSide vectors(&no_range, &no_norm, 1);
    if (pass == last_pass) {
      grid_dependency_wait();
      selection.candidate = DeviceSelection::scaled;
      if (is_zero(task.alpha)) return;
      vectors = {task, side, item};
    }
    const unsigned proved = summarize_and_prove(task, chain, vectors, selection);
    selection.candidate = first_of_chain(task, chain, selection, proved);
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
__device__ void store(const SelectionTask& task, std::int64_t item, DeviceSelection& selection) {
  const DeviceReporting& reporting = task.reporting;
  const bool fits = task.candidates.fits && selection.candidate >= 0;
  if (fits) selection.fit = fit_of(task.candidates, selection);
  task.selection[item] = selection;
  if (reporting.report != nullptr) report(reporting, selection, fits);
}

// store() for chains with more candidates than a DeviceReport counts.
__device__ void store_in_long_report(const SelectionTask& task, std::int64_t item,
                                     const DeviceSelection& selection) {
  task.selection[item] = selection;
  if (task.reporting.report == nullptr) return;
  auto& all = *reinterpret_cast<LongDeviceReport*>(task.reporting.report);
  if (task.reporting.begins) all = {};
  const int more = selection.candidate - DeviceReport::max_candidates;
  if (more < 0) return add_to_report(all.report, selection);
  count(all.more_items[more]);
  add_ranges_to_report(all.report, selection);
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
  const bool overlaps_products = task.reporting.overlaps_products;
  launch_dependents();
  if (!overlaps_products) grid_dependency_wait();
  __shared__ RangeStaging<selection_threads> staging;
  DeviceSelection selection;
  select_by_block<selection_threads>(task, blockIdx.x, staging, selection);
  if (threadIdx.x != 0) return;
  store(task, blockIdx.x, selection);
  // This kernel may have overlapped the products. It ends after them, because kernels that wait for this one
  // must also wait for the products.
  if (overlaps_products) grid_dependency_wait();
}

extern "C" __global__ void __launch_bounds__(selection_threads, 2)
    select_candidate_by_norms(const __grid_constant__ SelectionTask task,
                              const __grid_constant__ NormCandidates chain) {
  launch_dependents();
  DeviceSelection selection;
  select_by_norms(task, chain, selection);
  if (threadIdx.x != 0 || block_of_item() != 0) return;
  const std::int64_t item = blockIdx.x / blocks_of_item();
  if (task.candidates.count > 0) {
    store(task, item, selection);
  } else {
    store_in_long_report(task, item, selection);
  }
}

}  // namespace kintsugi::core::cuda
