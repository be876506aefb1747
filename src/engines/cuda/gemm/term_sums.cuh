// Sums of a schedule's terms by mma.sync, for the structures of the literature: which sums leave the matrix
// unit, and when, is the schedule's. The kernel stores one FP32 sum for each group, or for all if they are
// joint. It is compiled at run time for one structure, format and tile (term_sums.cpp).
//
// A pipeline stage holds a k-block of all slices. All threads copy it by cp.async, and every warp multiplies
// a part of the tile.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/term_sums_params.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

template <TermStructure Structure, FormatId Format, TermSumsTile Tile>
struct TermSumsConfig {
  static constexpr TermStructure structure = Structure;
  static constexpr FormatId format = Format;
  static constexpr MmaTile tile = Tile.tile;
  static constexpr int stages = Tile.stages;
  static constexpr int stage_bytes = TermSumsTile::stage_bytes(tile, structure);
  static constexpr int threads = tile.threads();
  static constexpr int warps_of_row = tile.columns / tile.warp_columns;
  static constexpr int m_tiles = tile.warp_rows / 16;    // instructions side by side in a warp's tile
  static constexpr int n_tiles = tile.warp_columns / 8;  // an even number: two are loaded at once
  static constexpr int b_offset = tile.rows * structure.slices_a * term_stage_bytes;  // in a stage

  static constexpr int chunks = term_stage_bytes / 16;          // copies of a vector's k-block
  static constexpr int vectors_at_once = threads / chunks;      // vectors that the threads copy together
  static constexpr int copies_a = tile.rows / vectors_at_once;  // of a thread, of one slice
  static constexpr int copies_b = tile.columns / vectors_at_once;
  static constexpr int copies = copies_a * structure.slices_a + copies_b * structure.slices_b;
  static_assert(vectors_at_once % 8 == 0);

  // True if a warp has registers for the fragments of B of two instructions along k, and for sums of products
  // that the compiler begins early.
  static constexpr bool has_spare_registers =
      structure.held_sums() == 1 || (structure.held_sums() == 2 && structure.run == 0);
};

// Copies the slices of the thread block's tile. The tile's last vectors need not exist: their sums are not
// stored, and the slices have memory for whole tiles.
template <class Config>
class TermLoader {
 public:
  __device__ TermLoader(const TermSumsParams& params, std::int64_t row, std::int64_t column)
      : params_(params), offset_(vector() * term_stage_bytes + ((chunk() ^ (vector() & 7)) * 16)),
        a_(params.a.data + (row + vector()) * params.a.vector_bytes + chunk() * 16),
        b_(params.b.data + (column + vector()) * params.b.vector_bytes + chunk() * 16) {}

  // Begins share `Part` of `Parts` of the copies of the next k-block to a stage, if there is one.
  template <int Part, int Parts>
  __device__ void load(std::uint32_t stage, bool exists) const {
#pragma unroll
    for (int c = Part * Config::copies / Parts; c < (Part + 1) * Config::copies / Parts; ++c) {
      constexpr int all_of_a = Config::copies_a * Config::structure.slices_a;
      const bool is_a = c < all_of_a;
      const int of_slice = is_a ? Config::copies_a : Config::copies_b;
      const int index = is_a ? c : c - all_of_a;
      const MmaOperand& operand = is_a ? params_.a : params_.b;
      const std::byte* source =
          (is_a ? a_ : b_) + index / of_slice * operand.slice_bytes +
          std::int64_t{index % of_slice * Config::vectors_at_once} * operand.vector_bytes;
      // Slices lie one behind the other, so that the target depends on the copy's number alone.
      copy_16_bytes_if(exists, stage + offset_ + c * Config::vectors_at_once * term_stage_bytes, source);
    }
  }
  __device__ void advance() {
    a_ += term_stage_bytes;
    b_ += term_stage_bytes;
    commit_copies();
  }

 private:
  __device__ static int chunk() { return static_cast<int>(threadIdx.x) % Config::chunks; }
  __device__ static int vector() { return static_cast<int>(threadIdx.x) / Config::chunks; }

  const TermSumsParams& params_;
  std::uint32_t offset_;  // in a stage, of the thread's first copy
  const std::byte* a_;
  const std::byte* b_;
};

// A warp's part of the tile: its sums, and its addresses in a stage.
template <class Config>
struct TermWarp {
  using Sums = float[Config::m_tiles][Config::n_tiles][4];
  using FragmentA = std::uint32_t[4];
  using FragmentsB = std::uint32_t[Config::n_tiles][2];

