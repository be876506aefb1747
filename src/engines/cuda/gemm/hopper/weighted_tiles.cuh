// GEMM for Hopper of int8 slices with one exponent per tile. A tile has 16 rows or 8 columns, and 32 to 256
// inner indices (docs/schemes/mixpert.md). For every tile along k, the products of slices with weight 2^0
// have one sum in INT32, and those with weight 2^-7 another. Both sums are combined as one integer, which is
// converted to FP32. The weights 2^-14 and 2^-21 follow in the same way. One fma adds the value of all four
// weights to the element's sum, times the product of both tiles' weights. Another kernel has multiplied the
// tiles that fail Eq. 9. The slices of those tiles are zero here.
//
// The two thread blocks of a cluster share the slices of B's columns by multicast. In each thread block, one
// thread loads tiles, and two warpgroups multiply 64 rows each. The warpgroups take turns: one converts while
// the products of the other run.
#pragma once

#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/hopper/failing_sums.cuh"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/gemm/weighted_tile_params.hpp"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// Pipeline of the GEMM kernels for int8 slices with exponents per tile: the stages in shared memory, the
// pipeline state, and the producer, which loads the stages.

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

template <class Config>
using WeightedIntegers = std::int32_t[Config::sums];

// Issues the products of slices i of A and j of B with i + j = Weight, over 32 inner indices. `Begins` says
// that a tile's sums begin with these products.
template <class Config, int Weight, bool Begins>
__device__ __forceinline__ void add_weight(WeightedIntegers<Config>& sums, MatrixDescriptor a,
                                           MatrixDescriptor b) {
  constexpr int first = Config::first_slice(Weight);
#pragma unroll
  for (int i = first; i < Config::slices_a && i <= Weight; ++i) {
    const MatrixDescriptor rows = a + i * Config::tile.a_bytes();
    const MatrixDescriptor columns = b + (Weight - i) * Config::tile.b_bytes();
    if (Begins && i == first) {
      wgmma_first(sums, rows, columns);
    } else {
      wgmma_next(sums, rows, columns);
    }
  }
}

// Issues the products of one weight for instruction Step of a tile along k and every later one.
template <class Config, int Weight, bool Begins, int Step = 0>
__device__ __forceinline__ void add_weight_steps(WeightedIntegers<Config>& sums, MatrixDescriptor a,
                                                 MatrixDescriptor b) {
  if constexpr (Step < Config::tile_steps) {
    add_weight<Config, Weight, Begins && Step == 0>(sums, a, b);
    add_weight_steps<Config, Weight, Begins, Step + 1>(sums, a + step_bytes, b + step_bytes);
  }
}

// Calls issue(), which issues products of one tile along k, and waits for these products. Meanwhile the other
// warpgroup may issue its own.
template <class Issue>
__device__ __forceinline__ void multiply_in_turn(int consumer, const Issue& issue) {
  order_barrier_wait(consumer);
  wgmma_fence();
  issue();
  wgmma_commit_group();
  order_barrier_arrive(consumer);
  wgmma_wait_group<0>();
}

// A warpgroup's operands of one tile along k, in a pipeline stage.
template <class Config>
struct TileOperands {
  MatrixDescriptor a;
  MatrixDescriptor b;

  __device__ TileOperands(const WeightedTilePipelineState<Config::tile>& stage, int tile, int consumer)
      : a(stage.a() + consumer * 64 * WeightedTile::block + tile * Config::tile_steps * step_bytes),
        b(stage.b() + tile * Config::tile_steps * step_bytes) {}
};

// Adds the products of weights First and First + 1 of one tile along k in two accumulators.
template <class Config, int First>
__device__ __forceinline__ void multiply_in_two_accumulators(WeightedIntegers<Config>& high,
                                                             WeightedIntegers<Config>& low,
                                                             const TileOperands<Config>& operands,
                                                             int consumer) {
  constexpr bool begins = true;
  multiply_in_turn(consumer, [&] {
    add_weight_steps<Config, First, begins>(high, operands.a, operands.b);
    if constexpr (Config::has_weight(First + 1))
      add_weight_steps<Config, First + 1, begins>(low, operands.a, operands.b);
  });
  warpgroup_fence_operand(high);
  if constexpr (Config::has_weight(First + 1)) warpgroup_fence_operand(low);
}

// Adds the products of weights First and First + 1 in one accumulator: the sums of weight First are
// multiplied by 128 before the products of weight First + 1 are added.
template <class Config, int First>
__device__ __forceinline__ void multiply_in_one_accumulator(WeightedIntegers<Config>& sums,
                                                            const TileOperands<Config>& operands,
                                                            int consumer) {
  constexpr bool begins = true;
  multiply_in_turn(consumer, [&] { add_weight_steps<Config, First, begins>(sums, operands.a, operands.b); });
  warpgroup_fence_operand(sums);
#pragma unroll
  for (int i = 0; i < Config::sums; ++i) sums[i] *= 128;
  if constexpr (Config::has_weight(First + 1)) {
    warpgroup_fence_operand(sums);
    multiply_in_turn(consumer,
                     [&] { add_weight_steps<Config, First + 1, !begins>(sums, operands.a, operands.b); });
    warpgroup_fence_operand(sums);
  }
}

