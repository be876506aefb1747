// FP32 products with conversion inside, by mma.sync, for GPUs from compute capability 8.0 on. A warp converts
// 32 rows of one operand and 16 or 32 of the other one for its k-blocks, which it loads into memory of its
// own; so warps meet only to add their sums.
#pragma once

#include "engines/cuda/gemm/block_tile.cuh"
#include "engines/cuda/ptx/mma.cuh"

namespace kintsugi::core::cuda {

// Tma: whether TMA loads aligned operands.
template <int Warps, bool Tma, bool RowsAlongK, bool ColumnsAlongK>
struct NarrowConfig {
  static constexpr bool has_tma = Tma;
  static constexpr int rows = narrow_rows;
  static constexpr int columns = narrow_columns;
  static constexpr bool rows_along_k = RowsAlongK;
  static constexpr bool columns_along_k = ColumnsAlongK;
  static constexpr int warps = Warps;
  static constexpr int threads = 32 * warps;
  static constexpr int fragments = columns / 8;  // of columns
  static constexpr int row_bytes = rows * block_depth * 4;
  static constexpr int column_bytes = ColumnsAlongK ? columns * block_depth * 4 : 32 * block_depth * 4;
  static constexpr int stage_bytes = row_bytes + column_bytes;
  static constexpr int stages = 1;
  static constexpr int slot_stride = rows + 1;
  static constexpr int slot_floats = columns * slot_stride;  // sums of a leaf, or of a block
  static_assert(warps * stages * stage_bytes + 2 * warps * slot_floats * 4 + 1024 ==
                narrow_shared_bytes(Warps, ColumnsAlongK));
};

template <class Config>
struct NarrowShared {
  Mbarrier full[Config::warps][Config::stages];
  VectorStatistics rows[Config::rows];
  VectorStatistics columns[Config::columns];
  OpenUnit<1> open;
  // Scales of a slot's vectors, if slots have the sums of single blocks.
  float row_scales[Config::warps][Config::rows];
  float column_scales[Config::warps][Config::columns];
  LevelSums levels[Config::rows * Config::columns];  // between rounds
};

template <class Config>
class NarrowWarp {
 public:
  __device__ NarrowWarp(const TensorMap& row_map, const TensorMap& column_map, const BlockParams& params,
                        NarrowShared<Config>& shared, std::uint32_t ring, const BlockOperand& row_operand,
                        const BlockOperand& column_operand, int2 begin, int row_item, int column_item,
                        int first_row, int first_column)
      : row_map_(row_map), column_map_(column_map), params_(params), row_operand_(row_operand),
        column_operand_(column_operand), barriers_(shared.full[threadIdx.x / 32]),
        ring_(ring + threadIdx.x / 32 * Config::stages * Config::stage_bytes), row_item_(row_item),
        column_item_(column_item), begin_(begin), first_row_(first_row), first_column_(first_column) {
    const int g = lane() / 4;
    const int t = lane() % 4;
    const int r = reversed(g);
    if constexpr (Config::rows_along_k) {
      row_offset_ = r * 128 + ((t ^ r) << 4);
    } else {
      row_offset_ = 2 * t * 128 + ((g ^ (2 * t)) << 4);
    }
  }

  __device__ static int lane() { return threadIdx.x % 32; }

  __device__ void load(int block, int stage) const {
    const std::uint32_t rows = ring_ + stage * Config::stage_bytes;
    const std::uint32_t columns = rows + Config::row_bytes;
    const int k = block * block_depth;
    if constexpr (Config::has_tma) {
      if (lane() == 0) load_by_tma(rows, columns, k, stage);
    }
    if (!by_tma(0)) copy<Config::rows_along_k>(0, row_operand_, rows, first_row_, k, Config::rows);
    if (!by_tma(1))
      copy<Config::columns_along_k>(1, column_operand_, columns, first_column_, k, Config::columns);
    commit_copies();
  }

  __device__ void await(int stage, unsigned parity) const {
    if constexpr (Config::has_tma) {
      if (by_tma(0) || by_tma(1)) barriers_[stage].wait(parity);
    }
    if (!(by_tma(0) && by_tma(1))) await_copies_but<Config::stages - 1>();
    __syncwarp();  // the wait may end at different times for the lanes, which exchange values next
  }

