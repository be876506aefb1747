// Multi-term GEMM for Hopper by small tiles, for products that have few tiles or a C with one short side. A
// small tile has 64 rows, and an SM has room for two thread blocks. In each thread block, one warpgroup
// multiplies and one thread loads tiles. Sums are added in the order of multi_term_sm90.cuh, so they have the
// same bits. For products with few tiles and a long k, different thread blocks compute a tile's segments of
// k. The thread block that ends last adds the sums of all segments in ascending order.
#pragma once

#include <type_traits>

#include "engines/cuda/gemm/multi_term/multi_term_small_pipeline_sm90.cuh"
#include "engines/cuda/gemm/multi_term/multi_term_sums_sm90.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// Issues term T of one sub-block of a k-block and every later term, and calls meanwhile() while issued terms
// run. If a term rescales the accumulators, the call comes before the rescaling; else after all terms.
// `swapped` says that the operands a and b of a term are exchanged.
template <class Config, class SubBlock, int T = 0, class Meanwhile>
__device__ __forceinline__ void issue_terms(float (&sums)[Config::sums],
                                            const SmallTilePipelineState<Config>& stages, bool swapped,
                                            float rescale, const Meanwhile& meanwhile) {
  if constexpr (T < Config::terms) {
    constexpr Term term = Config::structure.terms[T];
    if constexpr (term.rescales) {
      wgmma_commit_group();
      meanwhile();
      wgmma_wait_group<0>();
      warpgroup_fence_operand(sums);
#pragma unroll
      for (int i = 0; i < Config::sums; ++i) sums[i] *= rescale;
      warpgroup_fence_operand(sums);
      wgmma_fence();
    }
    constexpr int offset = SubBlock::first_step * step_bytes;
    const MatrixDescriptor a = MatrixDescriptor(stages.a(swapped ? term.b : term.a)) + offset;
    const MatrixDescriptor b = MatrixDescriptor(stages.b(swapped ? term.a : term.b)) + offset;
#pragma unroll
    for (int i = 0; i < SubBlock::steps; ++i) {
      wgmma<Config::format, Config::columns>(sums, a + i * step_bytes, b + i * step_bytes, T > 0 || i > 0);
    }
    issue_terms<Config, SubBlock, T + 1>(sums, stages, swapped, rescale, meanwhile);
  } else {
    wgmma_commit_group();
    if constexpr (!Config::rescales) meanwhile();
  }
}

// Sums of a segment of k (Schedule::k_segment). Each k-block has `Count` sub-blocks. The sums of a sub-block
// are added outside the matrix unit while the matrix unit multiplies the next sub-block.
template <class Config, int Count>
class SegmentSums {
 public:
  using Sums = float[Config::sums];

  __device__ SegmentSums(const SmallTileParams& params, const SmallTilePipelineState<Config>& stages)
      : params_(params), next_(stages) {}

  // Adds `k_blocks` k-blocks, at least one. Even and odd sub-blocks have accumulators of their own.
  // min_stages is 1 for tiles whose registers do not suffice for two accumulators; such tiles multiply
  // sub-blocks one by one.
  __device__ __forceinline__ void add_blocks(int k_blocks) {
    if constexpr (Config::min_stages == 1) {
      Sums inside;
#pragma unroll 1
      for (int k_block = 0; k_block < k_blocks; ++k_block) add_one_by_one(inside);
    } else if constexpr (Count == 1) {
      add_whole_blocks(k_blocks);
    } else {
      add_divided_blocks(k_blocks);
    }
  }

  Sums sums = {};

 private:
  template <int Index>
  using SubBlock = KSubBlock<Count, Index>;
  using First = SubBlock<0>;
  using Last = SubBlock<Count - 1>;

