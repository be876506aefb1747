// Kernels that run between the checked candidates of a block of C. They select the candidate that computes
// the block next, and list the elements that the last candidate left open.
#include <algorithm>
#include <type_traits>

#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/checked/checked.hpp"

namespace kintsugi::core::cuda {

// With a selection it begins a block of C that no candidate has computed yet, with the candidate that was
// selected for its batch item. Without one it does nothing unless candidate `index` of the chain has computed
// the block. Then it selects the candidate that computes the block next, or ends the chain if exact sums of
// the open elements are expected to take less time.
extern "C" __global__ void advance_checks(const __grid_constant__ DeviceCheckedChain chain, int index,
                                          double elements, const DeviceSelection* selection,
                                          DeviceCheckState* state) {
  begin_dependent_kernel();
  if (threadIdx.x != 0) return;
  if (selection != nullptr) {
    state->current.candidate = __ldcg(&selection->candidate);
    state->open = 0;
    state->is_rewritten = state->listed = state->taken = 0;
    return;
  }
  if (__ldcg(&state->current.candidate) != chain.first + index) return;
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

// Selection of the checked candidate that computes a batch item first, by a sample of the elements of the
// product. Each sampled element is summed in FP64. The chance that a candidate leaves an element open follows
// from the element's sum and from the rounding errors of its row and column.

namespace {

constexpr int candidates = DeviceCheckedChain::max_candidates;

constexpr int warps = sample_threads / 32;
constexpr int loads_in_flight = 4;  // elements of each vector that a thread loads before it uses one

// Sums each of `count` numbers over the thread block. Thread 0 gets the sums. All threads must call it
// together, once.
template <int count>
__device__ void sum_over_block(double (&x)[count]) {
  __shared__ double of_warps[warps][count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    for (int lane = 1; lane < 32; lane <<= 1) x[i] += __shfl_xor_sync(~0U, x[i], lane);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][i] = x[i];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < count; ++i) {
    x[i] = 0;
    for (int warp = 0; warp < warps; ++warp) x[i] += of_warps[warp][i];
  }
}

// A vector scaled so that its largest magnitude is at least 1 and below 2. It sums the errors of
// rounding it to the integers of each candidate.
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

  // Sets tops[c] to the exponent that candidate c gives the largest magnitude. `tops` are those by exponents.
  __device__ void find_tops(const DeviceSide& side, const DeviceCheckedChain& chain,
                            const int (&tops_by_exponents)[candidates]) {
#pragma unroll
    for (int c = 0; c < candidates; ++c) {
      tops_[c] = tops_by_exponents[c];
      if (chain.sum_bits[c] != 0) tops_[c] = norm_top(tops_[c], chain.sum_bits[c], side.norms[vector_].bits);
    }
  }
  __device__ int top(int c) const { return tops_[c]; }

  __device__ T load(std::int64_t p) const { return real_element(matrix_, start_, vector_, p); }

  // Returns the scaled element and counts it in the bounds of all candidates.
  __device__ double take(T element) {
    const double x = static_cast<double>(element) * factors_.first * factors_.second;
    sums_[0] += fabs(x);
#pragma unroll
    for (int c = 0; c < candidates; ++c) {
      const double scaled = x * power_of_two(tops_[c]);
      sums_[1 + c] += fabs(nearest_integer(scaled) - scaled);
    }
    return x;
  }

  // Sums that a thread has counted: magnitudes, and rounding errors for each candidate.
  static constexpr int sums = 1 + candidates;
  __device__ const double (&counted() const)[sums] { return sums_; }

  // Rounding errors of the whole vector for candidate c. `total` are the sums of all threads, who took one of
  // every `factor` elements; so these sums count `factor` times.
  __device__ RoundingErrors errors(int c, const double* total, double factor) const {
    return {total[1 + c] * factor, total[0] * factor * power_of_two(tops_[c]), power_of_two(tops_[c] + 1)};
  }

 private:
  const DeviceMatrix& matrix_;
  std::int64_t vector_;
  VectorRange range_;
  TwoFactors factors_;
  const T* start_;
  int tops_[candidates] = {};
  double sums_[sums] = {};
};

// Index, among all `vectors` of an operand, of the i-th of `count` sampled vectors. Each sampled vector has a
// pseudo-random place in its share of the vectors, because a fixed distance could meet a period of the
// operand.
__device__ std::int64_t sampled_vector(std::int64_t i, std::int64_t count, std::int64_t vectors) {
  const std::int64_t share = vectors / count;
  const auto hash = static_cast<std::uint32_t>(i) * 2654435761U;  // Knuth's multiplicative hash
  return i * share + static_cast<std::int64_t>(hash >> 8) % share;
}

// Sums the thread's share of the products of two sampled vectors, whose elements it counts.
template <class T>
__device__ double sum_products(const SampleTask& task, SampledVector<T>& a, SampledVector<T>& b) {
  double sum = 0;
#pragma unroll 1
  for (std::int64_t first = threadIdx.x; first < task.length; first += loads_in_flight * sample_threads) {
    T x[loads_in_flight];
    T y[loads_in_flight];
#pragma unroll
    for (int u = 0; u < loads_in_flight; ++u) {
      const std::int64_t q = first + u * sample_threads;
      const std::int64_t p = q / sample_run * sample_run * task.step + q % sample_run;
      x[u] = q < task.length ? a.load(p) : T(0);
      y[u] = q < task.length ? b.load(p) : T(0);
    }
#pragma unroll
    for (int u = 0; u < loads_in_flight; ++u) sum = fma(a.take(x[u]), b.take(y[u]), sum);
  }
  return sum;
}

// Computes sampled element number `pair` of the product, and adds to the block's state the chances that the
// candidates leave it open. One thread block calls it.
template <class T>
__device__ void add_chances(const SampleTask& task, std::int64_t pair) {
  SampledVector<T> a(task.sides[0],
                     sampled_vector(pair % task.vectors[0], task.vectors[0], task.sides[0].matrix.vectors()));
  SampledVector<T> b(task.sides[1],
                     sampled_vector(pair / task.vectors[0], task.vectors[1], task.sides[1].matrix.vectors()));
  if (!a.is_finite_and_nonzero() || !b.is_finite_and_nonzero()) return;
  a.find_tops(task.sides[0], task.chain, task.chain.top_a);
  b.find_tops(task.sides[1], task.chain, task.chain.top_b);
  double sum = sum_products(task, a, b);
  constexpr int sums_of_vector = SampledVector<T>::sums;
  double totals[2 * sums_of_vector + 1];
#pragma unroll
  for (int i = 0; i < sums_of_vector; ++i) {
    totals[i] = a.counted()[i];
    totals[sums_of_vector + i] = b.counted()[i];
  }
  totals[2 * sums_of_vector] = sum;
  sum_over_block(totals);
  if (threadIdx.x != 0) return;
  const double factor = static_cast<double>(task.sides[0].matrix.length()) / static_cast<double>(task.length);
  // A sum of products with random signs grows as the square root of their number.
  sum = totals[2 * sums_of_vector] * sqrt(factor);
  for (int c = 0; c < task.chain.count; ++c) {
    const double deviation =
        largest_deviation(a.errors(c, totals, factor), b.errors(c, totals + sums_of_vector, factor));
    const double chance = chance_of_open(sum * power_of_two(a.top(c) + b.top(c)), deviation, task.digits);
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
  const ElementType type = task.sides[0].matrix.type;
  if (type == ElementType::f64 || type == ElementType::c64) {
    add_chances<double>(task, blockIdx.x);
  } else {
    add_chances<float>(task, blockIdx.x);
  }
  if (finishes_last(*task.state) && threadIdx.x == 0) select_cheapest(task);
}

}  // namespace kintsugi::core::cuda
