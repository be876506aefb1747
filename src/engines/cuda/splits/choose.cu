// The choice of a rung, where the ranges are.
#include <climits>

#include "engines/cuda/common/order.cuh"
#include "engines/cuda/splits/alpha.cuh"
#include "engines/cuda/splits/report.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = choice_threads / 32;

// summarize(), before it knows whether there was a vector that is not zero.
struct Extremes {
  std::int32_t span = 0;
  std::int32_t largest = INT_MIN;
  std::int32_t smallest = INT_MAX;
  bool finite = true;

  __device__ void add(const VectorRange& range) {
    finite = finite && range.finite();
    if ((range.flags & VectorRange::all_zero) != 0) return;
    add(Extremes{range.span(), range.largest, range.smallest, true});
  }
  __device__ void add(const Extremes& other) {
    span = max(span, other.span);
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
    finite = finite && other.finite;
  }
  __device__ RangeSummary summary() const {
    if (largest == INT_MIN) return {0, 0, 0, finite};
    return {span, largest, smallest, finite};
  }
};

// Whole in thread 0.
__device__ RangeSummary summarize_by_block(const VectorRange* ranges, std::int64_t vectors) {
  __shared__ Extremes of_warp[warps];
  Extremes extremes;
  for (std::int64_t v = threadIdx.x; v < vectors; v += choice_threads) extremes.add(ranges[v]);
  extremes = {__reduce_max_sync(~0U, extremes.span), __reduce_max_sync(~0U, extremes.largest),
              __reduce_min_sync(~0U, extremes.smallest), __all_sync(~0U, extremes.finite) != 0};
  __syncthreads();  // of_warp is read no more
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = extremes;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < warps; ++warp) extremes.add(of_warp[warp]);
  }
  return extremes.summary();
}

__device__ std::int32_t first_rung(const DeviceRungs& rungs, const RangeSummary& a, const RangeSummary& b) {
  const std::int32_t span = max(a.largest_span, b.largest_span);
  const std::int32_t exponent = max(a.largest, b.largest);
  for (int rung = 0; rung < rungs.count; ++rung) {
    if (span <= rungs.spans[rung] && exponent <= rungs.exponents[rung]) return rung;
  }
  return DeviceChoice::none;
}

__device__ DeviceFit fit_of(const DeviceRungs& rungs, const DeviceChoice& choice) {
  DeviceFit fit;
  fit.residual = fit_residual(rungs.format, rungs.residual_exponent, max(choice.a.largest, choice.b.largest));
  fit.weight = static_cast<float>(power_of_two(-fit.residual.residual_exponent));
  return fit;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(choice_threads)
    choose_rung(const __grid_constant__ ChoiceTask task) {
  await_others();
  DeviceChoice choice;
  if (is_zero(task.alpha)) {
    choice.rung = DeviceChoice::scaled;
  } else {
    const std::int64_t entry = blockIdx.x;
    choice.a = summarize_by_block(task.ranges[0] + entry * task.entry_ranges[0], task.vectors[0]);
    choice.b = summarize_by_block(task.ranges[1] + entry * task.entry_ranges[1], task.vectors[1]);
    choice.rung = first_rung(task.rungs, choice.a, choice.b);
  }
  if (threadIdx.x != 0) return;
  const bool fits = task.rungs.fits && choice.rung >= 0;
  if (fits) choice.fit = fit_of(task.rungs, choice);
  task.choice[blockIdx.x] = choice;
  if (task.report == nullptr) return;
  add_to_report(*task.report, choice);
  if (!fits) return;
  count(task.report->fitted);
  task.report->fit = choice.fit.residual;
}

}  // namespace kintsugi::core::cuda
