// Pipeline of the multi-term GEMM kernels with small tiles: the coordinates of a thread block's tile, the
// stages in shared memory, the pipeline state, and the producer, which loads the stages.
#pragma once

#include <algorithm>

#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/multi_term/multi_term_structures.hpp"

namespace kintsugi::core::cuda {

// `ParallelSegments` says that different thread blocks compute a tile's segments of k.
template <auto TermStructure, FormatId SliceFormat, SmallTile Tile, bool ParallelSegments = false>
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

}  // namespace kintsugi::core::cuda
