// Ranges of all vectors, for the selection of a candidate, and their norms (VectorNorm), by which residues
// are scaled and proved (arith/residue/norm_proof.hpp).
#include "arith/residue/residue_scale.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
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

// Norms of vectors whose ranges are known.

namespace {

// Sums of a norm, and the scaling of the elements that are added.
struct NormSum {
  TwoFactors scaling;
  NormSums sums;

  template <class T, int count>
  __device__ void add(const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums.add(x[i], scaling);
  }
  __device__ void add(const NormSum& other) { sums.add(other.sums); }
};

// Summation (vector_sums.cuh) that finds norms.
struct NormOfVector {
  const RangesTask& task;

  // Index of the vector in the arrays of ranges and norms.
  __device__ std::int64_t index_of(std::int64_t vector) const {
    return item_of_block() * task.matrix.vectors() + vector;
  }
  __device__ NormSum begin(std::int64_t vector) const {
    return {norm_scaling(task.ranges[index_of(vector)]), {}};
  }
  __device__ static void add_over_lanes(NormSum& sum, unsigned lane_bits) {
    cuda::add_over_lanes(sum.sums, lane_bits);
  }
  __device__ void end(std::int64_t vector, const NormSum& sum) const {
    task.norms[index_of(vector)] = sum.sums.norm(task.matrix.length());
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_norms(const __grid_constant__ RangesTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[is_of_second_task ? 1 : 0];
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);  // in the task
  const std::int64_t first_vector = block * ranges_vectors;
  const std::int64_t item = task.item + item_of_block();
  const bool is_fp64 = task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
  if (is_fp64) {
    sum_vectors<double>(task.matrix, item, first_vector, NormOfVector{task});
  } else {
    sum_vectors<float>(task.matrix, item, first_vector, NormOfVector{task});
  }
}

// Ranges, norms that give scales alone, and sums from which rounding errors follow: sums of squares and of
// magnitudes in FP64 beside the range, in one read. Norms that also prove a product take a second read
// (find_norms).

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
