// GEMM for Hopper of int8 slices with one exponent per tile of 16 rows, or 8 columns, and 32 to 256 inner
// indices (docs/schemes/mixpert.md). For every tile along k the products of slices whose weight is 2^0 and
// those whose weight is 2^-7 are added in INT32, one sum for each weight. Both sums are combined and
// converted to FP32 in the same registers. The same follows for the weights 2^-14 and 2^-21. One fma adds the
// value of all four, times the product of both tiles' weights, to the element's sum.
//
// The two thread blocks of a cluster share the slices of B's columns by multicast. In each thread block one
// thread loads tiles, and two warpgroups multiply 64 rows each, in turn: one converts while the other's
// products run.
#pragma once

#include "engines/cuda/gemm/weighted_tiles/half_precision.cuh"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_pipeline_sm90.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

template <class Config>
using WeightedIntegers = std::int32_t[Config::sums];

// Issues the products of slices i of A and j of B with i + j = Weight over 32 inner indices. `Begins`: they
// are the first ones of a tile, with which sums begin.
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

// Issues the products of weights First (added to `high`) and First + 1 (added to `low`) for steps Step, Step
// + 1 and so on of a tile along k; a step is 32 inner indices.
template <class Config, int First, int Step = 0>
__device__ __forceinline__ void add_steps(WeightedIntegers<Config>& high, WeightedIntegers<Config>& low,
                                          MatrixDescriptor a, MatrixDescriptor b) {
  if constexpr (Step < Config::tile_steps) {
    add_weight<Config, First, Step == 0>(high, a, b);
    if constexpr (Config::has_weight(First + 1)) add_weight<Config, First + 1, Step == 0>(low, a, b);
    add_steps<Config, First, Step + 1>(high, low, a + step_bytes, b + step_bytes);
  }
}

// Computes the sums of the products of weights First and First + 1 of one tile along k, which begins at step
// `first_step` of the pipeline's stage.
template <class Config, int First>
__device__ __forceinline__ void multiply_weights(WeightedIntegers<Config>& high,
                                                 WeightedIntegers<Config>& low,
                                                 WeightedTilePipelineState<Config> stage, int first_step,
                                                 int consumer) {
  const std::uint32_t rows = consumer * 64 * WeightedTile::block;
  const std::uint32_t offset = first_step * step_bytes;
  order_barrier_wait(consumer);
  wgmma_fence();
  add_steps<Config, First>(high, low, MatrixDescriptor(stage.a() + rows + offset),
                           MatrixDescriptor(stage.b() + offset));
  wgmma_commit_group();
  order_barrier_arrive(consumer);
  wgmma_wait_group<0>();
  warpgroup_fence_operand(high);
  if constexpr (Config::has_weight(First + 1)) warpgroup_fence_operand(low);
}

// 128 high + low of one element, rounded to FP32; HasLow is false if `low` has no products. INT32 holds the
// sum, because `high` has at most 256 products of 127 * 127.
template <bool HasLow>
__device__ __forceinline__ float combined(std::int32_t high, std::int32_t low) {
  return __int2float_rn(HasLow ? high * 128 + low : high * 128);
}

// Weights of a warp's rows and of all columns of the tile of C, for tile `tile` along k of the k-block.
template <class Config>
struct TileWeights {
  float row;
  float columns[Config::fragments];

  __device__ TileWeights(const WeightedTilePipelineState<Config>& pipeline, int tile) {
    const int warp = (thread_number() - warpgroup) / 32;
    row = load_shared(pipeline.row_weights() +
                      (tile * WeightedTile::row_panels + warp) * static_cast<int>(sizeof(float)));
#pragma unroll
    for (int panel = 0; panel < Config::fragments; panel += 4) {
      load_shared(pipeline.column_weights() +
                      (tile * WeightedTile::column_panels + panel) * static_cast<int>(sizeof(float)),
                  columns + panel);
    }
  }
};

// Adds a tile's values to the sums: `high` has the products of weights 2^0 and 2^-7, `third` and `fourth`
// those of weights 2^-14 and 2^-21.
template <class Config>
__device__ __forceinline__ void add_values(float (&sums)[Config::sums], const float (&high)[Config::sums],
                                           const WeightedIntegers<Config>& third,
                                           const WeightedIntegers<Config>& fourth,
                                           const TileWeights<Config>& weights) {
#pragma unroll
  for (int fragment = 0; fragment < Config::fragments; ++fragment) {
    const float weight = __fmul_rn(weights.row, weights.columns[fragment]);
#pragma unroll
    for (int i = 4 * fragment; i < 4 * fragment + 4; ++i) {
      const float low = combined<Config::has_weight(3)>(third[i], fourth[i]);
      sums[i] = __fmaf_rn(__fmaf_rn(low, 0x1p-14F, high[i]), weight, sums[i]);
    }
  }
}

