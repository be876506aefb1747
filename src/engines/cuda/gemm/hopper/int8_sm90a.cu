// int8 GEMM for Hopper. One launch computes all accumulator groups of a schedule. The terms of a group are
// added in int32. Sums are stored as 64-bit integers, or are reduced in registers and stored as residues of
// one byte. The two thread blocks of a cluster share the slices of C's rows by multicast. In each thread
// block one thread loads tiles, and two warpgroups multiply tiles in turn. The k-blocks of a group are
// divided into runs that are so short that int32 holds the sum of each.
#include <cstdint>
#include <type_traits>

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/int8_sums.cuh"
#include "engines/cuda/gemm/int8_tiles.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"
#include "recombine/accumulators.hpp"

namespace kintsugi::core::cuda {

// Epilogue of the int8 GEMM kernels: sums are stored as 64-bit integers, or reduced and stored as residues.

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

// Barriers of the pipeline stages. `full`: the slices of a stage have arrived. `free`: a stage may be filled
// again.
struct Int8SharedStorage {
  Mbarrier full[Int8Tile::stages];
  Mbarrier free[Int8Tile::stages];  // counts the warpgroups, of both thread blocks, that multiplied the stage

  __device__ void initialise() {
    for (int stage = 0; stage < Int8Tile::stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(gemm_cluster_size);
    }
  }
};

// Pipeline state: stage index and mbarrier phase.
class Int8PipelineState {
 public:
  __device__ Int8PipelineState(Int8SharedStorage& shared, std::uint32_t tiles)
      : shared_(shared), tiles_(tiles) {}

  __device__ void advance() {
    if (++stage_ < Int8Tile::stages) return;
    stage_ = 0;
    parity_ ^= 1;
  }
  // Skips the k-blocks of the other warpgroup's tile.
  __device__ void advance(int k_blocks) {
    const auto next = static_cast<unsigned>(stage_ + k_blocks);
    parity_ ^= next / Int8Tile::stages % 2;
    stage_ = static_cast<int>(next % Int8Tile::stages);
  }
  __device__ int stage() const { return stage_; }
  __device__ std::uint32_t rows() const { return tiles_ + stage_ * Int8Tile::stage_bytes; }
  __device__ std::uint32_t columns() const { return rows() + Int8Tile::rows * Int8Tile::block_k; }
  __device__ Mbarrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_full() const { full().wait(parity_); }
  __device__ void wait_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Frees a stage that this warpgroup has multiplied, in both thread blocks.
  __device__ void release(int stage) const {
    const unsigned thread = threadIdx.x % warpgroup;
    if (thread < gemm_cluster_size) shared_.free[stage].arrive_remote(thread);
  }

