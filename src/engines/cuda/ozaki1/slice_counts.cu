// Algorithm 3 of dgemm-tc. The host's counterpart is split/successive.cpp. Sums are integers, so
// their bits do not depend on the order of the threads. They drop bits of at most 2^-80 of the largest
// product, and record whether a dropped bit was 1 (MagnitudeSum). The host's sums drop nothing. Both are
// rounded to 53 bits before they are compared.
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ozaki1/ozaki1.hpp"
#include "engines/cuda/ozaki1/slice_elements.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int slice_count_warps = slice_count_threads / 32;

// Smallest b with 2^b >= count.
__device__ int bits_of_count(std::int64_t count) {
  return count <= 1 ? 0 : 64 - leading_zeros(static_cast<std::uint64_t>(count - 1));
}

// Largest `value` of all threads of the thread block.
__device__ std::int32_t largest_of_block(std::int32_t value) {
  __shared__ std::int32_t warp_values[slice_count_warps];
  const std::int32_t largest = __reduce_max_sync(~0U, value);
  __syncthreads();  // all threads have read the warp_values of an earlier call
  if (threadIdx.x % 32 == 0) warp_values[threadIdx.x / 32] = largest;
  __syncthreads();
  std::int32_t result = warp_values[0];
  for (int warp = 1; warp < slice_count_warps; ++warp) result = max(result, warp_values[warp]);
  return result;
}

// Total of the sums of all threads of the thread block, in all threads. Its more() is true if one of them
// dropped bits.
__device__ MagnitudeSum sum_of_block(MagnitudeSum sum) {
  __shared__ std::uint64_t low[slice_count_warps];
  __shared__ std::uint64_t high[slice_count_warps];
  __shared__ bool more[slice_count_warps];
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    const auto other_low = __shfl_xor_sync(~0U, static_cast<unsigned long long>(sum.low()), lane);
    const auto other_high = __shfl_xor_sync(~0U, static_cast<unsigned long long>(sum.high()), lane);
    const int other_more = __shfl_xor_sync(~0U, sum.more() ? 1 : 0, lane);
    sum.add(other_low, other_high, other_more != 0);
  }
  __syncthreads();  // all threads have read the sums of an earlier call
  if (threadIdx.x % 32 == 0) {
    low[threadIdx.x / 32] = sum.low();
    high[threadIdx.x / 32] = sum.high();
    more[threadIdx.x / 32] = sum.more();
  }
  __syncthreads();
  for (unsigned warp = 0; warp < slice_count_warps; ++warp) {
    if (warp != threadIdx.x / 32) sum.add(low[warp], high[warp], more[warp]);
  }
  return sum;
}

// Sum over p of |x(p)| weights[p]. All threads of the thread block get it.
template <class Element>
__device__ Scaled weigh(const Element& x, const double* weights, std::int64_t length) {
  std::int32_t top = no_residual;
  for (std::int64_t p = threadIdx.x; p < length; p += slice_count_threads)
    top = max(top, MagnitudeSum::top(x(p), residual_of(weights[p])));
  top = largest_of_block(top);
  MagnitudeSum sum(top, bits_of_count(length));
  for (std::int64_t p = threadIdx.x; p < length; p += slice_count_threads)
    sum.add(x(p), residual_of(weights[p]));
  return sum_of_block(sum).scaled();
}

// Slice counts that one row of A needs, in every block of C to which the row belongs.
class RowSliceCounts {
 public:
  __device__ RowSliceCounts(const RowSliceCountsTask& task, std::int64_t row) : task_(task), row_(row) {}

  // Raises the slice counts of these blocks to the counts that the row needs.
  __device__ void find() const {
    const std::int32_t length = task_.exponents.lengths[row_];
    if (length == 0) return;
    const DeviceBlockSliceCounts& slice_counts = task_.slice_counts;
    for (std::int64_t j = 0; j < slice_counts.blocks_n; ++j) {
      SliceCounts found = slice_counts_of(j, length);
      if (threadIdx.x != 0) continue;
      if (found.enough == 0 && found.exhausted == 0) *task_.unreachable = 1;
      SliceCounts& target =
          slice_counts.counts[(task_.first + row_) / slice_counts.rows + j * slice_counts.blocks_m];
      if (found.enough > 0) atomicMax(&target.enough, found.enough);
      if (found.exhausted > 0) atomicMax(&target.exhausted, found.exhausted);
    }
  }

 private:
  // Slice counts that the row needs in block j of C's columns. The row has no residual after `length` slices.
  // Both counts are 0 if task_.slices has too few slices to decide them.
  __device__ SliceCounts slice_counts_of(std::int64_t j, std::int32_t length) const {
    const std::int64_t k = task_.slices.length;
    const double* weights = task_.weights + j * k;
    Scaled weighed_row;  // set when the second slice is tested
    for (std::int32_t count = 1; count <= task_.slices.count; ++count) {
      if (count == 2) {
        weighed_row = weigh(
            [&](std::int64_t p) {
              return residual_of(any_element(task_.a.matrix, task_.a.item, task_.first + row_, p));
            },
            weights, k);
      }
      if (count >= 2 && enough_slices(weighed_row, weighed_slice(count - 1, weights), count, k, task_.bits))
        return {count, 0};
      if (count == length) return {0, count};
    }
    return {};
  }

