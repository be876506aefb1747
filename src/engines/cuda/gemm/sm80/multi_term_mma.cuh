// Multi-term GEMM by mma.sync, for GPUs from compute capability 8.0 on: C = alpha * (sum of the schedule's
// terms) + beta * C in one pass over k. All threads of a thread block copy slices to shared memory by
// cp.async, into a ring of pipeline stages, and every warp multiplies a part of the tile. The matrix unit's
// accumulators are added to sums in FP32 registers after every 64, 32 or 16 inner indices, in the order of
// the kernels for Hopper: the bits depend on the matrix unit alone.
#pragma once

#include <type_traits>

#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/mma_params.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

// A stage holds a k-block of the slices of one of the first terms. These terms together read every slice
// once, so a k-block has as many stages as an operand has slices.
template <auto TermStructure, FormatId SliceFormat, MmaTile Tile>
struct MmaConfig {
  static constexpr auto structure = TermStructure;
  static constexpr FormatId format = SliceFormat;
  static constexpr MmaTile tile = Tile;
  static constexpr int slices = structure.slices_a;
  static constexpr int terms = static_cast<int>(structure.terms.size());
  static constexpr int threads = tile.threads();
  static constexpr int warps_of_row = tile.columns / tile.warp_columns;
  static constexpr bool takes_four_sub_blocks = structure.most_halvings > 1 && tile.is_small();
  static constexpr int m_tiles = tile.warp_rows / 16;    // instructions side by side in a warp's tile
  static constexpr int n_tiles = tile.warp_columns / 8;  // a multiple of 4, for the epilogue's groups
  static_assert(n_tiles % 4 == 0);

  static constexpr int row_bytes = term_block * 2;  // bytes of a k-block of one vector
  static constexpr int a_bytes = tile.rows * row_bytes;
  static constexpr int stage_bytes = tile.stage_bytes();
  static constexpr int chunks = row_bytes / 16;                 // copies of a vector's k-block
  static constexpr int vectors_at_once = threads / chunks;      // vectors that the threads copy together
  static constexpr int copies_a = tile.rows / vectors_at_once;  // copies of a thread per stage
  static constexpr int copies_b = tile.columns / vectors_at_once;
  static_assert(vectors_at_once % 8 == 0 && copies_a * vectors_at_once == tile.rows &&
                copies_b * vectors_at_once == tile.columns);

  // Stage, among those of a k-block, that has the slice.
  static constexpr int stage_of_a(int slice) {
    int stage = 0;
    while (structure.terms[stage].a != slice) ++stage;
    return stage;
  }
  static constexpr int stage_of_b(int slice) {
    int stage = 0;
    while (structure.terms[stage].b != slice) ++stage;
    return stage;
  }
  // True if the slice of B that the first term has read stays in registers for the last term. Then the first
  // stage is free after the first term. With more terms registers would not suffice.
  static constexpr bool keeps_b = terms == 3;
  static_assert(!keeps_b || structure.terms[0].b == structure.terms[2].b);
  // Number of steps whose fragments are kept: those of a sub-block, and one that is loaded for the next.
  template <int Count>
  static constexpr int kept_fragments = Count == 4 ? 2 : term_block / 16 / Count;

  // Number of the k-block's stages that are free before term `term`, for k-blocks of `count` sub-blocks.
  static constexpr int free_before(int term, int count) { return keeps_b && count == 1 && term > 0 ? 1 : 0; }
  // Stages that have been loaded, or are being loaded, when the first k-block begins; less than all stages by
  // those that are filled again at the beginning of a k-block.
  static constexpr int loaded_ahead(int stages, int count) {
    return stages - slices + free_before(slices - 1, count);
  }
  // Number of stages that are filled again before term `term`.
  static constexpr int filled_before(int term, int count) {
    return term == 0 ? slices - free_before(slices - 1, count)
                     : free_before(term, count) - free_before(term - 1, count);
  }
  // Number of the youngest stages that need not have arrived when term `term` begins, less than all stages by
  // this number.
  static constexpr int arrived_before(int term, int count) {
    return term == 0 ? slices + 1 - free_before(slices - 1, count) : term + 1 - free_before(term - 1, count);
  }
};

