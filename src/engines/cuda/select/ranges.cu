// Ranges of all vectors, for the selection of a candidate.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// Summation (vector_sums.cuh) that finds ranges.
template <class T>
struct RangeOfVector {
  const RangesTask& task;

  using Sum = std::conditional_t<sizeof(T) == 4, MagnitudesAndExponents<T>, Magnitudes<T>>;

  __device__ Sum begin(std::int64_t) const { return {}; }
  __device__ static void add_over_lanes(Sum& sum, unsigned lane_bits) {
    cuda::add_over_lanes(sum, lane_bits);
  }
  __device__ void end(std::int64_t vector, const Sum& sum) const {
    task.ranges[item_of_block() * task.matrix.vectors() + vector] = sum.range();
  }
};

// Summation (vector_sums.cuh) that finds ranges with depths.
template <class T>
struct RangeAndDepthOfVector {
  const RangesTask& task;

  __device__ MagnitudesAndExponents<T> begin(std::int64_t) const { return {}; }
  __device__ static void add_over_lanes(MagnitudesAndExponents<T>& sum, unsigned lane_bits) {
    cuda::add_over_lanes(sum, lane_bits);
  }
  __device__ void end(std::int64_t vector, const MagnitudesAndExponents<T>& sum) const {
    task.ranges[item_of_block() * task.matrix.vectors() + vector] = sum.range();
  }
};

// Finds the ranges of the vectors of a thread block.
template <class T>
__device__ void find_ranges_of(const RangesTask& task, std::int64_t first_vector) {
  const std::int64_t item = task.item + item_of_block();
  if (task.norms == nullptr) {
    sum_vectors<T>(task.matrix, item, first_vector, RangeOfVector<T>{task});
  } else {
    sum_vectors<T>(task.matrix, item, first_vector, RangeAndDepthOfVector<T>{task});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_ranges(const __grid_constant__ RangesTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  const std::int64_t first_vector = block * ranges_vectors;
  const bool is_fp64 = task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
  if (is_fp64) {
    find_ranges_of<double>(task, first_vector);
  } else {
    find_ranges_of<float>(task, first_vector);
  }
}

}  // namespace kintsugi::core::cuda