  // Weighted sum of the magnitudes of slice s of the row.
  __device__ Scaled weighed_slice(int s, const double* weights) const {
    Scaled sum = weigh(
        [&](std::int64_t p) {
          return Residual{slice_element(task_.slices, s, row_, p), 0};
        },
        weights, task_.slices.length);
    if (sum.fraction != 0) sum.exponent += task_.exponents.values[s * task_.exponents.stride + row_];
    return sum;
  }

  const RowSliceCountsTask& task_;
  std::int64_t row_;
};

// Adds a block of C to the report's counts. `slices` is the number of slices that were made of each operand.
__device__ void count_block(DeviceSliceCounts& counts, const SliceDepth& depth, int slices) {
  const int b = min(depth.b, slices);
  int products = 0;
  for (int q = 0; q < b; ++q) products += depth.products(q);
  count(counts.blocks, 1);
  count(counts.slices_a, depth.a);
  count(counts.slices_b, b);
  count(counts.products, products);
  count(counts.fast_blocks, depth.fast ? 1 : 0);
  atomicMax(&counts.fewest_slices_below_most, max_successive_slices - depth.least());
  atomicMax(&counts.max_products, products);
}

}  // namespace

// Computes |B| e, where e is a vector of ones, for each block of C's columns: for every inner index the sum
// of the magnitudes of the block's columns of B.
extern "C" __global__ void __launch_bounds__(weighed_indices* weighing_parts)
    weigh_inner_indices(const __grid_constant__ WeighingTask task) {
  if (!holds(task.condition)) return;
  __shared__ std::int32_t tops[weighed_indices];
  __shared__ std::uint64_t low[weighed_indices][weighing_parts];
  __shared__ std::uint64_t high[weighed_indices][weighing_parts];
  __shared__ bool more[weighed_indices][weighing_parts];
  const DeviceMatrix& matrix = task.b.matrix;
  const auto thread = static_cast<int>(threadIdx.x);
  const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
  // The thread's inner index and share of the vectors. Neighboring threads read along the smaller stride.
  const int index = along_k ? thread % weighed_indices : thread / weighing_parts;
  const int part = along_k ? thread / weighed_indices : thread % weighing_parts;
  const std::int64_t p = std::int64_t{blockIdx.x} * weighed_indices + index;
  const std::int64_t first_vector = blockIdx.y * task.slice_counts.vectors;
  const std::int64_t end_vector = min(first_vector + task.slice_counts.vectors, matrix.vectors());
  const auto for_each = [&](const auto& visit) {
    if (p >= matrix.length()) return;
    for (std::int64_t v = first_vector + part; v < end_vector; v += weighing_parts) {
      if (task.b.ranges[v].finite()) visit(residual_of(any_element(matrix, task.b.item, v, p)));
    }
  };
  constexpr Residual one{1, 0};
  if (thread < weighed_indices) tops[thread] = no_residual;
  __syncthreads();
  std::int32_t top = no_residual;
  for_each([&](const Residual& x) { top = max(top, MagnitudeSum::top(x, one)); });
  atomicMax(&tops[index], top);
  __syncthreads();
  MagnitudeSum sum(tops[index], bits_of_count(task.slice_counts.vectors));
  for_each([&](const Residual& x) { sum.add(x, one); });
  low[index][part] = sum.low();
  high[index][part] = sum.high();
  more[index][part] = sum.more();
  __syncthreads();
  if (part != 0 || p >= matrix.length()) return;
  for (int other = 1; other < weighing_parts; ++other)
    sum.add(low[index][other], high[index][other], more[index][other]);
  task.weights[blockIdx.y * matrix.length() + p] = sum.finite();
}

extern "C" __global__ void __launch_bounds__(slice_count_threads)
    find_slice_counts(const __grid_constant__ RowSliceCountsTask task) {
  if (!holds(task.condition)) return;
  RowSliceCounts(task, blockIdx.x).find();
}

// Ends a batch item (DeviceOzaki1Item). One thread block runs it.
extern "C" __global__ void __launch_bounds__(slice_count_threads)
    finish_item(const __grid_constant__ DeviceOzaki1Item item) {
  DeviceSelection& selection = *item.selection;
  const bool selected = selection.candidate == 0;
  const bool unreachable = *item.unreachable != 0;
  __syncthreads();  // all threads have read the selection that thread 0 now changes
  if (threadIdx.x == 0) {
    if (selected && unreachable) selection.candidate = DeviceSelection::none;
    if (item.report != nullptr) add_to_report(*item.report, selection);
  }
  if (!selected || unreachable || item.report == nullptr) return;
  const DeviceBlockSliceCounts& slice_counts = item.slice_counts;
  DeviceSliceCounts& counts = item.report->slices;
  const std::int64_t blocks =
      slice_counts.counts == nullptr ? 1 : slice_counts.blocks_m * slice_counts.blocks_n;
  for (std::int64_t block = threadIdx.x; block < blocks; block += slice_count_threads) {
    const SliceDepth depth = slice_counts.counts == nullptr
                                 ? SliceDepth{item.slices, item.slices, item.fast}
                                 : depth_of(slice_counts.counts[block], max_successive_slices, item.fast);
    count_block(counts, depth, item.slices);
  }
}

}  // namespace kintsugi::core::cuda