// Slices of a tile in device memory.
struct MmaSources {
  const std::byte* a = nullptr;  // slice 0 of the tile's first row
  const std::byte* b = nullptr;
};

template <class Config>
struct MmaSharedStorage {
  EpilogueParams<Config::tile.rows, Config::tile.columns, Config::threads / 32> epilogue;
  int next_tile;       // the thread block's tile after the present one
  MmaSources sources;  // of next_tile; null if there is none
};

// Waits until at most the youngest groups of copies of this thread are incomplete, `stages` - Fewer of them.
template <int MinStages, int Fewer>
__device__ void copies_pending(int stages) {
  if (stages == MinStages) {
    await_copies_but<MinStages - Fewer>();
  } else {
    await_copies_but<max_mma_stages - Fewer>();
  }
}

// True if the tile's batch item is computed by another candidate.
__device__ inline bool is_skipped(const MmaParams& params, int tile) {
  return is_not_selected(params, WorkTile{tile, 0});
}

// The thread block's next tile after `tile`; schedule.tiles() or more if none is left.
__device__ inline int next_tile(const MmaParams& params, int tile) {
  const int tiles = static_cast<int>(params.schedule.tiles());
  do {
    tile += static_cast<int>(gridDim.x);
  } while (tile < tiles && is_skipped(params, tile));
  return tile;
}

// Offset of a chunk of a vector's k-block. Chunks of eight neighboring vectors are permuted, so that ldmatrix
// reads all banks.
template <class Config>
__device__ std::uint32_t chunk_offset(int vector, int chunk) {
  return static_cast<std::uint32_t>(vector * Config::row_bytes + (chunk ^ (vector & 7)) * 16);
}

// Slices of tile `tile`, if it exists. The tile's last vectors need not: their products are not stored, and
// the slices have memory for whole tiles.
template <class Config>
__device__ MmaSources sources_of(const MmaParams& params, int tile) {
  static_assert(Slices::vector_multiple % Config::tile.rows == 0 &&
                Slices::vector_multiple % Config::tile.columns == 0);
  if (tile >= static_cast<int>(params.schedule.tiles())) return {};
  const TileCoord coord = params.schedule.coord({tile, 0});
  const auto first = [&](const MmaOperand& operand, std::int64_t vector) {
    return operand.data + coord.item * operand.item_bytes + vector * operand.vector_bytes;
  };
  return {first(params.a, std::int64_t{coord.row} * Config::tile.rows),
          first(params.b, std::int64_t{coord.column} * Config::tile.columns)};
}

// Loads stages of the thread block's tiles, one after the other. All threads call it together. It has few
// registers: those of the next tile's sources lie in shared memory until the present one's are loaded.
template <class Config>
class MmaLoader {
 public:
  __device__ MmaLoader(const MmaParams& params, const MmaSharedStorage<Config>& shared)
      : params_(params), shared_(shared), offset_(chunk_offset<Config>(vector(), chunk())) {}

  // Must be called before load().
  __device__ void begin_load() {
    if (left_ == 0) begin_tile();
  }
  // Begins to copy the next stage, if there is one, to the address `stage`. `part` is its number among the
  // k-block's stages. There are no branches, so that the compiler can place products between the copies.
  __device__ void load(std::uint32_t stage, int part) {
    const bool exists = left_ > 0;
    const std::uint32_t target = stage + offset_;
    copy<Config::copies_a>(target, a_ + slice<true>(part) * params_.a.slice_bytes, params_.a.vector_bytes,
                           exists);
    copy<Config::copies_b>(target + Config::a_bytes, b_ + slice<false>(part) * params_.b.slice_bytes,
                           params_.b.vector_bytes, exists);
    const int ends_block = exists && part + 1 == Config::slices ? 1 : 0;
    a_ += ends_block * Config::row_bytes;
    b_ += ends_block * Config::row_bytes;
    left_ -= ends_block;
    commit_copies();
  }

