// Pipeline of the GEMM kernels for int8 slices with exponents per tile: the stages in shared memory, the
// pipeline state, and the producer, which loads the stages.
#pragma once

#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/order_barriers.cuh"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_params.hpp"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// `Depth` is the number of inner indices of a tile along k.
template <WeightedTile Tile, int Depth>
struct WeightedTileConfig {
  static constexpr WeightedTile tile = Tile;
  static_assert(WeightedTile::threads == warpgroup * (1 + consumers));
  static_assert(tile.stages() >= 2);
  static_assert(WeightedTile::block % Depth == 0);
  static constexpr int slices_a = tile.slices_a;
  static constexpr int slices_b = tile.slices_b;
  static constexpr int columns = tile.columns;
  static constexpr int sums = columns / 2;  // per thread
  static constexpr int fragments = tile.column_panels();
  // Tiles of depth 32 have an accumulator for each of the two weights of a half, so one wait serves both.
  // Deeper tiles have one accumulator and two waits, which take a smaller part of the tile's time.
  static constexpr bool has_two_accumulators = Depth == 32;
  static constexpr int block_k_tiles = Tile.block_k_tiles(Depth);
  // Number of wgmma instructions along k for one tile.
  static constexpr int tile_steps = WeightedTile::block / step_bytes / block_k_tiles;
  // Kernels for tiles of 128 inner indices also multiply tiles of 64. The launch says which.
  static constexpr bool has_half_depth = Depth == WeightedTile::block;
  using OfHalfDepth = WeightedTileConfig<Tile, Depth / 2>;

  // The registers of all consumer threads and of the producer's warpgroup fill the SM's register file.
  static constexpr int consumer_registers = 224;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;

  // First slice of A that has a product of weight 2^(-7 weight).
  static constexpr int first_slice(int weight) { return weight < slices_b ? 0 : weight - slices_b + 1; }
  static constexpr bool has_weight(int weight) { return weight <= slices_a + slices_b - 2; }
};

template <WeightedTile Tile>
struct WeightedTileSharedStorage {
  static constexpr int stages = Tile.stages();

  Mbarrier full[stages];
  Mbarrier free[stages];  // counts the consumer warps of both thread blocks
  EpilogueParams<WeightedTile::rows, Tile.columns, warpgroup / 32 - 1> epilogue;
  Mbarrier epilogue_ready;  // the epilogue's parameters have been loaded
  Mbarrier epilogue_read;   // the epilogue's parameters have been read and may be overwritten
  unsigned failing_panels;  // bit p: a tile of panel p of has_failures() fails Eq. 9

  __device__ void initialise() {
    epilogue_ready.initialise(epilogue.epilogue_warps);
    epilogue_read.initialise(consumers * warpgroup / 32);
    for (int stage = 0; stage < stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(consumers * (warpgroup / 32) * gemm_cluster_size);
    }
  }
};

// Pipeline state: stage index and mbarrier phase.
template <WeightedTile Tile>
class WeightedTilePipelineState {
 public:
  static constexpr int stages = Tile.stages();

  __device__ WeightedTilePipelineState(WeightedTileSharedStorage<Tile>& shared, std::uint32_t tiles)
      : shared_(shared), tiles_(tiles) {}

  __device__ void advance() {
    if (++stage_ < stages) return;
    stage_ = 0;
    parity_ ^= 1;
  }
  __device__ std::uint32_t a() const { return tiles_ + stage_ * Tile.stage_bytes(); }
  __device__ std::uint32_t b() const { return a() + Tile.slices_a * Tile.a_bytes(); }
  __device__ std::uint32_t row_weights() const {
    return tiles_ + stages * Tile.stage_bytes() + stage_ * WeightedTile::weight_bytes;
  }
  __device__ std::uint32_t column_weights() const { return row_weights() + WeightedTile::column_weights; }
  __device__ Mbarrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_full() const { full().wait(parity_); }
  __device__ void wait_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Tells both thread blocks that this warp has read the stage, because each of them loads a part of the tile
  // of B. Every warp reads weights, so every warp must call this function.
  __device__ void release() const {
    __syncwarp();
    const unsigned lane = threadIdx.x % 32;
    if (lane < gemm_cluster_size) shared_.free[stage_].arrive_remote(lane);
  }

