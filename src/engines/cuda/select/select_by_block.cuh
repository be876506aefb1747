// Selection of a batch item's candidate from the ranges of the item's vectors, by one thread block of
// `threads` threads.
#pragma once

#include <climits>

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

inline constexpr int range_ints = sizeof(VectorRange) / sizeof(int);
static_assert(sizeof(VectorRange) % sizeof(int) == 0);

// Extremes of the ranges that a thread has read so far. `largest` is INT_MIN while all vectors are zero.
struct RangeExtremes {
  std::int32_t dynamic_range;  // largest dynamic range
  std::int32_t largest;        // largest exponent
  std::int32_t smallest;       // smallest exponent
  bool finite;                 // true if no vector has NaN or infinities
  std::int32_t elements;       // smallest number of non-zero elements of a vector
  std::int32_t depth;          // largest depth

  __device__ static RangeExtremes none() { return {0, INT_MIN, INT_MAX, true, INT_MAX, 0}; }

  __device__ void add(const VectorRange& range) {
    finite = finite && range.finite();
    if ((range.flags & VectorRange::all_zero) != 0) return;
    add(RangeExtremes{.dynamic_range = range.dynamic_range(),
                      .largest = range.largest,
                      .smallest = range.smallest,
                      .finite = true,
                      .elements = range.elements,
                      .depth = range.depth});
  }
  __device__ void add(const RangeExtremes& other) {
    dynamic_range = max(dynamic_range, other.dynamic_range);
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
    finite = finite && other.finite;
    elements = min(elements, other.elements);
    depth = max(depth, other.depth);
  }
  __device__ RangeSummary summary() const {
    if (largest == INT_MIN) return {0, 0, 0, finite};
    return {dynamic_range, largest, smallest, finite, elements, depth};
  }
};

inline constexpr int ranges_per_load = 64;                    // ranges that a warp loads together
inline constexpr int loads_in_flight = 4;                     // number of such loads at the same time
using LoadedRanges = int[ranges_per_load * range_ints / 32];  // one lane's share of a load

// Loads up to `ranges_per_load` ranges. Neighboring lanes load neighboring ints. (A range is longer than one
// access: if each lane loaded a range of its own, every sector would be fetched once for each of its ints.)
// The loads bypass L1, which may have lines of an earlier call if this kernel did not wait for that call.
__device__ inline void load_ranges(const VectorRange* ranges, std::int64_t count, LoadedRanges& loaded) {
  const int* source = reinterpret_cast<const int*>(ranges);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < ranges_per_load * range_ints / 32; ++i) {
    if (lane + 32 * i < count * range_ints) loaded[i] = __ldcg(source + lane + 32 * i);
  }
}

// Shared memory of a thread block that summarizes ranges: the loads and the results of each warp.
template <int threads>
struct RangeStaging {
  static constexpr int warps = threads / 32;

  int loaded[warps][ranges_per_load * range_ints];
  RangeExtremes extremes[warps];
};

// Adds the loaded ranges to `extremes`. They pass through the warp's shared memory, which turns the single
// ints of the lanes into whole ranges.
__device__ inline void add_ranges(const LoadedRanges& loaded, std::int64_t count,
                                  int (&shared)[ranges_per_load * range_ints], RangeExtremes& extremes) {
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

// Finds the extremes of the ranges of one operand (sides = 1) or of two operands (sides = 2). With two
// operands, the first half of the warps must pass the ranges of one operand, and the second half those of the
// other. The result is complete in thread 0.
template <int threads, int sides>
__device__ void extremes_by_block(const VectorRange* ranges, std::int64_t vectors,
                                  RangeStaging<threads>& staging, RangeExtremes (&found)[sides]) {
  constexpr int warps_per_side = threads / 32 / sides;
  constexpr std::int64_t step = warps_per_side * ranges_per_load;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  RangeExtremes extremes = RangeExtremes::none();
  for (std::int64_t v = warp % warps_per_side * ranges_per_load; v < vectors; v += loads_in_flight * step) {
    LoadedRanges loaded[loads_in_flight] = {};
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i)
      load_ranges(ranges + v + i * step, vectors - v - i * step, loaded[i]);
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
      if (v + i * step < vectors)
        add_ranges(loaded[i], vectors - v - i * step, staging.loaded[warp], extremes);
    }
  }
  extremes = {__reduce_max_sync(~0U, extremes.dynamic_range), __reduce_max_sync(~0U, extremes.largest),
              __reduce_min_sync(~0U, extremes.smallest),      __all_sync(~0U, extremes.finite) != 0,
              __reduce_min_sync(~0U, extremes.elements),      __reduce_max_sync(~0U, extremes.depth)};
  if (threadIdx.x % 32 == 0) staging.extremes[warp] = extremes;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int side = 0; side < sides; ++side) {
    found[side] = RangeExtremes::none();
#pragma unroll
    for (int i = 0; i < warps_per_side; ++i) found[side].add(staging.extremes[side * warps_per_side + i]);
  }
}

// Bias of exponents in a MergedSummary. The largest exponent is added to it, the smallest one is subtracted
// from it. So merged words are positive and only grow.
inline constexpr std::int32_t exponent_bias = 1 << 20;

