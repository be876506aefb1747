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

#include "engines/cuda/gemm/weighted_tiles/failing_sums.cuh"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_pipeline_sm90.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
