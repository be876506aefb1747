// Open elements that a thread block recomputes, and the products of their sums.
#pragma once

#include "arith/exact/double_sum.hpp"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

inline constexpr unsigned all_lanes = ~0U;
inline constexpr int loads_in_flight = 4;  // elements per vector that a lane loads before it uses one

template <class Real>
__device__ Real sum_over_lanes(Real x) {
  for (int lane = 1; lane < exact_lanes; lane <<= 1) x += __shfl_xor_sync(all_lanes, x, lane);
  return x;
}

// Calls visit(x, y) for the share of thread `thread` of `threads` of the products x y of vector i of A and
// vector v of B. x and y are zeros beyond the end of the vectors.
template <class Real, int threads = exact_lanes, class View, class Visit>
__device__ void for_each_product(const View& a, const View& b, std::int64_t i, std::int64_t v, int thread,
                                 const Visit& visit) {
  for (std::int64_t begin = thread; begin < a.columns; begin += loads_in_flight * threads) {
    Real x[loads_in_flight];
    Real y[loads_in_flight];
#pragma unroll
    for (int u = 0; u < loads_in_flight; ++u) {
      const std::int64_t p = begin + u * threads;
      x[u] = p < a.columns ? a(i, p) : Real(0);
      y[u] = p < a.columns ? b(v, p) : Real(0);
    }
#pragma unroll
    for (int u = 0; u < loads_in_flight; ++u) visit(x[u], y[u]);
  }
}

// True if no product of elements of these vectors, and no sum of k such products, can overflow or lose a bit
// to underflow. False if a vector is all zero, since such a range has no exponents.
template <class Real>
__device__ bool cannot_underflow_or_overflow(const VectorRange& row, const VectorRange& column,
                                             std::int64_t k) {
  using Limits = std::numeric_limits<Real>;
  if (((row.flags | column.flags) & VectorRange::all_zero) != 0) return false;
  const int sum_bits = 64 - leading_zeros(static_cast<std::uint64_t>(k));
  return row.smallest + column.smallest - 2 * (Limits::digits - 1) >= ExactWidths<Real>::lowest &&
         row.largest + column.largest + 2 + sum_bits < Limits::max_exponent;
}

__device__ inline std::int64_t products_of_sum(const DeviceTile& tile) { return tile.a.matrix.length(); }

// True if element (i, j) of the whole matrix may be summed by fused multiply-add in its own type.
template <class T>
__device__ bool can_use_own_arithmetic(const DeviceTile& tile, std::int64_t i, std::int64_t j) {
  return cannot_underflow_or_overflow<RealOf<T>>(tile.a.ranges[i], tile.b.ranges[parts_of<T> * j],
                                                 products_of_sum(tile));
}

// Listed masks whose open elements the warps of a thread block share. A mask has adjacent rows of one column.
struct TakenMasks {
  static constexpr unsigned max_count = 4;

  unsigned count;
  std::uint32_t bits[max_count];
  std::uint32_t indices[max_count];  // indices in DeviceOpenElements::masks

  // Calls visit(index of the mask, bit of the element) for the share of open elements of warp `warp` of
  // `warps`: elements warp, warp + warps, warp + 2 warps and so on, in the order of masks and bits.
  template <class Visit>
  __device__ void for_each(int warp, int warps, const Visit& visit) const {
    int element = 0;
#pragma unroll 1
    for (unsigned mask = 0; mask < count; ++mask) {
#pragma unroll 1
      for (std::uint32_t open_rows = bits[mask]; open_rows != 0; open_rows &= open_rows - 1) {
        if (element++ % warps == warp) visit(indices[mask], __ffs(static_cast<int>(open_rows)) - 1);
      }
    }
  }
};

