// Native products by SIMT kernels. Each tile of C has a thread block.
#include "engines/cuda/gemm/simt_tile.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/select_by_block.cuh"

namespace kintsugi::core::cuda {

namespace {

// Computes the thread block's tile of C. The caller must have waited for the kernels before this one.
template <class T, int Tile>
__device__ void multiply_tile(const DeviceTile& tile, KTiles<T, Tile>& tiles) {
  constexpr int side = Tile;
  const std::int64_t row_tiles = divide_up(tile.rows, side);
  const std::int64_t first_row = blockIdx.x % row_tiles * side;
  const std::int64_t first_column = blockIdx.x / row_tiles * side;
  const MatrixView<T> c = view_of<T>(tile.c, tile.item + blockIdx.y)
                              .block(tile.first_row + first_row, tile.first_column + first_column,
                                     std::min<std::int64_t>(side, tile.rows - first_row),
                                     std::min<std::int64_t>(side, tile.columns - first_column));
  const Scalars<T> scalars(tile.scalars);
  if (needs_no_product(tile.condition, scalars))
    return write_without_product(tile.condition, scalars, c, simt_threads);
  Sums<T, Tile> sums;
  sum_up(tile, first_row, first_column, {0, tile.a.matrix.columns}, tiles, sums);
  sums.write(c, scalars);
}

template <class T, int Tile>
__device__ void multiply_tile_if_selected(const DeviceTile& tile) {
  launch_dependents();
  if (tile.condition.selected_earlier && !holds(tile.condition, blockIdx.y)) return exit_in_stream_order();
  grid_dependency_wait();
  __shared__ KTiles<T, Tile> tiles;
  if (holds(tile.condition, blockIdx.y)) multiply_tile<T, Tile>(tile, tiles);
}

// Selects the candidate of the thread block's batch item, and computes the tile if the selected candidate is
// native. Every thread block of an item makes the same selection; the first one stores it and adds it to the
// report. The ranges are read before the grid-dependency wait: the kernel before this one, a product, has
// waited for them.
template <int Tile>
__device__ void select_or_multiply(const DeviceTile& tile, const SelectionTask& task) {
  using Tiles = KTiles<float, Tile>;
  using Staging = RangeStaging<simt_threads>;
  __shared__ bool selected;
  __shared__ union {  // used for the selection first, then for the product
    alignas(16) unsigned char staging[sizeof(Staging)];
    alignas(16) unsigned char tiles[sizeof(Tiles)];
  } memory;
  launch_dependents();
  const std::int64_t item = blockIdx.y;
  DeviceSelection selection;
  select_by_block<simt_threads>(task, item, *reinterpret_cast<Staging*>(memory.staging), selection);
  if (threadIdx.x == 0) {
    selected = selection.candidate == tile.condition.candidate;
    if (blockIdx.x == 0) {
      task.selection[item] = selection;
      if (task.reporting.report != nullptr) report(task.reporting, selection, /*fits=*/false);
    }
  }
  __syncthreads();
  if (!selected) return exit_in_stream_order();
  grid_dependency_wait();
  multiply_tile<float, Tile>(tile, *reinterpret_cast<Tiles*>(memory.tiles));
}

}  // namespace

#define KINTSUGI_SIMT(name, T, tile, blocks)                         \
  extern "C" __global__ void __launch_bounds__(simt_threads, blocks) \
      name(const __grid_constant__ DeviceTile device_tile) {         \
    multiply_tile_if_selected<T, tile>(device_tile);                 \
  }
KINTSUGI_SIMT(multiply_f32_simt_128, float, 128, 2)
KINTSUGI_SIMT(multiply_f32_simt_64, float, 64, 2)
KINTSUGI_SIMT(multiply_f32_simt_32, float, 32, 2)
KINTSUGI_SIMT(multiply_f64_simt_64, double, 64, 2)
KINTSUGI_SIMT(multiply_c32_simt_64, Complex<float>, 64, 2)
KINTSUGI_SIMT(multiply_c32_simt_32, Complex<float>, 32, 2)
KINTSUGI_SIMT(multiply_c64_simt_32, Complex<double>, 32, 2)
#undef KINTSUGI_SIMT

extern "C" __global__ void __launch_bounds__(simt_threads, 2)
    select_or_multiply_f32_simt_32(const __grid_constant__ DeviceTile device_tile,
                                   const __grid_constant__ SelectionTask selection) {
  select_or_multiply<32>(device_tile, selection);
}

}  // namespace kintsugi::core::cuda