// RN32(128 S_First + S_(First + 1)) of a tile along k, for all elements of a thread.
template <class Config, int First>
__device__ __forceinline__ void multiply_half(float (&values)[Config::sums],
                                              const TileOperands<Config>& operands, int consumer) {
  WeightedIntegers<Config> high;
  if constexpr (Config::has_two_accumulators) {
    WeightedIntegers<Config> low = {};
    multiply_in_two_accumulators<Config, First>(high, low, operands, consumer);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i)
      values[i] = __int2float_rn(Config::has_weight(First + 1) ? high[i] * 128 + low[i] : high[i] * 128);
  } else {
    multiply_in_one_accumulator<Config, First>(high, operands, consumer);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) values[i] = __int2float_rn(high[i]);
  }
}

// Adds a tile's values to the sums, times the weights of the warp's rows and of the columns. `high` has the
// products of weights 2^0 and 2^-7, and `low` those of weights 2^-14 and 2^-21.
template <class Config>
__device__ __forceinline__ void add_values(float (&sums)[Config::sums], const float (&high)[Config::sums],
                                           const float (&low)[Config::sums],
                                           const WeightedTilePipelineState<Config::tile>& pipeline,
                                           int tile) {
  const int warp = (thread_number() - warpgroup) / 32;
  const float row = load_shared(pipeline.row_weights() +
                                (tile * WeightedTile::row_panels + warp) * static_cast<int>(sizeof(float)));
#pragma unroll
  for (int first = 0; first < Config::fragments; first += 4) {
    float columns[4];
    load_shared(
        pipeline.column_weights() + (tile * Config::fragments + first) * static_cast<int>(sizeof(float)),
        columns);
#pragma unroll
    for (int fragment = first; fragment < first + 4; ++fragment) {
      const float weight = __fmul_rn(row, columns[fragment - first]);
#pragma unroll
      for (int i = 4 * fragment; i < 4 * fragment + 4; ++i)
        sums[i] = __fmaf_rn(__fmaf_rn(low[i], 0x1p-14F, high[i]), weight, sums[i]);
    }
  }
}

// Adds one tile along k. `tile` is its number in the k-block.
template <class Config>
__device__ __forceinline__ void add_k_tile(float (&sums)[Config::sums],
                                           const WeightedTilePipelineState<Config::tile>& pipeline, int tile,
                                           int consumer) {
  const TileOperands<Config> operands(pipeline, tile, consumer);
  float high[Config::sums];
  multiply_half<Config, 0>(high, operands, consumer);
  float low[Config::sums];
  multiply_half<Config, 2>(low, operands, consumer);
  add_values<Config>(sums, high, low, pipeline, tile);
}

// Adds the tiles of some k-blocks. An unrolled loop needs more registers than there are.
template <class Config>
__device__ __forceinline__ void add_k_blocks(float (&sums)[Config::sums],
                                             WeightedTilePipelineState<Config::tile>& pipeline, int blocks,
                                             int consumer) {
#pragma unroll 1
  for (int left = blocks; left > 0; --left) {
    pipeline.wait_full();
#pragma unroll 1
    for (int tile = 0; tile < Config::block_k_tiles; ++tile)
      add_k_tile<Config>(sums, pipeline, tile, consumer);
    pipeline.release();
    pipeline.advance();
  }
}

// Adds the tiles of all k-blocks, in the depth that the launch says.
template <class Config>
__device__ __forceinline__ void add_all_k_blocks(float (&sums)[Config::sums],
                                                 WeightedTilePipelineState<Config::tile>& pipeline,
                                                 const WeightedTileParams& params, int consumer) {
  if constexpr (Config::has_half_depth) {
    if (params.block_k_tiles != Config::block_k_tiles)
      return add_k_blocks<typename Config::OfHalfDepth>(sums, pipeline, params.schedule.k_blocks, consumer);
  }
  add_k_blocks<Config>(sums, pipeline, params.schedule.k_blocks, consumer);
}

// Loads a sum of failing tiles if `fails`; else returns 0. Inline assembly keeps all loads of a thread ahead
// of its stores, so that they are in flight together.
__device__ __forceinline__ float load_failing_sum(const float* sum, bool fails) {
  float value;
  asm volatile(
      "{\n"
      ".reg .pred fails;\n"
      "setp.ne.u32 fails, %2, 0;\n"
      "mov.f32 %0, 0f00000000;\n"
      "@fails ld.global.cg.f32 %0, [%1];\n"
      "}"
      : "=f"(value)
      : "l"(sum), "r"(fails ? 1 : 0));
  return value;
}