  // Elements of the block of fragment columns' vectors.
  __device__ void read_columns(int stage, float (&x)[Config::fragments][16]) const {
    const std::uint32_t base = ring_ + stage * Config::stage_bytes + Config::row_bytes;
    const int g = lane() / 4;
    const int t = lane() % 4;
    const int r = reversed(g);
    if constexpr (Config::columns_along_k && Config::rows_along_k) {
#pragma unroll
      for (int f = 0; f < Config::fragments; ++f)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 v = load4(base + f * 1024 + j / 2 * (Config::columns * 128) + r * 128 +
                                 ((t ^ r) << 4 ^ j % 2 * 64));
          x[f][4 * j] = v.x, x[f][4 * j + 1] = v.y, x[f][4 * j + 2] = v.z, x[f][4 * j + 3] = v.w;
        }
    } else if constexpr (Config::columns_along_k) {
#pragma unroll
      for (int f = 0; f < Config::fragments; ++f)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const std::uint32_t line = base + f * 1024 + j / 2 * (Config::columns * 128) + r * 128 + t % 2 * 8;
          const int chunk = 4 * (j % 2) + t / 2;
          const float2 v = load2(line + ((chunk ^ r) << 4));
          const float2 w = load2(line + (((chunk + 2) ^ r) << 4));
          x[f][4 * j] = v.x, x[f][4 * j + 1] = v.y, x[f][4 * j + 2] = w.x, x[f][4 * j + 3] = w.y;
        }
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = 16 * j + (Config::rows_along_k ? 4 * t + i : 2 * t + i % 2 + i / 2 * 8);
          if constexpr (Config::fragments == 4) {
            const float4 v = load4(base + swizzled(k, g * 16));
            x[0][4 * j + i] = v.x, x[1][4 * j + i] = v.y, x[2][4 * j + i] = v.z, x[3][4 * j + i] = v.w;
          } else {
            const float2 v = load2(base + swizzled(k, g * 8));
            x[0][4 * j + i] = v.x, x[1][4 * j + i] = v.y;
          }
        }
    }
  }

  // Elements of the thread's two rows of half m of the tile.
  __device__ void read_rows(int stage, int m, float (&x)[2][16]) const {
    const std::uint32_t base = ring_ + stage * Config::stage_bytes;
    if constexpr (Config::rows_along_k) {
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 v = load4(base + j / 2 * 4096 + (2 * m + h) * 1024 + (row_offset_ ^ j % 2 * 64));
          x[h][4 * j] = v.x, x[h][4 * j + 1] = v.y, x[h][4 * j + 2] = v.z, x[h][4 * j + 3] = v.w;
        }
    } else {
      // Line 16 j + 2 t + i % 2 + 8 (i / 2), chunk g.
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 v =
              load2(base + ((row_offset_ + i % 2 * 128) ^ i % 2 * 16) + (16 * j + i / 2 * 8) * 128 + m * 8);
          x[0][4 * j + i] = v.x, x[1][4 * j + i] = v.y;
        }
    }
  }

  // Row of the tile of the thread's accumulators of half m and row h of it, and column of fragment f.
  __device__ static int row(int m, int h) {
    const int g = lane() / 4;
    return Config::rows_along_k ? 16 * m + 8 * h + reversed(g) : 4 * g + 2 * m + h;
  }
  __device__ static int column_of(int g, int f) {
    return Config::columns_along_k ? 8 * f + reversed(g) : Config::fragments * g + f;
  }
  __device__ static int column(int f, int e) { return column_of(lane() % 4 * 2 + e, f); }

 private:
  const TensorMap& row_map_;
  const TensorMap& column_map_;
  const BlockParams& params_;
  const BlockOperand& row_operand_;
  const BlockOperand& column_operand_;
  Mbarrier* barriers_;
  std::uint32_t ring_;
  std::uint32_t row_offset_;
  int row_item_, column_item_;
  int2 begin_;  // of the region of C in the operands
  int first_row_, first_column_;

  __device__ bool by_tma(int side) const { return Config::has_tma && params_.sides[side].is_aligned != 0; }

  // Copies a k-block of the operand of a side without TMA.
  template <bool AlongK>
  __device__ void copy(int side, const BlockOperand& operand, std::uint32_t target, int vector, int k,
                       int vectors) const {
    const auto copy_half = [&](std::uint32_t to, int from, int lines) {
      if (!Config::has_tma && params_.sides[side].is_aligned != 0)
        copy_aligned_lines(operand, AlongK, to, vector, from, lines, 0, 1);
      else
        copy_lines(operand, AlongK, to, vector, from, lines, 0, 1);
    };
    if constexpr (AlongK) {
      copy_half(target, k, vectors);
      copy_half(target + vectors * 128, k + 32, vectors);
    } else {
      copy_half(target, k, block_depth);
    }
  }

  __device__ void load_by_tma(std::uint32_t rows, std::uint32_t columns, int k, int stage) const {
    const int bytes = (by_tma(0) ? Config::row_bytes : 0) + (by_tma(1) ? Config::column_bytes : 0);
    if (bytes > 0) barriers_[stage].arrive_expect_tx(bytes);
    if (by_tma(0)) {
      if constexpr (Config::rows_along_k) {
        tma_load(rows, row_map_, barriers_[stage], k, begin_.x + first_row_, row_item_);
        tma_load(rows + 4096, row_map_, barriers_[stage], k + 32, begin_.x + first_row_, row_item_);
      } else {
        tma_load(rows, row_map_, barriers_[stage], begin_.x + first_row_, k, row_item_);
      }
    }
    if (by_tma(1)) {
      if constexpr (Config::columns_along_k) {
        tma_load(columns, column_map_, barriers_[stage], k, begin_.y + first_column_, column_item_);
        tma_load(columns + Config::columns * 128, column_map_, barriers_[stage], k + 32,
                 begin_.y + first_column_, column_item_);
      } else {
        tma_load(columns, column_map_, barriers_[stage], begin_.y + first_column_, k, column_item_);
      }
    }
  }
};

