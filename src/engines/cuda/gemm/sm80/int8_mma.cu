// int8 GEMM by mma.sync, for GPUs from compute capability 8.0 on. One launch computes all accumulator groups
// of a schedule. The terms of a group are added in int32. Sums are stored as 64-bit integers, or are reduced
// in registers and stored as residues of one byte. All threads of a thread block copy slices to shared memory
// by cp.async, into a ring of pipeline stages, and every warp multiplies a part of the tile. The k-blocks of
// a group are divided into runs that are so short that int32 holds the sum of each.
#include <cstdint>

#include "engines/cuda/gemm/int8_sums.cuh"
#include "engines/cuda/gemm/int8_tiles.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "recombine/accumulators.hpp"

namespace kintsugi::core::cuda {

namespace {

using Tile = Int8MmaTile;
constexpr int chunks = Tile::block_k / 16;               // copies of a vector's k-block
constexpr int vectors_at_once = Tile::threads / chunks;  // vectors that the threads copy together
constexpr int column_bytes = Tile::columns * Tile::block_k;
constexpr int m_tiles = Tile::warp_columns / 16;
constexpr int n_tiles = Tile::warp_rows / 8;
static_assert(vectors_at_once == PermutedRows::rows && Tile::warp_rows == PermutedRows::rows);

using Sums = std::int32_t[m_tiles][n_tiles][4];

// Number of k-blocks of every run except a group's last. int32 holds the sum of a run plus the residue of
// earlier runs, which is smaller than one product can be.
constexpr int longest_run = static_cast<int>((int32_safe_products - 1) / Tile::block_k);

// A tile of sums, with its slices.
struct TileOfGroup {
  const std::byte* a;  // slice 0 of the tile's first row
  const std::byte* b;
  int group;  // -1: there is no tile
  int row;
  int column;
  int rows;  // rows for which A has memory
};

// The thread block's present tile and its next ones, as many as the loader may be ahead: a tile has at least
// one stage.
constexpr int tiles_ahead = 8;
static_assert(tiles_ahead > Tile::max_stages + 1);
struct SharedStorage {
  TileOfGroup tiles[tiles_ahead];
};

__device__ TileOfGroup find_tile(const Int8MmaParams& params, int groups, int index) {
  const TileSchedule& schedule = params.int8.schedule;
  if (index >= schedule.rows * schedule.columns * groups) return {.group = -1};
  const TileCoord coord = schedule.coord({index, 0});
  const int row = coord.row * Tile::rows;
  const int column = coord.column * Tile::columns;
  return {params.a.data + row * params.a.vector_bytes,
          params.b.data + column * params.b.vector_bytes,
          groups - 1 - coord.item,
          row,
          column,
          min(Tile::rows, params.a_vectors - row)};
}

// Offset of a chunk of a vector's k-block in a stage. Chunks of eight neighboring vectors are permuted, so
// that ldmatrix reads all banks.
__device__ std::uint32_t chunk_offset(int vector, int chunk) {
  return static_cast<std::uint32_t>(vector * Tile::block_k + (chunk ^ vector / 2 % 4) * 16);
}

// Loads stages of the thread block's tiles, one after the other. All threads call it together.
class Loader {
 public:
  __device__ Loader(const Int8MmaParams& params, const SharedStorage& shared)
      : params_(params), shared_(shared), offset_(chunk_offset(vector(), chunk())) {
    begin_term();
  }

  // Must be called before load().
  __device__ void begin_load() {
    if (left_ > 0 || tile().group < 0) return;
    if (++term_ == params_.int8.first_term[tile().group + 1]) {
      number_ = (number_ + 1) % tiles_ahead;
      term_ = -1;
    }
    begin_term();
  }
  // Begins to copy the next stage, if there is one, to the address `stage`. There are no branches, so that
  // the compiler can place products between the copies.
  __device__ void load(std::uint32_t stage) {
    const bool exists = left_ > 0;
    const std::uint32_t target = stage + offset_;
    const std::byte* a = a_;
    const std::byte* b = b_;
#pragma unroll
    for (int i = 0; i < Tile::columns; i += vectors_at_once, b += vectors_at_once * params_.b.vector_bytes)
      copy_16_bytes_if(exists, target + i * Tile::block_k, b);
#pragma unroll
    for (int i = 0; i < Tile::rows; i += vectors_at_once, a += vectors_at_once * params_.a.vector_bytes)
      copy_16_bytes_if(exists && i < rows_, target + column_bytes + i * Tile::block_k, a);
    a_ += Tile::block_k;
    b_ += Tile::block_k;
    left_ -= exists ? 1 : 0;
    commit_copies();
  }

 private:
  __device__ static int chunk() { return thread_number() % chunks; }
  __device__ static int vector() { return thread_number() / chunks; }
  __device__ const TileOfGroup& tile() const { return shared_.tiles[number_]; }