  // Offsets in a stage of what the lane gives to ldmatrix for the first instruction. The chunks of step s are
  // those of step 0 with 2 s added, modulo 2, to their numbers' bits.
  std::uint32_t a_offset;
  std::uint32_t b_offset;

  __device__ TermWarp() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    a_offset = chunk_offset(row() + lane % 16, lane / 16);
    b_offset = Config::b_offset + chunk_offset(column() + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }
  // First row and column of the warp's part of the tile.
  __device__ static int row() {
    return static_cast<int>(threadIdx.x) / 32 / Config::warps_of_row * Config::tile.warp_rows;
  }
  __device__ static int column() {
    return static_cast<int>(threadIdx.x) / 32 % Config::warps_of_row * Config::tile.warp_columns;
  }

  // Loads rows 16 i ... 16 i + 15 of the warp of a slice of A.
  __device__ void load_a(FragmentA& a, std::uint32_t stage, int slice, int step, int i) const {
    const std::uint32_t address = (stage + a_offset) ^ (step * 32U);
    load_matrices(address + (slice * Config::tile.rows + i * 16) * term_stage_bytes, a[0], a[1], a[2], a[3]);
  }
  // Loads all columns of the warp of a slice of B.
  __device__ void load_b(FragmentsB& b, std::uint32_t stage, int slice, int step) const {
    const std::uint32_t address =
        ((stage + b_offset) ^ (step * 32U)) + slice * Config::tile.columns * term_stage_bytes;
#pragma unroll
    for (int j = 0; j < Config::n_tiles; j += 2)
      load_matrices(address + j * 8 * term_stage_bytes, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
  }

 private:
  // Offset of a chunk of a vector's k-block. Chunks of eight neighboring vectors are permuted, so that
  // ldmatrix reads all banks.
  __device__ static std::uint32_t chunk_offset(int vector, int chunk) {
    return static_cast<std::uint32_t>(vector * term_stage_bytes + (chunk ^ (vector & 7)) * 16);
  }
};

// Stages and factors for the multiplication of a k-block: the stage that has it, and the one that is filled
// meanwhile.
template <class Config>
struct TermStage {
  const TermWarp<Config>& warp;
  const TermLoader<Config>& loader;
  std::uint32_t multiplied;
  std::uint32_t filled;
  bool fills;
  float rescale;
  const float (&weights)[TermStructure::max_groups];
};

// Adds the terms of one instruction along k to 16 rows of all sums. If the sums of an instruction leave the
// matrix unit, the terms of a group begin at zero, and their sum is added outside.
template <class Config>
__device__ void add_terms(typename TermWarp<Config>::Sums (&sums)[Config::structure.stored_sums()], int i,
                          const std::uint32_t (&a)[Config::structure.slices_a][4],
                          const std::uint32_t (&b)[Config::structure.slices_b][Config::n_tiles][2],
                          const float (&weights)[TermStructure::max_groups]) {
  constexpr TermStructure structure = Config::structure;
  if constexpr (structure.run == 0) {
#pragma unroll
    for (int t = 0; t < structure.count; ++t) {
      const TermStructure::Term term = structure.terms[t];
#pragma unroll
      for (int j = 0; j < Config::n_tiles; ++j) {
        float(&sum)[4] = sums[term.group][i][j];
        mma_from<Config::format>(sum, a[term.a], b[term.b][j], sum);
      }
    }
  } else {
    float inside[Config::n_tiles][4];
#pragma unroll
    for (int t = 0; t < structure.count; ++t) {
      const TermStructure::Term term = structure.terms[t];
      if (structure.begins_group(t)) {
#pragma unroll
        for (auto& four : inside) {
#pragma unroll
          for (float& sum : four) sum = 0;
        }
      }
#pragma unroll
      for (int j = 0; j < Config::n_tiles; ++j)
        mma_from<Config::format>(inside[j], a[term.a], b[term.b][j], inside[j]);
      if (structure.ends_group(t)) {
#pragma unroll
        for (int j = 0; j < Config::n_tiles; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if constexpr (structure.joint) {
              // The product is exact: sums are multiples of 2^-48, and weights at least 2^-40.
              sums[0][i][j][e] = __fmaf_rn(inside[j][e], weights[term.group], sums[0][i][j][e]);
            } else {
              sums[term.group][i][j][e] += inside[j][e];
            }
          }
        }
      }
    }
  }
}

// Multiplies a k-block: all terms of an instruction along k, then those of the next.
template <class Config>
struct AlternatingTerms {
  static constexpr TermStructure structure = Config::structure;