// Sums of the halves of a k-block for all fragments of columns: low (A) x high (B), high x low, scaled down,
// high x high of the first half; high x high of the second half. Products of different fragments alternate,
// since those of one wait for each other.
template <int Fragments>
__device__ __forceinline__ void multiply_block(const SplitVector (&rows)[2],
                                               const SplitVector (&columns)[Fragments], bool swapped,
                                               float (&sums)[Fragments][2][4]) {
#pragma unroll
  for (int e = 0; e < 8 * Fragments; ++e) sums[e / 8][e / 4 % 2][e % 4] = 0;
  // Adds the products over 16 inner indices.
  const auto add = [&](int half, bool low_rows, bool low_column, int g) {
    const auto& x = low_rows ? rows[0].low : rows[0].high;
    const auto& y = low_rows ? rows[1].low : rows[1].high;
    const std::uint32_t a[4] = {x[2 * g], y[2 * g], x[2 * g + 1], y[2 * g + 1]};
#pragma unroll
    for (int f = 0; f < Fragments; ++f) {
      const auto& z = low_column ? columns[f].low : columns[f].high;
      const std::uint32_t b[2] = {z[2 * g], z[2 * g + 1]};
      mma_fp16(sums[f][half], a, b);
    }
  };
  if (!swapped) {
#pragma unroll
    for (int g = 0; g < 8; ++g) add(0, g < 4, g >= 4, g % 4);
  } else {
#pragma unroll
    for (int g = 0; g < 8; ++g) add(0, g >= 4, g < 4, g % 4);
  }
#pragma unroll
  for (int f = 0; f < Fragments; ++f) {
#pragma unroll
    for (float& sum : sums[f][0]) sum *= 1 / residual_scale;
  }
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    add(1, false, false, g + 2);
    add(0, false, false, g);
  }
}

// Adds statistics of threads whose lanes differ in the lowest two bits to those of the vector.
__device__ inline void add_to_vector(VectorStatistics& all, const ThreadStatistics& mine) {
  std::uint32_t zeros = mine.zeros;
  zeros += __shfl_xor_sync(~0U, zeros, 1);
  zeros += __shfl_xor_sync(~0U, zeros, 2);
  if (threadIdx.x % 4 != 0) return;
  atomicMax(&all.largest, mine.largest);
  if (zeros > 0) atomicAdd(&all.zeros, zeros);
}

