// Norms of all vectors, and the figures that prove products of the integers that norms scale
// (arith/residue/norm_proof.hpp).
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/alpha.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/vector_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

struct NormSum {
  NormScaling scaling;
  NormSums sums;

  template <class T, int count>
  __device__ void add(const T (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums.add(x[i], scaling);
  }
  __device__ void add(const NormSum& other) { sums.add(other.sums); }
};

struct NormOfVector {
  const RangesTask& task;

  __device__ std::int64_t index_of(std::int64_t vector) const {
    return item_of_block() * task.matrix.vectors() + vector;
  }
  __device__ NormSum begin(std::int64_t vector) const {
    return {norm_scaling(task.ranges[index_of(vector)], task.norms[index_of(vector)].typical), {}};
  }
  __device__ static void add_over_lanes(NormSum& sum, unsigned lanes) {
    cuda::add_over_lanes(sum.sums, lanes);
  }
  __device__ void end(std::int64_t vector, const NormSum& sum) const {
    VectorNorm& norm = task.norms[index_of(vector)];
    norm = sum.sums.norm(norm.typical, sum.scaling, task.matrix.length());
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(ranges_threads)
    find_norms(const __grid_constant__ RangesTasks tasks) {
  begin_dependent_kernel();
  if (is_zero(tasks.alpha)) return;
  const bool second = blockIdx.x >= tasks.task[0].blocks;
  const RangesTask& task = tasks.task[second ? 1 : 0];
  const std::int64_t first = (blockIdx.x - (second ? tasks.task[0].blocks : 0)) * ranges_vectors;
  const std::int64_t item = task.item + item_of_block();
  const bool wide = task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
  if (wide) {
    sum_vectors<double>(task.matrix, item, first, NormOfVector{task});
  } else {
    sum_vectors<float>(task.matrix, item, first, NormOfVector{task});
  }
}

}  // namespace kintsugi::core::cuda