// Takes the next of the `listed` masks for the thread block: max_count of them if all thread blocks can have
// so many, else one. taken.count is 0 if no masks are left.
__device__ inline void take_masks(const DeviceOpenElements& open, std::uint32_t listed, TakenMasks& taken) {
  __syncthreads();  // all warps have read the previous masks
  if (threadIdx.x == 0) {
    const unsigned masks_at_once = listed >= TakenMasks::max_count * gridDim.x ? TakenMasks::max_count : 1;
    const std::uint32_t first = atomicAdd(&open.state->taken, masks_at_once);
    taken.count = first < listed ? min(masks_at_once, listed - first) : 0;
    for (unsigned mask = 0; mask < taken.count; ++mask) {
      taken.indices[mask] = open.list[first + mask];
      taken.bits[mask] = open.masks[taken.indices[mask]];
    }
  }
  __syncthreads();
}

// Row and column of C of an open element.
struct OpenPosition {
  std::int64_t i;
  std::int64_t j;

  __device__ OpenPosition(const DeviceTile& tile, const DeviceOpenElements& open, std::uint32_t mask_index,
                          int bit)
      : i(tile.first_row + mask_index % open.masks_per_column * DeviceOpenElements::rows_per_mask + bit),
        j(tile.first_column + mask_index / open.masks_per_column) {}
};

// Sums of open FP64 elements in two doubles.

// Adds the sums of the thread block's threads. Thread 0 gets the sum. All threads must call it together.
__device__ inline CompensatedSum sum_over_block(CompensatedSum sum) {
  // A shared variable may have no constructor.
  __shared__ alignas(CompensatedSum) unsigned char memory[exact_warps * sizeof(CompensatedSum)];
  auto* of_warps = reinterpret_cast<CompensatedSum*>(memory);
  for (int lane = 1; lane < exact_lanes; lane <<= 1)
    sum.add(sum.exchanged([&](double x) { return __shfl_xor_sync(all_lanes, x, lane); }));
  __syncthreads();  // thread 0 has read the previous sums
  if (threadIdx.x % exact_lanes == 0) of_warps[threadIdx.x / exact_lanes] = sum;
  __syncthreads();
  for (int warp = 1; warp < exact_warps && threadIdx.x == 0; ++warp) sum.add(of_warps[warp]);
  return sum;
}

// Sums open elements of the masks in two doubles, and writes those whose rounded results are certain
// (arith/exact/double_sum.hpp). Removes these from the masks. All threads of the block sum one element
// together. Vectors whose products may overflow or lose bits to underflow are left.
__device__ inline void recompute_in_pairs(const DeviceTile& tile, const DeviceOpenElements& open,
                                          TakenMasks& taken) {
  const OperandView<double> a = operand_view<double>(tile.a);
  const OperandView<double> b = operand_view<double>(tile.b);
  const Scalars<double> scalars(tile.scalars);
  const MatrixView<double> c = view_of<double>(tile.c, tile.item);
  for (unsigned mask = 0; mask < taken.count; ++mask) {
    std::uint32_t undecided = taken.bits[mask];  // the same in all threads, but for bits that thread 0 clears
    for (std::uint32_t open_rows = undecided; open_rows != 0; open_rows &= open_rows - 1) {
      const int bit = __ffs(static_cast<int>(open_rows)) - 1;
      const OpenPosition position(tile, open, taken.indices[mask], bit);
      if (!can_use_own_arithmetic<double>(tile, position.i, position.j)) continue;
      CompensatedSum sum;
      for_each_product<double, exact_warps * exact_lanes>(a, b, position.i, position.j,
                                                          static_cast<int>(threadIdx.x),
                                                          [&](double x, double y) { sum.add_product(x, y); });
      sum = sum_over_block(sum);
      if (threadIdx.x != 0) continue;
      double& element = c(position.i, position.j);
      const auto rounded = sum.rounded(products_of_sum(tile), scalars.alpha, scalars.beta,
                                       scalars.beta == 0 ? 0 : element, tile.scalars.rounding);
      if (!rounded.is_certain) continue;
      element = rounded.value;
      undecided &= ~(1U << bit);
    }
    __syncthreads();  // all threads have read the mask
    if (threadIdx.x == 0) taken.bits[mask] = undecided;
  }
  __syncthreads();
}

}  // namespace kintsugi::core::cuda
