// Algorithm 1 of dgemm-tc. The host's counterpart is split/successive.cpp. Residuals are not
// stored: for each slice all earlier slices are subtracted from the element again, which takes less time than
// memory for residuals would.
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ozaki1/ozaki1.hpp"
#include "engines/cuda/ozaki1/slice_elements.cuh"

namespace kintsugi::core::cuda {

namespace {

struct SharedStorage {
  // tops[s % 3] has the top (top_of) of each vector's residuals before slice s. There are three arrays,
  // because while slice s reads its tops and raises those of slice s + 1, the tops of slice s + 2 are
  // cleared.
  std::int32_t tops[3][successive_vectors];
  std::int32_t grids[successive_vectors][max_successive_slices];  // grids of the slices made so far
};

// A thread's lane, and its vector counted from the thread block's first one. Neighboring threads read along
// the smaller stride.
struct ThreadPosition {
  int v;
  int lane;

  __device__ explicit ThreadPosition(const DeviceMatrix& matrix) {
    const auto thread = static_cast<int>(threadIdx.x);
    const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
    v = along_k ? thread / successive_lanes : thread % successive_vectors;
    lane = along_k ? thread % successive_lanes : thread / successive_vectors;
  }
};

// Raises `shared`, the top of the thread's vector, to `top` if that is higher. Threads whose numbers differ
// only in bits 3 and 4 have the same vector in either layout; so they combine their tops first.
__device__ void raise_top(std::int32_t& shared, std::int32_t top) {
  top = max(top, __shfl_xor_sync(~0U, top, 8));
  top = max(top, __shfl_xor_sync(~0U, top, 16));
  if ((threadIdx.x & 24U) == 0) atomicMax(&shared, top);
}

// Split of the vectors of a thread block. `vector_` is the thread's vector.
class VectorSplit {
 public:
  __device__ VectorSplit(const SuccessiveTask& task, std::int64_t first_vector, SharedStorage& shared)
      : task_(task), shared_(shared), position_(task.matrix), vector_(first_vector + position_.v) {}

  __device__ void run() {
    if (threadIdx.x < 3 * successive_vectors) shared_.tops[0][threadIdx.x] = no_residual;
    __syncthreads();
    raise_top(shared_.tops[0][position_.v], first_top());
    for (int s = 0; s < task_.slices.count; ++s) make_slice(s);
    __syncthreads();
    const bool has_residual = shared_.tops[task_.slices.count % 3][position_.v] != no_residual;
    if (needed_slices_ < 0) needed_slices_ = task_.slices.count + (has_residual ? 1 : 0);
    if (position_.lane == 0 && vector_ < task_.vectors) finish();
  }

 private:
  __device__ Residual element(std::int64_t p) const {
    return residual_of(any_element(task_.matrix, task_.item, task_.first + vector_, p));
  }

  // Top of the elements. Vectors with NaN or infinities count as zero.
  __device__ std::int32_t first_top() const {
    std::int32_t top = no_residual;
    if (vector_ >= task_.vectors || !task_.ranges[vector_].finite()) return top;
    for (std::int64_t p = position_.lane; p < task_.slices.length; p += successive_lanes)
      top = max(top, top_of(element(p)));
    return top;
  }

  // Finds the grid of slice s, writes the slice, and raises the tops of the residuals that it leaves.
  __device__ void make_slice(int s) {
    __syncthreads();
    const std::int32_t top = shared_.tops[s % 3][position_.v];
    if (threadIdx.x < successive_vectors) shared_.tops[(s + 2) % 3][threadIdx.x] = no_residual;
    std::int32_t next_top = no_residual;
    if (top == no_residual) {
      if (needed_slices_ < 0) needed_slices_ = s;
      for (std::int64_t p = position_.lane; p < task_.slices.vector_stride; p += successive_lanes)
        store_slice_element(task_.slices, s, vector_, p, 0);
    } else {
      grid_ = grid_of(top, task_.bits);
      next_top = write_slice(s);
    }
    raise_top(shared_.tops[(s + 1) % 3][position_.v], next_top);
    if (s == 0) first_grid_ = grid_;
    if (position_.lane != 0) return;
    shared_.grids[position_.v][s] = grid_;
    if (vector_ < task_.vectors) task_.exponents.values[s * task_.exponents.stride + vector_] = grid_;
  }

  // Writes slice s and returns the top of the residuals that it leaves.
  __device__ std::int32_t write_slice(int s) const {
    std::int32_t next_top = no_residual;
    for (std::int64_t p = position_.lane; p < task_.slices.vector_stride; p += successive_lanes) {
      std::int64_t integer = 0;
      if (p < task_.slices.length) {
        Residual residual = element(p);
        for (int before = 0; before < s; ++before) take_integer(residual, shared_.grids[position_.v][before]);
        integer = take_integer(residual, grid_);
        next_top = max(next_top, top_of(residual));
      }
      store_slice_element(task_.slices, s, vector_, p, integer);
    }
    return next_top;
  }

  // Stores the vector's number of slices. Marks the operand as unreachable if its slices do not suffice. One
  // thread of the vector must call it.
  __device__ void finish() const {
    task_.exponents.lengths[vector_] = needed_slices_;
    using enum DeviceSuccessiveSplit::Complete;
    if (task_.complete == unchecked) return;
    const bool has_residual = needed_slices_ > task_.slices.count;
    const bool too_deep = task_.max_depth != 0 && first_grid_ - grid_ > task_.max_depth;
    if (too_deep || (has_residual && (task_.complete == all_vectors || is_needed()))) *task_.unreachable = 1;
  }

  // True if this vector of B belongs to a block of C that needs all slices of the vector.
  __device__ bool is_needed() const {
    const DeviceBlockSliceCounts& slice_counts = task_.slice_counts;
    const std::int64_t j = (task_.first + vector_) / slice_counts.vectors;
    for (std::int64_t i = 0; i < slice_counts.blocks_m; ++i) {
      constexpr bool fast = true;
      const SliceDepth depth =
          depth_of(slice_counts.counts[i + j * slice_counts.blocks_m], max_successive_slices, fast);
      if (depth.a > 0 && !depth.fast) return true;
    }
    return false;
  }

  const SuccessiveTask& task_;
  SharedStorage& shared_;
  ThreadPosition position_;
  std::int64_t vector_;
  std::int32_t grid_ = 0;            // grid of the last non-zero slice made so far; 0 if there is none
  std::int32_t first_grid_ = 0;      // grid of slice 0
  std::int32_t needed_slices_ = -1;  // number of slices that leave no residual; -1: not known yet
};

}  // namespace

extern "C" __global__ void __launch_bounds__(successive_threads)
    split_successively(const __grid_constant__ SuccessiveTasks tasks) {
  if (!holds(tasks.condition)) return;
  __shared__ SharedStorage shared;
  const bool is_of_second_task = blockIdx.x >= tasks.task[0].blocks;
  const std::int64_t block = blockIdx.x - (is_of_second_task ? tasks.task[0].blocks : 0);
  VectorSplit(tasks.task[is_of_second_task ? 1 : 0], block * successive_vectors, shared).run();
}

}  // namespace kintsugi::core::cuda
