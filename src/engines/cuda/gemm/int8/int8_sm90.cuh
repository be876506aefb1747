// int8 GEMM for Hopper. One launch computes all accumulator groups of a schedule. The terms of a group are
// added in int32. Sums are stored as 64-bit integers, or are reduced in registers and stored as residues of
// one byte. The two thread blocks of a cluster share the slices of C's rows or columns by multicast. In each
// thread block one thread loads tiles, and two warpgroups multiply. The k-blocks of a group are divided into
// runs that are so short that int32 holds the sum of each.
#pragma once

#include "arith/residue/remainder.hpp"
#include "engines/cuda/gemm/int8/int8_tiles.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"
#include "engines/cuda/recombine/tile.cuh"
#include "recombine/accumulators.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core::cuda {

template <Int8Tile Tile, SumType Type>
struct Int8Config {
  static constexpr Int8Tile tile = Tile;
  static constexpr bool reduces = Type == SumType::residue;  // true: sums are stored as residues
  static constexpr int consumers = 2;                        // number of warpgroups that multiply
  static_assert(Int8Tile::threads == warpgroup * (1 + consumers));
  static constexpr int columns = tile.block_columns / consumers;  // columns per warpgroup
  static constexpr int instructions = columns / 64;               // instructions per 32 inner indices
  static constexpr int sums = tile.block_rows / 2;                // sums per thread and instruction

  // Registers per consumer thread. With those of the producer they fill the SM's register file.
  static constexpr int consumer_registers = 232;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;

  // Number of k-blocks of every run except a group's last. int32 holds the sum of a run plus the residue of
  // earlier runs, which is smaller than one product can be.
  static constexpr int longest_run = static_cast<int>((int32_safe_products - 1) / Int8Tile::block_k);
};

// Accumulators of a thread for each instruction.
template <class Config>
using Int8Sums = std::int32_t[Config::instructions][Config::sums];

// Barriers of the pipeline stages. `full`: the slices of a stage have arrived. `free`: a stage may be filled
// again.
template <class Config>
struct Int8SharedStorage {
  Mbarrier full[Config::tile.stages];
  Mbarrier free[Config::tile.stages];  // counts the consumer warpgroups of both thread blocks

  __device__ void initialise() {
    for (int stage = 0; stage < Config::tile.stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(Config::consumers * gemm_cluster_size);
    }
  }
};

// Pipeline state: stage index and mbarrier phase.
template <class Config>
class Int8PipelineState {
 public:
  __device__ Int8PipelineState(Int8SharedStorage<Config>& shared, std::uint32_t tiles)
      : shared_(shared), tiles_(tiles) {}

  __device__ void advance() {
    if (++stage_ < Config::tile.stages) return;
    stage_ = 0;
    parity_ ^= 1;
  }
  __device__ int stage() const { return stage_; }
  __device__ std::uint32_t rows() const { return tiles_ + stage_ * Config::tile.stage_bytes(); }
  __device__ std::uint32_t columns() const { return rows() + Config::tile.block_rows * Int8Tile::block_k; }
  __device__ Mbarrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_full() const { full().wait(parity_); }
  __device__ void wait_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Frees a stage that this warpgroup has multiplied, in both thread blocks.
  __device__ void release(int stage) const {
    const unsigned thread = threadIdx.x % warpgroup;
    if (thread < gemm_cluster_size) shared_.free[stage].arrive_remote(thread);
  }

