// Epilogue of the int8 GEMM kernels: sums are stored as 64-bit integers, or reduced and stored as residues.
#pragma once

#include <cstdint>

#include "arith/residue/sum_reduction.hpp"
#include "engines/cuda/gemm/int8/int8_tiles.hpp"
#include "engines/cuda/gemm/order_barriers.cuh"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "recombine/accumulators.hpp"

namespace kintsugi::core::cuda {

template <SumType Type, SumRange Range = SumRange::int32>
struct Int8Config {
  static constexpr bool reduces = Type == SumType::residue;  // true: sums are stored as residues
  static constexpr SumRange range = Range;                   // range of the sums
  static_assert(Int8Tile::threads == warpgroup * (1 + consumers));
  static constexpr int instructions = Int8Tile::block_columns / 64;  // instructions per 32 inner indices
  static constexpr int sums = Int8Tile::rows / 2;                    // sums per thread and instruction

  // Registers per consumer thread. With those of the producer they fill the SM's register file.
  static constexpr int consumer_registers = 232;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;

  // Number of k-blocks of every run except a group's last. int32 holds the sum of a run plus the residue of
  // earlier runs, which is smaller than one product can be.
  static constexpr int longest_run = static_cast<int>((int32_safe_products - 1) / Int8Tile::block_k);

  // True if a group's k-blocks are always one run: sums of 25 bits have at most 1023 products. With the loop
  // of runs ptxas orders the reduction worse: its stall counts add up to 1,754 cycles instead of about 1,000.
  static constexpr bool has_one_run = Range == SumRange::int25;

  // True if tiles may be narrow. Each height has code of its own, since branches within the reduction cost
  // more than narrow tiles gain. Sums of int25 have so few k-blocks that these gain nothing.
  static constexpr bool has_narrow_tiles = reduces && !has_one_run;
};

// Accumulators of a thread for each instruction.
template <class Config>
using Int8Sums = std::int32_t[Config::instructions][Config::sums];

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

// Place of a thread block's tile in the sums.
struct Int8Place {
  int group;
  bool is_narrow;
  std::int64_t row;
  std::int64_t column;

  __device__ Int8Place(const Int8Params& params, int tile_group, const TileCoord& coord)
      : group(tile_group), is_narrow(params.tile_rows(coord.row).is_narrow),
        row(params.tile_rows(coord.row).first), column(std::int64_t{coord.column} * Int8Tile::columns +
                                                       block_rank_in_cluster() * Int8Tile::block_columns) {}
};

// Tables of reductions in constant memory.
__constant__ const auto device_int32_reductions = int32_reductions;
__constant__ const auto device_int25_reductions = int25_reductions;

// Reduces a warpgroup's sums of all rows and 64 columns, and stores the residues, one byte each. A thread has
// 16 adjacent rows of every 64 (PermutedRows) of two columns, and 12 of the last 48 of a narrow tile
// (LastPermutedRows). All rows of narrow tiles exist.
template <int Rows, int Sums, class Reduction>
__device__ void store_residues(const std::int32_t (&sums)[Sums], const Reduction& reduction,
                               const GroupSums<std::uint8_t>& group, const Int8Place& place,
                               std::int64_t first_column, int thread) {
  constexpr int fewer_rows = PermutedRows::rows_of_thread - LastPermutedRows::rows_of_thread;
  const std::int64_t row = place.row + thread % 4 * PermutedRows::rows_of_thread;
  const std::int64_t column = first_column + thread / 32 * 16 + thread % 32 / 4;
  std::uint8_t* target = group.data + column * group.rows + row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * group.rows) {
#pragma unroll
    for (int offset = 0; offset < 2 * Sums; offset += PermutedRows::rows) {
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if (Rows == Int8Tile::narrow_rows && offset == LastPermutedRows::offset && w == 3) continue;
        const std::int32_t* four = sums + offset / 2 + 8 * w + 2 * c;
        words[w] = __byte_perm(__byte_perm(reduction(four[0]), reduction(four[1]), 0x0040),
                               __byte_perm(reduction(four[4]), reduction(four[5]), 0x0040), 0x5410);
      }
      if (Rows == Int8Tile::narrow_rows && offset == LastPermutedRows::offset) {
        auto* last = reinterpret_cast<std::uint32_t*>(target + offset - thread % 4 * fewer_rows);
#pragma unroll
        for (int w = 0; w < LastPermutedRows::rows_of_thread / 4; ++w)
          if (column + 8 * c < group.columns) __stcs(last + w, words[w]);
      } else if (row + offset < group.rows && column + 8 * c < group.columns) {
        __stcs(reinterpret_cast<uint4*>(target + offset), uint4{words[0], words[1], words[2], words[3]});
      }
    }
  }
}

// Stores int32 sums as 64-bit integers in the first run, and adds them to the stored integers in later runs.
// A thread has pairs of adjacent rows.
template <int Sums>
__device__ void store_integers(const std::int32_t (&sums)[Sums], bool is_first_run,
                               const GroupSums<long long>& group, std::int64_t first_row,
                               std::int64_t first_column, int thread) {
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

// Calls store(accumulators, first column) for instructions I, I + 1 and so on of a tile.
template <class Config, int I = 0, class Store>
__device__ void store_tile(const Int8Sums<Config>& sums, std::int64_t first_column, const Store& store) {
  if constexpr (I < Config::instructions) {
    store(sums[I], first_column + 64 * I);
    store_tile<Config, I + 1>(sums, first_column, store);
  }
}

// Replaces the sums by their residues.
template <class Config>
__device__ void reduce(Int8Sums<Config>& sums, const SumReduction<SumRange::int32>& reduction) {
#pragma unroll
  for (auto& instruction_sums : sums) {
#pragma unroll
    for (std::int32_t& sum : instruction_sums) sum = static_cast<std::int32_t>(reduction(sum) & 0xffU);
  }
}

// Reduces the sums of a tile and stores the residues.
template <class Config, int Rows>
__device__ void store_residues_of_tile(const Int8Sums<Config>& sums, const Int8Params& params,
                                       const Int8Place& place) {
  const int thread = static_cast<int>(threadIdx.x) % warpgroup;
  const GroupSums<std::uint8_t> target(params, place.group);
  const std::uint32_t modulus = params.moduli[place.group];
  const auto store_by = [&](const auto& reduction) {
    store_tile<Config>(sums, place.column, [&](const auto& instruction_sums, std::int64_t first_column) {
      store_residues<Rows>(instruction_sums, reduction, target, place, first_column, thread);
    });
  };
  if constexpr (Config::range == SumRange::int25) {
    if (reduces_int25(modulus)) {
      store_by(device_int25_reductions[modulus - 2]);
      return;
    }
  }
  store_by(device_int32_reductions[modulus - 2]);
}

// Stores the sums of a run of a tile, or adds them to stored ones.
template <class Config>
__device__ void store_integers_of_tile(const Int8Sums<Config>& sums, const Int8Params& params,
                                       const Int8Place& place, bool is_first_run) {
  const int thread = static_cast<int>(threadIdx.x) % warpgroup;
  const GroupSums<long long> target(params, place.group);
  store_tile<Config>(sums, place.column, [&](const auto& instruction_sums, std::int64_t first_column) {
    store_integers(instruction_sums, is_first_run, target, place.row, first_column, thread);
  });
}

}  // namespace kintsugi::core::cuda