  typename TermWarp<Config>::Sums sums[structure.stored_sums()];
  std::uint32_t a[2][structure.slices_a][4];
  std::uint32_t b[Config::has_spare_registers ? 2 : 1][structure.slices_b][Config::n_tiles][2];

  __device__ void add_stage(const TermStage<Config>& stage) {
    load_b(stage, 0);
    load_a(stage, 0, 0);
    if constexpr (Config::has_spare_registers) {
      add_from<0>(stage);
    } else {
      // Unrolled, the compiler would begin products of later instructions, for which there are no registers.
      stage.loader.template load<0, 1>(stage.filled, stage.fills);
#pragma unroll 1
      for (int step = 0; step < term_steps; ++step) add_step<nothing>(stage, step);
    }
  }

 private:
  static constexpr int places_of_b = Config::has_spare_registers ? 2 : 1;
  static constexpr int nothing = -1;

  __device__ void load_a(const TermStage<Config>& stage, int step, int i) {
#pragma unroll
    for (int s = 0; s < structure.slices_a; ++s) stage.warp.load_a(a[i % 2][s], stage.multiplied, s, step, i);
  }
  __device__ void load_b(const TermStage<Config>& stage, int step) {
#pragma unroll
    for (int s = 0; s < structure.slices_b; ++s)
      stage.warp.load_b(b[step % places_of_b][s], stage.multiplied, s, step);
  }
  // Multiplies instruction `step` along k, and begins share `Copied` of term_steps of the copies. Fragments
  // are loaded before the products before them.
  template <int Copied>
  __device__ void add_step(const TermStage<Config>& stage, int step) {
    static_assert(Config::m_tiles % 2 == 0);
    const bool is_last = step + 1 == term_steps;
    auto& fragments_b = b[step % places_of_b];
#pragma unroll
    for (int i = 0; i < Config::m_tiles; ++i) {
      const bool ends = i + 1 == Config::m_tiles;
      if (!ends) load_a(stage, step, i + 1);
      if (ends && !is_last) {
        load_a(stage, step + 1, 0);
        if (Config::has_spare_registers) load_b(stage, step + 1);
      }
      if constexpr (Copied != nothing) {
        if (i == 0) stage.loader.template load<Copied, term_steps>(stage.filled, stage.fills);
      }
      add_terms<Config>(sums, i, a[i % 2], fragments_b, stage.weights);
      if (ends && !is_last && !Config::has_spare_registers) load_b(stage, step + 1);
    }
  }
  template <int Step>
  __device__ void add_from(const TermStage<Config>& stage) {
    if constexpr (Step < term_steps) {
      add_step<Step>(stage, Step);
      add_from<Step + 1>(stage);
    }
  }
};

// Multiplies a k-block: in each run of instructions along k a term, then the next. There is one group.
template <class Config>
struct TermsOneByOne {
  static constexpr TermStructure structure = Config::structure;
  static constexpr int all = structure.count * term_steps;  // instructions of a k-block, side by side as one

  typename TermWarp<Config>::Sums sums[1];
  typename TermWarp<Config>::Sums inside;
  std::uint32_t a[2][Config::m_tiles][4];
  std::uint32_t b[2][Config::n_tiles][2];

  __device__ void add_stage(const TermStage<Config>& stage) {
    load<0>(stage);
    add_from<0>(stage);
  }

 private:
  // Place of an instruction in its run, and the run's first instruction along k.
  static constexpr int in_run(int index) { return index % (structure.count * structure.run); }
  static constexpr int first_of_run(int index) {
    return index / (structure.count * structure.run) * structure.run;
  }
  static constexpr TermStructure::Term term(int index) {
    return structure.terms[in_run(index) / structure.run];
  }
  static constexpr int step(int index) { return first_of_run(index) + in_run(index) % structure.run; }

