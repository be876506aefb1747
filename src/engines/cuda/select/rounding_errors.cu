// Rounding errors of all vectors that a checked candidate has split: from sums that norms and
// splits have found, or else by one more read. The host's counterpart, which counts
// rounded elements, is src/split/norms.cpp.
#include "arith/residue/residue.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// Rounding errors of a part of a vector, and the factors of the vector's scale.
struct RoundingErrorsSum {
  TwoFactors factors;
  double errors = 0;
  double magnitudes = 0;

  // Adds elements. NaN and infinities count as zeros.
  template <class T, int count>
  __device__ void add(const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double element = x[i] - x[i] == T(0) ? static_cast<double>(x[i]) : 0;
      const double scaled = element * factors.first * factors.second;
      const double integer = nearest_integer(scaled);
      errors += fabs(scaled - integer);  // exact, since both are multiples of the same last place
      // An element far below 1/2 may lose bits, or all of them, when it is scaled.
      if (integer == 0 && element != 0) errors += 0x1p-900;
      magnitudes += fabs(integer);
    }
  }
  __device__ void add(const RoundingErrorsSum& other) {
    errors += other.errors;
    magnitudes += other.magnitudes;
  }
};

__device__ void add_over_lanes(RoundingErrorsSum& sum, unsigned lane_bits) {
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) == 0) continue;
    sum.errors += __shfl_xor_sync(~0U, sum.errors, lane);
    sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
  }
}

// Summation (vector_sums.cuh) that finds rounding errors of whole vectors.
struct RoundingErrorsSummation {
  const VectorsTask& task;

  using Sum = RoundingErrorsSum;
  static constexpr int max_adjacent = 0;

  // Returns an empty sum with the scale that the split has given the vector.
  __device__ RoundingErrorsSum begin(std::int64_t vector) const {
    const VectorRange& range = task.ranges[vector];
    return {two_factors((range.flags & VectorRange::all_zero) != 0 ? 0 : range.scale)};
  }
  template <class T, int count>
  __device__ static void add(Sum& sum, const T (&x)[count]) {
    sum.add(x);
  }
  template <class T>
  __device__ static void add_each(Sum (&sums)[1], const T (&x)[1]) {
    sums[0].add(x);
  }
  __device__ void end(std::int64_t vector, const RoundingErrorsSum& sum) const {
    task.errors[vector] = {sum.errors, sum.magnitudes, largest_integer(task.ranges[vector])};
  }
};

// Finds rounding errors of the thread block's vectors from the sums of their splits, and begins these sums
// anew for the next split. Returns false and does nothing if the split has found none. All threads must call
// it together.
template <class T>
__device__ bool find_from_magnitudes(const VectorsTask& task, std::int64_t block) {
  const std::int64_t count = vector_sums::vectors_of_block<T>(task);
  const std::int64_t first = block * count;
  if (task.magnitudes == nullptr || first >= task.vectors) return false;
  const bool is_known = task.magnitudes[first].summed != 0 && task.magnitudes[first].counted != 0;
  __syncthreads();
  const std::int64_t vector = first + threadIdx.x;
  if (is_known && threadIdx.x < count && vector < task.vectors) {
    VectorMagnitudes& magnitudes = task.magnitudes[vector];
    task.errors[vector] = rounding_errors(magnitudes, task.ranges[vector], task.matrix.length());
    magnitudes.errors = 0;
    magnitudes.counted = 0;
  }
  return is_known;
}

template <class T>
__device__ void find_errors(const VectorsTask& task, std::int64_t block, std::byte* memory) {
  if (!find_from_magnitudes<T>(task, block))
    sum_vectors<T>(task, block, RoundingErrorsSummation{task}, memory);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(vectors_threads)
    find_rounding_errors(const __grid_constant__ VectorsTasks tasks) {
  const DeviceCondition& condition = tasks.condition;
  if (condition.selection != nullptr && condition.selection->candidate != condition.candidate) return;
  with_task(tasks, blockIdx.x, [](const VectorsTask& task, std::int64_t block, std::byte* memory) {
    if (is_fp64(task)) {
      find_errors<double>(task, block, memory);
    } else {
      find_errors<float>(task, block, memory);
    }
  });
}

}  // namespace kintsugi::core::cuda
