// Multi-term GEMM for Hopper: C = alpha * (sum of the schedule's terms) + beta * C in one pass over k. Every
// tile of a slice is loaded once for all terms that read the tile. The matrix unit's accumulators are added
// to sums in FP32 registers after every 64 or 32 inner indices (multi_term_small_sm90a.cu: also after 16).
// The epilogue writes C. The two thread blocks of a cluster share the slices of B's columns by multicast. In
// each thread block, one thread loads tiles, and two warpgroups multiply 64 rows each.
#include <type_traits>

#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/multi_term_structures.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// Pipeline of the multi-term GEMM kernels for Hopper: the stages in shared memory, the pipeline state, and
// the producer, which loads the stages.

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

// Offset of a consumer warpgroup's rows in a tile of A, in bytes.
__device__ inline std::uint32_t rows_offset(int consumer) { return consumer * 64 * block_k * 2; }

// A warpgroup's rows of operand A for instructions First ... First + Steps - 1 of a k-block. `address` is
// that of the rows in shared memory. If `InRegisters`, load() copies the rows into registers; else the
// instructions read shared memory.
template <bool InRegisters, int First, int Steps>
struct Rows {
  MatrixDescriptor tile;

  __device__ explicit Rows(std::uint32_t address) : tile(MatrixDescriptor(address) + First * step_bytes) {}
  __device__ void load() {}
  __device__ MatrixDescriptor step(int i) const { return tile + i * step_bytes; }
};
template <int First, int Steps>
struct Rows<true, First, Steps> {
  using Fragment = std::uint32_t[4];

  std::uint32_t address;
  Fragment steps[Steps];

  __device__ explicit Rows(std::uint32_t address) : address(address) {}
  __device__ void load() {
#pragma unroll
    for (int i = 0; i < Steps; ++i) load_a_fragment(steps[i], address, First + i);
  }
  __device__ const Fragment& step(int i) const { return steps[i]; }
};

// Issues one term over a sub-block of a k-block. `begins_sums` says that the accumulators begin with this
// term.
template <class Config, class SubBlock, class OperandA>
__device__ void add_term(float (&sums)[Config::sums], const OperandA& a, MatrixDescriptor b,
                         bool begins_sums) {
#pragma unroll
  for (int i = 0; i < SubBlock::steps; ++i)
    wgmma<Config::format, Config::columns>(sums, a.step(i), b + i * step_bytes, i > 0 || !begins_sums);
}

// A warpgroup's rows of slice 0 of A, which most terms read.
template <class Config, class SubBlock>
using HighRows = Rows<Config::tile.high_in_registers, SubBlock::first_step, SubBlock::steps>;

// Commits the instructions issued before this term. A term that rescales the accumulators waits for those
// instructions first. During the wait, the other warpgroup may issue its own instructions.
template <class Config, class SubBlock, int T>
__device__ void commit_before_term(float (&sums)[Config::sums],
                                   const MultiTermPipelineState<Config>& pipeline, int consumer,
                                   float rescale) {
  wgmma_commit_group();
  if constexpr (Config::structure.terms[T].rescales) {
    order_barrier_arrive(consumer);
    wgmma_wait_group<0>();
    warpgroup_fence_operand(sums);
    if constexpr (SubBlock::ends_block) pipeline.template release_before<T>();
#pragma unroll
    for (float& sum : sums) sum *= rescale;
    warpgroup_fence_operand(sums);
    order_barrier_wait(consumer);
    wgmma_fence();
  }
}

// Issues term T and every later one into the same accumulators.
template <class Config, class SubBlock, int T>
__device__ void add_terms(float (&sums)[Config::sums], const HighRows<Config, SubBlock>& a0,
                          const MultiTermPipelineState<Config>& pipeline, int consumer, float rescale) {
  if constexpr (T < Config::terms) {
    constexpr Term term = Config::structure.terms[T];
    if constexpr (T > 0 && Config::commits_before(T))
      commit_before_term<Config, SubBlock, T>(sums, pipeline, consumer, rescale);
    const MatrixDescriptor b = MatrixDescriptor(pipeline.b(term.b)) + SubBlock::first_step * step_bytes;
    if constexpr (term.a == 0) {
      add_term<Config, SubBlock>(sums, a0, b, T == 0);
    } else {
      const Rows<false, SubBlock::first_step, SubBlock::steps> a(pipeline.a(term.a) + rows_offset(consumer));
      add_term<Config, SubBlock>(sums, a, b, T == 0);
    }
    add_terms<Config, SubBlock, T + 1>(sums, a0, pipeline, consumer, rescale);
  }
}

