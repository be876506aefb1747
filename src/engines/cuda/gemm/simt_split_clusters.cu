// Native products of small matrices. The thread blocks of a cluster share a tile of C; each computes a part
// of k.
#include "engines/cuda/gemm/simt_tile.cuh"
#include "engines/cuda/gemm/simt_tiles.hpp"
#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int side = simt_tiles_f32[simt_split_tile].side;
using Tiles = KTiles<float, side>;
using TileSums = Sums<float, side>;
constexpr int sums_of_thread = TileSums::thread_side * TileSums::thread_side;

// Returns the element at `address` in the shared memory of thread block `block` of the cluster.
__device__ float load_from_block(std::uint32_t address, int block) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];"
               : "=f"(value)
               : "r"(map_to_block(address, static_cast<unsigned>(block))));
  return value;
}

// Returns the inner indices of thread block `block` of a cluster. The last thread blocks may have none.
__device__ InnerRange inner_range(std::int64_t k, int block, int blocks) {
  const std::int64_t length = split_length(k, blocks);
  const std::int64_t first = min(k, block * length);
  return {first, min(length, k - first)};
}

// Adds the parts of a sum in the order of the cluster's thread blocks. Each thread block must have stored its
// part at `address` of its shared memory.
__device__ float sum_of_parts(std::uint32_t address, int blocks) {
  float parts[simt_split_blocks];
#pragma unroll
  for (int block = 0; block < simt_split_blocks; ++block)
    parts[block] = block < blocks ? load_from_block(address, block) : 0;
  float sum = parts[0];
#pragma unroll
  for (int block = 1; block < simt_split_blocks; ++block) {
    if (block < blocks) sum += parts[block];
  }
  return sum;
}

struct ClusterTile {
  std::int64_t first_row;
  std::int64_t first_column;
  MatrixView<float> c;

  __device__ ClusterTile(const DeviceTile& tile, int blocks) {
    const std::int64_t index = blockIdx.x / blocks;
    const std::int64_t row_tiles = divide_up(tile.rows, std::int64_t{side});
    first_row = index % row_tiles * side;
    first_column = index / row_tiles * side;
    c = view_of<float>(tile.c, tile.item + blockIdx.y)
            .block(tile.first_row + first_row, tile.first_column + first_column,
                   min(std::int64_t{side}, tile.rows - first_row),
                   min(std::int64_t{side}, tile.columns - first_column));
  }
};

// Writes the elements of the thread's sums first ... end - 1. `stored` is the address of the thread's first
// sum.
__device__ void write_sums(const ClusterTile& at, const Scalars<float>& scalars, std::uint32_t stored,
                           int first, int end, int blocks) {
#pragma unroll 2
  for (int e = first; e < end; ++e) {
    constexpr std::uint32_t bytes = simt_threads * sizeof(float);
    const float sum = sum_of_parts(stored + static_cast<std::uint32_t>(e) * bytes, blocks);
    const Position position = TileSums::position(e);
    if (position.row >= at.c.rows || position.column >= at.c.columns) continue;
    float& element = at.c(position.row, position.column);
    const float product = scalars.alpha * sum;
    element = scalars.beta == 0 ? product : product + scalars.beta * element;
  }
}

// Computes the cluster's tile of C. First every thread block sums up its inner indices for all elements. Then
// each adds the parts of all thread blocks for its share of the elements, and writes these elements.
__device__ void multiply_tile(const DeviceTile& tile, Tiles& tiles, float* stored) {
  const int blocks = cluster_size();
  const int block = block_rank_in_cluster();
  const ClusterTile at(tile, blocks);
  const Scalars<float> scalars(tile.scalars);
  if (needs_no_product(tile.condition, scalars)) {
    if (block == 0) write_without_product(tile.condition, scalars, at.c, simt_threads);
    return;
  }
  const std::int64_t k = tile.a.matrix.columns;
  TileSums sums;
  if (const InnerRange inner = inner_range(k, block, blocks); inner.count > 0)
    sum_up(tile, at.first_row, at.first_column, inner, tiles, sums);
  __syncthreads();  // `stored` has the memory of the tiles
  sums.store(stored);
  cluster_sync();
  const int count = divide_up(sums_of_thread, blocks);
  const int first = min(block * count, sums_of_thread);
  write_sums(at, scalars, shared_address(stored + threadIdx.x), first, min(first + count, sums_of_thread),
             blocks);
  cluster_sync();  // a thread block may not exit while others read its parts
}

}  // namespace

extern "C" __global__ void __launch_bounds__(simt_threads, 2)
    multiply_f32_simt_64_split(const __grid_constant__ DeviceTile device_tile) {
  launch_dependents();
  if (device_tile.condition.selected_earlier && !holds(device_tile.condition, blockIdx.y))
    return exit_in_stream_order();
  grid_dependency_wait();
  __shared__ union {  // used for the operands first, then for the sums
    alignas(16) unsigned char tiles[sizeof(Tiles)];
    alignas(16) float stored[sums_of_thread * simt_threads];
  } memory;
  if (holds(device_tile.condition, blockIdx.y))
    multiply_tile(device_tile, *reinterpret_cast<Tiles*>(memory.tiles), memory.stored);
}

}  // namespace kintsugi::core::cuda