// Merges extremes into a summary atomically, because other thread blocks merge theirs at the same time.
__device__ inline void merge(MergedSummary* summary, const RangeExtremes& extremes) {
  const bool is_zero = extremes.largest == INT_MIN;
  const MergedSummary merged{
      .dynamic_range = static_cast<std::uint32_t>(extremes.dynamic_range),
      .biased_largest = static_cast<std::uint32_t>(is_zero ? 0 : exponent_bias + extremes.largest),
      .biased_smallest = static_cast<std::uint32_t>(is_zero ? 0 : exponent_bias - extremes.smallest),
      .has_special = extremes.finite ? 0U : 1U,
      .elements_below_max = static_cast<std::uint32_t>(INT_MAX - extremes.elements),
      .depth = static_cast<std::uint32_t>(extremes.depth)};
  atomicMax(&summary->dynamic_range, merged.dynamic_range);
  atomicMax(&summary->biased_largest, merged.biased_largest);
  atomicMax(&summary->biased_smallest, merged.biased_smallest);
  atomicMax(&summary->has_special, merged.has_special);
  atomicMax(&summary->elements_below_max, merged.elements_below_max);
  atomicMax(&summary->depth, merged.depth);
}

// Loads a summary. The loads bypass L1 for the reason that load_ranges() gives.
__device__ inline RangeSummary load(const MergedSummary* source) {
  const auto read = [](const std::uint32_t& word) { return static_cast<std::int32_t>(__ldcg(&word)); };
  const std::int32_t dynamic_range = read(source->dynamic_range);
  const std::int32_t biased_largest = read(source->biased_largest);
  const std::int32_t biased_smallest = read(source->biased_smallest);
  const std::int32_t has_special = read(source->has_special);
  const std::int32_t elements_below_max = read(source->elements_below_max);
  const std::int32_t depth = read(source->depth);
  RangeExtremes extremes = RangeExtremes::none();
  extremes.finite = has_special == 0;
  if (biased_largest != 0) {
    extremes = {.dynamic_range = dynamic_range,
                .largest = biased_largest - exponent_bias,
                .smallest = exponent_bias - biased_smallest,
                .finite = has_special == 0,
                .elements = INT_MAX - elements_below_max,
                .depth = depth};
  }
  return extremes.summary();
}

// One operand of a batch item whose candidate is selected.
struct SelectionSide {
  const VectorRange* ranges;
  const VectorNorm* norms;
  const MergedSummary* summary;  // nullptr: the ranges are not summarized yet
  std::int64_t vectors;
  std::int64_t norm_step;  // SelectionTask::norm_step

  __device__ SelectionSide(const SelectionTask& task, int side, std::int64_t item)
      : ranges(task.ranges[side]), norms(task.norms[side]), summary(task.summaries[side]),
        vectors(task.vectors[side]), norm_step(task.norm_step[side]) {
    if (task.is_shared[side]) return;
    ranges += item * vectors;
    if (norms != nullptr) norms += item * vectors;
    if (summary != nullptr) summary += item;
  }
  __device__ SelectionSide(const VectorRange* known_ranges, const VectorNorm* known_norms, std::int64_t count)
      : ranges(known_ranges), norms(known_norms), summary(nullptr), vectors(count), norm_step(1) {}
};

// Sets selection.a and selection.b. They are complete in thread 0.
template <int threads>
__device__ void summarize_sides(const SelectionSide& a, const SelectionSide& b,
                                RangeStaging<threads>& staging, DeviceSelection& selection) {
  RangeSummary known_a;  // summaries that an earlier kernel made
  RangeSummary known_b;
  if (threadIdx.x == 0 && a.summary != nullptr) known_a = load(a.summary);
  if (threadIdx.x == 0 && b.summary != nullptr) known_b = load(b.summary);
  const bool is_of_a = threadIdx.x < threads / 2;
  const std::int64_t unknown_a = a.summary == nullptr ? a.vectors : 0;
  const std::int64_t unknown_b = b.summary == nullptr ? b.vectors : 0;
  RangeExtremes found[2];
  extremes_by_block<threads>(is_of_a ? a.ranges : b.ranges, is_of_a ? unknown_a : unknown_b, staging, found);
  selection.a = a.summary == nullptr ? found[0].summary() : known_a;
  selection.b = b.summary == nullptr ? found[1].summary() : known_b;
}

// Returns the first candidate that accepts the operands, or DeviceSelection::none. Bit i of `proved` must be
// set if norms prove all elements of C for candidate i.
__device__ inline std::int32_t first_candidate(const DeviceCandidates& candidates, const RangeSummary& a,
                                               const RangeSummary& b, std::int64_t k, unsigned proved) {
  for (int candidate = 0; candidate < candidates.count; ++candidate) {
    if (accepts(candidates.acceptances[candidate], a, b, k, (proved >> candidate & 1U) != 0))
      return candidate;
  }
  return DeviceSelection::none;
}

// Sets the selection's candidate and summaries by the operands' ranges. They are complete in thread 0. All
// threads must call it together.
template <int threads>
__device__ void select_by_block(const SelectionTask& task, std::int64_t item, RangeStaging<threads>& staging,
                                DeviceSelection& selection) {
  if (is_zero(task.alpha)) {
    selection.candidate = DeviceSelection::scaled;
    return;
  }
  summarize_sides<threads>({task, 0, item}, {task, 1, item}, staging, selection);
  constexpr unsigned none_proved = 0;  // by norms
  selection.candidate = first_candidate(task.candidates, selection.a, selection.b, task.length, none_proved);
}

// Adds the selection to the report. `fits` is true if the item's residuals were fitted. One thread must call
// it.
__device__ inline void report(const DeviceReporting& reporting, const DeviceSelection& selection, bool fits) {
  DeviceReport& report = *reporting.report;
  if (reporting.begins) report = {};
  add_to_report(report, selection);
  if (!fits) return;
  count(report.fitted);
  report.fit = selection.fit.residual;
}

}  // namespace kintsugi::core::cuda
