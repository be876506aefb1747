// Selection of a candidate by ranges, by one thread block of `threads` threads for a batch item.
#pragma once

#include <climits>

#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/report.cuh"

namespace kintsugi::core::cuda {

inline constexpr int range_words = sizeof(VectorRange) / sizeof(int);
static_assert(sizeof(VectorRange) % sizeof(int) == 0);

// State of summarize() before it is known whether any vector is not zero.
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

inline constexpr int beside = 64;  // ranges that a warp loads together
inline constexpr int at_once = 4;  // such loads in flight at the same time
using RangeWords = int[beside * range_words / 32];

// Loads up to `beside` ranges so that neighboring lanes load neighboring words: a range is longer than one
// access, and with a lane for each range every sector would be fetched once per word. Bypasses L1, which may
// hold lines of an earlier call where this kernel did not wait for that one.
__device__ inline void load_ranges(const VectorRange* ranges, std::int64_t count, RangeWords& loaded) {
  const int* source = reinterpret_cast<const int*>(ranges);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < beside * range_words / 32; ++i) {
    if (lane + 32 * i < count * range_words) loaded[i] = __ldcg(source + lane + 32 * i);
  }
}

// Adds those ranges to `extremes`, by way of the warp's own shared memory.
__device__ inline void add_ranges(const RangeWords& loaded, std::int64_t count,
                                  int (&shared)[beside * range_words], Extremes& extremes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < beside * range_words / 32; ++i) shared[lane + 32 * i] = loaded[i];
  __syncwarp();
  for (int v = lane; v < beside && v < count; v += 32) {
    VectorRange range;
    memcpy(&range, shared + v * range_words, sizeof range);
    extremes.add(range);
  }
}

// Summarizes the ranges of one operand or two. With two, half of the warps have the ranges of each. The
// result is complete in thread 0.
template <int threads, int sides>
__device__ void summarize_by_block(const VectorRange* ranges, std::int64_t vectors,
                                   RangeSummary (&summaries)[sides]) {
  constexpr int warps = threads / 32;
  constexpr int of_side = warps / sides;
  constexpr std::int64_t step = of_side * beside;
  __shared__ Extremes of_warp[warps];
  __shared__ int staged[warps][beside * range_words];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Extremes extremes;
  for (std::int64_t v = warp % of_side * beside; v < vectors; v += at_once * step) {
    RangeWords loaded[at_once] = {};
#pragma unroll
    for (int i = 0; i < at_once; ++i) load_ranges(ranges + v + i * step, vectors - v - i * step, loaded[i]);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (v + i * step < vectors) add_ranges(loaded[i], vectors - v - i * step, staged[warp], extremes);
    }
  }
  extremes = {__reduce_max_sync(~0U, extremes.span),     __reduce_max_sync(~0U, extremes.largest),
              __reduce_min_sync(~0U, extremes.smallest), __all_sync(~0U, extremes.finite) != 0,
              __reduce_min_sync(~0U, extremes.elements), __reduce_max_sync(~0U, extremes.depth)};
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = extremes;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int side = 0; side < sides; ++side) {
    Extremes all;
#pragma unroll
    for (int i = 0; i < of_side; ++i) all.add(of_warp[side * of_side + i]);
    summaries[side] = all.summary();
  }
}

inline constexpr int summary_words = sizeof(RangeSummary) / sizeof(int);
static_assert(sizeof(RangeSummary) % sizeof(int) == 0);

// Loads a summary, bypassing L1 as load_ranges() does.
__device__ inline RangeSummary load(const RangeSummary* source) {
  int loaded[summary_words];
  for (int i = 0; i < summary_words; ++i) loaded[i] = __ldcg(reinterpret_cast<const int*>(source) + i);
  RangeSummary summary;
  memcpy(&summary, loaded, sizeof summary);
  return summary;
}

// Stores all words of a summary, padding included.
__device__ inline void store(RangeSummary* target, const RangeSummary& summary) {
  int stored[summary_words];
  memcpy(stored, &summary, sizeof summary);
  for (int i = 0; i < summary_words; ++i) reinterpret_cast<int*>(target)[i] = stored[i];
}

// Sets selection.a and selection.b, which are complete in thread 0.
template <int threads>
__device__ void summarize_sides(const SelectionTask& task, std::int64_t item, DeviceSelection& selection) {
  const auto item_of = [&](int side) { return task.is_shared[side] ? 0 : item; };
  RangeSummary known[2];
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    if (threadIdx.x == 0 && task.summaries[side] != nullptr)
      known[side] = load(task.summaries[side] + item_of(side));
  }
  const int own = static_cast<int>(threadIdx.x) / (threads / 2);
  RangeSummary found[2];
  summarize_by_block<threads>(task.ranges[own] + item_of(own) * task.vectors[own],
                              task.summaries[own] == nullptr ? task.vectors[own] : 0, found);
  selection.a = task.summaries[0] == nullptr ? found[0] : known[0];
  selection.b = task.summaries[1] == nullptr ? found[1] : known[1];
}

// `proved`: bit i is set if norms prove all elements of C for candidate i.
__device__ inline std::int32_t first_candidate(const DeviceCandidates& candidates, const RangeSummary& a,
                                               const RangeSummary& b, std::int64_t k, unsigned proved) {
  for (int candidate = 0; candidate < candidates.count; ++candidate) {
    if (accepts(candidates.acceptances[candidate], a, b, k, (proved >> candidate & 1U) != 0))
      return candidate;
  }
  return DeviceSelection::none;
}

// Sets the item's candidate and summaries, which are complete in thread 0; `proved` has the candidates that
// norms prove.
template <int threads, class Proved>
__device__ void select_by_block(const SelectionTask& task, std::int64_t item, DeviceSelection& selection,
                                const Proved& proved) {
  if (is_zero(task.alpha)) {
    selection.candidate = DeviceSelection::scaled;
    return;
  }
  summarize_sides<threads>(task, item, selection);
  selection.candidate = first_candidate(task.candidates, selection.a, selection.b, task.length, proved());
}

__device__ inline void report(const DeviceReporting& reporting, const DeviceSelection& selection, bool fits) {
  DeviceReport& report = *reporting.report;
  if (reporting.begins) report = {};
  add_to_report(report, selection);
  if (!fits) return;
  count(report.fitted);
  report.fit = selection.fit.residual;
}

}  // namespace kintsugi::core::cuda
