// Pipeline of the multi-term GEMM kernels for Hopper: the stages in shared memory, the pipeline state, and
// the producer, which loads the stages.
#pragma once

#include <type_traits>

#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/multi_term/multi_term_structures.hpp"
#include "engines/cuda/gemm/order_barriers.cuh"

namespace kintsugi::core::cuda {

inline constexpr int block_k = term_block;              // inner indices of a k-block
inline constexpr int block_tile_rows = 64 * consumers;  // rows of a cluster's tile in one thread block
static_assert(term_tile_rows == gemm_cluster_size * block_tile_rows &&
              term_threads == warpgroup * (1 + consumers));
static_assert(counters_of_tile == gemm_cluster_size * consumers);

template <auto TermStructure, FormatId SliceFormat, MultiTermTile Tile>
struct MultiTermConfig {
  static constexpr auto structure = TermStructure;
  static constexpr FormatId format = SliceFormat;
  static constexpr MultiTermTile tile = Tile;
  static constexpr int columns = tile.columns;
  static constexpr int slices = structure.slices_a;
  static constexpr int terms = static_cast<int>(structure.terms.size());
  static constexpr int sums = columns / 2;  // per thread

  // The registers of all consumer threads and of the producer's warpgroup fill the SM's register file.
  static constexpr int consumer_registers = columns == max_tile_columns ? 232 : 216;
  static constexpr int producer_registers = 504 - 2 * consumer_registers;

  static constexpr int a_bytes = block_tile_rows * block_k * 2;  // bytes of a slice's tile of A
  static constexpr int stage_bytes = tile.stage_bytes();

  // Number of the slice's first stage. The stages of all slices are numbered together.
  static constexpr int first_stage(int slice) {
    return slice == 0 ? 0 : first_stage(slice - 1) + tile.stages[slice - 1];
  }
  static constexpr int stages = first_stage(slices);
  static_assert(tile.shared_bytes() == stages * stage_bytes + 1024);

  // True if the instructions issued before this term are committed as a group. A wait for that group frees
  // the stages that its instructions read. A group ends before every term that rescales the accumulators. If
  // no term rescales, a group ends before the last term. The value for the first term is true as well.
  static constexpr bool commits_before(int term) {
    if (term == 0 || structure.terms[term].rescales) return true;
    if (term + 1 < terms) return false;
    for (const Term& other : structure.terms) {
      if (other.rescales) return false;
    }
    return true;
  }
  // True if this term or a later one reads the slice.
  static constexpr bool is_used_from(int slice, int term) {
    for (int t = term; t < terms; ++t) {
      if (structure.terms[t].a == slice || structure.terms[t].b == slice) return true;
    }
    return false;
  }
  // True if the last term that reads the slice is in the group committed directly before this term. A wait
  // for that group then frees the slice's stage. term = terms stands for the end of all terms.
  static constexpr bool is_free_at(int slice, int term) {
    if (term < terms && is_used_from(slice, term)) return false;
    int first_of_group = term - 1;
    while (!commits_before(first_of_group)) --first_of_group;
    return is_used_from(slice, first_of_group);
  }
};

// Calls visit(std::integral_constant) for slice First and every later one.
template <class Config, int First = 0, class Visit>
__device__ void for_each_slice(const Visit& visit) {
  if constexpr (First < Config::slices) {
    visit(std::integral_constant<int, First>());
    for_each_slice<Config, First + 1>(visit);
  }
}

template <class Config>
struct MultiTermSharedStorage {
  Mbarrier full[Config::stages];
  Mbarrier free[Config::stages];  // counts the consumer warpgroups of both thread blocks
  EpilogueParams<block_tile_rows, Config::columns, warpgroup / 32 - 1> epilogue;
  Mbarrier epilogue_ready;  // the epilogue's parameters have been loaded
  Mbarrier epilogue_read;   // the epilogue's parameters have been read and may be overwritten
  int cluster;              // number of the cluster, kept here because consumers have no register for it

  __device__ void initialise() {
    cluster = cluster_index();
    epilogue_ready.initialise(epilogue.epilogue_warps);
    epilogue_read.initialise(consumers * warpgroup / 32);
    for (int stage = 0; stage < Config::stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(consumers * gemm_cluster_size);
    }
  }
};

// Pipeline state of each slice: stage index and mbarrier phase. A stage has a tile of A and a tile of B.
template <class Config>
class MultiTermPipelineState {
 public:
  __device__ MultiTermPipelineState(MultiTermSharedStorage<Config>& shared, std::uint32_t tiles)
      : shared_(shared), tiles_(tiles) {
    for_each_slice<Config>([&](auto slice) {
      stage_[slice] = Config::first_stage(slice);
      parity_[slice] = 0;
    });
  }