// Multiplies all terms over one sub-block of a k-block. The last sub-block frees each stage as early as
// possible.
template <class Config, class SubBlock>
__device__ void multiply_sub_block(float (&sums)[Config::sums],
                                   const MultiTermPipelineState<Config>& pipeline, int consumer,
                                   float rescale) {
  constexpr int last = Config::terms - 1;
  HighRows<Config, SubBlock> a0(pipeline.a(0) + rows_offset(consumer));
  if constexpr (SubBlock::begins_block) pipeline.wait_full(0);
  a0.load();
  if constexpr (SubBlock::begins_block)
    for_each_slice<Config, 1>([&](auto slice) { pipeline.wait_full(slice); });
  order_barrier_wait(consumer);
  wgmma_fence();
  add_terms<Config, SubBlock, 0>(sums, a0, pipeline, consumer, rescale);
  wgmma_commit_group();
  order_barrier_arrive(consumer);
  if constexpr (SubBlock::ends_block && !Config::structure.terms[last].rescales) {
    wgmma_wait_group<1>();
    pipeline.template release_before<last>();
  }
  wgmma_wait_group<0>();
  warpgroup_fence_operand(sums);
  if constexpr (SubBlock::ends_block) pipeline.template release_before<Config::terms>();
}

// Multiplies sub-block Index of a k-block and every later one. After each sub-block its accumulators,
// `inside`, are added to `sums`.
template <class Config, int Count, int Index = 0>
__device__ void add_k_block(float (&sums)[Config::sums], float (&inside)[Config::sums],
                            const MultiTermPipelineState<Config>& pipeline, int consumer, float rescale) {
  if constexpr (Index < Count) {
    multiply_sub_block<Config, KSubBlock<Count, Index>>(inside, pipeline, consumer, rescale);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] += inside[i];
    add_k_block<Config, Count, Index + 1>(sums, inside, pipeline, consumer, rescale);
  }
}

// Address in device memory of a consumer warpgroup's sums of tile `tile`.
template <class Config>
__device__ float4* sums_of_tile(float* memory, int tile, int consumer) {
  const std::int64_t index =
      (std::int64_t{tile} * gemm_cluster_size + block_rank_in_cluster()) * consumers + consumer;
  return reinterpret_cast<float4*>(memory) + index * (Config::sums / 4 * warpgroup);
}
// Address of the partial sums of a tile that is split along k.
template <class Config>
__device__ float4* partial_sums_of(const MultiTermParams& params, const WorkTile& work_tile, int consumer) {
  return sums_of_tile<Config>(params.partial_sums, params.schedule.split_index(work_tile), consumer);
}
// Counter of the parts of k that the partial sums of a split tile contain.
__device__ inline std::uint32_t* k_part_counter(const MultiTermParams& params, const WorkTile& work_tile,
                                                int consumer) {
  return params.k_parts_added +
         (params.schedule.split_index(work_tile) * gemm_cluster_size + block_rank_in_cluster()) * consumers +
         consumer;
}

// Stores the sums over k up to the end of this part of k. The cluster that computes the tile's next part
// reads these sums.
template <class Config>
__device__ void send_partial_sums(const float (&sums)[Config::sums], const MultiTermParams& params,
                                  const WorkTile& work_tile, int consumer, int thread) {
  save_sums(partial_sums_of<Config>(params, work_tile, consumer), sums, thread);
  __threadfence();
  named_barrier_sync(first_warpgroup_barrier + consumer, warpgroup);
  if (thread == 0)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(k_part_counter(params, work_tile, consumer)),
                 "r"(work_tile.k_part + 1)
                 : "memory");
}

