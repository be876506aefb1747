// Algorithm 1 of dgemm-tc. The host's counterpart is split/successive.cpp. Residuals are not stored: for each
// slice all earlier slices are subtracted from the element again, which takes less time than memory for
// residuals would. Short vectors have a thread block each, which keeps their residuals in registers. Where
// powers of two of all grids are doubles, that takes three FP64 operations a slice, all without an error: a
// residual is a double, and so is a multiple of the grid.
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
  std::int32_t vector_tops[successive_vectors][max_successive_slices];  // tops of the slices made so far
};

// 1.5 * 2^52: adding it to a double below 2^51 rounds this to an integer, ties to even, in the low bits.
constexpr double integer_shift = 6755399441055744.0;

// Exponents of grids whose powers of two, and those of twice the grid, have normal reciprocals.
constexpr std::int32_t smallest_grid = -1021;
constexpr std::int32_t largest_grid = 1020;

constexpr int elements_at_once = 4;  // elements of a thread in FP64

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

// One vector of a split.
class VectorTask {
 protected:
  __device__ VectorTask(const SuccessiveTask& task, std::int64_t vector) : task_(task), vector_(vector) {}

  __device__ Residual element(std::int64_t p) const {
    return residual_of(any_element(task_.matrix, task_.item, task_.first + vector_, p));
  }

  // Number of slices of `count` vectors from `first` on. Vectors of B get as many as their blocks of C need.
  __device__ int slices_of(std::int64_t first, int count) const {
    if (task_.complete != DeviceSuccessiveSplit::Complete::where_used) return task_.slices.count;
    int slices = 0;
    for (int v = 0; v < count && first + v < task_.vectors; ++v) slices = max(slices, needed_of(first + v));
    return min(slices, task_.slices.count);
  }

  __device__ void set_exponent(int s) const {
    task_.exponents.values[s * task_.exponents.stride + vector_] = grid_;
  }

  // Returns the integer that take() returns, and subtracts the same slice.
  template <bool BySigma>
  __device__ static std::int32_t take_in_fp64(double& residual, std::int32_t grid) {
    const int is_coarse = BySigma && residual > 0 ? 1 : 0;
    const double shifted = __fma_rn(residual, power_of_grid(-grid - is_coarse), integer_shift);
    residual = __fma_rn(integer_shift - shifted, power_of_grid(grid + is_coarse), residual);
    return __double2loint(shifted) << is_coarse;
  }
  __device__ static double power_of_grid(std::int32_t exponent) {
    return __hiloint2double((exponent + 1023) << 20, 0);
  }

  // Stores the vector's number of slices, and exponents of slices that were not made. Marks the operand as
  // unreachable if its slices do not suffice. One thread of the vector must call it.
  __device__ void finish(int count) const {
    task_.exponents.lengths[vector_] = needed_slices_;
    if (task_.slice_counts.lengths != nullptr)
      atomicMax(&length_of_block(), min(needed_slices_, task_.slices.count));
    for (int s = count; s < task_.slices.count; ++s) set_exponent(s);
    using enum DeviceSuccessiveSplit::Complete;
    if (task_.complete == unchecked) return;
    const bool has_residual = needed_slices_ > task_.slices.count;
    const bool too_deep = task_.max_depth != 0 && first_grid_ - grid_ > task_.max_depth;
    if (too_deep || (has_residual && (task_.complete == all_vectors || needs_all()))) *task_.unreachable = 1;
  }

  // Largest number of slices of the vectors of this vector's block.
  __device__ std::int32_t& length_of_block() const {
    const DeviceBlockSliceCounts& blocks = task_.slice_counts;
    const std::int64_t vector = task_.first + vector_;
    if (task_.matrix.right) return blocks.lengths[blocks.blocks_m + vector / blocks.vectors];
    return blocks.lengths[vector / blocks.rows];
  }

  static constexpr int all_slices = max_successive_slices + 1;
  // Number of slices that the blocks of C need of a vector of B; all_slices if its residual must be zero.
  __device__ int needed_of(std::int64_t vector) const {
    const DeviceBlockSliceCounts& slice_counts = task_.slice_counts;
    const std::int64_t j = (task_.first + vector) / slice_counts.vectors;
    int needed = 0;
    for (std::int64_t i = 0; i < slice_counts.blocks_m; ++i) {
      constexpr bool fast = true;
      const SliceDepth depth =
          depth_of(slice_counts.counts[i + j * slice_counts.blocks_m], max_successive_slices, fast);
      if (depth.a > 0) needed = max(needed, depth.fast ? depth.b : all_slices);
    }
    return needed;
  }
  // True if a block of C needs all slices of this vector of B.
  __device__ bool needs_all() const { return needed_of(vector_) == all_slices; }

