// Sums of open FP64 elements in two doubles.
#pragma once

#include "arith/exact/double_sum.hpp"
#include "engines/cuda/recombine/checked/open_elements.cuh"

namespace kintsugi::core::cuda {

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
      const auto rounded =
          sum.rounded(products_of_sum(tile), scalars.alpha, scalars.beta, scalars.beta == 0 ? 0 : element);
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