template <class Config>
__device__ void multiply_narrow(const TensorMap& row_map, const TensorMap& column_map,
                                const BlockParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ NarrowShared<Config> shared;
  constexpr int elements = Config::rows * Config::columns;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const std::uint32_t ring = (shared_address(memory) + 1023) & ~1023U;
  const std::uint32_t slots = ring + Config::warps * Config::stages * Config::stage_bytes;
  const int item = blockIdx.y;
  const int tile = static_cast<int>(blockIdx.x);
  const int first_row = tile % params.row_tiles * Config::rows;
  const int first_column = tile / params.row_tiles * Config::columns;
  for (int i = threadIdx.x; i < Config::rows + Config::columns; i += Config::threads)
    (i < Config::rows ? shared.rows[i] : shared.columns[i - Config::rows]) = no_statistics();
  if (threadIdx.x < sizeof shared.open / 4) reinterpret_cast<std::uint32_t*>(&shared.open)[threadIdx.x] = 0;
  if constexpr (Config::has_tma) {
    if (lane == 0) {
      for (int stage = 0; stage < Config::stages; ++stage) shared.full[warp][stage].initialise(1);
      Mbarrier::fence_initialisation();
    }
  }
  launch_dependents();
  grid_dependency_wait();
  const BlockOperand row_operand = operand_of(params, 0);
  const BlockOperand column_operand = operand_of(params, 1);
  const NarrowWarp<Config> work(
      row_map, column_map, params, shared, ring, row_operand, column_operand,
      {params.sides[0].begin, params.sides[1].begin}, params.sides[0].item + item * params.sides[0].item_step,
      params.sides[1].item + item * params.sides[1].item_step, first_row, first_column);
  using Warp = NarrowWarp<Config>;
  __syncthreads();
  const Scalars<float> scalars(params.tile.scalars);
  const BlockResult c(params, item);
  if (threadIdx.x == 0) report_items(params, scalars.alpha);
  if (scalars.alpha == 0.0F) {
    scale_tile<Config::threads>(c, first_row, first_column, Config::rows, Config::columns, scalars.beta);
    return;
  }
  const bool apart = params.blocks <= Config::warps;  // every warp has one block
  const int unit = apart ? 1 : leaf_blocks;
  constexpr int round_units = Config::warps;
  const int units = static_cast<int>(divide_up(params.blocks, unit));
  // The warp's blocks: unit u, u + round_units, ...
  const auto next = [&](int block) {
    return block % unit == unit - 1 || block + 1 == params.blocks ? (block / unit + round_units) * unit
                                                                  : block + 1;
  };
  int loaded = warp * unit;
#pragma unroll
  for (int stage = 0; stage < Config::stages; ++stage) {
    if (loaded < params.blocks)
      work.load(loaded, stage);
    else
      commit_copies();
    loaded = next(loaded);
  }
  ThreadStatistics row_statistics[2][2];
  ThreadStatistics column_statistics[Config::fragments];
  int stage = 0;
  unsigned parity = 0;
#pragma unroll 1
  for (int round = 0; round < units; round += round_units) {
    const int mine = round + warp;
    float sums[2][Config::fragments][4] = {};
    const int end = min((mine + 1) * unit, params.blocks);
    const auto slot_of = [&](int parity_of_round) {
      return slots + (parity_of_round * Config::warps + warp) * Config::slot_floats * 4;
    };
    const std::uint32_t slot = slot_of(round / round_units & 1);
#pragma unroll 1
    for (int block = mine * unit; block < end; ++block) {
      work.await(stage, parity);
      SplitVector columns[Config::fragments];
      {
        float x[Config::fragments][16];
        work.read_columns(stage, x);
        split_vectors<1, 2>(
            x, column_statistics, [] {}, [&](int f, const SplitVector& split) { columns[f] = split; },
            [&](int f) -> VectorStatistics& { return shared.columns[Warp::column_of(lane / 4, f)]; });
      }
      float scales[Config::fragments][2];
#pragma unroll
      for (int f = 0; f < Config::fragments; ++f) {
        scales[f][0] = __shfl_sync(~0U, columns[f].weight, 8 * (lane % 4));
        scales[f][1] = __shfl_sync(~0U, columns[f].weight, 8 * (lane % 4) + 4);
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        SplitVector rows[2];
        {
          float x[2][16];
          work.read_rows(stage, m, x);
          split_vectors<1, 2>(
              x, row_statistics[m], [] {}, [&](int h, const SplitVector& split) { rows[h] = split; },
              [&](int h) -> VectorStatistics& { return shared.rows[Warp::row(m, h)]; });
        }
        if (m == 1) {
          __syncwarp();
          if (loaded < params.blocks)
            work.load(loaded, stage);
          else
            commit_copies();
          loaded = next(loaded);
        }
        const float row_scales[2] = {rows[0].weight, rows[1].weight};
        if (apart && lane % 4 == 0) {
          shared.row_scales[warp][Warp::row(m, 0)] = row_scales[0];
          shared.row_scales[warp][Warp::row(m, 1)] = row_scales[1];
        }
        float inside[Config::fragments][2][4];
        multiply_block(rows, columns, params.swapped != 0, inside);
#pragma unroll
        for (int f = 0; f < Config::fragments; ++f) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (apart) {
              sums[m][f][e] = inside[f][0][e];
              store1(slot_of(1) + (Warp::column(f, e % 2) * Config::slot_stride + Warp::row(m, e / 2)) * 4,
                     inside[f][1][e]);
            } else {
              const float weight = row_scales[e / 2] * scales[f][e % 2];
              sums[m][f][e] =
                  __fmaf_rn(inside[f][1][e], weight, __fmaf_rn(inside[f][0][e], weight, sums[m][f][e]));
            }
          }
        }
      }
      if (apart && lane < 4) {
#pragma unroll
        for (int f = 0; f < Config::fragments; ++f)
#pragma unroll
          for (int e = 0; e < 2; ++e) shared.column_scales[warp][Warp::column(f, e)] = scales[f][e];
      }
      if (++stage == Config::stages) stage = 0, parity ^= 1;
    }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int f = 0; f < Config::fragments; ++f)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          store1(slot + (Warp::column(f, e % 2) * Config::slot_stride + Warp::row(m, e / 2)) * 4,
                 sums[m][f][e]);
    if (round + round_units >= units) {
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) add_to_vector(shared.rows[Warp::row(m, h)], row_statistics[m][h]);
#pragma unroll
      for (int f = 0; f < Config::fragments; ++f)
        add_to_vector(shared.columns[Warp::column_of(lane / 4, f)], column_statistics[f]);
    }
    __syncthreads();
    const int round_end = min(units, round + round_units);
    const bool is_last = round_end == units;