 private:
  Int8SharedStorage<Config>& shared_;
  std::uint32_t tiles_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

// Loads a k-block of `Vectors` vectors of a slice. If `IsShared`, both thread blocks of the cluster need the
// same vectors, and each thread block loads one half of them, into both. Otherwise each thread block loads
// its own vectors.
template <int Vectors, bool IsShared>
__device__ void load_vectors(std::uint32_t target, const TensorMap& map, Mbarrier& barrier, int k_block,
                             int first, int slice) {
  constexpr int half = Vectors / gemm_cluster_size;
  const int k = k_block * Int8Tile::block_k;
  const int rank = block_rank_in_cluster();
  if constexpr (IsShared) {
    tma_load_multicast(target + rank * half * Int8Tile::block_k, map, barrier, k, first + rank * half, slice,
                       all_of_cluster);
  } else {
    tma_load(target, map, barrier, k, first + rank * Vectors, slice);
  }
}

// Loads all k-blocks of all work tiles of the cluster. One thread of each thread block, the producer, must
// call it.
template <class Config>
__device__ void load_slices(const TensorMap& a, const TensorMap& b, const Int8Params& params,
                            Int8SharedStorage<Config>& shared, std::uint32_t tiles) {
  constexpr Int8Tile tile = Config::tile;
  Int8PipelineState<Config> pipeline(shared, tiles);
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  while (scheduler.next(cluster_index(), work_tile)) {
    const TileCoord coord = params.schedule.coord(work_tile);
    const int row = coord.row * tile.rows();
    const int column = coord.column * tile.columns();
    const int group = params.group(coord);
    for (int t = params.first_term[group]; t < params.first_term[group + 1]; ++t) {
      const Int8Term term = params.terms[t];
#pragma unroll 1
      for (int k_block = 0; k_block < params.schedule.k_blocks; ++k_block, pipeline.advance()) {
        pipeline.wait_free();
        pipeline.full().arrive_expect_tx(tile.stage_bytes());
        load_vectors<tile.block_rows, tile.shares_rows>(pipeline.rows(), a, pipeline.full(), k_block, row,
                                                        term.a);
        load_vectors<tile.block_columns, !tile.shares_rows>(pipeline.columns(), b, pipeline.full(), k_block,
                                                            column, term.b);
      }
    }
  }
}

// Issues the instructions of one k-block. If `keep` is true, the products are added to `sums`; else they
// begin new sums.
template <class Config>
__device__ void multiply_k_block(Int8Sums<Config>& sums, const Int8PipelineState<Config>& pipeline,
                                 int consumer, bool keep) {
  const MatrixDescriptor rows(pipeline.rows());
  const MatrixDescriptor columns(pipeline.columns() + consumer * Config::columns * Int8Tile::block_k);
  pipeline.wait_full();
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < Int8Tile::block_k / step_bytes; ++step) {
#pragma unroll
    for (int i = 0; i < Config::instructions; ++i)
      wgmma(sums[i], columns + i * 64 * Int8Tile::block_k + step * step_bytes, rows + step * step_bytes,
            keep || step > 0);
  }
  wgmma_commit_group();
}

// Multiplies `k_blocks` k-blocks; `keep` is that of multiply_k_block() for the first one. The instructions of
// a k-block are issued while those of the previous k-block run. Then the stage of the previous k-block is
// freed.
template <class Config>
__device__ void multiply_k_blocks(Int8Sums<Config>& sums, Int8PipelineState<Config>& pipeline, int consumer,
                                  int k_blocks, bool keep) {
  multiply_k_block<Config>(sums, pipeline, consumer, keep);
  int previous_stage = pipeline.stage();
  pipeline.advance();
#pragma unroll 1
  for (int left = k_blocks - 1; left > 0; --left, pipeline.advance()) {
    multiply_k_block<Config>(sums, pipeline, consumer, /*keep=*/true);
    wgmma_wait_group<1>();
    pipeline.release(previous_stage);
    previous_stage = pipeline.stage();
  }
  wgmma_wait_group<0>();
#pragma unroll
  for (auto& instruction_sums : sums) warpgroup_fence_operand(instruction_sums);
  pipeline.release(previous_stage);
}

// Transposes the words of four neighboring threads: thread t gets word t of each of them.
__device__ inline void transpose_words(std::uint32_t (&words)[4], int thread) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool has_bit = (thread & bit) != 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if ((w & bit) != 0) continue;
      const std::uint32_t received = __shfl_xor_sync(~0U, has_bit ? words[w] : words[w + bit], bit);
      (has_bit ? words[w] : words[w + bit]) = received;
    }
  }
}

// Sums of a group in device memory. Rows and columns are multiples of 16.
template <class T>
struct GroupSums {
  T* data;
  std::int64_t rows;
  std::int64_t columns;

  __device__ GroupSums(const Int8Params& params, int group)
      : data(reinterpret_cast<T*>(params.sums) + group * params.rows * params.columns), rows(params.rows),
        columns(params.columns) {}
};

// Stores a warpgroup's residues of all rows and 64 columns, one byte each. A thread has two adjacent rows of
// every eight (PTX ISA: fragment of D of wgmma, here transposed). Four threads exchange residues; then each
// stores sixteen adjacent ones. The unused parameter gives the function the signature of the one for
// integers.
template <int Sums>
__device__ void store_sums(const std::int32_t (&residues)[Sums], const GroupSums<std::uint8_t>& group, bool,
                           std::int64_t first_row, std::int64_t first_column, int thread) {
  const std::int64_t row = first_row + thread % 4 * 16;
  const std::int64_t column = first_column + thread / 32 * 16 + thread % 32 / 4;
  std::uint8_t* target = group.data + column * group.rows + row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * group.rows) {
#pragma unroll
    for (int offset = 0; offset < 2 * Sums; offset += 64) {
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::int32_t* four = residues + offset / 2 + 8 * w + 2 * c;
        words[w] =
            __byte_perm(__byte_perm(four[0], four[1], 0x0040), __byte_perm(four[4], four[5], 0x0040), 0x5410);
      }
      transpose_words(words, thread);
      const uint4 sixteen{__byte_perm(words[0], words[1], 0x5410), __byte_perm(words[2], words[3], 0x5410),
                          __byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x7632)};
      if (row + offset < group.rows && column + 8 * c < group.columns)
        __stcs(reinterpret_cast<uint4*>(target + offset), sixteen);
    }
  }
}

