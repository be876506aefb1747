// Margins of all vectors: src/splits/margins.cpp.
#include "arith/residue.hpp"
#include "arith/rounding_margin.hpp"
#include "engines/cuda/select/margins_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

struct MarginSum {
  TwoFactors factors;
  double inexact = 0;
  double magnitudes = 0;

  // NaN and infinities count as zeros.
  template <class T, int count>
  __device__ void add(const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double element = x[i] - x[i] == T(0) ? static_cast<double>(x[i]) : 0;
      const double scaled = element * factors.first * factors.second;
      const double integer = any_rounded_to_integer(scaled);
      // Far below 1/2 the scaled element itself may have become zero.
      inexact += integer != scaled || (integer == 0 && element != 0) ? 1 : 0;
      magnitudes += fabs(integer);
    }
  }
  __device__ void add(const MarginSum& other) {
    inexact += other.inexact;
    magnitudes += other.magnitudes;
  }
};

struct MarginOfVector {
  const MarginsTask& task;

  // The scale that the split sets.
  __device__ MarginSum begin(std::int64_t vector) const {
    const VectorRange& range = task.ranges[vector];
    const bool zero = (range.flags & VectorRange::all_zero) != 0;
    return {two_factors(zero ? 0 : task.top_exponent - range.largest)};
  }
  __device__ static void add_over_lanes(MarginSum& sum, unsigned lanes) {
    for (unsigned lane = 1; lane < 32; lane <<= 1) {
      if ((lanes & lane) == 0) continue;
      sum.inexact += __shfl_xor_sync(~0U, sum.inexact, lane);
      sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
    }
  }
  __device__ void end(std::int64_t vector, const MarginSum& sum) const {
    task.margins[vector] = {sum.inexact, sum.magnitudes};
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_margins(const __grid_constant__ MarginsTasks tasks) {
  const DeviceCondition& condition = tasks.condition;
  if (condition.choice != nullptr && condition.choice->candidate != condition.candidate) return;
  const bool second = blockIdx.x >= tasks.task[0].blocks;
  const MarginsTask& task = tasks.task[second ? 1 : 0];
  const std::int64_t first = (blockIdx.x - (second ? tasks.task[0].blocks : 0)) * ranges_vectors;
  const bool wide = task.matrix.type == EntryType::f64 || task.matrix.type == EntryType::c64;
  if (wide) {
    sum_vectors<double>(task.matrix, task.entry, first, MarginOfVector{task});
  } else {
    sum_vectors<float>(task.matrix, task.entry, first, MarginOfVector{task});
  }
}

}  // namespace kintsugi::core::cuda