  // Issues a sub-block of the k-block in stage `next_`, and calls meanwhile() while the sub-block's terms
  // run.
  template <class SubBlock, class Meanwhile>
  __device__ __forceinline__ void multiply(Sums& inside, const Meanwhile& meanwhile) {
    if constexpr (SubBlock::begins_block) next_.wait_full();
    wgmma_fence();
    issue_terms<Config, SubBlock>(inside, next_, params_.swapped, params_.rescale, meanwhile);
    if constexpr (SubBlock::ends_block) next_.advance();
  }
  template <class SubBlock>
  __device__ __forceinline__ void multiply(Sums& inside) {
    multiply<SubBlock>(inside, [] {});
  }
  // Waits until the sub-block of the accumulators `inside` is complete, and adds these accumulators to the
  // sums. `Younger` is the number of sub-blocks issued after it. The last sub-block of a k-block frees the
  // k-block's stage, which is the one before `next_`.
  template <class SubBlock, int Younger>
  __device__ __forceinline__ void add(Sums& inside) {
    wgmma_wait_group<Younger>();
    warpgroup_fence_operand(inside);
    if constexpr (SubBlock::ends_block) next_.release_previous();
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] += inside[i];
  }
  // Multiplies a sub-block into `inside`. Meanwhile the accumulators `before` of the previous sub-block are
  // added.
  template <class SubBlock, class Before>
  __device__ __forceinline__ void multiply_and_add(Sums& inside, Sums& before) {
    multiply<SubBlock>(inside, [&] { add<Before, 1>(before); });
  }

  // Multiplies and adds sub-block Index of a k-block and every later one, one after the other.
  template <int Index = 0>
  __device__ __forceinline__ void add_one_by_one(Sums& inside) {
    if constexpr (Index < Count) {
      multiply<SubBlock<Index>>(inside);
      add<SubBlock<Index>, 0>(inside);
      add_one_by_one<Index + 1>(inside);
    }
  }

  // Adds k-blocks that have one sub-block each. Even and odd k-blocks have accumulators of their own.
  __device__ __forceinline__ void add_whole_blocks(int k_blocks) {
    Sums even, odd;
    multiply<First>(even);
    int k_block = 1;
#pragma unroll 1
    for (; k_block + 1 < k_blocks; k_block += 2) {
      multiply_and_add<First, First>(odd, even);
      multiply_and_add<First, First>(even, odd);
    }
    if (k_block >= k_blocks) return add<First, 0>(even);
    multiply_and_add<First, First>(odd, even);
    add<First, 0>(odd);
  }

  // Multiplies sub-block Index of a k-block and every later one. Meanwhile the previous sub-block is added.
  template <int Index = 1>
  __device__ __forceinline__ void multiply_rest(Sums& even, Sums& odd) {
    if constexpr (Index < Count) {
      constexpr bool is_even = Index % 2 == 0;
      multiply_and_add<SubBlock<Index>, SubBlock<Index - 1>>(is_even ? even : odd, is_even ? odd : even);
      multiply_rest<Index + 1>(even, odd);
    }
  }
  // Adds k-blocks that have several sub-blocks each. Even and odd sub-blocks have accumulators of their own.
  __device__ __forceinline__ void add_divided_blocks(int k_blocks) {
    static_assert(Count % 2 == 0);
    Sums even, odd;
    multiply<First>(even);
    int k_block = 1;
#pragma unroll 1
    for (; k_block < k_blocks; ++k_block) {
      multiply_rest(even, odd);
      multiply_and_add<First, Last>(even, odd);
    }
    // This condition is never true. Without a path out of the loop that waits for `even` alone, ptxas of CUDA
    // 13.0 serializes the loop's wgmma.
    if (k_block > k_blocks) return add<First, 0>(even);
    multiply_rest(even, odd);
    add<Last, 0>(odd);
  }

  const SmallTileParams& params_;
  SmallTilePipelineState<Config> next_;  // stage of the next sub-block to multiply
};

// Computes the thread block's sums into segment.sums. Several segments of k are added in ascending order.
// Tiles with adds_segments = false have no registers for a second set of sums. They are used only where the
// thread block has one segment: k is one segment, or segments are computed in parallel.
template <class Config, int Count>
__device__ __forceinline__ void add_segments(SegmentSums<Config, Count>& segment,
                                             const SmallTileParams& params,
                                             const SmallTileCoord<Config>& coord) {
  if constexpr (!Config::adds_segments) {
    segment.add_blocks(coord.end_block(params) - coord.first_block);
  } else {
    float total[Config::sums] = {};
#pragma unroll 1
    for (int k_block = 0; k_block < params.k_blocks; k_block += params.segment_blocks) {
#pragma unroll
      for (float& sum : segment.sums) sum = 0;
      segment.add_blocks(min(params.k_blocks - k_block, params.segment_blocks));
#pragma unroll
      for (int i = 0; i < Config::sums; ++i) total[i] += segment.sums[i];
    }
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) segment.sums[i] = total[i];
  }
}