#pragma unroll 1
    for (int e = threadIdx.x; e < elements; e += Config::threads) {
      const int row = e % Config::rows;
      const int column = e / Config::rows;
      const std::uint32_t offset = slots + (column * Config::slot_stride + row) * 4 +
                                   (round / round_units & 1) * Config::warps * Config::slot_floats * 4;
      LevelSums sums{};
      if (round > 0) sums = shared.levels[e];
      float leaf = 0;
#pragma unroll 4
      for (int unit = round; unit < round_end; ++unit) {
        const int w = unit - round;
        const std::uint32_t address = offset + w * Config::slot_floats * 4;
        const bool last = unit + 1 == units;
        if (!apart) {
          sums.add(load_shared(address), unit, last);
          continue;
        }
        const float weight = shared.row_scales[w][row] * shared.column_scales[w][column];
        leaf = __fmaf_rn(load_shared(address), weight, leaf);
        leaf = __fmaf_rn(load_shared(address + Config::warps * Config::slot_floats * 4), weight, leaf);
        if (unit % leaf_blocks != leaf_blocks - 1 && !last) continue;
        sums.add(leaf, unit / leaf_blocks, last);
        leaf = 0;
      }
      if (!is_last) {
        shared.levels[e] = sums;
        continue;
      }
      const std::int64_t i = first_row + row;
      const std::int64_t j = first_column + column;
      if (i >= c.rows || j >= c.columns) continue;
      if (accepts_block_sum(counts_of(shared.rows[row], params.blocks),
                            counts_of(shared.columns[column], params.blocks), sums.total, params.unit))
        *c.at(i, j) = finished(sums.total, block_sum_exponent, scalars, c.at(i, j));
      else
        shared.open.mark(row, column);
    }
  }
  __syncthreads();
  if (warp == 0) shared.open.gather();
  __syncthreads();
  const int open_elements = static_cast<int>(shared.open.elements);
  if (open_elements == 0) return;
  if (params.report != nullptr && threadIdx.x == 0) count(params.report->recomputed, open_elements);
  const std::uint32_t memory_of_warp = ring + warp * Config::stages * Config::stage_bytes;
  static_assert(open_sum_bytes <= Config::stages * Config::stage_bytes);
  // Few elements one by one; many of them from leaves of all, a leaf for each warp.
  if (open_elements <= shared.open.max_singly) {
    shared.open.compute_singly(0, Config::warps, first_row, first_column, row_operand, column_operand, c,
                               scalars, memory_of_warp);
    return;
  }
  using Piece = OpenPiece<Config::rows_along_k, Config::columns_along_k, 4, 4>;
  static_assert(Piece::rows == Config::rows && Piece::columns == Config::columns);
  const std::uint32_t columns_of_warp = memory_of_warp + Config::rows * half_block_depth * 4;
  const int leaves = static_cast<int>(divide_up(params.blocks, leaf_blocks));
  LevelSums levels[elements / Config::threads] = {};