  const SuccessiveTask& task_;
  std::int64_t vector_;
  std::int32_t grid_ = 0;            // grid of the last non-zero slice made so far; 0 if there is none
  std::int32_t first_grid_ = 0;      // grid of slice 0
  std::int32_t needed_slices_ = -1;  // number of slices that leave no residual; -1: not known yet
};

// Split of the vectors of a thread block. `vector_` is the thread's vector.
class VectorSplit : VectorTask {
 public:
  __device__ VectorSplit(const SuccessiveTask& task, std::int64_t first_vector, SharedStorage& shared)
      : VectorTask(task, first_vector + ThreadPosition(task.matrix).v), shared_(shared),
        position_(task.matrix) {}

  __device__ void run() {
    if (threadIdx.x < 3 * successive_vectors) shared_.tops[0][threadIdx.x] = no_residual;
    __syncthreads();
    raise_top(shared_.tops[0][position_.v], first_top());
    const int count = slices_of(vector_ - position_.v, successive_vectors);
    for (int s = 0; s < count; ++s) make_slice(s);
    __syncthreads();
    const bool has_residual = shared_.tops[count % 3][position_.v] != no_residual;
    if (needed_slices_ < 0) needed_slices_ = count + (has_residual ? 1 : 0);
    if (position_.lane == 0 && vector_ < task_.vectors) finish(count);
  }

 private:
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
      if (s == 0) first_grid_ = grid_;
      if (grid_ >= smallest_grid && first_grid_ <= largest_grid) {
        next_top = task_.by_sigma ? write_slice_in_fp64<true>(s) : write_slice_in_fp64<false>(s);
      } else {
        next_top = write_slice(s, top);
      }
    }
    raise_top(shared_.tops[(s + 1) % 3][position_.v], next_top);
    if (position_.lane != 0) return;
    shared_.vector_tops[position_.v][s] = top;
    if (vector_ < task_.vectors) set_exponent(s);
  }

  // Rounds the residual to the slice whose residuals have the top `top`, and subtracts the slice.
  __device__ std::int64_t take(Residual& residual, std::int32_t top) const {
    return task_.by_sigma ? take_integer_by_sigma(residual, top, task_.bits)
                          : take_integer(residual, grid_of(top, task_.bits));
  }

  // Writes slice s and returns the top of the residuals that it leaves.
  __device__ std::int32_t write_slice(int s, std::int32_t top) const {
    std::int32_t next_top = no_residual;
    for (std::int64_t p = position_.lane; p < task_.slices.vector_stride; p += successive_lanes) {
      std::int64_t integer = 0;
      if (p < task_.slices.length) {
        Residual residual = element(p);
        for (int before = 0; before < s; ++before) take(residual, shared_.vector_tops[position_.v][before]);
        integer = take(residual, top);
        next_top = max(next_top, top_of(residual));
      }
      store_slice_element(task_.slices, s, vector_, p, integer);
    }
    return next_top;
  }

  // The same where all grids lie between smallest_grid and largest_grid. Each thread has several elements at
  // once, which share the grids' powers of two.
  template <bool BySigma>
  __device__ std::int32_t write_slice_in_fp64(int s) const {
    double largest = 0;
    for (std::int64_t first = position_.lane; first < task_.slices.vector_stride;
         first += elements_at_once * successive_lanes) {
      const auto index = [&](int e) { return first + e * successive_lanes; };
      double residuals[elements_at_once];
#pragma unroll
      for (int e = 0; e < elements_at_once; ++e)
        residuals[e] = index(e) < task_.slices.length
                           ? any_element(task_.matrix, task_.item, task_.first + vector_, index(e))
                           : 0;
      for (int before = 0; before < s; ++before) {
        const std::int32_t grid = grid_of(shared_.vector_tops[position_.v][before], task_.bits);
#pragma unroll
        for (double& residual : residuals) take_in_fp64<BySigma>(residual, grid);
      }
#pragma unroll
      for (int e = 0; e < elements_at_once; ++e) {
        const std::int32_t integer = take_in_fp64<BySigma>(residuals[e], grid_);
        largest = fmax(largest, fabs(residuals[e]));
        if (index(e) < task_.slices.vector_stride)
          store_slice_element(task_.slices, s, vector_, index(e), integer);
      }
    }
    return top_of(residual_of(largest));
  }

  SharedStorage& shared_;
  ThreadPosition position_;
};