  template <int Index>
  __device__ void load(const TermStage<Config>& stage) {
    constexpr TermStructure::Term loaded = term(Index);
#pragma unroll
    for (int i = 0; i < Config::m_tiles; ++i)
      stage.warp.load_a(a[Index % 2][i], stage.multiplied, loaded.a, step(Index), i);
    stage.warp.load_b(b[Index % 2], stage.multiplied, loaded.b, step(Index));
  }
  template <int Index>
  __device__ void add_from(const TermStage<Config>& stage) {
    if constexpr (Index < all) {
      if constexpr (Index + 1 < all) load<Index + 1>(stage);
      stage.loader.template load<Index, all>(stage.filled, stage.fills);
      constexpr bool begins_term = in_run(Index) % structure.run == 0;
      constexpr float zeros[4] = {};
#pragma unroll
      for (int i = 0; i < Config::m_tiles; ++i) {
#pragma unroll
        for (int j = 0; j < Config::n_tiles; ++j) {
          float(&target)[4] = inside[i][j];
          if constexpr (term(Index).rescales && begins_term) {
#pragma unroll
            for (float& sum : target) sum *= stage.rescale;
          }
          if constexpr (in_run(Index) == 0) {
            mma_from<Config::format>(target, a[Index % 2][i], b[Index % 2][j], zeros);
          } else {
            mma_from<Config::format>(target, a[Index % 2][i], b[Index % 2][j], target);
          }
          if constexpr (in_run(Index) + 1 == structure.count * structure.run) {
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[0][i][j][e] += target[e];
          }
        }
      }
      add_from<Index + 1>(stage);
    }
  }
};

template <bool Alternates, class Config>
struct TermsOf {
  using Type = AlternatingTerms<Config>;
};
template <class Config>
struct TermsOf<false, Config> {
  using Type = TermsOneByOne<Config>;
};

// Begins a thread block: waits for the kernels before it, and finds its tile.
template <class Config>
struct TermPosition {
  std::int64_t row;  // first row and column of the tile
  std::int64_t column;

  __device__ explicit TermPosition(const TermSumsParams& params) {
    grid_dependency_wait();
    launch_dependents();
    const TileCoord coord = params.schedule.coord({static_cast<int>(blockIdx.x), 0});
    row = std::int64_t{coord.row} * Config::tile.rows;
    column = std::int64_t{coord.column} * Config::tile.columns;
  }
  // Stores the sum of a group of an element of the tile, if the element exists.
  __device__ void store(const TermSumsParams& params, int group, int tile_row, int tile_column,
                        float sum) const {
    const std::int64_t r = row + tile_row;
    const std::int64_t c = column + tile_column;
    if (r < params.rows && c < params.columns)
      params.sums[group * params.group_stride + c * params.rows + r] = sum;
  }
};

template <class Config>
__device__ void add_up_terms(const TermSumsParams& params) {
  extern __shared__ __align__(term_stage_bytes) unsigned char memory[];
  const TermPosition<Config> position(params);
  float weights[TermStructure::max_groups];
#pragma unroll
  for (int g = 0; g < TermStructure::max_groups; ++g)
    weights[g] = (params.fitted >> g & 1U) != 0 ? *params.fitted_weight : params.weights[g];
  const std::uint32_t stages = shared_address(memory);
  const int k_blocks = params.schedule.k_blocks;
  TermLoader<Config> loader(params, position.row, position.column);
#pragma unroll
  for (int s = 0; s + 1 < Config::stages; ++s) {
    loader.template load<0, 1>(stages + s * Config::stage_bytes, s < k_blocks);
    loader.advance();
  }
  const TermWarp<Config> warp;
  typename TermsOf<Config::structure.alternates(), Config>::Type terms;
#pragma unroll
  for (auto& group : terms.sums) {
#pragma unroll
    for (auto& strip : group) {
#pragma unroll
      for (auto& four : strip) {
#pragma unroll
        for (float& sum : four) sum = 0;
      }
    }
  }
  std::uint32_t multiplied = 0;  // of the stages
  std::uint32_t filled = Config::stages - 1;
#pragma unroll 1
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    await_copies_but<Config::stages - 2>();
    __syncthreads();  // all threads' copies have arrived, and no warp reads the stage that is filled next
    terms.add_stage({warp, loader, stages + multiplied * Config::stage_bytes,
                     stages + filled * Config::stage_bytes, k_block + Config::stages - 1 < k_blocks,
                     params.rescale, weights});
    loader.advance();
    filled = multiplied;
    multiplied = multiplied + 1 == Config::stages ? 0 : multiplied + 1;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int g = 0; g < Config::structure.stored_sums(); ++g) {
#pragma unroll
    for (int i = 0; i < Config::m_tiles; ++i) {
#pragma unroll
      for (int j = 0; j < Config::n_tiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e)  // PTX ISA: the accumulators of mma.m16n8
          position.store(params, g, warp.row() + i * 16 + lane / 4 + e / 2 * 8,
                         warp.column() + j * 8 + lane % 4 * 2 + e % 2, terms.sums[g][i][j][e]);
      }
    }
  }
}

}  // namespace kintsugi::core::cuda