 private:
  __device__ static int chunk() { return thread_number() & (Config::chunks - 1); }
  __device__ static int vector() {
    return static_cast<int>(static_cast<unsigned>(thread_number()) / Config::chunks);
  }
  // Slice of A, or of B, that the stage has.
  template <bool OfA, int Stage = 0>
  __device__ static int slice(int part) {
    constexpr Term term = Config::structure.terms[Stage];
    if constexpr (Stage + 1 < Config::slices) {
      if (part != Stage) return slice<OfA, Stage + 1>(part);
    }
    return OfA ? term.a : term.b;
  }
  template <int Count>
  __device__ static void copy(std::uint32_t target, const std::byte* source, std::int64_t vector_bytes,
                              bool exists) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      copy_16_bytes_if(exists, target + i * Config::vectors_at_once * Config::row_bytes, source);
      source += Config::vectors_at_once * vector_bytes;
    }
  }
  __device__ void begin_tile() {
    a_ = shared_.sources.a;
    if (a_ == nullptr) return;
    a_ += vector() * params_.a.vector_bytes + chunk() * 16;
    b_ = shared_.sources.b + vector() * params_.b.vector_bytes + chunk() * 16;
    left_ = params_.schedule.k_blocks;
  }
  const MmaParams& params_;
  const MmaSharedStorage<Config>& shared_;
  std::uint32_t offset_;  // in a stage, of the thread's first copy
  int left_ = 0;          // k-blocks of the tile that are not loaded; 0 if there is no tile
  const std::byte* a_ = nullptr;
  const std::byte* b_ = nullptr;
};

// A warp's part of the tile: its accumulators, and its addresses in a stage.
template <class Config>
struct MmaWarp {
  using Sums = float[Config::m_tiles][Config::n_tiles * 4];

  // Offsets in a stage of what the lane gives to ldmatrix for the first 16 inner indices of A and of B. The
  // chunks of step s are those of step 0 with 2 s added, modulo 2, to their numbers' bits (chunk_offset()).
  std::uint32_t a_offset;
  std::uint32_t b_offset;

  __device__ MmaWarp() {
    const int lane = thread_number() % 32;
    a_offset = chunk_offset<Config>(row() + lane % 16, lane / 16);
    b_offset = Config::a_bytes + chunk_offset<Config>(column() + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }

  // First row and column of the warp's part of the tile.
  __device__ static int row() { return thread_number() / 32 / Config::warps_of_row * Config::tile.warp_rows; }
  __device__ static int column() {
    return thread_number() / 32 % Config::warps_of_row * Config::tile.warp_columns;
  }

  // Loads 16 inner indices of the warp's rows of A: step `step` of a k-block.
  __device__ void load_a(std::uint32_t (&a)[Config::m_tiles][4], std::uint32_t stage, int step) const {
    const std::uint32_t address = (stage + a_offset) ^ (step * 32U);
#pragma unroll
    for (int i = 0; i < Config::m_tiles; ++i)
      load_matrices(address + i * 16 * Config::row_bytes, a[i][0], a[i][1], a[i][2], a[i][3]);
  }
  __device__ void load_b(std::uint32_t (&b)[Config::n_tiles][2], std::uint32_t stage, int step) const {
    const std::uint32_t address = (stage + b_offset) ^ (step * 32U);
#pragma unroll
    for (int j = 0; j < Config::n_tiles; j += 2)
      load_matrices(address + j * 8 * Config::row_bytes, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
  }
};

// Adds 16 inner indices of a term. `Begins` says that the accumulators begin with it.
template <class Config, bool Begins>
__device__ void add_step(typename MmaWarp<Config>::Sums& inside, const std::uint32_t (&a)[Config::m_tiles][4],
                         const std::uint32_t (&b)[Config::n_tiles][2]) {
#pragma unroll
  for (int i = 0; i < Config::m_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < Config::n_tiles; ++j) {
      float(&sums)[4] = reinterpret_cast<float(&)[4]>(inside[i][4 * j]);
      if constexpr (Begins) {
        constexpr float zeros[4] = {};
        mma_from<Config::format>(sums, a[i], b[j], zeros);
      } else {
        mma_from<Config::format>(sums, a[i], b[j], sums);
      }
    }
  }
}

// The thread block's ring of stages, as those see it who multiply.
template <class Config>
struct MmaPipeline {
  const MmaParams& params;
  MmaLoader<Config>& loader;
  std::uint32_t stages;
  int slot = 0;  // of the first stage of the k-block

