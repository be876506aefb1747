// Multi-term GEMM for Hopper by small tiles, for products that have few tiles or a C with one short side. A
// small tile has 64 rows, and an SM has room for two thread blocks. In each thread block, one warpgroup
// multiplies and one thread loads tiles. Sums are added in the order of multi_term_sm90a.cu, so they have the
// same bits. For products with few tiles and a long k, different thread blocks compute a tile's segments of
// k. The thread block that ends last adds the sums of all segments in ascending order.
#include <algorithm>
#include <type_traits>

#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/multi_term_structures.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// Pipeline of the multi-term GEMM kernels with small tiles: the coordinates of a thread block's tile, the
// stages in shared memory, the pipeline state, and the producer, which loads the stages.

// `ParallelSegments` says that different thread blocks compute a tile's segments of k.
template <auto TermStructure, FormatId SliceFormat, SmallTile Tile, bool ParallelSegments>
struct SmallTileConfig {
  static constexpr auto structure = TermStructure;
  static constexpr FormatId format = SliceFormat;
  static constexpr int columns = Tile.columns;
  static constexpr int slices = structure.slices_a;
  static constexpr int terms = static_cast<int>(structure.terms.size());
  static constexpr bool rescales =
      std::ranges::any_of(structure.terms, [](const Term& term) { return term.rescales; });
  static constexpr int sums = columns / 2;  // per thread
  static constexpr int threads = 128;       // threads that multiply
  static constexpr int barrier = 1;         // named barrier of these threads; 0 is that of __syncthreads()
  static_assert(threads + 32 == small_tile_threads);

  static constexpr int a_bytes = small_tile_rows * term_block * 2;  // of one slice's tile of A
  static constexpr int b_bytes = columns * term_block * 2;
  static constexpr int stage_bytes = Tile.stage_bytes(slices);
  static constexpr int min_stages = Tile.min_stages();
  static constexpr bool parallel_segments = ParallelSegments;
  static constexpr bool adds_segments = !ParallelSegments && Tile.adds_segments();
};

template <class Config>
struct SmallTileSharedStorage {
  Mbarrier full[max_stages];
  Mbarrier free[max_stages];  // counts one consumer warpgroup of each thread block
  EpilogueParams<small_tile_rows, Config::columns, Config::threads / 32> epilogue;
  std::uint32_t segments_before;  // segments of the tile that were stored before this thread block's segment

  __device__ void initialise() {
    for (int stage = 0; stage < max_stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(gemm_cluster_size);
    }
  }
};

// Coordinates of the tile, or of the segment of a tile, that a thread block computes.
template <class Config>
struct SmallTileCoord {
  int item;    // batch item
  int row;     // row of tiles
  int column;  // column of tiles
  int segment = 0;
  int first_block = 0;  // first k-block

  // The numbering of clusters gives clusters that run at the same time the same segment of neighboring tiles.
  __device__ explicit SmallTileCoord(const SmallTileParams& params) {
    const int tile_pairs = params.row_pairs * params.columns;
    item = cluster_index() / tile_pairs;  // with parallel segments: counts segments of items
    const int tile_pair = cluster_index() % tile_pairs;
    if constexpr (Config::parallel_segments) {
      segment = item % params.segments;
      item /= params.segments;
      first_block = segment * params.segment_blocks;
    }
    column = tile_pair / params.row_pairs;
    row = tile_pair % params.row_pairs * gemm_cluster_size + block_rank_in_cluster();
  }

  __device__ int end_block(const SmallTileParams& params) const {
    return Config::parallel_segments ? min(params.k_blocks, first_block + params.segment_blocks)
                                     : params.k_blocks;
  }
  // Index of the tile among those of all batch items.
  __device__ int tile(const SmallTileParams& params) const {
    return (item * params.row_pairs * gemm_cluster_size + row) * params.columns + column;
  }
};

// Pipeline state: stage index and mbarrier phase. A stage has a k-block of all slices.
template <class Config>
class SmallTilePipelineState {
 public:
  __device__ SmallTilePipelineState(SmallTileSharedStorage<Config>& shared, std::uint32_t memory, int stages)
      : shared_(shared), memory_(memory), stages_(stages) {}