// Address in device memory of the sums of a segment of the tile.
template <class Config>
__device__ float4* sums_of_segment(const SmallTileParams& params, const SmallTileCoord<Config>& coord,
                                   int segment) {
  const std::int64_t index = std::int64_t{coord.tile(params)} * params.segments + segment;
  return reinterpret_cast<float4*>(params.segment_sums) + index * (Config::sums / 4 * Config::threads);
}

// Stores the sums of this thread block's segment. Returns true in the thread block that stores the tile's
// last segment. In that thread block `sums` then has the sums of all segments, added in ascending order. No
// thread block waits for another.
template <class Config>
__device__ bool reduce_if_last_segment(float (&sums)[Config::sums], const SmallTileParams& params,
                                       SmallTileSharedStorage<Config>& shared,
                                       const SmallTileCoord<Config>& coord) {
  const int thread = static_cast<int>(threadIdx.x);
  save_sums(sums_of_segment<Config>(params, coord, coord.segment), sums, thread);
  __threadfence();
  named_barrier_sync(Config::barrier, Config::threads);
  if (thread == 0) {
    shared.segments_before = atomicAdd(params.segments_done + coord.tile(params), 1U);
    __threadfence();
  }
  named_barrier_sync(Config::barrier, Config::threads);
  if (shared.segments_before + 1 < static_cast<std::uint32_t>(params.segments)) return false;
#pragma unroll
  for (float& sum : sums) sum = 0;
#pragma unroll 2
  for (int segment = 0; segment < params.segments; ++segment) {
    read_sums(sums_of_segment<Config>(params, coord, segment), sums, thread,
              [](float& sum, float of_segment) { sum += of_segment; });
  }
  return true;
}

// Computes the thread block's tile of C, or the sums of its segment of the tile.
template <class Config>
__device__ void compute_tile(const SmallTileParams& params, SmallTileSharedStorage<Config>& shared,
                             const SmallTileCoord<Config>& coord,
                             const SmallTilePipelineState<Config>& stages) {
  const int thread = static_cast<int>(threadIdx.x);
  // The epilogue's parameters are loaded while the first operand tiles are in flight.
  shared.epilogue.load(params.tile, {params.shares_a, params.shares_b}, coord.item,
                       {std::int64_t{coord.row} * small_tile_rows, small_tile_rows},
                       {std::int64_t{coord.column} * Config::columns, Config::columns}, thread);
  named_barrier_sync(Config::barrier, Config::threads);
  float sums[Config::sums];
  const auto multiply = [&](auto count) {
    SegmentSums<Config, count> segment(params, stages);
    add_segments(segment, params, coord);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] = segment.sums[i];
  };
  if (params.sub_blocks == 4) {
    multiply(std::integral_constant<int, 4>());
  } else if (params.sub_blocks == 2) {
    multiply(std::integral_constant<int, 2>());
  } else {
    multiply(std::integral_constant<int, 1>());
  }
  if constexpr (Config::parallel_segments) {
    if (!reduce_if_last_segment(sums, params, shared, coord)) return;
  }
  store_tile<Config::format>(sums, params.tile, shared.epilogue, 0, thread, Config::threads);
}

// Body of the kernels. One warpgroup computes the tile, and one thread loads operands.
template <class Config>
__device__ __forceinline__ void multiply_small_tile(const TensorMap& a, const TensorMap& b,
                                                    const SmallTileParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ SmallTileSharedStorage<Config> shared;
  const SmallTileCoord<Config> coord(params);
  const SmallTilePipelineState<Config> stages(shared, aligned_tiles(memory), params.stages);
  const DeviceCondition& condition = params.tile.condition;
  if (condition.selected_earlier && !holds(condition, coord.item)) return exit_in_stream_order();
  begin_cluster(shared);
  if (holds(params.tile.condition, coord.item)) {
    if (threadIdx.x < Config::threads) {
      compute_tile<Config>(params, shared, coord, stages);
    } else if (threadIdx.x == Config::threads) {
      fill_stages<Config>(a, b, params, coord, stages);
    }
  }
  __syncwarp();
  cluster_sync();  // the other thread block may still arrive at barriers of this one
}

}  // namespace kintsugi::core::cuda