// Waits for the sums over k up to the beginning of this part of k, and reads these sums. The wait always
// ends: the cluster that computes the part before this one began earlier (TileSchedule).
template <class Config>
__device__ void receive_partial_sums(float (&sums)[Config::sums], const MultiTermParams& params,
                                     const WorkTile& work_tile, int consumer, int thread) {
  const std::uint32_t* counter = k_part_counter(params, work_tile, consumer);
  int added = 0;
  while (added < work_tile.k_part)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(added) : "l"(counter) : "memory");
  read_sums(partial_sums_of<Config>(params, work_tile, consumer), sums, thread,
            [](float& sum, float received) { sum = received; });
}

// Address of the sums of the earlier segments of k. The accumulators need all registers, so these sums stay
// in device memory. Every cluster that computes a part of a split tile's k reads and writes the tile's sums.
template <class Config>
__device__ float4* earlier_segments(const MultiTermParams& params, const WorkTile& work_tile, int cluster,
                                    int consumer) {
  const int split = params.schedule.split_index(work_tile);
  const int tile = split < 0 ? cluster : params.schedule.clusters + split;
  return sums_of_tile<Config>(params.segment_sums, tile, consumer);
}

// Adds the sums of the earlier segments to those of this segment. The sums of the earlier segments are the
// first summand.
template <class Config>
__device__ void add_earlier_segments(float (&sums)[Config::sums], const float4* earlier, int thread) {
  read_sums(earlier, sums, thread, [](float& sum, float before) { sum = before + sum; });
}

// Ends a segment of k that is not the last one. The segment's sums are added to those of the earlier segments
// in memory. Then the sums are set to zero for the next segment. `is_first` says that there are no earlier
// segments.
template <class Config>
__device__ void end_segment(float (&sums)[Config::sums], float4* earlier, bool is_first, int thread) {
  if (!is_first) add_earlier_segments<Config>(sums, earlier, thread);
  save_sums(earlier, sums, thread);
#pragma unroll
  for (float& sum : sums) sum = 0;
}

// Adds all k-blocks of a work tile to `sums`. `cluster` must refer to shared memory, because no register is
// free for a copy.
template <class Config>
__device__ void add_k_blocks(float (&sums)[Config::sums], const MultiTermParams& params,
                             const WorkTile& work_tile, MultiTermPipelineState<Config>& pipeline,
                             const int& cluster, int consumer) {
  float inside[Config::sums];
  int k_block = params.schedule.first_block(work_tile);
#pragma unroll 1
  while (k_block < params.schedule.end_block(work_tile)) {
    const int rest_of_segment = params.segment_blocks - k_block % params.segment_blocks;  // in k-blocks
    const int stop = min(params.schedule.end_block(work_tile), k_block + rest_of_segment);
    if (params.sub_blocks == 2) {
#pragma unroll 1
      for (; k_block < stop; ++k_block, pipeline.advance())
        add_k_block<Config, 2>(sums, inside, pipeline, consumer, params.rescale);
    } else {
#pragma unroll 1
      for (; k_block < stop; ++k_block, pipeline.advance())
        add_k_block<Config, 1>(sums, inside, pipeline, consumer, params.rescale);
    }
    if (k_block % params.segment_blocks == 0 && k_block < params.schedule.k_blocks) {
      end_segment<Config>(sums, earlier_segments<Config>(params, work_tile, cluster, consumer),
                          k_block == params.segment_blocks, thread_number() % warpgroup);
    }
  }
}

// Loads the epilogue's parameters of every work tile of the cluster, while other warps multiply the tile. All
// warps of the producer's warpgroup except the first call this function.
template <class Config>
__device__ void load_epilogue_params(const MultiTermParams& params, MultiTermSharedStorage<Config>& shared) {
  const int thread = static_cast<int>(threadIdx.x) - 32;
  TileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  unsigned parity = 0;
  while (scheduler.next(shared.cluster, work_tile)) {
    if (is_not_selected(params, work_tile) || params.schedule.sends_partial_sums(work_tile)) continue;
    const TileCoord coord = params.schedule.coord(work_tile);
    const std::int64_t row =
        std::int64_t{coord.row * gemm_cluster_size + block_rank_in_cluster()} * block_tile_rows;
    shared.epilogue_read.wait(parity ^ 1);
    shared.epilogue.load(params.tile, {params.shares_a, params.shares_b}, coord.item, {row, block_tile_rows},
                         {std::int64_t{coord.column} * Config::columns, Config::columns}, thread);
    __syncwarp();
    if (thread % 32 == 0) shared.epilogue_ready.arrive();
    parity ^= 1;
  }
}

