// Algorithm 3 of dgemm-tc. The host's counterpart is split/successive.cpp. Sums are integers, so
// their bits do not depend on the order of the threads. They drop bits of at most 2^-80 of the largest
// product, and record whether a dropped bit was 1 (MagnitudeSum). The host's sums drop nothing. Both are
// rounded to 53 bits before they are compared. Sums in FP64 decide first: all terms are positive, so their
// relative errors are below 2^-52 for each term, and they decide nearly always.
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

// Rows of A that a thread block tests, and blocks of columns of C that it tests at once. Rows share the loads
// of weights, and neighboring rows may share those of elements.
constexpr int rows_at_once = counted_rows;
constexpr int blocks_at_once = 8;

// Sums in FP64, one for each row and block of columns.
using RowSums = double[rows_at_once][blocks_at_once];

// Adds the numbers of all threads of the thread block: all threads get the same sums, in `totals`.
template <int Count, class Combine>
__device__ void combine_over_block(double (&values)[Count], double* totals, const Combine& combine) {
  __shared__ double warp_values[slice_count_warps][rows_at_once * blocks_at_once];
#pragma unroll
  for (double& value : values) {
    for (unsigned lane = 1; lane < 32; lane <<= 1) value = combine(value, __shfl_xor_sync(~0U, value, lane));
  }
  __syncthreads();  // all threads have read the values and totals of an earlier call
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int i = 0; i < Count; ++i) warp_values[threadIdx.x / 32][i] = values[i];
  }
  __syncthreads();
  if (threadIdx.x < Count) {
    double total = warp_values[0][threadIdx.x];
    for (int warp = 1; warp < slice_count_warps; ++warp)
      total = combine(total, warp_values[warp][threadIdx.x]);
    totals[threadIdx.x] = total;
  }
  __syncthreads();
}

// Slice counts that rows `first` ... first + rows - 1 of A need, in every block of C to which they belong.
class RowSliceCounts {
 public:
  __device__ RowSliceCounts(const RowSliceCountsTask& task, std::int64_t first, int rows)
      : task_(task), first_(first), rows_(rows) {}

  // Raises the slice counts of these blocks to the counts that the rows need.
  __device__ void find() const {
    for (std::int64_t j = 0; j < task_.slice_counts.blocks_n; j += blocks_at_once) find_from(j);
  }

 private:
  static constexpr unsigned all_blocks = (1U << blocks_at_once) - 1;
  // Beside numbers and sums from here on, what underflows is nothing.
  static constexpr double smallest_in_fp64 = 0x1p-900;

  // Does so for `blocks_at_once` blocks of columns, from `first` on.
  __device__ void find_from(std::int64_t first) const {
    __shared__ RowSums row_sums, slice_sums;
    __shared__ double least_weights[blocks_at_once];
    const auto blocks =
        static_cast<int>(min(task_.slice_counts.blocks_n - first, std::int64_t{blocks_at_once}));
    weigh_rows(first, blocks, row_sums, least_weights);
    unsigned open[rows_at_once];  // bits of the blocks whose counts are not known
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r)
      open[r] = r < rows_ && length(r) > 0 ? all_blocks >> (blocks_at_once - blocks) : 0;
    for (std::int32_t count = 2; count <= task_.slices.count; ++count) {
      bool is_weighed = false;  // slice_sums are those of slice count - 1
#pragma unroll
      for (int r = 0; r < rows_at_once; ++r) {
        if (open[r] == 0 || count > length(r)) continue;
        for (int j = 0; j < blocks; ++j) {
          if ((open[r] >> j & 1) == 0) continue;
          // The slice has an element that is not zero.
          if (compare(r, row_sums[r][j], least_weights[j], count) < 0) continue;
          if (!is_weighed) weigh_slices(first, blocks, count - 1, slice_sums);
          is_weighed = true;
          const int certain = compare(r, row_sums[r][j], slice_sums[r][j], count);
          const bool is_enough = certain != 0 ? certain > 0 : is_enough_exactly(r, first + j, count);
          if (!is_enough) continue;
          raise(r, first + j, {count, 0});
          open[r] &= ~(1U << j);
        }
      }
    }
    // Open rows have no residual after length(r) slices, of which there may be too few to decide.
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) {
      for (int j = 0; j < blocks; ++j) {
        if ((open[r] >> j & 1) == 0) continue;
        if (length(r) <= task_.slices.count) {
          raise(r, first + j, {0, length(r)});
        } else if (threadIdx.x == 0) {
          *task_.unreachable = 1;
        }
      }
    }
  }

  __device__ void raise(int r, std::int64_t j, const SliceCounts& found) const {
    if (threadIdx.x != 0) return;
    const DeviceBlockSliceCounts& slice_counts = task_.slice_counts;
    SliceCounts& target =
        slice_counts.counts[(task_.first + first_ + r) / slice_counts.rows + j * slice_counts.blocks_m];
    if (found.enough > 0) atomicMax(&target.enough, found.enough);
    if (found.exhausted > 0) atomicMax(&target.exhausted, found.exhausted);
  }

  __device__ std::int32_t length(int r) const { return task_.exponents.lengths[first_ + r]; }
  __device__ std::int32_t exponent_of(int r, int s) const {
    return task_.exponents.values[s * task_.exponents.stride + first_ + r];
  }
  __device__ double element(int r, std::int64_t p) const {
    return any_element(task_.a.matrix, task_.a.item, task_.first + first_ + r, p);
  }
  // Exponent of the factor by which the row is multiplied in FP64.
  __device__ int scale(int r) const { return -exponent_of(r, 0); }
  __device__ bool scales(int r) const { return abs(scale(r)) < 1000; }

  // Calls visit(j, weight) for the weights of inner index p.
  template <class Visit>
  __device__ void for_each_weight(std::int64_t first, int blocks, std::int64_t p, const Visit& visit) const {
    const std::int64_t k = task_.slices.length;
    const double* weights = task_.weights + first * k + p;
#pragma unroll
    for (int j = 0; j < blocks_at_once; ++j)
      if (j < blocks) visit(j, weights[j * k]);
  }

  // Adds the weighted magnitudes of the elements x(r, p) of all rows, in all threads; visit(j, weight) as
  // above.
  template <class Element, class Visit>
  __device__ void weigh(std::int64_t first, int blocks, const Element& x, RowSums& totals,
                        const Visit& visit) const {
    double sums[rows_at_once * blocks_at_once] = {};
    for (std::int64_t p = threadIdx.x; p < task_.slices.length; p += slice_count_threads) {
      double elements[rows_at_once];
#pragma unroll
      for (int r = 0; r < rows_at_once; ++r) elements[r] = r < rows_ ? fabs(x(r, p)) : 0;
      for_each_weight(first, blocks, p, [&](int j, double weight) {
        visit(j, weight);
#pragma unroll
        for (int r = 0; r < rows_at_once; ++r) {
          double& sum = sums[r * blocks_at_once + j];
          sum = __fma_rn(elements[r], weight, sum);
        }
      });
    }
    combine_over_block(sums, &totals[0][0], [](double a, double b) { return a + b; });
  }

  // Weighs the rows, and finds the least weight of each block.
  __device__ void weigh_rows(std::int64_t first, int blocks, RowSums& totals, double* least_weights) const {
    double factors[rows_at_once];
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r)
      factors[r] = r < rows_ && scales(r) ? power_of_two(scale(r)) : nan("");
    double least[blocks_at_once];