  // Address of the stage whose number is `index` if the k-block's first one is 0.
  __device__ std::uint32_t stage(int index) const {
    int place = slot + index;
    if (place < 0) place += params.stages;
    if (place >= params.stages) place -= params.stages;
    return stages + place * Config::stage_bytes;
  }
  __device__ void advance() {
    slot += Config::slices;
    if (slot >= params.stages) slot -= params.stages;
  }
  // Waits for the stage that term `Term` is the first to read.
  template <int Term, int Count>
  __device__ void begin_term() const {
    copies_pending<min_mma_stages(Config::slices), Config::arrived_before(Term, Count)>(params.stages);
    __syncthreads();
  }
  // True if fill_stages() has something to do.
  template <int Term, int Count>
  static constexpr bool fills = Config::filled_before(Term, Count) > 0;
  // Fills the stages that were free when term `Term` began. The first of them is the oldest one.
  template <int Term, int Count>
  __device__ void fill_stages() {
    constexpr int first = Term == 0 ? Config::free_before(Config::slices - 1, Count) - Config::slices
                                    : Config::free_before(Term - 1, Count);
#pragma unroll
    for (int i = first; i < first + Config::filled_before(Term, Count); ++i) {
      if (i > first) loader.begin_load();
      loader.load(stage(i), (i + Config::slices + params.stages) % Config::slices);
    }
  }
};

// Step `Index` of a k-block of `Count` sub-blocks: 16 inner indices of a term. A sub-block has the steps of
// its first term, then those of the next.
template <class Config, int Count, int Index>
struct MmaStep {
  static constexpr int all = Config::terms * term_block / 16;  // steps of a k-block
  static constexpr int of_term = term_block / 16 / Count;      // steps of a term in a sub-block
  static constexpr int sub_block = Index / (Config::terms * of_term);
  static constexpr int term_index = Index / of_term % Config::terms;
  static constexpr int step = Index % of_term;
  static constexpr int k_step = sub_block * of_term + step;  // among the steps of a stage
  static constexpr Term term = Config::structure.terms[term_index];
  static constexpr bool begins_term = step == 0;
  static constexpr bool begins_stage = sub_block == 0 && begins_term && term_index < Config::slices;
  // True if stages are filled before the wait for those of the next step. Otherwise they are filled while the
  // matrix unit has products to compute.
  static constexpr bool fills_first = of_term == 1;
  static constexpr bool begins_sums = term_index == 0 && step == 0;
  static constexpr bool ends_sums = term_index + 1 == Config::terms && step + 1 == of_term;

  // Place of the step's fragment of B: among the fragments that are kept, or among two that are read in
  // turns.
  static constexpr bool keeps_b = Config::keeps_b && term_index != 1;
  static constexpr bool loads_b = !keeps_b || term_index == 0;
  static constexpr int place_of_b = keeps_b ? k_step % Config::template kept_fragments<Count> : Index % 2;
};

// Fragments of a warp: those of A of two steps in turns, and those of B (MmaStep::place_of_b).
template <class Config, int Count>
struct MmaFragments {
  std::uint32_t a[2][Config::m_tiles][4];
  std::uint32_t b[2][Config::n_tiles][2];
  std::uint32_t kept[Config::template kept_fragments<Count>][Config::n_tiles][2];

