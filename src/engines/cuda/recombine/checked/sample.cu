// Selection of the checked candidate that computes a batch item first, by a sample of the elements of the
// product. Each sampled element is summed in FP64. The chance that a candidate leaves an element open follows
// from the element's sum and from the rounding-error bounds of its row and column.
#include <algorithm>
#include <type_traits>

#include "arith/residue/residue.hpp"
#include "arith/rounding_bound.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/checked/chain_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int candidates = DeviceCheckedChain::max_candidates;

__device__ double sum_over_warp(double x) {
  for (int lane = 1; lane < 32; lane <<= 1) x += __shfl_xor_sync(~0U, x, lane);
  return x;
}

// A vector scaled so that its largest magnitude is at least 1 and below 2. It counts what bounds the errors
// of rounding it to the integers of each candidate.
template <class T>
class SampledVector {
 public:
  __device__ SampledVector(const DeviceSide& side, std::int64_t vector)
      : matrix_(side.matrix), vector_(vector), range_(side.ranges[vector]),
        factors_(two_factors(is_finite_and_nonzero() ? -range_.largest : 0)) {
    if (side.matrix.complex()) {
      start_ = reinterpret_cast<const T*>(matrix_start<std::complex<T>>(side.matrix, side.item));
    } else {
      start_ = matrix_start<T>(side.matrix, side.item);
    }
  }

  __device__ bool is_finite_and_nonzero() const {
    return range_.finite() && (range_.flags & VectorRange::all_zero) == 0;
  }

  // Returns element p and counts it in the bounds of all candidates. `tops` are the exponents of the
  // candidates' largest integers.
  __device__ double take(std::int64_t p, const int (&tops)[candidates]) {
    const double x =
        static_cast<double>(real_element(matrix_, start_, vector_, p)) * factors_.first * factors_.second;
    magnitudes_ += fabs(x);
#pragma unroll
    for (int c = 0; c < candidates; ++c) {
      const double scaled = x * power_of_two(tops[c]);
      inexact_[c] += nearest_integer(scaled) != scaled ? 1 : 0;
    }
    return x;
  }

  // Rounding-error bound of the whole vector for candidate c. `top` is the exponent of its largest integers.
  // The warp's lanes took one of every `factor` elements; so their sums count `factor` times. All lanes must
  // call it together.
  __device__ RoundingBound bound(int c, int top, double factor) const {
    return {sum_over_warp(inexact_[c]) * factor, sum_over_warp(magnitudes_) * factor * power_of_two(top)};
  }

 private:
  const DeviceMatrix& matrix_;
  std::int64_t vector_;
  VectorRange range_;
  TwoFactors factors_;
  const T* start_;
  double magnitudes_ = 0;
  double inexact_[candidates] = {};
};

// Index, among all `vectors` of an operand, of the i-th of `count` sampled vectors. Each sampled vector has a
// pseudo-random place in its share of the vectors, because a fixed distance could meet a period of the
// operand.
__device__ std::int64_t sampled_vector(std::int64_t i, std::int64_t count, std::int64_t vectors) {
  const std::int64_t share = vectors / count;
  const auto hash = static_cast<std::uint32_t>(i) * 2654435761U;  // Knuth's multiplicative hash
  return i * share + static_cast<std::int64_t>(hash >> 8) % share;
}

// Computes sampled element number `pair` of the product, and adds to the block's state the chances that the
// candidates leave it open. One warp calls it.
template <class T>
__device__ void add_chances(const SampleTask& task, std::int64_t pair) {
  SampledVector<T> a(task.sides[0],
                     sampled_vector(pair % task.vectors[0], task.vectors[0], task.sides[0].matrix.vectors()));
  SampledVector<T> b(task.sides[1],
                     sampled_vector(pair / task.vectors[0], task.vectors[1], task.sides[1].matrix.vectors()));
  if (!a.is_finite_and_nonzero() || !b.is_finite_and_nonzero()) return;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  double sum = 0;
#pragma unroll 2
  for (std::int64_t q = lane; q < task.length; q += 32) {
    const std::int64_t p = q / sample_run * sample_run * task.step + q % sample_run;
    sum = fma(a.take(p, task.chain.top_a), b.take(p, task.chain.top_b), sum);
  }
  const double factor = static_cast<double>(task.sides[0].matrix.length()) / static_cast<double>(task.length);
  // A sum of products with random signs grows as the square root of their number.
  sum = sum_over_warp(sum) * sqrt(factor);
#pragma unroll
  for (int c = 0; c < candidates; ++c) {
    const int top_a = task.chain.top_a[c];
    const int top_b = task.chain.top_b[c];
    const double deviation = largest_deviation(a.bound(c, top_a, factor), b.bound(c, top_b, factor),
                                               power_of_two(top_a + 1), power_of_two(top_b + 1));
    if (lane != 0 || c >= task.chain.count) continue;  // must follow bound(), which needs all lanes
    const double chance = chance_of_open(sum * power_of_two(top_a + top_b), deviation, task.digits);
    atomicAdd(reinterpret_cast<unsigned long long*>(&task.state->chances[c]),
              static_cast<unsigned long long>(times_power_of_two(chance, DeviceCheckState::chance_bits)));
  }
}

// Counts this thread block as finished. Returns true, in all of its threads, if no other thread block is
// left. The chances are then complete.
__device__ bool finishes_last(DeviceCheckState& state) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&state.sampling_blocks, 1U) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// Selects the candidate that is expected to be cheapest. Corrects the report, which has counted the item with
// the chain's first candidate. One thread must call it.
__device__ void select_cheapest(const SampleTask& task) {
  const double sampled_elements = static_cast<double>(task.vectors[0] * task.vectors[1]);
  double open_shares[candidates] = {};
  for (int c = 0; c < task.chain.count; ++c) {
    const double chances = static_cast<double>(__ldcg(&task.state->chances[c]));
    open_shares[c] =
        std::min(1.0, task.parts * chances / sampled_elements / (1 << DeviceCheckState::chance_bits));
  }
  double cost = 0;
  const int cheapest = cheapest_candidate(task.chain, 0, open_shares, cost);
  if (cheapest == 0) return;
  task.selection->candidate = task.chain.first + cheapest;
  if (task.report == nullptr) return;
  auto* items = reinterpret_cast<unsigned long long*>(task.report->items);
  atomicAdd(items + task.chain.first, ~0ULL);  // subtracts 1
  atomicAdd(items + task.chain.first + cheapest, 1ULL);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(sample_threads)
    sample_open_elements(const __grid_constant__ SampleTask task) {
  begin_dependent_kernel();
  if (__ldcg(&task.selection->candidate) != task.chain.first) return;
  const std::int64_t pair = (std::int64_t{blockIdx.x} * sample_threads + threadIdx.x) / 32;
  const ElementType type = task.sides[0].matrix.type;
  if (pair < task.vectors[0] * task.vectors[1]) {
    if (type == ElementType::f64 || type == ElementType::c64) {
      add_chances<double>(task, pair);
    } else {
      add_chances<float>(task, pair);
    }
  }
  if (finishes_last(*task.state) && threadIdx.x == 0) select_cheapest(task);
}

}  // namespace kintsugi::core::cuda