#pragma unroll
    for (double& weight : least) weight = std::numeric_limits<double>::max();
    weigh(
        first, blocks,
        [&](int r, std::int64_t p) {
          const double x = element(r, p) * factors[r];
          return x != 0 && fabs(x) < smallest_in_fp64 ? nan("") : x;  // may have been rounded
        },
        totals, [&](int j, double weight) { least[j] = fmin(least[j], weight); });
    combine_over_block(least, least_weights, [](double a, double b) { return fmin(a, b); });
  }
  __device__ void weigh_slices(std::int64_t first, int blocks, int s, RowSums& totals) const {
    weigh(
        first, blocks,
        [&](int r, std::int64_t p) {
          return static_cast<double>(slice_element(task_.slices, s, first_ + r, p));
        },
        totals, [](int, double) {});
  }

  // Compares as enough_slices() does, where the weighted sum of slice count - 1 is `slice_sum` times the
  // power of two of the slice. 1: enough slices, -1: not enough, also if that sum is larger, 0: rounding
  // errors may decide.
  __device__ int compare(int r, double row_sum, double slice_sum, int count) const {
    constexpr double margin = 0x1p-20;  // far above the errors of sums of 2^26 terms
    const auto k = static_cast<double>(task_.slices.length);
    const int exponent = exponent_of(r, count - 1) + scale(r);
    if (!(row_sum > smallest_in_fp64 && slice_sum > smallest_in_fp64) || isinf(slice_sum)) return 0;
    if (abs(exponent) > 900 || k > 0x1p26) return 0;
    const double ratio = row_sum / slice_sum * power_of_two(-exponent) * power_of_two(-task_.bits);
    const double left = 4 * k * ratio * ratio;
    const auto right = static_cast<double>(count + 1) * (count + 1);
    if (!isfinite(left)) return 0;
    return left > right * (1 + margin) ? 1 : left < right * (1 - margin) ? -1 : 0;
  }

  // enough_slices() of the exact sums for block j of C's columns.
  __device__ __noinline__ bool is_enough_exactly(int r, std::int64_t j, std::int32_t count) const {
    const std::int64_t k = task_.slices.length;
    const double* weights = task_.weights + j * k;
    const Scaled row =
        core::cuda::weigh([&](std::int64_t p) { return residual_of(element(r, p)); }, weights, k);
    Scaled slice = core::cuda::weigh(
        [&](std::int64_t p) {
          return Residual{slice_element(task_.slices, count - 1, first_ + r, p), 0};
        },
        weights, k);
    if (slice.fraction != 0) slice.exponent += exponent_of(r, count - 1);
    return enough_slices(row, slice, count, k, task_.bits);
  }

  const RowSliceCountsTask& task_;
  std::int64_t first_;
  int rows_;
};

// Adds a block of C to the report's counts. a and b are the numbers of slices of its rows and columns.
__device__ void count_block(DeviceSliceCounts& counts, const SliceDepth& depth, int a, int b) {
  int products = 0;
  for (int q = 0; q < b; ++q) products += min(depth.products(q), a);
  count(counts.blocks, 1);
  count(counts.slices_a, a);
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
  const std::int64_t first = std::int64_t{blockIdx.x} * counted_rows;
  RowSliceCounts(task, first, static_cast<int>(min(task.rows - first, std::int64_t{counted_rows}))).find();
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
  const std::int64_t blocks = slice_counts.blocks_m * slice_counts.blocks_n;
  for (std::int64_t block = threadIdx.x; block < blocks; block += slice_count_threads) {
    if (slice_counts.counts == nullptr) {
      count_block(counts, {item.slices, item.slices, item.fast},
                  slice_counts.lengths[block % slice_counts.blocks_m],
                  slice_counts.lengths[slice_counts.blocks_m + block / slice_counts.blocks_m]);
    } else {
      const SliceDepth depth = depth_of(slice_counts.counts[block], max_successive_slices, item.fast);
      count_block(counts, depth, depth.a, min(depth.b, item.slices));
    }
  }
}

}  // namespace kintsugi::core::cuda
