// Sums of products of a tile's slices, in device memory.
#pragma once

#include "arith/weighted_sum.hpp"
#include "engines/cuda/ozaki1/ozaki1.hpp"
#include "engines/cuda/recombine/elements.cuh"

namespace kintsugi::core::cuda {

using ExactSumOfProducts = WideInteger<DeviceProductSums::limbs>;

__device__ inline std::int32_t exponent_at(const DeviceSliceExponents& exponents, int s, std::int64_t v) {
  return exponents.values[s * exponents.stride + v];
}

// Numbers of slices whose products the sum of row i and vector v of the tile has.
__device__ inline SliceDepth depth_at(const DeviceProductSums& sums, std::int64_t i, std::int64_t v) {
  const DeviceBlockSliceCounts& slice_counts = sums.slice_counts;
  if (slice_counts.counts == nullptr) return {sums.slices, sums.slices, sums.fast};
  const std::int64_t first_vector = sums.tile.first_column * (sums.tile.c.complex() ? 2 : 1);
  const std::int64_t block = (sums.tile.first_row + i) / slice_counts.rows +
                             (first_vector + v) / slice_counts.vectors * slice_counts.blocks_m;
  return depth_of(slice_counts.counts[block], sums.slices, sums.fast);
}

// FP64 sum of row i and vector v of the tile.
__device__ inline double& running_sum(const DeviceProductSums& sums, std::int64_t i, std::int64_t v) {
  return reinterpret_cast<double*>(sums.data)[i + v * sums.stride];
}

// Limb number `limb` of the exact sum of row i and vector v. Each limb has a matrix of its own, so that
// neighboring threads access neighboring words.
__device__ inline std::uint64_t& limb_of_sum(const DeviceProductSums& sums, std::int64_t i, std::int64_t v,
                                             int limb) {
  return reinterpret_cast<std::uint64_t*>(sums.data)[i + (v + limb * sums.columns) * sums.stride];
}
__device__ inline ExactSumOfProducts exact_sum(const DeviceProductSums& sums, std::int64_t i,
                                               std::int64_t v) {
  ExactSumOfProducts sum;
#pragma unroll
  for (int l = 0; l < DeviceProductSums::limbs; ++l) sum.limb[l] = limb_of_sum(sums, i, v, l);
  return sum;
}
__device__ inline void set_exact_sum(const DeviceProductSums& sums, std::int64_t i, std::int64_t v,
                                     const ExactSumOfProducts& sum) {
#pragma unroll
  for (int l = 0; l < DeviceProductSums::limbs; ++l) limb_of_sum(sums, i, v, l) = sum.limb[l];
}

}  // namespace kintsugi::core::cuda