  __device__ void advance() {
    if (++stage_ == stages_) {
      stage_ = 0;
      parity_ ^= 1;
    }
  }
  __device__ std::uint32_t a(int slice) const {
    return memory_ + stage_ * Config::stage_bytes + slice * Config::a_bytes;
  }
  __device__ std::uint32_t b(int slice) const {
    return memory_ + stage_ * Config::stage_bytes + Config::slices * Config::a_bytes +
           slice * Config::b_bytes;
  }
  __device__ Mbarrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_full() const { full().wait(parity_); }
  __device__ void wait_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Frees the stage before this one in both thread blocks, because each of them loads a half of the tile of B
  // into both.
  __device__ void release_previous() const {
    const int previous = (stage_ == 0 ? stages_ : stage_) - 1;
    if (threadIdx.x < gemm_cluster_size) shared_.free[previous].arrive_remote(threadIdx.x);
  }

 private:
  SmallTileSharedStorage<Config>& shared_;
  std::uint32_t memory_;
  int stages_;  // number of stages
  int stage_ = 0;
  unsigned parity_ = 0;
};

// Loads all k-blocks of the thread block's tile, or of its segment. The producer, one thread, calls this
// function. Each thread block of the cluster loads one half of the tile of B, into both thread blocks.
template <class Config>
__device__ void fill_stages(const TensorMap& a, const TensorMap& b, const SmallTileParams& params,
                            const SmallTileCoord<Config>& coord, SmallTilePipelineState<Config> stages) {
  constexpr int columns_per_block = Config::columns / gemm_cluster_size;
  const int rank = block_rank_in_cluster();
  const int first_a = params.shares_a ? 0 : coord.item * Config::slices;
  const int first_b = params.shares_b ? 0 : coord.item * Config::slices;
#pragma unroll 1
  for (int k_block = coord.first_block; k_block < coord.end_block(params); ++k_block, stages.advance()) {
    stages.wait_free();
    stages.full().arrive_expect_tx(Config::stage_bytes);
#pragma unroll
    for (int slice = 0; slice < Config::slices; ++slice) {
      tma_load(stages.a(slice), a, stages.full(), k_block * term_block, coord.row * small_tile_rows,
               first_a + slice);
      tma_load_multicast(stages.b(slice) + rank * columns_per_block * term_block * 2, b, stages.full(),
                         k_block * term_block, coord.column * Config::columns + rank * columns_per_block,
                         first_b + slice, all_of_cluster);
    }
  }
}

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

// Kernels of fp16x3 and fp16x3-wide. Thread blocks of the last ones compute segments of k in parallel.

#define KINTSUGI_SMALL_TILES(name, structure, tile, parallel)                                               \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1) __launch_bounds__(                   \
      small_tile_threads, 2) name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, \
                                  const __grid_constant__ SmallTileParams params) {                         \
    multiply_small_tile<SmallTileConfig<structure, FormatId::fp16, tile, parallel>>(a, b, params);          \
  }
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_64x32, fp16x3_structure, hopper::small_tiles[0], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_64x64, fp16x3_structure, hopper::small_tiles[1], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_64x128, fp16x3_structure, hopper::small_tiles[2], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_wide_64x32, fp16x3_wide_structure, hopper::small_tiles[0], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_wide_64x64, fp16x3_wide_structure, hopper::small_tiles[1], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_wide_64x128, fp16x3_wide_structure, hopper::small_tiles[2], false)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_64x32_segments, fp16x3_structure, hopper::small_tiles[0], true)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_64x64_segments, fp16x3_structure, hopper::small_tiles[1], true)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_wide_64x32_segments, fp16x3_wide_structure, hopper::small_tiles[0],
                     true)
KINTSUGI_SMALL_TILES(multiply_f32_fp16x3_wide_64x64_segments, fp16x3_wide_structure, hopper::small_tiles[1],
                     true)
#undef KINTSUGI_SMALL_TILES

}  // namespace kintsugi::core::cuda
