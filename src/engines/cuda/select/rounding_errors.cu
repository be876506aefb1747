// Rounding errors of all vectors that a checked candidate has split: from sums that norms and
// splits have found, or else by one more read. The host's counterpart, which counts
// rounded elements, is src/split/rounding_bounds.cpp.
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

// Summation (vector_sums.cuh) that finds rounding errors.
struct RoundingErrorsOfVector {
  const RoundingErrorsTask& task;

  // Returns an empty sum with the scale that the split has given the vector.
  __device__ RoundingErrorsSum begin(std::int64_t vector) const {
    const VectorRange& range = task.ranges[vector];
    return {two_factors((range.flags & VectorRange::all_zero) != 0 ? 0 : range.scale)};
  }
  __device__ static void add_over_lanes(RoundingErrorsSum& sum, unsigned lane_bits) {
    for (unsigned lane = 1; lane < 32; lane <<= 1) {
      if ((lane_bits & lane) == 0) continue;
      sum.errors += __shfl_xor_sync(~0U, sum.errors, lane);
      sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
    }
  }
  __device__ void end(std::int64_t vector, const RoundingErrorsSum& sum) const {
    task.errors[vector] = {sum.errors, sum.magnitudes, largest_integer(task.ranges[vector])};
  }
};

// Finds rounding errors of the thread block's vectors from the sums of their splits, and begins these sums
// anew for the next split. Returns false and does nothing if the split has found none. All threads must call
// it together.
__device__ bool find_from_magnitudes(const RoundingErrorsTask& task, std::int64_t first_vector) {
  const std::int64_t vectors = task.matrix.vectors();
  if (task.magnitudes == nullptr || first_vector >= vectors) return false;
  const bool is_known =
      task.magnitudes[first_vector].summed != 0 && task.magnitudes[first_vector].counted != 0;
  __syncthreads();
  const std::int64_t vector = first_vector + threadIdx.x;
  if (is_known && threadIdx.x < ranges_vectors && vector < vectors) {
    VectorMagnitudes& magnitudes = task.magnitudes[vector];
    task.errors[vector] = rounding_errors(magnitudes, task.ranges[vector], task.matrix.length());
    magnitudes.errors = 0;
    magnitudes.counted = 0;
  }
  return is_known;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_rounding_errors(const __grid_constant__ RoundingErrorsTasks tasks) {
  const DeviceCondition& condition = tasks.condition;
  if (condition.selection != nullptr && condition.selection->candidate != condition.candidate) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RoundingErrorsTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  const std::int64_t first_vector = task.first + block * ranges_vectors;
  if (find_from_magnitudes(task, first_vector)) return;
  const bool is_fp64 = task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
  if (is_fp64) {
    sum_vectors<double>(task.matrix, task.item, first_vector, RoundingErrorsOfVector{task});
  } else {
    sum_vectors<float>(task.matrix, task.item, first_vector, RoundingErrorsOfVector{task});
  }
}

}  // namespace kintsugi::core::cuda