  // Begins term `term_` of the tile; -1 stands for the first one.
  __device__ void begin_term() {
    const TileOfGroup& tile = this->tile();
    if (tile.group < 0) return;
    if (term_ < 0) term_ = params_.int8.first_term[tile.group];
    const Int8Term term = params_.int8.terms[term_];
    const int v = vector();
    // Row of the tile that has place v among the permuted rows.
    const int row = v % 8 / 2 * PermutedRows::rows_of_thread + v / 8 * 2 + v % 2;
    a_ = tile.a + term.a * params_.a.slice_bytes + row * params_.a.vector_bytes + chunk() * 16;
    b_ = tile.b + term.b * params_.b.slice_bytes + v * params_.b.vector_bytes + chunk() * 16;
    rows_ = tile.rows;
    left_ = params_.int8.schedule.k_blocks;
  }

  const Int8MmaParams& params_;
  const SharedStorage& shared_;
  std::uint32_t offset_;  // in a stage, of the thread's first copy
  int number_ = 0;        // of the tile in shared memory
  int term_ = -1;
  int rows_ = 0;  // of the tile, for which A has memory; the others' products are not stored
  int left_ = 0;  // k-blocks of the term that are not loaded; 0 if there is no tile
  const std::byte* a_ = nullptr;
  const std::byte* b_ = nullptr;
};

// The warp's part of the tile: its first row and column, and the offsets in a stage of what the lane gives to
// ldmatrix.
__device__ int row_of_warp() {
  return thread_number() / 32 % (Tile::rows / Tile::warp_rows) * Tile::warp_rows;
}
__device__ int column_of_warp() {
  return thread_number() / 32 / (Tile::rows / Tile::warp_rows) * Tile::warp_columns;
}
struct Offsets {
  std::uint32_t columns;
  std::uint32_t rows;

  __device__ Offsets() {
    const int lane = thread_number() % 32;
    columns = chunk_offset(column_of_warp() + lane % 16, lane / 16);
    rows = column_bytes + chunk_offset(row_of_warp() + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }
};

// The warp's columns and rows of 32 inner indices.
struct Fragments {
  std::uint32_t columns[m_tiles][4];
  std::uint32_t rows[n_tiles][2];