// Stores int32 sums as 64-bit integers in the first run, and adds them to the stored integers in later runs.
// A thread has pairs of adjacent rows.
template <int Sums>
__device__ void store_sums(const std::int32_t (&sums)[Sums], const GroupSums<long long>& group,
                           bool is_first_run, std::int64_t first_row, std::int64_t first_column, int thread) {
  const std::int64_t row = first_row + thread % 4 * 2;
  const std::int64_t column = first_column + thread / 32 * 16 + thread % 32 / 4;
  long long* target = group.data + column * group.rows + row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * group.rows) {
    if (column + 8 * c >= group.columns) continue;
#pragma unroll
    for (int i = 0; i < Sums / 4; ++i) {
      if (row + 8 * i >= group.rows) continue;
      auto* pair = reinterpret_cast<longlong2*>(target + 8 * i);
      longlong2 result{sums[4 * i + 2 * c], sums[4 * i + 2 * c + 1]};
      if (!is_first_run) {
        const longlong2 earlier = *pair;
        result.x += earlier.x;
        result.y += earlier.y;
      }
      __stcs(pair, result);
    }
  }
}

// Stores the accumulators of instructions I, I + 1 and so on.
template <class Config, int I = 0, class T>
__device__ void store_tile(const Int8Sums<Config>& sums, const GroupSums<T>& group, bool is_first_run,
                           const TileCoord& coord, int consumer, int thread) {
  if constexpr (I < Config::instructions) {
    constexpr Int8Tile tile = Config::tile;
    const int rank = block_rank_in_cluster();
    const std::int64_t row =
        std::int64_t{coord.row} * tile.rows() + (tile.shares_rows ? 0 : rank * tile.block_rows);
    const std::int64_t column = std::int64_t{coord.column} * tile.columns() +
                                (tile.shares_rows ? rank * tile.block_columns : 0) +
                                consumer * Config::columns + I * 64;
    store_sums(sums[I], group, is_first_run, row, column, thread);
    store_tile<Config, I + 1>(sums, group, is_first_run, coord, consumer, thread);
  }
}

// Replaces the sums by their residues.
template <class Config>
__device__ void reduce(Int8Sums<Config>& sums, const SumReduction& reduction) {
#pragma unroll
  for (auto& instruction_sums : sums) {
#pragma unroll
    for (std::int32_t& sum : instruction_sums) sum = static_cast<std::int32_t>(reduction(sum));
  }
}

// Multiplies the work tiles of the cluster. Residues stay in registers between runs and are stored after the
// last run. Integers are stored, or added to stored ones, after each run.
template <class Config>
__device__ void multiply_work_tiles(const Int8Params& params, Int8SharedStorage<Config>& shared,
                                    std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  const int thread = static_cast<int>(threadIdx.x) % warpgroup;
  Int8PipelineState<Config> pipeline(shared, tiles);
  WholeTileScheduler scheduler(params.schedule);
  WorkTile work_tile;
  Int8Sums<Config> sums;
  while (scheduler.next(cluster_index(), work_tile)) {
    const TileCoord coord = params.schedule.coord(work_tile);
    const int group = params.group(coord);
    const int k_blocks = params.k_blocks(group);
#pragma unroll 1
    for (int left = k_blocks; left > 0; left -= Config::longest_run) {
      const bool is_first_run = left == k_blocks;
      const int run = left < Config::longest_run ? left : Config::longest_run;
      const bool keeps_residues = Config::reduces && !is_first_run;
      multiply_k_blocks<Config>(sums, pipeline, consumer, run, keeps_residues);
      if constexpr (Config::reduces) {
        reduce<Config>(sums, SumReduction(params.moduli[group]));
      } else {
        store_tile<Config>(sums, GroupSums<long long>(params, group), is_first_run, coord, consumer, thread);
      }
    }
    if constexpr (Config::reduces) {
      constexpr bool is_first_run = true;  // nothing was stored before
      store_tile<Config>(sums, GroupSums<std::uint8_t>(params, group), is_first_run, coord, consumer, thread);
    }
  }
}

template <class Config>
__device__ void int8_gemm(const TensorMap& a, const TensorMap& b, const Int8Params& params) {
  extern __shared__ unsigned char memory[];
  __shared__ Int8SharedStorage<Config> shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  if (!holds(params.condition)) return;
  specialize_warpgroups<Config>(
      [&] {
        if (threadIdx.x == 0) load_slices<Config>(a, b, params, shared, tiles);
      },
      [&] { multiply_work_tiles<Config>(params, shared, tiles); });
}

}  // namespace kintsugi::core::cuda
