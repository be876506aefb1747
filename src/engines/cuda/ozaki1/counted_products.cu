// Products of the later slices. Algorithm 3 leaves them out in most blocks of C; so they are computed only in
// tiles that need them.
#include "engines/cuda/gemm/integer_tiles.cuh"
#include "engines/cuda/ozaki1/slice_elements.cuh"
#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// True if the thread block's tile intersects a block of C that needs the product of slices a and b.
__device__ bool is_needed(const DeviceProductSums& sums, std::int64_t first_row, std::int64_t first_column,
                          int a, int b) {
  const std::int64_t vectors = sums.tile.columns * (sums.tile.c.complex() ? 2 : 1);
  const std::int64_t last_row = min(first_row + integer_tile, sums.tile.rows) - 1;
  const std::int64_t last_column = min(first_column + integer_tile, vectors) - 1;
  // A block has 64 rows or more, or is all of C (Ozaki1Parameters::block). So every block that the tile
  // intersects has one of the tile's corners.
  for (const std::int64_t i : {first_row, last_row}) {
    for (const std::int64_t j : {first_column, last_column}) {
      if (depth_at(sums, i, j).products(b) > a) return true;
    }
  }
  return false;
}

}  // namespace

// Multiplies the slices of product blockIdx.z of `groups`. The integers of a slice have at most 26 bits, and
// sums over all of k stay below 2^62 (fit_ozaki1).
extern "C" __global__ void __launch_bounds__(integer_threads, 2)
    multiply_counted_slices(const __grid_constant__ DeviceProductSums sums,
                            const __grid_constant__ SliceArray slices_a,
                            const __grid_constant__ SliceArray slices_b,
                            const __grid_constant__ ProductGroups groups) {
  if (!holds(sums.tile.condition)) return;
  __shared__ IntegerStep<std::int32_t> a, b;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * integer_tile;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * integer_tile;
  const int slice_of_a = groups.first_a + static_cast<int>(blockIdx.z);
  if (!is_needed(sums, first_row, first_column, slice_of_a, groups.b)) return;
  IntegerSums<std::int32_t, std::int64_t> integers;
  for (std::int64_t begin = 0; begin < slices_a.vector_stride; begin += integer_depth) {
    load(a, [&](int v, int p) {
      return static_cast<std::int32_t>(slice_element(slices_a, slice_of_a, first_row + v, begin + p));
    });
    load(b, [&](int v, int p) {
      return static_cast<std::int32_t>(slice_element(slices_b, groups.b, first_column + v, begin + p));
    });
    __syncthreads();
    integers.add(a, b);
    __syncthreads();
  }
  integers.write(groups.data + blockIdx.z * groups.group_stride, sums.stride, sums.columns, first_row,
                 first_column);
}

}  // namespace kintsugi::core::cuda