  __device__ void advance() {
    for_each_slice<Config>([&](auto slice) {
      constexpr int end = Config::first_stage(slice + 1);
      if (++stage_[slice] == end) {
        stage_[slice] = Config::first_stage(slice);
        parity_[slice] ^= 1;
      }
    });
  }
  __device__ std::uint32_t a(int slice) const { return tiles_ + stage_[slice] * Config::stage_bytes; }
  __device__ std::uint32_t b(int slice) const { return a(slice) + Config::a_bytes; }
  __device__ Mbarrier& full(int slice) const { return shared_.full[stage_[slice]]; }
  __device__ void wait_full(int slice) const { full(slice).wait(parity_[slice]); }
  __device__ void wait_free(int slice) const { shared_.free[stage_[slice]].wait(parity_[slice] ^ 1); }
  // Frees, in both thread blocks, the stages that a wait before term `Term` makes free (Config::is_free_at).
  template <int Term>
  __device__ void release_before() const {
    const unsigned thread = threadIdx.x % warpgroup;
    for_each_slice<Config>([&](auto slice) {
      if constexpr (Config::is_free_at(slice, Term)) {
        if (thread < gemm_cluster_size) shared_.free[stage_[slice]].arrive_remote(thread);
      }
    });
  }

 private:
  MultiTermSharedStorage<Config>& shared_;
  std::uint32_t tiles_;
  int stage_[Config::slices];
  unsigned parity_[Config::slices];
};

// Index of a batch item's first slice in the tensor map. `shared` says that all items have the same slices.
__device__ inline int first_slice(bool shared, const TileCoord& coord, int slices) {
  return shared ? 0 : coord.item * slices;
}

// True if other candidates were selected for all batch items. All threads must call this function together.
__device__ inline bool none_is_selected(const DeviceCondition& condition, int items) {
  bool is_selected = false;
  for (int item = static_cast<int>(threadIdx.x); item < items; item += term_threads)
    is_selected = is_selected || holds(condition, item);
  return __syncthreads_or(is_selected ? 1 : 0) == 0;
}

// Loads a k-block of one slice. Each thread block of the cluster loads its own tile of A. It also loads one
// half of the tile of B, into both thread blocks.
template <class Config>
__device__ void load_slice(const TensorMap& a, const TensorMap& b, const MultiTermParams& params,
                           const MultiTermPipelineState<Config>& pipeline, const TileCoord& coord, int rank,
                           int k_block, int slice) {
  constexpr int columns_per_block = Config::columns / gemm_cluster_size;
  const int slice_a = first_slice(params.shares_a, coord, Config::slices) + slice;
  const int slice_b = first_slice(params.shares_b, coord, Config::slices) + slice;
  Mbarrier& full = pipeline.full(slice);
  pipeline.wait_free(slice);
  full.arrive_expect_tx(Config::stage_bytes);
  tma_load(pipeline.a(slice), a, full, k_block * block_k,
           (coord.row * gemm_cluster_size + rank) * block_tile_rows, slice_a);
  tma_load_multicast(pipeline.b(slice) + rank * columns_per_block * block_k * 2, b, full, k_block * block_k,
                     coord.column * Config::columns + rank * columns_per_block, slice_b, all_of_cluster);
}

// Loads all slices of all work tiles of the cluster. The producer, one thread of each thread block, calls
// this function.
template <class Config>
__device__ void load_slices(const TensorMap& a, const TensorMap& b, const MultiTermParams& params,
                            MultiTermSharedStorage<Config>& shared, std::uint32_t tiles) {
  const int rank = block_rank_in_cluster();
  MultiTermPipelineState<Config> pipeline(shared, tiles);
  TileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  while (scheduler.next(shared.cluster, work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    const TileCoord coord = params.schedule.coord(work_tile);
    const int end = params.schedule.end_block(work_tile);
#pragma unroll 1
    for (int k_block = params.schedule.first_block(work_tile); k_block < end; ++k_block, pipeline.advance()) {
      for_each_slice<Config>(
          [&](auto slice) { load_slice(a, b, params, pipeline, coord, rank, k_block, slice); });
    }
  }
}

}  // namespace kintsugi::core::cuda
