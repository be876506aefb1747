// Norms of all vectors (VectorNorm). Residues are scaled and proved by them (arith/residue/norm_proof.hpp).
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
