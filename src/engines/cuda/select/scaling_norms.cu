// Ranges of all vectors, norms that give scales alone, and sums from which rounding errors follow: sums of
// squares and of magnitudes in FP64 beside the range, in one read. Norms that also prove a product take a
// second read (norms.cu).
#include "arith/residue/residue_scale.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

struct ScalingSums : Magnitudes<double> {
  // Sums of squares and of magnitudes, unless there are NaN or infinities.
  double squares = 0;
  double magnitudes = 0;

  template <int count>
  __device__ void add(const double (&x)[count]) {
    if (!Magnitudes<double>::add(x)) return;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      squares = fma(x[i], x[i], squares);
      magnitudes += fabs(x[i]);
    }
  }
  __device__ void add(const ScalingSums& other) {
    Magnitudes<double>::add(static_cast<const Magnitudes<double>&>(other));
    squares += other.squares;
    magnitudes += other.magnitudes;
  }
};

// Summation (vector_sums.cuh) that finds ranges, bits of norms and magnitudes.
struct ScalingNormOfVector {
  const RangesTask& task;

  __device__ ScalingSums begin(std::int64_t) const { return {}; }
  __device__ static void add_over_lanes(ScalingSums& sum, unsigned lane_bits) {
    cuda::add_over_lanes(static_cast<Magnitudes<double>&>(sum), lane_bits);
    for (unsigned lane = 1; lane < 32; lane <<= 1) {
      if ((lane_bits & lane) == 0) continue;
      sum.squares += __shfl_xor_sync(~0U, sum.squares, lane);
      sum.magnitudes += __shfl_xor_sync(~0U, sum.magnitudes, lane);
    }
  }
  __device__ void end(std::int64_t vector, const ScalingSums& sum) const {
    const std::int64_t index = item_of_block() * task.matrix.vectors() + vector;
    const VectorRange range = sum.range();
    task.ranges[index] = range;
    task.norms[index] = {.bits = bits_of_squares(sum.squares, range, task.matrix.length())};
    if (task.magnitudes != nullptr) task.magnitudes[index] = {.sum = sum.magnitudes, .summed = 1};
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_scaling_norms(const __grid_constant__ RangesTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  sum_vectors<double>(task.matrix, task.item + item_of_block(), block * ranges_vectors,
                      ScalingNormOfVector{task});
}

}  // namespace kintsugi::core::cuda