 private:
  WeightedTileSharedStorage<Tile>& shared_;
  std::uint32_t tiles_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

struct WeightedTileMaps {
  const TensorMap& a;
  const TensorMap& b;
  const TensorMap& weights_a;
  const TensorMap& weights_b;
};

// Loads one k-block of all slices, and the weights of this k-block. Each thread block of the cluster loads
// one half of the tile of B, into both thread blocks.
template <class Config>
__device__ void load_stage(const WeightedTileMaps& maps, const WeightedTileParams& params,
                           const WeightedTilePipelineState<Config::tile>& pipeline, const TileCoord& coord,
                           int block) {
  constexpr WeightedTile tile = Config::tile;
  constexpr int columns_per_block = tile.columns / gemm_cluster_size;
  constexpr int weight_row = (WeightedTile::row_panels + tile.column_panels()) * sizeof(float);
  const int rank = block_rank_in_cluster();
  const int row = coord.row * gemm_cluster_size + rank;
  const int item_a = params.shares_a ? 0 : coord.item;
  const int item_b = params.shares_b ? 0 : coord.item;
  const int k = block * WeightedTile::block;
  Mbarrier& full = pipeline.full();
  pipeline.wait_free();
  full.arrive_expect_tx(tile.stage_bytes() + params.block_k_tiles * weight_row);
#pragma unroll
  for (int slice = 0; slice < Config::slices_a; ++slice) {
    tma_load(pipeline.a() + slice * tile.a_bytes(), maps.a, full, k, row * WeightedTile::rows,
             item_a * Config::slices_a + slice);
  }
#pragma unroll
  for (int slice = 0; slice < Config::slices_b; ++slice) {
    tma_load_multicast(pipeline.b() + slice * tile.b_bytes() + rank * columns_per_block * WeightedTile::block,
                       maps.b, full, k, coord.column * tile.columns + rank * columns_per_block,
                       item_b * Config::slices_b + slice, all_of_cluster);
  }
  const int first_tile = block * params.block_k_tiles;
  tma_load(pipeline.row_weights(), maps.weights_a, full, row * WeightedTile::row_panels, first_tile, item_a);
  tma_load(pipeline.column_weights(), maps.weights_b, full, coord.column * tile.column_panels(), first_tile,
           item_b);
}

// Loads all k-blocks of all work tiles of the cluster. The producer, one thread of each thread block, calls
// this function.
template <class Config>
__device__ void load_slices(const WeightedTileMaps& maps, const WeightedTileParams& params,
                            WeightedTileSharedStorage<Config::tile>& shared, std::uint32_t tiles) {
  WeightedTilePipelineState<Config::tile> pipeline(shared, tiles);
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  while (scheduler.next(cluster_index(), work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    const TileCoord coord = params.schedule.coord(work_tile);
#pragma unroll 1
    for (int block = 0; block < params.schedule.k_blocks; ++block, pipeline.advance())
      load_stage<Config>(maps, params, pipeline, coord, block);
  }
}

// Rows and columns of this thread block's part of a work tile.
template <class Config>
struct WeightedTileRegion {
  TileRange rows;
  TileRange columns;

  __device__ explicit WeightedTileRegion(const TileCoord& coord)
      : rows{(std::int64_t{coord.row} * gemm_cluster_size + block_rank_in_cluster()) * WeightedTile::rows,
             WeightedTile::rows},
        columns{std::int64_t{coord.column} * Config::columns, Config::columns} {}
};

// True if a tile of panel `panel` fails Eq. 9. The panels of the work tile's rows have the first numbers, and
// the panels of its columns follow.
template <class Config>
__device__ bool has_failures(const WeightedTileParams& params, const TileCoord& coord,
                             const WeightedTileRegion<Config>& region, int panel) {
  const bool is_of_rows = panel < WeightedTile::row_panels;
  const int inside = is_of_rows ? region.rows.count_inside(params.tile.rows)
                                : region.columns.count_inside(params.tile.columns);
  const int vectors = is_of_rows ? weighted_tile_rows : weighted_tile_columns;
  const int index = is_of_rows ? panel : panel - WeightedTile::row_panels;
  if (index * vectors >= inside) return false;
  const std::int64_t item = (is_of_rows ? params.shares_a : params.shares_b) ? 0 : coord.item;
  const std::int64_t first = item * (is_of_rows ? params.panels_a : params.panels_b) +
                             (is_of_rows ? region.rows.first : region.columns.first) / vectors;
  return __ldcg((is_of_rows ? params.failures_a : params.failures_b) + first + index) != 0;
}

// Loads the epilogue's parameters of every work tile of the cluster, while other warps multiply the tile. All
// warps of the producer's warpgroup except the first call this function.
template <class Config>
__device__ void load_epilogue_params(const WeightedTileParams& params,
                                     WeightedTileSharedStorage<Config::tile>& shared) {
  constexpr int panels = WeightedTile::row_panels + Config::fragments;
  static_assert(panels <= 32);
  const int thread = static_cast<int>(threadIdx.x) - 32;
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  unsigned parity = 0;
  while (scheduler.next(cluster_index(), work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    const TileCoord coord = params.schedule.coord(work_tile);
    const WeightedTileRegion<Config> region(coord);
    shared.epilogue_read.wait(parity ^ 1);
    shared.epilogue.load(params.tile, {params.shares_a, params.shares_b}, coord.item, region.rows,
                         region.columns, thread);
    if (thread < 32) {
      const bool fails = thread < panels && has_failures(params, coord, region, thread);
      const unsigned failing_panels = __ballot_sync(~0U, fails ? 1 : 0);
      if (thread == 0) shared.failing_panels = failing_panels;
    }
    __syncwarp();
    if (thread % 32 == 0) shared.epilogue_ready.arrive();
    parity ^= 1;
  }
}

}  // namespace kintsugi::core::cuda
