// Rounding-error bounds of all vectors. The host's counterpart is src/split/rounding_bounds.cpp.
#include "arith/residue/residue.hpp"
#include "arith/rounding_bound.hpp"
#include "engines/cuda/select/rounding_bounds_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// Rounding-error bound of a part of a vector (RoundingBound), and the factors of the vector's scale.
struct RoundingBoundSum {
  TwoFactors factors;
  double inexact = 0;
  double magnitudes = 0;

  // Adds elements. NaN and infinities count as zeros.
  template <class T, int count>
  __device__ void add(const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double element = x[i] - x[i] == T(0) ? static_cast<double>(x[i]) : 0;
      const double scaled = element * factors.first * factors.second;
      const double integer = nearest_integer(scaled);
      // An element far below 1/2 may underflow to zero when it is scaled. It is inexact all the same.
      inexact += integer != scaled || (integer == 0 && element != 0) ? 1 : 0;
      magnitudes += fabs(integer);
    }
  }
  __device__ void add(const RoundingBoundSum& other) {
    inexact += other.inexact;
    magnitudes += other.magnitudes;
  }
};

// Summation (vector_sums.cuh) that finds rounding-error bounds.
struct RoundingBoundOfVector {
  const RoundingBoundsTask& task;

  // Returns an empty sum with the scale that the split will give the vector.
  __device__ RoundingBoundSum begin(std::int64_t vector) const {
    const VectorRange& range = task.ranges[vector];
    const bool is_zero = (range.flags & VectorRange::all_zero) != 0;
    return {two_factors(is_zero ? 0 : task.top_exponent - range.largest)};
  }
  __device__ static void add_over_lanes(RoundingBoundSum& sum, unsigned lane_bits) {
    for (unsigned lane = 1; lane < 32; lane <<= 1) {
      if ((lane_bits & lane) == 0) continue;
      sum.inexact += __shfl_xor_sync(~0U, sum.inexact, lane);
      sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
    }
  }
  __device__ void end(std::int64_t vector, const RoundingBoundSum& sum) const {
    task.bounds[vector] = {sum.inexact, sum.magnitudes};
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_rounding_bounds(const __grid_constant__ RoundingBoundsTasks tasks) {
  const DeviceCondition& condition = tasks.condition;
  if (condition.selection != nullptr && condition.selection->candidate != condition.candidate) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RoundingBoundsTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  const std::int64_t first_vector = task.first + block * ranges_vectors;
  const bool is_fp64 = task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
  if (is_fp64) {
    sum_vectors<double>(task.matrix, task.item, first_vector, RoundingBoundOfVector{task});
  } else {
    sum_vectors<float>(task.matrix, task.item, first_vector, RoundingBoundOfVector{task});
  }
}

}  // namespace kintsugi::core::cuda