  // Loads step `step` of a k-block.
  __device__ void load(std::uint32_t stage, const Offsets& offsets, int step) {
    const std::uint32_t column_address = (stage + offsets.columns) ^ (step * 32U);
    const std::uint32_t row_address = (stage + offsets.rows) ^ (step * 32U);
#pragma unroll
    for (int i = 0; i < m_tiles; ++i)
      load_matrices(column_address + i * 16 * Tile::block_k, columns[i][0], columns[i][1], columns[i][2],
                    columns[i][3]);
#pragma unroll
    for (int j = 0; j < n_tiles; j += 2)
      load_matrices(row_address + j * 8 * Tile::block_k, rows[j][0], rows[j][1], rows[j + 1][0],
                    rows[j + 1][1]);
  }
  __device__ void add_products(Sums& sums) const {
#pragma unroll
    for (int i = 0; i < m_tiles; ++i) {
#pragma unroll
      for (int j = 0; j < n_tiles; ++j) mma_signed_bytes(sums[i][j], columns[i], rows[j], sums[i][j]);
    }
  }
};

// Waits for all stages but the youngest, of which two less than all may be incomplete.
__device__ void await_stage(int stages) {
  if (stages == Tile::min_stages) {
    await_copies_but<Tile::min_stages - 2>();
  } else {
    await_copies_but<Tile::max_stages - 2>();
  }
}

// Calls visit(strip, first, row, column) for each column of the thread, which has 16 rows from `row` on. Sum
// r of these rows is strip[r / 2][first + r % 2].
template <class Visit>
__device__ void for_each_column(const Sums& sums, const TileOfGroup& tile, const Visit& visit) {
  const int lane = thread_number() % 32;
  const int row = tile.row + row_of_warp() + lane % 4 * PermutedRows::rows_of_thread;
  const int column = tile.column + column_of_warp() + lane / 4;
#pragma unroll
  for (int i = 0; i < m_tiles; ++i) {
#pragma unroll
    for (int c = 0; c < 2; ++c) visit(sums[i], 2 * c, row, column + 16 * i + 8 * c);
  }
}

__device__ void reduce(Sums& sums, const SumReduction<SumRange::int32>& reduction) {
#pragma unroll
  for (auto& strip : sums) {
#pragma unroll
    for (auto& four : strip) {
#pragma unroll
      for (std::int32_t& sum : four) sum = static_cast<std::int32_t>(reduction(sum) & 0xffU);
    }
  }
}

__device__ void store_residues(const Sums& sums, const TileOfGroup& tile, const Int8Params& params) {
  const GroupSums<std::uint8_t> target(params, tile.group);
  const SumReduction<SumRange::int32>& reduction = device_int32_reductions[params.moduli[tile.group] - 2];
  for_each_column(sums, tile, [&](const std::int32_t(&strip)[n_tiles][4], int first, int row, int column) {
    std::uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::int32_t(&even)[4] = strip[2 * w];
      const std::int32_t(&odd)[4] = strip[2 * w + 1];
      words[w] = __byte_perm(__byte_perm(reduction(even[first]), reduction(even[first + 1]), 0x0040),
                             __byte_perm(reduction(odd[first]), reduction(odd[first + 1]), 0x0040), 0x5410);
    }
    if (row >= target.rows || column >= target.columns) return;
    __stcs(reinterpret_cast<uint4*>(target.data + column * target.rows + row),
           uint4{words[0], words[1], words[2], words[3]});
  });
}

// Stores the sums of a run, or adds them to stored ones.
__device__ __forceinline__ void store_integers(const Sums& sums, const TileOfGroup& tile,
                                               const Int8Params& params, bool is_first_run) {
  const GroupSums<long long> target(params, tile.group);
  for_each_column(sums, tile, [&](const std::int32_t(&strip)[n_tiles][4], int first, int row, int column) {
    const bool exists = row < target.rows && column < target.columns;
    auto* pair = reinterpret_cast<longlong2*>(target.data + column * target.rows + row);
#pragma unroll
    for (int j = 0; j < n_tiles; ++j) {
      const longlong2 earlier = exists && !is_first_run ? pair[j] : longlong2{0, 0};
      if (exists) __stcs(pair + j, longlong2{earlier.x + strip[j][first], earlier.y + strip[j][first + 1]});
    }
  });
}

__device__ void clear(Sums& sums) {
#pragma unroll
  for (auto& strip : sums) {
#pragma unroll
    for (auto& four : strip) {
#pragma unroll
      for (std::int32_t& sum : four) sum = 0;
    }
  }
}

template <SumType Type>
__device__ void compute_tiles(const Int8MmaParams& params, int groups, SharedStorage& shared,
                              std::uint32_t stages) {
  constexpr bool reduces = Type == SumType::residue;
  const Offsets offsets;
  int index = static_cast<int>(blockIdx.x);
  if (thread_number() < tiles_ahead)
    shared.tiles[thread_number()] =
        find_tile(params, groups, index + thread_number() * static_cast<int>(gridDim.x));
  index += (tiles_ahead - 2) * static_cast<int>(gridDim.x);
  __syncthreads();
  Loader loader(params, shared);
#pragma unroll 1
  for (int i = 0; i < params.stages; ++i) {
    loader.begin_load();
    loader.load(stages + i * Tile::stage_bytes);
  }
  std::uint32_t stage = stages;
  const std::uint32_t end = stages + params.stages * Tile::stage_bytes;
  Fragments even;
  Fragments odd;
  await_stage(params.stages);
  __syncthreads();
  even.load(stage, offsets, 0);
#pragma unroll 1
  for (int number = 0; shared.tiles[number].group >= 0; number = (number + 1) % tiles_ahead) {
    __syncthreads();  // all warps have stored the tile before this one
    index += static_cast<int>(gridDim.x);
    if (thread_number() == 0)
      shared.tiles[(number + tiles_ahead - 1) % tiles_ahead] = find_tile(params, groups, index);
    const TileOfGroup& tile = shared.tiles[number];
    int left = params.int8.k_blocks(tile.group);
    // Fragments are loaded before the products of the step before them, and a stage is filled again when all
    // warps have its fragments.
    const auto add_run = [&](Sums& sums) {
      const int run = min(left, longest_run);
#pragma unroll 1
      for (int k_block = 0; k_block < run; ++k_block) {
        odd.load(stage, offsets, 1);
        even.add_products(sums);
        loader.begin_load();
        await_stage(params.stages);
        __syncthreads();
        const std::uint32_t free = stage;
        stage += Tile::stage_bytes;
        if (stage == end) stage = stages;
        even.load(stage, offsets, 0);
        loader.load(free);
        odd.add_products(sums);
      }
      left -= run;
    };
    if constexpr (reduces) {
      Sums sums;
      clear(sums);
      add_run(sums);
#pragma unroll 1
      while (left > 0) {
        reduce(sums, device_int32_reductions[params.int8.moduli[tile.group] - 2]);
        add_run(sums);
      }
      store_residues(sums, tile, params.int8);
    } else {
#pragma unroll 1
      for (bool is_first_run = true; left > 0; is_first_run = false) {
        Sums sums;
        clear(sums);
        add_run(sums);
        store_integers(sums, tile, params.int8, is_first_run);
      }
    }
  }
}

template <SumType Type>
__device__ void int8_mma(const Int8MmaParams& params) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ SharedStorage shared;
  grid_dependency_wait();
  launch_dependents();
  const int groups = selected_groups(params.int8);
  if (groups > 0) compute_tiles<Type>(params, groups, shared, shared_address(memory));
}

}  // namespace

// Kernels of ozaki2, int8x6, ozaki-int8 and products of magnitudes.

extern "C" __global__ void __launch_bounds__(Tile::threads, 1)
    multiply_int8_mma_residues(const __grid_constant__ Int8MmaParams params) {
  int8_mma<SumType::residue>(params);
}
extern "C" __global__ void __launch_bounds__(Tile::threads, 1)
    multiply_int8_mma_integers(const __grid_constant__ Int8MmaParams params) {
  int8_mma<SumType::i64>(params);
}

}  // namespace kintsugi::core::cuda