  template <class Step>
  __device__ auto& b_of() {
    if constexpr (Step::keeps_b) {
      return kept[Step::place_of_b];
    } else {
      return b[Step::place_of_b];
    }
  }
  template <class Step, int Index>
  __device__ void load(const MmaWarp<Config>& warp, const MmaPipeline<Config>& pipeline) {
    if constexpr (Step::loads_b)
      warp.load_b(b_of<Step>(), pipeline.stage(Config::stage_of_b(Step::term.b)), Step::k_step);
    warp.load_a(a[Index % 2], pipeline.stage(Config::stage_of_a(Step::term.a)), Step::k_step);
  }
};

// Computes step Index of a k-block and every later one. Fragments of a step are loaded before the products of
// the step before it, so that the matrix unit does not wait for them; those of the first step are there.
template <class Config, int Count, int Index = 0>
__device__ void add_steps(typename MmaWarp<Config>::Sums& sums, typename MmaWarp<Config>::Sums& inside,
                          MmaFragments<Config, Count>& fragments, const MmaWarp<Config>& warp,
                          MmaPipeline<Config>& pipeline) {
  using Step = MmaStep<Config, Count, Index>;
  if constexpr (Index < Step::all) {
    constexpr bool is_last = Index + 1 == Step::all;
    using Next = MmaStep<Config, Count, is_last ? 0 : Index + 1>;
    constexpr bool fills = Step::begins_stage && MmaPipeline<Config>::template fills<Step::term_index, Count>;
    if constexpr (fills) pipeline.loader.begin_load();
    if constexpr (fills && Step::fills_first) pipeline.template fill_stages<Step::term_index, Count>();
    if constexpr (is_last) pipeline.advance();
    if constexpr (Next::begins_stage) pipeline.template begin_term<Next::term_index, Count>();
    fragments.template load<Next, Index + 1>(warp, pipeline);
    if constexpr (fills && !Step::fills_first) pipeline.template fill_stages<Step::term_index, Count>();
    if constexpr (Step::begins_term && Step::term.rescales) {
#pragma unroll
      for (auto& strip : inside) {
#pragma unroll
        for (float& sum : strip) sum *= pipeline.params.rescale;
      }
    }
    add_step<Config, Step::begins_sums>(inside, fragments.a[Index % 2], fragments.template b_of<Step>());
    if constexpr (Step::ends_sums) {
#pragma unroll
      for (int i = 0; i < Config::m_tiles; ++i) {
#pragma unroll
        for (int j = 0; j < Config::n_tiles * 4; ++j) sums[i][j] += inside[i][j];
      }
    }
    add_steps<Config, Count, Index + 1>(sums, inside, fragments, warp, pipeline);
  }
}

// Calls visit(sum, its place) for each sum of the thread; places in device memory are those of the thread
// block's tile.
template <class Config, class Visit>
__device__ void for_each_sum(typename MmaWarp<Config>::Sums& sums, float* memory, const Visit& visit) {
  float* place = memory + std::int64_t{blockIdx.x} * Config::tile.sums() + thread_number();
#pragma unroll
  for (int i = 0; i < Config::m_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < Config::n_tiles * 4; ++j)
      visit(sums[i][j], place[(i * Config::n_tiles * 4 + j) * Config::threads]);
  }
}

// Computes all k-blocks of a tile, each of `Count` sub-blocks. The sums of a segment of k are added to those
// of the earlier ones, which lie in memory, since the accumulators take most registers.
template <class Config, int Count>
__device__ void add_k_blocks(typename MmaWarp<Config>::Sums& sums, MmaFragments<Config, Count>& fragments,
                             const MmaWarp<Config>& warp, MmaPipeline<Config>& pipeline) {
  const MmaParams& params = pipeline.params;
#pragma unroll
  for (auto& strip : sums) {
#pragma unroll
    for (float& sum : strip) sum = 0;
  }
#pragma unroll 1
  for (int k_block = 0; k_block < params.schedule.k_blocks;) {
    const int stop = min(params.schedule.k_blocks, k_block + params.segment_blocks);
    const bool is_first = k_block == 0;
#pragma unroll 1
    for (; k_block < stop; ++k_block) {
      typename MmaWarp<Config>::Sums inside;
      add_steps<Config, Count>(sums, inside, fragments, warp, pipeline);
    }
    if (!is_first) {
      for_each_sum<Config>(sums, params.segment_sums,
                           [](float& sum, const float& before) { sum = before + sum; });
    }
    if (stop < params.schedule.k_blocks) {
      for_each_sum<Config>(sums, params.segment_sums, [](float& sum, float& place) {
        place = sum;
        sum = 0;
      });
    }
  }
}