// Largest `value` of all threads of the thread block.
__device__ std::int32_t largest_of_threads(std::int32_t value) {
  __shared__ std::int32_t warp_values[max_vector_threads / 32];
  const std::int32_t largest = __reduce_max_sync(~0U, value);
  __syncthreads();  // all threads have read the warp_values of an earlier call
  if (threadIdx.x % 32 == 0) warp_values[threadIdx.x / 32] = largest;
  __syncthreads();
  std::int32_t result = no_residual;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) result = max(result, warp_values[warp]);
  return result;
}

struct TakenInteger {
  double residual;
  std::int32_t integer;
};

// Rounds a residual to a slice whose residuals have the top `top`, and subtracts the slice, for any grid.
__device__ __noinline__ TakenInteger take_from(double x, std::int32_t top, int bits, bool by_sigma) {
  Residual residual = residual_of(x);
  const std::int64_t integer =
      by_sigma ? take_integer_by_sigma(residual, top, bits) : take_integer(residual, grid_of(top, bits));
  return {times_power_of_two(static_cast<double>(residual.significand), residual.exponent),
          static_cast<std::int32_t>(integer)};
}

// Split of one vector by a thread block, which keeps its residuals in registers.
template <bool BySigma>
class RegisterSplit : VectorTask {
 public:
  __device__ RegisterSplit(const SuccessiveTask& task, std::int64_t vector) : VectorTask(task, vector) {}

  __device__ void run() {
    load();
    const int count = slices_of(vector_, 1);
    for (int s = 0; s < count; ++s) {
      if (top_ == no_residual) {
        if (needed_slices_ < 0) needed_slices_ = s;
      } else {
        grid_ = grid_of(top_, task_.bits);
        if (s == 0) first_grid_ = grid_;
      }
      write_slice(s);
      if (threadIdx.x == 0 && vector_ < task_.vectors) set_exponent(s);
    }
    if (needed_slices_ < 0) needed_slices_ = count + (top_ != no_residual ? 1 : 0);
    if (threadIdx.x == 0 && vector_ < task_.vectors) finish(count);
  }

 private:
  // Calls visit(residual, p) for the thread's residuals.
  template <class Visit>
  __device__ void for_each_residual(const Visit& visit) {
#pragma unroll
    for (int e = 0; e < vector_elements; ++e) {
      const std::int64_t p = threadIdx.x + e * static_cast<std::int64_t>(blockDim.x);
      if (p < task_.slices.vector_stride) visit(residuals_[e], p);
    }
  }

  // Vectors with NaN or infinities count as zero.
  __device__ void load() {
    const bool is_read = vector_ < task_.vectors && task_.ranges[vector_].finite();
    double largest = 0;
    for_each_residual([&](double& residual, std::int64_t p) {
      residual = is_read && p < task_.slices.length
                     ? any_element(task_.matrix, task_.item, task_.first + vector_, p)
                     : 0;
      largest = fmax(largest, fabs(residual));
    });
    top_ = largest_of_threads(top_of(residual_of(largest)));
  }

  __device__ void write_slice(int s) {
    const bool is_zero = top_ == no_residual;
    const bool in_fp64 = !is_zero && grid_ >= smallest_grid && grid_ <= largest_grid;
    double largest = 0;
    for_each_residual([&](double& residual, std::int64_t p) {
      std::int32_t integer = 0;
      if (in_fp64) {
        integer = take_in_fp64<BySigma>(residual, grid_);
      } else if (!is_zero) {
        const TakenInteger taken = take_from(residual, top_, task_.bits, BySigma);
        residual = taken.residual;
        integer = taken.integer;
      }
      largest = fmax(largest, fabs(residual));
      store_slice_element(task_.slices, s, vector_, p, integer);
    });
    if (!is_zero) top_ = largest_of_threads(top_of(residual_of(largest)));
  }

  double residuals_[vector_elements];
  std::int32_t top_ = no_residual;  // top of the residuals
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

extern "C" __global__ void __launch_bounds__(max_vector_threads)
    slice_vectors(const __grid_constant__ SuccessiveTask task,
                  const __grid_constant__ DeviceCondition condition) {
  if (!holds(condition)) return;
  if (task.by_sigma) {
    RegisterSplit<true>(task, blockIdx.x).run();
  } else {
    RegisterSplit<false>(task, blockIdx.x).run();
  }
}

}  // namespace kintsugi::core::cuda