// Computes the work tiles of the cluster. The consumer warpgroups call this function.
template <class Config>
__device__ void multiply_work_tiles(const MultiTermParams& params, MultiTermSharedStorage<Config>& shared,
                                    std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  MultiTermPipelineState<Config> pipeline(shared, tiles);
  TileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  unsigned epilogue_parity = 0;
  float sums[Config::sums];
  if (consumer == consumers - 1) order_barrier_arrive(consumer);  // lets the first warpgroup begin
  while (scheduler.next(shared.cluster, work_tile)) {
    if (is_not_selected(params, work_tile)) continue;
    if (params.schedule.receives_partial_sums(work_tile)) {
      receive_partial_sums<Config>(sums, params, work_tile, consumer, thread_number() % warpgroup);
    } else {
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    add_k_blocks<Config>(sums, params, work_tile, pipeline, shared.cluster, consumer);
    if (params.schedule.sends_partial_sums(work_tile)) {
      send_partial_sums<Config>(sums, params, work_tile, consumer, thread_number() % warpgroup);
    } else {
      if (params.segment_blocks < params.schedule.k_blocks) {
        add_earlier_segments<Config>(sums,
                                     earlier_segments<Config>(params, work_tile, shared.cluster, consumer),
                                     thread_number() % warpgroup);
      }
      shared.epilogue_ready.wait(epilogue_parity);
      store_tile<Config::format>(sums, params.tile, shared.epilogue, consumer * 64,
                                 thread_number() - warpgroup, consumers * warpgroup);
      __syncwarp();
      if (thread_number() % 32 == 0) shared.epilogue_read.arrive();
      epilogue_parity ^= 1;
    }
  }
}

template <class Config>
__device__ void multi_term_gemm(const TensorMap& a, const TensorMap& b, const MultiTermParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ MultiTermSharedStorage<Config> shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  if (params.tile.condition.selected_earlier &&
      none_is_selected(params.tile.condition, params.schedule.items))
    return exit_in_stream_order();
  begin_cluster(shared);
  if (params.schedule.k_parts > 1) number_cluster(shared.cluster, params.clusters_begun);
  specialize_warpgroups<Config>(
      [&] {
        if (threadIdx.x == 0) {
          load_slices<Config>(a, b, params, shared, tiles);
        } else if (threadIdx.x >= 32) {
          load_epilogue_params(params, shared);
        }
      },
      [&] { multiply_work_tiles<Config>(params, shared, tiles); });
}

// Kernels of fp16x3, fp16x3-wide and bf16x6 for tiles of clusters.

#define KINTSUGI_TERMS(name, structure, format, tile)                                                     \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1) __launch_bounds__(term_threads, 1) \
      name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,                      \
           const __grid_constant__ MultiTermParams params) {                                              \
    multi_term_gemm<MultiTermConfig<structure, FormatId::format, tile>>(a, b, params);                    \
  }
KINTSUGI_TERMS(multiply_f32_fp16x3_256x192, fp16x3_structure, fp16, hopper::fp16x3_tiles[0])
KINTSUGI_TERMS(multiply_f32_fp16x3_256x128, fp16x3_structure, fp16, hopper::fp16x3_tiles[1])
KINTSUGI_TERMS(multiply_f32_fp16x3_256x64, fp16x3_structure, fp16, hopper::fp16x3_tiles[2])
KINTSUGI_TERMS(multiply_f32_fp16x3_wide_256x192, fp16x3_wide_structure, fp16, hopper::fp16x3_wide_tiles[0])
KINTSUGI_TERMS(multiply_f32_fp16x3_wide_256x128, fp16x3_wide_structure, fp16, hopper::fp16x3_wide_tiles[1])
KINTSUGI_TERMS(multiply_f32_bf16x6_256x128, bf16x6_structure, bf16, hopper::bf16x6_tiles[0])
KINTSUGI_TERMS(multiply_f32_bf16x6_256x64, bf16x6_structure, bf16, hopper::bf16x6_tiles[1])
#undef KINTSUGI_TERMS

}  // namespace kintsugi::core::cuda