#pragma unroll 1
  for (int round = 0; round < leaves; round += Config::warps) {
    if (round + warp < leaves) {
      float sums[4][4] = {};
      const std::int64_t begin = std::int64_t{round + warp} * block_leaf;
#pragma unroll 1
      for (std::int64_t p = begin; p < min(begin + block_leaf, row_operand.length); p += half_block_depth) {
        __syncwarp();
        copy_lines(row_operand, Config::rows_along_k, memory_of_warp, first_row, p, 32, 0, 1);
        copy_lines(column_operand, Config::columns_along_k, columns_of_warp, first_column, p,
                   Config::columns_along_k ? Config::columns : 32, 0, 1);
        commit_copies();
        await_copies_but<0>();
        __syncwarp();
        float half[4][4];
        Piece::sum_half(memory_of_warp, 0, columns_of_warp, 0, half);
#pragma unroll
        for (int e = 0; e < 16; ++e) sums[e / 4][e % 4] += half[e / 4][e % 4];
      }
#pragma unroll
      for (int e = 0; e < 16; ++e)
        store1(slots + (warp * Config::slot_floats + Piece::column(e % 4) * Config::slot_stride +
                        Piece::row(e / 4)) *
                           4,
               sums[e / 4][e % 4]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < elements / Config::threads; ++i) {
      const int e = threadIdx.x + i * Config::threads;
      const int place = e / Config::rows * Config::slot_stride + e % Config::rows;
#pragma unroll 1
      for (int leaf = round; leaf < min(round + Config::warps, leaves); ++leaf)
        levels[i].add(load_shared(slots + ((leaf - round) * Config::slot_floats + place) * 4), leaf,
                      leaf + 1 == leaves);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < elements / Config::threads; ++i) {
    const int row = (threadIdx.x + i * Config::threads) % Config::rows;
    const int column = (threadIdx.x + i * Config::threads) / Config::rows;
    if (!shared.open.is_open(row, column)) continue;
    float* const element = c.at(first_row + row, first_column + column);
    *element = finished(levels[i].total, 0, scalars, element);
  }
}

// Kernels of all layouts, whose names begin with `prefix`.
#define KINTSUGI_NARROW(name, warps, blocks_of_sm, tma, rows_along_k, columns_along_k)                     \
  extern "C" __global__ void __launch_bounds__(32 * (warps), blocks_of_sm)                                 \
      name(const __grid_constant__ TensorMap row_map, const __grid_constant__ TensorMap column_map,        \
           const __grid_constant__ BlockParams params) {                                                   \
    multiply_narrow<NarrowConfig<warps, tma, rows_along_k, columns_along_k>>(row_map, column_map, params); \
  }
#define KINTSUGI_NARROW_KERNELS(prefix, warps, blocks_of_sm, tma)     \
  KINTSUGI_NARROW(prefix##_kk, warps, blocks_of_sm, tma, true, true)  \
  KINTSUGI_NARROW(prefix##_kn, warps, blocks_of_sm, tma, true, false) \
  KINTSUGI_NARROW(prefix##_mk, warps, blocks_of_sm, tma, false, true) \
  KINTSUGI_NARROW(prefix##_mn, warps, blocks_of_sm, tma, false, false)

}  // namespace kintsugi::core::cuda