// Sums of both kernels, added as FloatingSum adds them (arith/weighted_sum.hpp). The sum of failing tiles is
// read only if the panel of the element's row or column has such a tile. The units 2^-19 and 2^-14 are those
// of tile_value() and half_value() (schemes/mixpert.hpp).
template <class Config>
class SumsOfPrograms {
 public:
  __device__ SumsOfPrograms(const float (&sums)[Config::sums], const WeightedTileParams& params,
                            const WeightedTileSharedStorage<Config::tile>& shared, const TileCoord& coord)
      : tiles_(sums) {
    const int thread = thread_number() - warpgroup;
    const WeightedTileRegion<Config> region(coord);
    const FailingSums layout(params, coord.item);
    const int warp = thread / 32;
    const float* first = layout.first(region.rows.first / weighted_tile_rows + warp,
                                      region.columns.first / weighted_tile_columns, thread % 32);
    const unsigned fragments = failing_fragments(shared, warp);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i)
      failing_[i] = load_failing_sum(first + FailingSums::offset(i), (fragments >> (i / 4) & 1U) != 0);
  }

  __device__ double operator[](int i) const {
    return 0x1p-19 * static_cast<double>(tiles_[i]) + 0x1p-14 * static_cast<double>(failing_[i]);
  }

 private:
  // Bit f says that the warp's fragment f is inside C and has products of failing tiles. There are no sums of
  // panels outside C.
  __device__ static unsigned failing_fragments(const WeightedTileSharedStorage<Config::tile>& shared,
                                               int warp) {
    if (warp * weighted_tile_rows >= shared.epilogue.rows) return 0;
    const int inside = (shared.epilogue.columns + weighted_tile_columns - 1) / weighted_tile_columns;
    const unsigned all = (1U << inside) - 1;
    const bool row_fails = (shared.failing_panels >> warp & 1U) != 0;
    return row_fails ? all : shared.failing_panels >> WeightedTile::row_panels & all;
  }

  const float (&tiles_)[Config::sums];
  float failing_[Config::sums];  // in the registers that the values of a tile along k had
};

// Computes the work tiles of the cluster. The consumer warpgroups call this function.
template <class Config>
__device__ void multiply_work_tiles(const WeightedTileParams& params,
                                    WeightedTileSharedStorage<Config::tile>& shared, std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  WeightedTilePipelineState<Config::tile> pipeline(shared, tiles);
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  unsigned epilogue_parity = 0;
  if (consumer == consumers - 1) order_barrier_arrive(consumer);  // lets the first warpgroup begin
  while (scheduler.next(cluster_index(), work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    float sums[Config::sums] = {};
    add_all_k_blocks<Config>(sums, pipeline, params, consumer);
    shared.epilogue_ready.wait(epilogue_parity);
    store_general_tile(SumsOfPrograms<Config>(sums, params, shared, params.schedule.coord(work_tile)),
                       params.tile, shared.epilogue, consumer * 64, thread_number() - warpgroup,
                       consumers * warpgroup);
    __syncwarp();
    if (thread_number() % 32 == 0) shared.epilogue_read.arrive();
    epilogue_parity ^= 1;
  }
}

template <class Config>
__device__ void weighted_tile_gemm(const WeightedTileMaps& maps, const WeightedTileParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ WeightedTileSharedStorage<Config::tile> shared;
  static_assert(sizeof shared <= WeightedTile::max_static_bytes);
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  specialize_warpgroups<Config>(
      [&] {
        if (threadIdx.x == 0) {
          load_slices<Config>(maps, params, shared, tiles);
        } else if (threadIdx.x >= 32) {
          load_epilogue_params<Config>(params, shared);
        }
      },
      [&] { multiply_work_tiles<Config>(params, shared, tiles); });
}

// Defines the kernels of mixpert-1 ... mixpert-4 and mixpert-full for tiles of `depth` inner indices.
#define KINTSUGI_WEIGHTED_TILES(slices_a, slices_b, depth)                                                 \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1)                                     \
      __launch_bounds__(WeightedTile::threads, 1) multiply_f32_weighted_##slices_a##x##slices_b##_##depth( \
          const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,                        \
          const __grid_constant__ TensorMap weights_a, const __grid_constant__ TensorMap weights_b,        \
          const __grid_constant__ WeightedTileParams params) {                                             \
    using Config = WeightedTileConfig<weighted_tile(slices_a, slices_b, depth), depth>;                    \
    weighted_tile_gemm<Config>({a, b, weights_a, weights_b}, params);                                      \
  }
#define KINTSUGI_ALL_WEIGHTED_TILES(depth) \
  KINTSUGI_WEIGHTED_TILES(2, 2, depth)     \
  KINTSUGI_WEIGHTED_TILES(2, 3, depth)     \
  KINTSUGI_WEIGHTED_TILES(3, 2, depth)     \
  KINTSUGI_WEIGHTED_TILES(3, 3, depth)     \
  KINTSUGI_WEIGHTED_TILES(4, 4, depth)

}  // namespace kintsugi::core::cuda