 private:
  Int8SharedStorage& shared_;
  std::uint32_t tiles_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

// Tensor maps of the slices of A: of rows that are copied 64 at a time, and of the last 48 rows of narrow
// tiles. Integers use the first alone, which does not permute rows.
struct Int8RowMaps {
  const TensorMap& rows;
  const TensorMap& last_rows;
};

// Loads a thread block's half of the rows `row` to `row` + 64 Copies / 2 of C, to both thread blocks.
template <int Copies>
__device__ void load_permuted_rows(const Int8PipelineState& pipeline, const TensorMap& map, int k, int row,
                                   int slice) {
  using Rows = PermutedRows;
  constexpr int copies_of_rows = Rows::rows / Rows::copied_rows;
  const int first_copy = block_rank_in_cluster() * Copies;
#pragma unroll
  for (int i = 0; i < Copies; ++i) {
    const int copy = first_copy + i;
    const int first_row = row + copy / copies_of_rows * Rows::rows;
    tma_load_multicast(
        pipeline.rows() + copy * Rows::copied_rows * Int8Tile::block_k, map, pipeline.full(),
        BoxCoord{k, 0, first_row / Rows::rows_of_thread, copy % copies_of_rows * Rows::copied_pairs, slice},
        all_of_cluster);
  }
}

// Loads a k-block of the tile's rows of C. Each thread block loads one half, to both thread blocks.
template <class Config, bool IsNarrow>
__device__ void load_rows(const Int8PipelineState& pipeline, const Int8RowMaps& maps, int k,
                          const Int8TileRows& tile, int slice) {
  const int rank = block_rank_in_cluster();
  if constexpr (!Config::reduces) {
    constexpr int half = Int8Tile::copied_rows;
    tma_load_multicast(pipeline.rows() + rank * half * Int8Tile::block_k, maps.rows, pipeline.full(), k,
                       tile.first + rank * half, slice, all_of_cluster);
  } else if constexpr (IsNarrow) {
    using Last = LastPermutedRows;
    const int row = tile.first + Last::offset;
    load_permuted_rows<Last::offset / gemm_cluster_size / PermutedRows::copied_rows>(pipeline, maps.rows, k,
                                                                                     tile.first, slice);
    tma_load_multicast(pipeline.rows() + (Last::offset + rank * Last::copied_rows) * Int8Tile::block_k,
                       maps.last_rows, pipeline.full(),
                       BoxCoord{k, 0, row / Last::rows_of_thread,
                                row % Last::rows_of_thread / 2 + rank * Last::copied_pairs, slice},
                       all_of_cluster);
  } else {
    load_permuted_rows<Int8Tile::copied_rows / PermutedRows::copied_rows>(pipeline, maps.rows, k, tile.first,
                                                                          slice);
  }
}

// Loads all k-blocks of all tiles of the cluster. One thread of each thread block, the producer, must call
// it.
template <class Config>
__device__ void load_slices(const Int8RowMaps& a, const TensorMap& b, const Int8Params& params, int groups,
                            Int8SharedStorage& shared, std::uint32_t tiles) {
  Int8PipelineState pipeline(shared, tiles);
  for (Int8TileOrder order(params.schedule, groups, cluster_index()); order.has_tile(); order.advance()) {
    const TileCoord coord = order.coord();
    const Int8TileRows rows = params.tile_rows(coord.row);
    const int column = coord.column * Int8Tile::columns + block_rank_in_cluster() * Int8Tile::block_columns;
    const int group = order.group();
    for (int t = params.first_term[group]; t < params.first_term[group + 1]; ++t) {
      const Int8Term term = params.terms[t];
      const auto load = [&](const auto narrow, int bytes) {
#pragma unroll 1
        for (int k_block = 0; k_block < params.schedule.k_blocks; ++k_block, pipeline.advance()) {
          const int k = k_block * Int8Tile::block_k;
          pipeline.wait_free();
          pipeline.full().arrive_expect_tx(bytes);
          load_rows<Config, narrow.value>(pipeline, a, k, rows, term.a);
          tma_load(pipeline.columns(), b, pipeline.full(), k, column, term.b);
        }
      };
      if (Config::has_narrow_tiles && rows.is_narrow) {
        load(std::true_type{}, Int8Tile::narrow_stage_bytes);
      } else {
        load(std::false_type{}, Int8Tile::stage_bytes);
      }
    }
  }
}

// Issues the instructions of one k-block. If `keep` is true, the products are added to `sums`; else they
// begin new sums. `Rows` is the number of the tile's rows.
template <class Config, int Rows>
__device__ void multiply_k_block(Int8Sums<Config>& sums, const Int8PipelineState& pipeline, bool keep) {
  const MatrixDescriptor rows(pipeline.rows());
  const MatrixDescriptor columns(pipeline.columns());
  pipeline.wait_full();
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < Int8Tile::block_k / step_bytes; ++step) {
#pragma unroll
    for (int i = 0; i < Config::instructions; ++i)
      wgmma<Rows>(sums[i], columns + i * 64 * Int8Tile::block_k + step * step_bytes, rows + step * step_bytes,
                  keep || step > 0);
  }
  wgmma_commit_group();
}

// Multiplies `k_blocks` k-blocks; `keep` is that of multiply_k_block() for the first one. The instructions of
// a k-block are issued while those of the previous k-block run. Then the stage of the previous k-block is
// freed. Calls `issued` when all instructions have been issued.
template <class Config, int Rows, class Issued>
__device__ void multiply_rows(Int8Sums<Config>& sums, Int8PipelineState& pipeline, int k_blocks, bool keep,
                              const Issued& issued) {
  multiply_k_block<Config, Rows>(sums, pipeline, keep);
  int previous_stage = pipeline.stage();
  pipeline.advance();
#pragma unroll 1
  for (int left = k_blocks - 1; left > 0; --left, pipeline.advance()) {
    multiply_k_block<Config, Rows>(sums, pipeline, /*keep=*/true);
    wgmma_wait_group<1>();
    pipeline.release(previous_stage);
    previous_stage = pipeline.stage();
  }
  issued();
  wgmma_wait_group<0>();
#pragma unroll
  for (auto& instruction_sums : sums) warpgroup_fence_operand(instruction_sums);
  pipeline.release(previous_stage);
}

// Multiplies all runs of a tile but the last one and returns the number of k-blocks of that one. Residues
// stay in registers. Integers are stored, or added to stored ones, after each run.
template <class Config, int Rows>
__device__ int compute_earlier_runs(Int8Sums<Config>& sums, const Int8Params& params,
                                    Int8PipelineState& pipeline, const Int8Place& place, bool& is_first_run) {
  int left = params.k_blocks(place.group);
#pragma unroll 1
  for (; left > Config::longest_run; left -= Config::longest_run, is_first_run = false) {
    multiply_rows<Config, Rows>(sums, pipeline, Config::longest_run, Config::reduces && !is_first_run, [] {});
    if constexpr (Config::reduces) {
      reduce<Config>(sums, device_int32_reductions[params.moduli[place.group] - 2]);
    } else {
      store_integers_of_tile<Config>(sums, params, place, is_first_run);
    }
  }
  return left;
}

// Multiplies and stores a tile. Calls `issued` when all instructions have been issued.
template <class Config, int Rows, class Issued>
__device__ void compute_tile(const Int8Params& params, Int8PipelineState& pipeline, const Int8Place& place,
                             const Issued& issued) {
  Int8Sums<Config> sums;
  bool is_first_run = true;
  int last_run = params.k_blocks(place.group);
  if constexpr (!Config::has_one_run)
    last_run = compute_earlier_runs<Config, Rows>(sums, params, pipeline, place, is_first_run);
  multiply_rows<Config, Rows>(sums, pipeline, last_run, Config::reduces && !is_first_run, issued);
  if constexpr (Config::reduces) {
    store_residues_of_tile<Config, Rows>(sums, params, place);
  } else {
    store_integers_of_tile<Config>(sums, params, place, is_first_run);
  }
}

// Computes the cluster's tiles in turn with the other consumer warpgroup. A warpgroup begins to multiply when
// the other one has issued its last instruction. Its slices arrive after those of the other one, so it never
// waits for a stage whose previous phase is open.
template <class Config>
__device__ void compute_tiles(const Int8Params& params, int groups, Int8SharedStorage& shared,
                              std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  Int8PipelineState pipeline(shared, tiles);
  Int8TileOrder order(params.schedule, groups, cluster_index());
  if (consumer == 1) order_barrier_arrive(consumer);  // the first turn is that of warpgroup 0
  for (int turn = 0; order.has_tile(); turn ^= 1) {
    if (turn != consumer) {
      pipeline.advance(params.k_blocks(order.group()));
      order.advance();
      continue;
    }
    const Int8Place place(params, order.group(), order.coord());
    order.advance();
    order_barrier_wait(consumer);
    const auto issued = [&] {
      if (order.has_tile()) order_barrier_arrive(consumer);
    };
    if constexpr (Config::has_narrow_tiles) {
      if (place.is_narrow) {
        compute_tile<Config, Int8Tile::narrow_rows>(params, pipeline, place, issued);
        continue;
      }
    }
    compute_tile<Config, Int8Tile::rows>(params, pipeline, place, issued);
  }
}

template <class Config>
__device__ void int8_gemm(const Int8RowMaps& a, const TensorMap& b, const Int8Params& params) {
  extern __shared__ unsigned char memory[];
  __shared__ Int8SharedStorage shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  const int groups = selected_groups(params);
  if (groups == 0) return;
  specialize_warpgroups<Config>(
      [&] {
        if (threadIdx.x == 0) load_slices<Config>(a, b, params, groups, shared, tiles);
      },
      [&] { compute_tiles<Config>(params, groups, shared, tiles); });
}

// Kernels of ozaki2, int8x6, ozaki-int8 and products of magnitudes.

#define KINTSUGI_INT8(name, ...)                                                                      \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1)                                \
      __launch_bounds__(Int8Tile::threads, 1)                                                         \
          name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap last_rows_of_a, \
               const __grid_constant__ TensorMap b, const __grid_constant__ Int8Params params) {      \
    int8_gemm<Int8Config<__VA_ARGS__>>({a, last_rows_of_a}, b, params);                               \
  }
KINTSUGI_INT8(multiply_int8_residues, SumType::residue)
KINTSUGI_INT8(multiply_int8_residues_short, SumType::residue, SumRange::int25)
KINTSUGI_INT8(multiply_int8_integers, SumType::i64)
#undef KINTSUGI_INT8

}  // namespace kintsugi::core::cuda