// Computes the thread block's tiles; k-blocks have `Count` sub-blocks.
template <class Config, int Count>
__device__ void compute_tiles(const MmaParams& params, MmaSharedStorage<Config>& shared,
                              std::uint32_t stages) {
  const MmaWarp<Config> warp;
  MmaLoader<Config> loader(params, shared);
  MmaPipeline<Config> pipeline{params, loader, stages};
  // Thread 0 finds the next tile and its slices.
  const auto set_next = [&](int next) {
    if (thread_number() != 0) return;
    shared.next_tile = next;
    shared.sources = sources_of<Config>(params, next);
  };
  const auto first = static_cast<int>(blockIdx.x);
  set_next(is_skipped(params, first) ? next_tile(params, first) : first);
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < Config::loaded_ahead(params.stages, Count); ++i) {
    loader.begin_load();
    loader.load(pipeline.stage(i), i % Config::slices);
  }
  MmaFragments<Config, Count> fragments;
  pipeline.template begin_term<0, Count>();
  fragments.template load<MmaStep<Config, Count, 0>, 0>(warp, pipeline);
#pragma unroll 1
  while (true) {
    // A stage of this tile has been loaded, so that the loader no longer needs its sources.
    const int tile = shared.next_tile;
    if (tile >= static_cast<int>(params.schedule.tiles())) break;
    __syncthreads();  // the warps have read next_tile and the parameters of the last tile's epilogue
    set_next(next_tile(params, tile));
    const TileCoord coord = params.schedule.coord({tile, 0});
    shared.epilogue.load(params.tile, {params.a.item_bytes == 0, params.b.item_bytes == 0}, coord.item,
                         {std::int64_t{coord.row} * Config::tile.rows, Config::tile.rows},
                         {std::int64_t{coord.column} * Config::tile.columns, Config::tile.columns},
                         thread_number());
    __syncthreads();
    typename MmaWarp<Config>::Sums sums;
    add_k_blocks<Config, Count>(sums, fragments, warp, pipeline);
    store_warp_tile<Config::format>(sums, params.tile, shared.epilogue, warp.row(), warp.column(),
                                    Config::threads);
  }
}

template <class Config>
__device__ void multi_term_mma(const MmaParams& params) {
  extern __shared__ __align__(Config::row_bytes) unsigned char memory[];
  __shared__ MmaSharedStorage<Config> shared;
  static_assert(sizeof shared <= mma_static_bytes);
  const DeviceCondition& condition = params.tile.condition;
  if (condition.selected_earlier) {
    bool is_selected = false;
    for (int item = static_cast<int>(threadIdx.x); item < params.schedule.items; item += Config::threads)
      is_selected = is_selected || holds(condition, item);
    if (__syncthreads_or(is_selected ? 1 : 0) == 0) return exit_in_stream_order();
  }
  grid_dependency_wait();
  launch_dependents();
  const std::uint32_t stages = shared_address(memory);
  if (params.sub_blocks == 1) {
    compute_tiles<Config, 1>(params, shared, stages);
  } else if (params.sub_blocks == 2) {
    compute_tiles<Config, 2>(params, shared, stages);
  } else if constexpr (Config::takes_four_sub_blocks) {
    compute_tiles<Config, 4>(params, shared, stages);
  }
}

#define KINTSUGI_MULTI_TERM_MMA(name, structure, format, tile)            \
  extern "C" __global__ void __launch_bounds__(tile.threads(), 1)         \
      name(const __grid_constant__ MmaParams params) {                    \
    multi_term_mma<MmaConfig<structure, FormatId::format, tile>>(params); \
  }

}  // namespace kintsugi::core::cuda