// Adds one tile along k, the `tile`-th of its k-block.
template <class Config>
__device__ __forceinline__ void add_k_tile(float (&sums)[Config::sums],
                                           WeightedTilePipelineState<Config>& pipeline, int tile,
                                           int consumer) {
  const int first_step = tile * Config::tile_steps;
  if (tile == 0) pipeline.wait_full();
  float high[Config::sums];
  {
    WeightedIntegers<Config> first;
    WeightedIntegers<Config> second;
    multiply_weights<Config, 0>(first, second, pipeline, first_step, consumer);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) high[i] = combined<true>(first[i], second[i]);
  }
  WeightedIntegers<Config> third;
  WeightedIntegers<Config> fourth = {};
  multiply_weights<Config, 2>(third, fourth, pipeline, first_step, consumer);
  const TileWeights<Config> weights(pipeline, tile);
  if (tile + 1 == Config::block_k_tiles) {
    pipeline.release();
    pipeline.advance();
  }
  add_values<Config>(sums, high, third, fourth, weights);
}

// Sets the sums of failing tiles, in `fp16_sums`, for every fragment of the warp.
template <class Config>
__device__ void add_half_precision(float (&fp16_sums)[Config::sums], const WeightedTileParams& params,
                                   const WeightedTileSharedStorage<Config>& shared, const TileCoord& coord) {
  const int warp = (thread_number() - warpgroup) / 32;
  const WeightedTileRegion region(coord);
  const std::int64_t item_a = params.shares_a ? 0 : coord.item;
  const std::int64_t item_b = params.shares_b ? 0 : coord.item;
  const int row = warp * weighted_tile_rows;
  if (row >= shared.epilogue.rows) return;
  const Fp16Panel a{.elements = view_of<const float>(params.tile.a.matrix, params.tile.a.item + coord.item),
                    .first = shared.epilogue.first_row + row,
                    .count = shared.epilogue.rows - row,
                    .scales = shared.epilogue.scales + row,
                    .weights = params.weights_a + item_a * params.panels_a * params.tiles_of_vector +
                               (region.rows.first + row) / weighted_tile_rows,
                    .stride = params.panels_a};
  const MatrixView<const float> columns =
      view_of<const float>(params.tile.b.matrix, params.tile.b.item + coord.item);
#pragma unroll 1
  for (int fragment = 0; fragment < Config::fragments; ++fragment) {
    const int column = fragment * weighted_tile_columns;
    if (column >= shared.epilogue.columns) break;
    const Fp16Panel b{.elements = columns,
                      .first = shared.epilogue.first_column + column,
                      .count = shared.epilogue.columns - column,
                      .scales = shared.epilogue.scales + WeightedTile::rows + column,
                      .weights = params.weights_b + item_b * params.panels_b * params.tiles_of_vector +
                                 (region.columns.first + column) / weighted_tile_columns,
                      .stride = params.panels_b};
    float sums[4] = {};
    add_half_fragment(sums, a, b, Config::depth);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) fp16_sums[i] = i / 4 == fragment ? sums[i % 4] : fp16_sums[i];
  }
}

// Sums of both programs, added as FloatingSum adds them (arith/weighted_sum.hpp). Their units 2^-19 and 2^-14
// are those of tile_value() and half_value() (schemes/mixpert.hpp).
template <class Config>
struct SumsOfPrograms {
  const float (&tiles)[Config::sums];
  const float (&fp16_sums)[Config::sums];

  __device__ double operator[](int i) const {
    return 0x1p-19 * static_cast<double>(tiles[i]) + 0x1p-14 * static_cast<double>(fp16_sums[i]);
  }
};

// Computes the work tiles of the cluster. The consumer warpgroups call it.
template <class Config>
__device__ void multiply_work_tiles(const WeightedTileParams& params,
                                    WeightedTileSharedStorage<Config>& shared, std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  WeightedTilePipelineState<Config> pipeline(shared, tiles);
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  unsigned epilogue_parity = 0;
  if (consumer == consumers - 1) order_barrier_arrive(consumer);  // lets the first warpgroup begin
  while (scheduler.next(cluster_index(), work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    float sums[Config::sums] = {};
    int tile = 0;
#pragma unroll 1
    for (int left = params.k_tiles; left > 0; --left) {
      add_k_tile<Config>(sums, pipeline, tile, consumer);
      tile = tile + 1 == Config::block_k_tiles ? 0 : tile + 1;
    }
    shared.epilogue_ready.wait(epilogue_parity);
    float fp16_sums[Config::sums] = {};
    if (shared.has_failing_tiles)
      add_half_precision<Config>(fp16_sums, params, shared, params.schedule.coord(work_tile));
    store_general_tile(SumsOfPrograms<Config>{sums, fp16_sums}, params.tile, shared.epilogue, consumer * 64,
                       thread_number() - warpgroup, consumers * warpgroup);
    __syncwarp();
    if (thread_number() % 32 == 0) shared.epilogue_read.arrive();
    epilogue_parity ^= 1;
  }
}

template <class Config>
__device__ void weighted_tile_gemm(const WeightedTileMaps& maps, const WeightedTileParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ WeightedTileSharedStorage<Config> shared;
  static_assert(sizeof shared <= WeightedTile::max_static_bytes);
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  specialize_warpgroups<Config>(
      [&] {
        if (threadIdx.x == 0) {
          load_slices<Config>(maps, params, shared, tiles);
        } else if (threadIdx.x >= 32) {
          load_epilogue_params(params, shared);
        }
      },
      [&] { multiply_work_tiles<Config>(params, shared, tiles); });
}

}  // namespace kintsugi::core::cuda
