// FP32 products with conversion inside, by wgmma. Two consumer warpgroups convert 64 rows each in registers;
// a third warpgroup converts the columns into shared memory.
#pragma once

#include "engines/cuda/gemm/block_tile.cuh"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

template <int Columns, bool RowsAlongK, bool ColumnsAlongK>
struct WideConfig {
  static constexpr int rows = wide_rows;
  static constexpr int columns = Columns;
  static constexpr bool rows_along_k = RowsAlongK;
  static constexpr bool columns_along_k = ColumnsAlongK;
  static constexpr int consumers = 2;
  static constexpr int threads = wide_threads;
  static constexpr int stages = 2;  // of converted columns
  static constexpr int buffers = wide_buffers(Columns);
  static constexpr int row_bytes = 64 * block_depth * 4;  // of a consumer
  static constexpr int column_bytes = Columns * block_depth * 4;
  static constexpr int slice_bytes = Columns * block_depth * 2;
  static constexpr int tile_bytes = rows * Columns * 4;
  // Slices of the columns, then FP32 elements of rows and columns; sums of the tile replace them.
  static constexpr int ring_bytes =
      stages * 2 * slice_bytes + buffers * (consumers * row_bytes + column_bytes);
  static_assert(ring_bytes + tile_bytes + 1024 <= wide_shared_bytes(Columns));
  static_assert(threads == (consumers + 1) * 128);
  static constexpr int halves = Columns / 64;
  using Open = OpenUnit<rows / 32>;
  static_assert(ring_bytes >= tile_bytes);
};

template <class Config>
struct WideShared {
  Mbarrier rows_full[Config::consumers][Config::buffers];
  Mbarrier columns_full[Config::buffers];
  Mbarrier slices_full[Config::stages];
  Mbarrier slices_free[Config::stages];
  // The tile's rows come first, then its columns.
  VectorStatistics vectors[Config::rows + Config::columns];
  QuickTest quick[Config::rows + Config::columns];
  float weights[Config::stages][Config::columns];
  typename Config::Open open[Config::columns / Config::Open::columns];
  std::uint32_t has_open;
  int corner[2];                         // of the tile in the region of C
  std::uint32_t odd[max_block_cluster];  // 1: a thread block of the cluster has a vector that is not simple
  unsigned last;
};

// Loads a k-block of `vectors` vectors, from `vector` of the operand's region on. Side 0 has the tile's rows.
template <bool AlongK>
__device__ __forceinline__ void load_by_tma(const TensorMap& map, const BlockSide& side, Mbarrier& full,
                                            std::uint32_t target, int vectors, int vector, int k) {
  full.arrive_expect_tx(vectors * block_depth * 4);
  const int item = side.item + static_cast<int>(blockIdx.y) * side.item_step;
  if constexpr (AlongK) {
    tma_load(target, map, full, k, side.begin + vector, item);
    tma_load(target + vectors * 128, map, full, k + 32, side.begin + vector, item);
  } else {
    for (int v = 0; v < vectors; v += 32)
      tma_load(target + v * 256, map, full, side.begin + vector + v, k, item);
  }
}

// load_by_tma() by all threads of a warpgroup without TMA.
template <bool AlongK>
__device__ __forceinline__ void load_by_copies(const BlockParams& params, int side, Mbarrier& full,
                                               std::uint32_t target, int vectors, int vector, int k) {
  const BlockOperand operand = operand_of(params, side);
  const int warp = threadIdx.x / 32 % 4;
  asm volatile("" : "+r"(vector));  // so that no register keeps addresses between k-blocks
  if constexpr (AlongK) {
    copy_lines(operand, true, target, vector, k, vectors, warp, 4);
    copy_lines(operand, true, target + vectors * 128, vector, k + 32, vectors, warp, 4);
  } else {
    for (int v = 0; v < vectors; v += 32)
      copy_lines(operand, false, target + v * 256, vector + v, k, block_depth, warp, 4);
  }
  full.arrive_after_copies();
}

// Slices of a consumer's rows in registers: operand A of wgmma.
struct RowSlices {
  SplitVector rows[2];

  __device__ void fragment(bool low, int g, std::uint32_t (&a)[4]) const {
    const auto& x = low ? rows[0].low : rows[0].high;
    const auto& y = low ? rows[1].low : rows[1].high;
    a[0] = x[2 * g], a[1] = y[2 * g], a[2] = x[2 * g + 1], a[3] = y[2 * g + 1];
  }
};

// Stores 16 consecutive elements of a column's slices, group g of its k-block, in the order of the rows'
// fragments.
template <bool RowsAlongK>
__device__ __forceinline__ void store_group(std::uint32_t slice, int column, int g,
                                            const std::uint32_t (&words)[8]) {
  const std::uint32_t first = slice + swizzled(column, 32 * g);
  const std::uint32_t second = slice + swizzled(column, 32 * g + 16);
  if constexpr (RowsAlongK) {
    store4(first, words[0], words[2], words[4], words[6]);
    store4(second, words[1], words[3], words[5], words[7]);
  } else {
    store4(first, words[0], words[1], words[2], words[3]);
    store4(second, words[4], words[5], words[6], words[7]);
  }
}

// The converter's work on a k-block: reads the FP32 elements of the columns, writes slices and weights.
template <class Config>
struct ColumnConverter {
  static constexpr int units = Config::columns / 32;  // groups of eight columns of a warp, along k
  static constexpr int length = block_depth * Config::columns / 128;  // elements of a thread, along columns
  static constexpr int vectors = Config::columns_along_k ? units : 1;
  ThreadStatistics statistics[vectors];

  __device__ static int thread() { return threadIdx.x % 128; }
  // Column of the thread's v-th vector.
  __device__ static int column(int v) {
    return Config::columns_along_k
               ? 8 * (thread() / 32 + 4 * v) + thread() % 8
               : thread() / 32 * (Config::columns / 4) + thread() % 32 % (Config::columns / 4);
  }

  // Calls begin_store() before it writes, and end_load() when it has read all elements.
  template <class BeginStore, class EndLoad>
  __device__ __forceinline__ void convert(std::uint32_t source, std::uint32_t slices, float* weights,
                                          VectorStatistics* all, const BeginStore& begin_store,
                                          const EndLoad& end_load) {
    if constexpr (Config::columns_along_k) {
      const int g = thread() % 32 / 8;  // group of 16 elements
#pragma unroll
      for (int first = 0; first < units; first += 2) {
        float x[2][16];
#pragma unroll
        for (int v = 0; v < 2; ++v)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float4 four = load4(source + g / 2 * (Config::columns * 128) +
                                      swizzled(column(first + v), g % 2 * 64 + 16 * i));
            x[v][4 * i] = four.x, x[v][4 * i + 1] = four.y, x[v][4 * i + 2] = four.z,
                     x[v][4 * i + 3] = four.w;
          }
        ThreadStatistics pair[2] = {statistics[first], statistics[first + 1]};
        split_vectors<8, 16>(
            x, pair,
            [&] {
              if (first + 2 == units) end_load();
              if (first == 0) begin_store();
            },
            [&](int v, const SplitVector& split) {
              store_group<Config::rows_along_k>(slices, column(first + v), g, split.high);
              store_group<Config::rows_along_k>(slices + Config::slice_bytes, column(first + v), g,
                                                split.low);
              if (g == 0) weights[column(first + v)] = split.weight;
            },
            [&](int v) -> VectorStatistics& { return all[column(first + v)]; });
        statistics[first] = pair[0], statistics[first + 1] = pair[1];
      }
    } else {
      constexpr int groups = length / 16;
      const int c = column(0);
      const int part = length == block_depth ? 0 : thread() % 32 / 16;
      const std::uint32_t lines = source + c / 32 * (block_depth * 128);
      const auto read = [&](int g, float(&x)[16]) {
#pragma unroll
        for (int i = 0; i < 16; ++i)
          x[i] = load_element(lines + swizzled(part * length + 16 * g + i, c % 32 * 4));
      };
      float largest = 0;
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        float x[16];
        read(g, x);
        largest = largest_magnitude(largest, largest_of(x));
      }
      if constexpr (length < block_depth)
        largest = largest_magnitude(largest, __shfl_xor_sync(~0U, largest, 16));
      const BlockScale scale(largest);
      statistics[0].largest = max(statistics[0].largest, scale.field);
      begin_store();
      if (part == 0) weights[c] = scale.weight;
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        float x[16];
        read(g, x);
        SplitVector split;
        split_elements(x, scale, split);
        store_group<Config::rows_along_k>(slices, c, part * groups + g, split.high);
        store_group<Config::rows_along_k>(slices + Config::slice_bytes, c, part * groups + g, split.low);
        if (g + 1 == groups) end_load();
        if (may_lose(split.high)) [[unlikely]]
          count_elements(x, largest, part == 0 && g == 0, statistics[0], all[c]);
      }
    }
  }

  // Adds the thread's statistics to `all`; true if they are clean.
  __device__ bool finish(VectorStatistics* all) const {
    bool clean = true;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      if (statistics[v].zeros > 0) atomicAdd(&all[column(v)].zeros, statistics[v].zeros);
      atomicMax(&all[column(v)].largest, statistics[v].largest);
      clean = clean && statistics[v].is_clean();
    }
    return clean;
  }

  __device__ static float load_element(std::uint32_t address) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
  }
};

// Row of the tile of a consumer thread's accumulators: the first or second one of a fragment.
template <class Config>
__device__ __forceinline__ int row_of_sum(int thread, int h) {
  const int g = thread % 32 / 4;
  return thread / 32 * 16 + (Config::rows_along_k ? reversed(g) + 8 * h : 2 * g + h);
}

// Reads a consumer thread's FP32 elements of a k-block and splits them. Calls have_read() when it has read
// all.
template <class Config, class HaveRead>
__device__ __forceinline__ void convert_rows(std::uint32_t elements, ThreadStatistics (&statistics)[2],
                                             RowSlices& rows, VectorStatistics* all,
                                             const HaveRead& have_read) {
  const int warp = threadIdx.x / 32 % 4;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  float x[2][16];
  if constexpr (Config::rows_along_k) {
    const int r = reversed(g);
    const std::uint32_t line = elements + (16 * warp + r) * 128;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float4 v = load4(line + h * 1024 + j / 2 * 8192 + (((t ^ r) << 4) ^ (j % 2 * 64)));
        x[h][4 * j] = v.x, x[h][4 * j + 1] = v.y, x[h][4 * j + 2] = v.z, x[h][4 * j + 3] = v.w;
      }
  } else {
    const std::uint32_t box = elements + warp / 2 * 8192;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int line = 16 * j + 2 * t + i % 2 + i / 2 * 8;
        const float2 v = load2(box + swizzled(line, warp % 2 * 64 + g * 8));
        x[0][4 * j + i] = v.x, x[1][4 * j + i] = v.y;
      }
  }
  split_vectors<1, 2>(
      x, statistics, have_read, [&](int h, const SplitVector& split) { rows.rows[h] = split; },
      [&](int h) -> VectorStatistics& { return all[row_of_sum<Config>(threadIdx.x, h)]; });
}

// Issues the products of a k-block and half of the columns, waits for them and adds them to `acc`.
template <class Config>
__device__ __forceinline__ void multiply_half(const RowSlices& rows, std::uint32_t slices, int half,
                                              bool swapped, const float* weights, float* acc) {
  const MatrixDescriptor high(slices + half * 64 * 128);
  const MatrixDescriptor low(slices + Config::slice_bytes + half * 64 * 128);
  float first[32], second[32];
  std::uint32_t a[4];
  wgmma_fence();
#pragma unroll
  for (int g = 2; g < 4; ++g) {
    rows.fragment(false, g, a);
    wgmma<FormatId::fp16, 64>(second, a, high + g * step_bytes, g > 2);
  }
  if (!swapped) {
#pragma unroll
    for (int g = 0; g < 8; ++g) {
      rows.fragment(g < 4, g % 4, a);
      wgmma<FormatId::fp16, 64>(first, a, (g < 4 ? high : low) + g % 4 * step_bytes, g > 0);
    }
  } else {
#pragma unroll
    for (int g = 0; g < 8; ++g) {
      rows.fragment(g >= 4, g % 4, a);
      wgmma<FormatId::fp16, 64>(first, a, (g < 4 ? low : high) + g % 4 * step_bytes, g > 0);
    }
  }
  wgmma_commit_group();
  wgmma_wait_group<0>();
  warpgroup_fence_operand(first);
  warpgroup_fence_operand(second);
#pragma unroll
  for (float& sum : first) sum *= 1 / residual_scale;
  warpgroup_fence_operand(first);
  wgmma_fence();
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    rows.fragment(false, g, a);
    wgmma<FormatId::fp16, 64>(first, a, high + g * step_bytes, true);
  }
  wgmma_commit_group();
  wgmma_wait_group<0>();
  warpgroup_fence_operand(first);
#pragma unroll
  for (int f = 0; f < 8; ++f) {
    const float2 column = load2(shared_address(weights + 64 * half + 8 * f + threadIdx.x % 4 * 2));
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float weight = rows.rows[e / 2].weight * (e % 2 == 0 ? column.x : column.y);
      float& sum = acc[32 * half + 4 * f + e];
      sum = __fmaf_rn(second[4 * f + e], weight, __fmaf_rn(first[4 * f + e], weight, sum));
    }
  }
}

// The leaves of a tile that a thread block computes.
class LeafRun {
 public:
  int first;
  int end;
  int leaves;  // of all of k
  int pieces;  // of which the tile's sums are added up in the end: groups, or single leaves

  __device__ LeafRun(const BlockParams& params, int split) {
    leaves = static_cast<int>(divide_up(params.blocks, leaf_blocks));
    first = split * params.leaves;
    end = min(first + params.leaves, leaves);
    const bool groups = params.splits == 1 || params.leaves % group_leaves == 0;
    pieces = params.splits == 1 ? 1 : groups ? static_cast<int>(divide_up(leaves, group_leaves)) : leaves;
    flags_ = (groups ? 1 : 0) + (params.splits > 1 && cluster_size() == 1 ? 2 : 0) +
             (params.splits == 1 && leaves > group_leaves ? 4 : 0);
    asm volatile("" : "+r"(flags_));  // predicates would be spilled
  }
  __device__ bool pieces_are_groups() const { return (flags_ & 1) != 0; }
  // The thread blocks of the tile pass pieces through memory.
  __device__ bool in_memory() const { return (flags_ & 2) != 0; }
  // The thread block has several groups to itself.
  __device__ bool keeps_groups() const { return (flags_ & 4) != 0; }

 private:
  int flags_;
};

// Pieces of a tile in memory.
template <class Config>
__device__ __forceinline__ float4* pieces_of(const BlockParams& params, const LeafRun& run, int item,
                                             int tile) {
  constexpr int elements = Config::rows * Config::columns;
  const std::int64_t index = static_cast<std::int64_t>(item) * params.row_tiles * params.column_tiles + tile;
  return reinterpret_cast<float4*>(params.partial_sums +
                                   index * (run.keeps_groups() ? 2 : run.pieces) * elements);
}

// Columns of the tile that a thread block of a cluster finishes, in units of 16: those of an OpenUnit, and
// two fragments of accumulators.
struct OwnedUnits {
  int first;
  int end;

  template <class Config>
  __device__ static OwnedUnits of(int rank, int ranks) {
    constexpr int units = Config::columns / 16;
    return {static_cast<int>(divide_up(rank * units, ranks)),
            static_cast<int>(divide_up((rank + 1) * units, ranks))};
  }
  __device__ bool has(int unit) const { return first <= unit && unit < end; }
};

template <class Config>
__device__ __forceinline__ void mark_open(WideShared<Config>& shared, int row, int column) {
  shared.open[column / Config::Open::columns].mark(row, column % Config::Open::columns);
  shared.has_open = 1;
}

// Computes all sums of `Units` units of the tile, from `first_unit` on, in FP32 and stores the open ones of
// those whose bits are in `stored`. Four warps add, the others load. `ring`: memory of wide_open_bytes.
template <class Config, int Units>
__device__ __forceinline__ void compute_units(const BlockParams& params, const WideShared<Config>& shared,
                                              int first_unit, std::uint32_t stored, std::uint32_t ring) {
  using Piece =
      OpenPiece<Config::rows_along_k, Config::columns_along_k, Units == 1 ? 4 : 8, Units == 4 ? 8 : 4>;
  constexpr int stages = 3;
  constexpr int adders = 4;  // warps
  constexpr int loaders = Config::threads / 32 - adders;
  constexpr int warp_rows = Config::rows / Piece::rows;
  constexpr int unit_columns = Config::Open::columns;
  constexpr int loaded_columns = Units == 1 && !Config::columns_along_k ? 32 : Units * unit_columns;
  constexpr int row_bytes = Config::rows * half_block_depth * 4;
  constexpr int stage_bytes = row_bytes + loaded_columns * half_block_depth * 4;
  constexpr int elements = Piece::rows * Piece::columns / 32;  // of a lane
  constexpr int level_bytes = adders * 32 * elements * 4;
  static_assert(warp_rows * (Units * unit_columns / Piece::columns) == adders);
  static_assert(stages * stage_bytes + 4 * level_bytes <= wide_open_bytes);
  const int warp = threadIdx.x / 32;
  const int halves = static_cast<int>(divide_up(params.tile.a.matrix.columns, half_block_depth));
  // Sums of leaf, group, segment and all; four elements of a lane lie together.
  const std::uint32_t levels = ring + stages * stage_bytes + threadIdx.x * 16;
  const int row_of_warp = warp % warp_rows * Piece::rows;
  const int column_of_warp = warp / warp_rows * Piece::columns;
  __syncthreads();
  if (warp < adders) {
#pragma unroll 1
    for (int i = 0; i < elements; ++i) store4(levels + i * (adders * 32 * 16), 0, 0, 0, 0);
  }
#pragma unroll 1
  for (int half = 1 - stages; half < halves; ++half) {
    if (warp >= adders) await_copies_but<stages - 2>();
    __syncthreads();
    if (warp >= adders) {
      const int next = half + stages - 1;
      const std::uint32_t target = ring + next % stages * stage_bytes;
      const std::int64_t p = std::int64_t{next} * half_block_depth;
      const BlockParams* again = &params;
      asm volatile("" : "+l"(again));  // so that no register keeps addresses between half blocks
      const auto copy = [&](int side, bool along_k, std::uint32_t to, int vector, int lines) {
        const BlockOperand operand = operand_of(*again, side);
        if (again->sides[side].is_aligned != 0)
          copy_aligned_lines(operand, along_k, to, vector, p, lines, warp - adders, loaders);
        else
          copy_lines(operand, along_k, to, vector, p, lines, warp - adders, loaders);
      };
      // Boxes of 32 vectors, or all vectors along k at once.
      constexpr int row_step = Config::rows_along_k ? Config::rows : 32;
      constexpr int column_step = Config::columns_along_k ? loaded_columns : 32;
      const int column = shared.corner[1] + first_unit * unit_columns;
      if (next < halves) {
#pragma unroll 1
        for (int v = 0; v < Config::rows; v += row_step)
          copy(0, Config::rows_along_k, target + v * 128, shared.corner[0] + v,
               Config::rows_along_k ? row_step : 32);
#pragma unroll 1
        for (int v = 0; v < loaded_columns; v += column_step)
          copy(1, Config::columns_along_k, target + row_bytes + v * 128, column + v,
               Config::columns_along_k ? column_step : 32);
      }
      commit_copies();
      continue;
    }
    if (half < 0) continue;
    const std::uint32_t memory = ring + half % stages * stage_bytes;
    float sums[elements / Piece::y_elements][Piece::y_elements];
    Piece::sum_half(memory, row_of_warp, memory + row_bytes, column_of_warp, sums);
#pragma unroll
    for (int i = 0; i < elements; i += 4) {
      const std::uint32_t place = levels + i / 4 * (adders * 32 * 16);
      const float4 four = load4(place);
      const float* mine = &sums[i / Piece::y_elements][i % Piece::y_elements];
      store4(place, __float_as_uint(four.x + mine[0]), __float_as_uint(four.y + mine[1]),
             __float_as_uint(four.z + mine[2]), __float_as_uint(four.w + mine[3]));
    }
    const bool last = half + 1 == halves;
    const int leaf = half / leaf_halves;
    if (half % leaf_halves != leaf_halves - 1 && !last) continue;
    const int ended = leaf % group_leaves != group_leaves - 1 && !last                      ? 1
                      : leaf / group_leaves % segment_groups != segment_groups - 1 && !last ? 2
                                                                                            : 3;
#pragma unroll 1
    for (int level = 0; level < ended; ++level) {
#pragma unroll 1
      for (int i = 0; i < elements / 4; ++i) {
        const std::uint32_t place = levels + level * level_bytes + i * (adders * 32 * 16);
        const float4 below = load4(place);
        const float4 above = load4(place + level_bytes);
        store4(place, 0, 0, 0, 0);
        store4(place + level_bytes, __float_as_uint(above.x + below.x), __float_as_uint(above.y + below.y),
               __float_as_uint(above.z + below.z), __float_as_uint(above.w + below.w));
      }
    }
  }
  if (warp >= adders) return;
  const Scalars<float> scalars(params.tile.scalars);
  const bool is_plain = scalars.alpha == 1.0F && scalars.beta == 0.0F;
  const BlockResult c(params, blockIdx.y);
#pragma unroll 1
  for (int e = 0; e < elements; ++e) {
    const int x = row_of_warp + Piece::row(e / Piece::y_elements);
    const int y = column_of_warp + Piece::column(e % Piece::y_elements);
    const int unit = first_unit + y / unit_columns;
    if ((stored >> unit & 1U) == 0 || !shared.open[unit].is_open(x, y % unit_columns)) continue;
    float* const element = c.at(shared.corner[0] + x, shared.corner[1] + first_unit * unit_columns + y);
    const float sum = load_shared(levels + 3 * level_bytes + e / 4 * (adders * 32 * 16) + e % 4 * 4);
    *element = is_plain ? sum + 0.0F : finished(sum, 0, scalars, element);
  }
}

// Computes the open elements of a thread block's columns: few of a unit one by one, else all sums of the unit
// in FP32. `ring`: memory for both.
template <class Config>
__device__ __forceinline__ void compute_open(const BlockParams& params, WideShared<Config>& shared,
                                             const OwnedUnits& owned, std::uint32_t ring) {
  using Open = typename Config::Open;
  constexpr int warps = Config::threads / 32;
  static_assert(warps * open_sum_bytes <= wide_open_bytes);
  if (const int unit = owned.first + static_cast<int>(threadIdx.x / 32); unit < owned.end)
    shared.open[unit].gather();
  __syncthreads();
  std::uint32_t whole = 0;  // units that are computed as a whole
  int elements = 0;
  int singles = 0;
#pragma unroll 1
  for (int unit = owned.first; unit < owned.end; ++unit) {
    const int of_unit = static_cast<int>(shared.open[unit].elements);
    elements += of_unit;
    if (of_unit > Open::max_singly) {
      whole |= 1U << unit;
    } else if (of_unit > 0) {
      shared.open[unit].compute_singly(
          singles, warps, shared.corner[0], shared.corner[1] + unit * Open::columns, operand_of(params, 0),
          operand_of(params, 1), BlockResult(params, blockIdx.y), Scalars<float>(params.tile.scalars),
          ring + threadIdx.x / 32 * open_sum_bytes);
      singles += of_unit;
    }
  }
  if (params.report != nullptr && threadIdx.x == 0) count(params.report->recomputed, elements);
    // At most four neighboring units at once.
#pragma unroll 1
  while (whole != 0) {
    const int unit = __ffs(whole) - 1;
    const std::uint32_t stored = whole & 0xfU << unit;
    const std::uint32_t next = stored >> unit;
    whole ^= stored;
    const auto compute = [&]<int Units>() {
      constexpr int last = Config::columns / Open::columns - Units;
      compute_units<Config, Units>(params, shared, min(unit, last), stored, ring);
    };
    if (next == 1)
      compute.template operator()<1>();
    else if (next <= 3)
      compute.template operator()<2>();
    else
      compute.template operator()<4>();
  }
}

// True in one of the thread blocks of a tile that pass sums through memory: the one that ends last, which
// also gets the statistics of all.
template <class Config>
__device__ __forceinline__ bool is_last_of_tile(const BlockParams& params, WideShared<Config>& shared,
                                                int item, int tile, int split) {
  constexpr int words = (Config::rows + Config::columns) * sizeof(VectorStatistics) / 4;
  const std::int64_t index = static_cast<std::int64_t>(item) * params.row_tiles * params.column_tiles + tile;
  std::uint32_t* stored = reinterpret_cast<std::uint32_t*>(params.statistics) + index * params.splits * words;
  const auto* mine = reinterpret_cast<const std::uint32_t*>(shared.vectors);
  for (int i = threadIdx.x; i < words; i += Config::threads) __stcg(stored + split * words + i, mine[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t* counter = params.counters + index;
    shared.last = atomicAdd(counter, 1U) == static_cast<unsigned>(params.splits - 1) ? 1 : 0;
    if (shared.last != 0) *counter = 0;
  }
  __syncthreads();
  if (shared.last == 0) return false;
  __threadfence();
  for (int v = threadIdx.x; v < Config::rows + Config::columns; v += Config::threads) {
    VectorStatistics all = no_statistics();
    for (int s = 0; s < params.splits; ++s) {
      const std::uint32_t* w = stored + s * words + v * 5;
      add(all, {__ldcg(w), __ldcg(w + 1), __ldcg(w + 2), __ldcg(w + 3), __ldcg(w + 4)});
    }
    shared.vectors[v] = all;
  }
  __syncthreads();
  return true;
}

// Every thread block of the cluster gets the statistics of all.
__device__ inline void add_statistics_of_cluster(VectorStatistics* vectors, int count, int ranks) {
  VectorStatistics all = no_statistics();
  const int v = threadIdx.x;
  static_assert(wide_rows + max_wide_columns <= wide_threads);
  if (v < count) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint32_t address = map_to_block(shared_address(vectors + v), rank);
      std::uint32_t w[5];
#pragma unroll
      for (int i = 0; i < 5; ++i)
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[i]) : "r"(address + 4 * i) : "memory");
      add(all, {w[0], w[1], w[2], w[3], w[4]});
    }
  }
  cluster_sync();
  if (v < count) vectors[v] = all;
  __syncthreads();
}

// Calls visit(f) for each fragment of accumulators of the owned columns.
template <class Config, class Visit>
__device__ __forceinline__ void for_each_fragment(OwnedUnits owned, const Visit& visit) {
#pragma unroll
  for (int f = 0; f < Config::columns / 8; ++f) {
    // So that no predicates are kept for other fragments and visits: they would be spilled.
    asm volatile("" : "+r"(owned.first), "+r"(owned.end));
    if (owned.has(f / 2)) visit(f);
  }
}

// Stores a consumer thread's sums 2^-8 to C: those of the tile's rows `upper` and `lower`, and of the columns
// `column` and the next one of each fragment.
template <class Config>
__device__ __forceinline__ void store_plain(const float (&acc)[Config::columns / 2], const OwnedUnits& owned,
                                            const BlockResult& c, int first_row, int first_column, int upper,
                                            int lower, int column) {
  // A sum of -0 becomes +0.
  const auto in_units = [](float sum) {
    return __fmaf_rn(sum, normal_power_of_two(-block_sum_exponent), 0.0F);
  };
  float* const first = c.at(first_row + upper, first_column + column);
  const std::int64_t down = (lower - upper) * c.row_stride;
  const bool is_whole = first_row + Config::rows <= c.rows && first_column + Config::columns <= c.columns;
  const auto has_pairs = [&](std::int64_t step, std::int64_t other) {
    return is_whole && step == 1 &&
           (reinterpret_cast<std::uintptr_t>(c.data) | static_cast<std::uintptr_t>(other * 4)) % 8 == 0;
  };
  if (has_pairs(c.column_stride, c.row_stride)) {
    for_each_fragment<Config>(owned, [&](int f) {
      *reinterpret_cast<float2*>(first + 8 * f) = {in_units(acc[4 * f]), in_units(acc[4 * f + 1])};
      *reinterpret_cast<float2*>(first + 8 * f + down) = {in_units(acc[4 * f + 2]), in_units(acc[4 * f + 3])};
    });
  } else if (!Config::rows_along_k && has_pairs(c.row_stride, c.column_stride)) {
    for_each_fragment<Config>(owned, [&](int f) {
      float* const target = first + 8 * f * c.column_stride;
      *reinterpret_cast<float2*>(target) = {in_units(acc[4 * f]), in_units(acc[4 * f + 2])};
      *reinterpret_cast<float2*>(target + c.column_stride) = {in_units(acc[4 * f + 1]),
                                                              in_units(acc[4 * f + 3])};
    });
  } else {
    const bool has_row[2] = {first_row + upper < c.rows, first_row + lower < c.rows};
    const int columns_left =
        static_cast<int>(min(c.columns - first_column - column, std::int64_t{Config::columns}));
    for_each_fragment<Config>(owned, [&](int f) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (has_row[e / 2] && 8 * f + e % 2 < columns_left)
          first[(8 * f + e % 2) * c.column_stride + e / 2 * down] = in_units(acc[4 * f + e]);
      }
    });
  }
}

// Tests a consumer thread's sums, stores those that are accepted, and marks the others. `sums`: address of
// its first fragment.
template <class Config>
__device__ __forceinline__ void store_tested(const BlockParams& params, const BlockResult& c,
                                             const OwnedUnits& owned, int first_row, int first_column,
                                             std::uint32_t sums, WideShared<Config>& shared) {
  const Scalars<float> scalars(params.tile.scalars);
  const bool is_plain = scalars.alpha == 1.0F && scalars.beta == 0.0F;
  const bool is_whole = first_row + Config::rows <= c.rows && first_column + Config::columns <= c.columns;
  const int rows[2] = {row_of_sum<Config>(threadIdx.x, 0), row_of_sum<Config>(threadIdx.x, 1)};
  const QuickTest tests[2] = {shared.quick[rows[0]], shared.quick[rows[1]]};
#pragma unroll 1
  for (int f = 2 * owned.first; f < 2 * owned.end; ++f) {
    const int column = 8 * f + threadIdx.x % 4 * 2;
    float four[4];
    load_shared(sums + f * 4096, four);
    unsigned accepted = 0;
    unsigned open = 0;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      four[e] += 0.0F;  // +0 for -0
      const auto outcome = tests[e / 2].test(shared.quick[Config::rows + column + e % 2], four[e]);
      if (outcome == QuickTest::Outcome::accepted) accepted |= 1U << e;
      if (outcome == QuickTest::Outcome::open) open |= 1U << e;
    }
    if (is_plain && is_whole) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if ((accepted >> e & 1U) != 0)
          *c.at(first_row + rows[e / 2], first_column + column + e % 2) =
              four[e] * normal_power_of_two(-block_sum_exponent);
      }
      if (accepted == 0xfU) continue;
    }
#pragma unroll 1
    for (int e = 0; e < 4; ++e) {
      const int row = e < 2 ? rows[0] : rows[1];
      const int at_column = column + e % 2;
      if (first_row + row >= c.rows || first_column + at_column >= c.columns) continue;
      bool is_accepted = (accepted >> e & 1U) != 0;
      if (is_accepted && is_plain && is_whole) continue;
      const float sum = e < 2 ? (e == 0 ? four[0] : four[1]) : (e == 2 ? four[2] : four[3]);
      if (((accepted | open) >> e & 1U) == 0)
        is_accepted =
            accepts_block_sum(counts_of(shared.vectors[row], params.blocks),
                              counts_of(shared.vectors[Config::rows + at_column], params.blocks), sum);
      if (is_accepted) {
        float* const element = c.at(first_row + row, first_column + at_column);
        *element = finished(sum, block_sum_exponent, scalars, element);
      } else {
        mark_open<Config>(shared, row, at_column);
      }
    }
  }
}

// True in the first thread of a warpgroup. Read anew, so that no register keeps it between k-blocks.
__device__ __forceinline__ bool is_first_of_group() {
  std::uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread % 128 == 0;
}

template <class Config>
__device__ __forceinline__ void multiply_wide(const TensorMap& row_map, const TensorMap& column_map,
                                              const BlockParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ WideShared<Config> shared;
  const std::uint32_t ring = (shared_address(memory) + 1023) & ~1023U;
  const std::uint32_t row_memory = ring + Config::stages * 2 * Config::slice_bytes;
  const std::uint32_t column_memory = row_memory + Config::buffers * Config::consumers * Config::row_bytes;
  const std::uint32_t totals = ring + Config::ring_bytes;
  const int item = blockIdx.y;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Config::buffers; ++i) {
      for (auto& barriers : shared.rows_full) barriers[i].initialise(params.sides[0].is_aligned ? 1 : 128);
      shared.columns_full[i].initialise(params.sides[1].is_aligned ? 1 : 128);
    }
    for (Mbarrier& barrier : shared.slices_full) barrier.initialise(4);
    for (Mbarrier& barrier : shared.slices_free) barrier.initialise(4 * Config::consumers);
    shared.has_open = 0;
    Mbarrier::fence_initialisation();
  }
  std::uint32_t split, row_tile;
  const std::uint32_t tile = params.by_splits.quotient(blockIdx.x, split);
  const std::uint32_t column_tile = params.by_row_tiles.quotient(tile, row_tile);
  const int first_row = static_cast<int>(row_tile) * Config::rows;
  const int first_column = static_cast<int>(column_tile) * Config::columns;
  if (threadIdx.x == 0) shared.corner[0] = first_row, shared.corner[1] = first_column;
  const LeafRun run(params, static_cast<int>(split));
  const int first_block = run.first * leaf_blocks;
  const int end_block = min(run.end * leaf_blocks, params.blocks);
  for (int i = threadIdx.x; i < Config::rows + Config::columns; i += Config::threads)
    shared.vectors[i] = no_statistics();
  for (int i = threadIdx.x; i < static_cast<int>(sizeof shared.open / 4); i += Config::threads)
    reinterpret_cast<std::uint32_t*>(shared.open)[i] = 0;
  launch_dependents();
  grid_dependency_wait();
  if (const DeviceScalars& given = params.tile.scalars;
      scalar<float>(given.alpha, given.device_alpha) == 0.0F) {
    if (threadIdx.x == 0) report_items(params, 0);
    if (split == 0)
      scale_tile<Config::threads>(BlockResult(params, item), first_row, first_column, Config::rows,
                                  Config::columns, Scalars<float>(params.tile.scalars).beta);
    return;
  }
  __syncthreads();
  const int ranks = cluster_size();
  const int group = threadIdx.x / 128;  // a consumer, or the converter
  const int thread = threadIdx.x % 128;
  // A consumer's sums. In memory and in shared memory each thread's lie in places of its own, four at a time.
  constexpr int fours = Config::columns / 8;
  const std::uint32_t place = (group * 128 + thread) * 16;
  float acc[Config::columns / 2];
  bool clean = true;  // neither zeros nor deep or special elements in the thread's part of the operands
  if (group == Config::consumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 120;");
    const auto load = [&](int block, int buffer) {
      if (block >= end_block) return;
      const std::uint32_t target = column_memory + buffer * Config::column_bytes;
      if (params.sides[1].is_aligned == 0) [[unlikely]]
        load_by_copies<Config::columns_along_k>(params, 1, shared.columns_full[buffer], target,
                                                Config::columns, first_column, block * block_depth);
      else if (is_first_of_group())
        load_by_tma<Config::columns_along_k>(column_map, params.sides[1], shared.columns_full[buffer], target,
                                             Config::columns, first_column, block * block_depth);
    };
    ColumnConverter<Config> converter;
#pragma unroll 1
    for (int i = 0; i < Config::buffers; ++i) load(first_block + i, i);
    cluster_arrive_relaxed();  // other thread blocks may write to this one's memory
    int stage = 0;
    unsigned stage_parity = 0;
#pragma unroll 1
    for (int block = first_block; block < end_block; ++block) {
      const int buffer = (block - first_block) % Config::buffers;
      shared.columns_full[buffer].wait((block - first_block) / Config::buffers & 1);
      __syncwarp();
      converter.convert(
          column_memory + buffer * Config::column_bytes, ring + stage * 2 * Config::slice_bytes,
          shared.weights[stage], shared.vectors + Config::rows,
          [&] {
            shared.slices_free[stage].wait(stage_parity ^ 1);
            __syncwarp();  // the wait may end at different times for the lanes, which exchange values next
          },
          [&] {
            named_barrier_sync(1 + Config::consumers, 128);
            load(block + Config::buffers, buffer);
            __syncwarp();
          });
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (thread % 32 == 0) shared.slices_full[stage].arrive();
      if (++stage == Config::stages) stage = 0, stage_parity ^= 1;
    }
    clean = converter.finish(shared.vectors + Config::rows);
    if (thread == 0) report_items(params, 1);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 192;");
    const std::uint32_t source = row_memory + group * Config::buffers * Config::row_bytes;
    const auto load = [&](int block, int buffer) {
      if (block >= end_block) return;
      const std::uint32_t target = source + buffer * Config::row_bytes;
      if (params.sides[0].is_aligned == 0) [[unlikely]]
        load_by_copies<Config::rows_along_k>(params, 0, shared.rows_full[group][buffer], target, 64,
                                             first_row + 64 * group, block * block_depth);
      else if (is_first_of_group())
        load_by_tma<Config::rows_along_k>(row_map, params.sides[0], shared.rows_full[group][buffer], target,
                                          64, first_row + 64 * group, block * block_depth);
    };
#pragma unroll 1
    for (int i = 0; i < Config::buffers; ++i) load(first_block + i, i);
    cluster_arrive_relaxed();
    ThreadStatistics statistics[2];
    float4* const stored = pieces_of<Config>(params, run, item, tile) + group * 128 + thread;
    const auto store = [&](int piece) {
#pragma unroll
      for (int i = 0; i < fours; ++i)
        __stcg(stored + (piece * fours + i) * 256,
               {acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]});
    };
    const auto add_stored = [&](int piece) {
#pragma unroll
      for (int f = 0; f < fours; ++f) add_four(acc + 4 * f, __ldcg(stored + (piece * fours + f) * 256));
    };
    int stage = 0;
    unsigned stage_parity = 0;
#pragma unroll 1
    for (int leaf = run.first; leaf < run.end; ++leaf) {
#pragma unroll
      for (float& sum : acc) sum = 0;
#pragma unroll 1
      for (int block = leaf * leaf_blocks; block < min((leaf + 1) * leaf_blocks, end_block); ++block) {
        const int buffer = (block - first_block) % Config::buffers;
        const std::uint32_t elements = source + buffer * Config::row_bytes;
        shared.rows_full[group][buffer].wait((block - first_block) / Config::buffers & 1);
        __syncwarp();
        RowSlices rows;
        // The groups take turns with conversions and products: the second one begins later.
        if (group == 1 && block == first_block) named_barrier_sync(4, Config::consumers * 128);
        convert_rows<Config>(elements, statistics, rows, shared.vectors, [&] {
          named_barrier_sync(1 + group, 128);
          load(block + Config::buffers, buffer);
          __syncwarp();
        });
        if (group == 0 && block == first_block) named_barrier_arrive(4, Config::consumers * 128);
        shared.slices_full[stage].wait(stage_parity);
        __syncwarp();
#pragma unroll
        for (int half = 0; half < Config::halves; ++half)
          multiply_half<Config>(rows, ring + stage * 2 * Config::slice_bytes, half, params.swapped != 0,
                                shared.weights[stage], acc);
        __syncwarp();
        if (thread % 32 == 0) shared.slices_free[stage].arrive();
        if (++stage == Config::stages) stage = 0, stage_parity ^= 1;
      }
      // The end of a leaf. `totals` has the sums of the group's earlier leaves, or those of the run's first
      // leaf.
      const bool ends_group = leaf % group_leaves == group_leaves - 1 || leaf + 1 == run.leaves;
      if (run.pieces_are_groups() && leaf % group_leaves != 0) {
#pragma unroll
        for (int f = 0; f < fours; ++f) add_four(acc + 4 * f, load4(totals + place + f * 4096));
      }
      const int index = leaf / group_leaves;
      const bool is_last = leaf + 1 == run.end;
      if (run.keeps_groups() && ends_group) {
        // The sums of the segment and of all earlier ones are pieces 0 and 1 in memory.
        const bool ends_segment = index % segment_groups == segment_groups - 1 || is_last;
        if (index % segment_groups != 0) add_stored(0);
        if (ends_segment && index >= segment_groups) add_stored(1);
        if (!is_last) store(ends_segment ? 1 : 0);
      } else if (run.in_memory() && ends_group) {
        store(index);
      } else if (!is_last) {
#pragma unroll
        for (int f = 0; f < fours; ++f)
          store4(totals + place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
                 __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      VectorStatistics& all = shared.vectors[row_of_sum<Config>(threadIdx.x, h)];
      if (statistics[h].zeros > 0) atomicAdd(&all.zeros, statistics[h].zeros);
      if (thread % 4 == 0) atomicMax(&all.largest, statistics[h].largest);
      clean = clean && statistics[h].is_clean();
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 168;");
  }
  bool simple = __syncthreads_and(clean ? 1 : 0) != 0;
  cluster_wait();
  if (run.in_memory()) {
    if (!is_last_of_tile<Config>(params, shared, item, tile, split)) return;
    simple = false;
  }
  cluster_arrive_relaxed();  // the thread block's ring is free
  const int rank = ranks > 1 ? block_rank_in_cluster() : 0;
  const OwnedUnits owned = OwnedUnits::of<Config>(rank, ranks);
  if (!simple) {
    const int blocks = run.in_memory() ? params.blocks : end_block - first_block;
    simple = true;
    for (int v = threadIdx.x; v < Config::rows + Config::columns; v += Config::threads) {
      const bool exists = v < Config::rows ? first_row + v < params.c.rows
                                           : first_column + v - Config::rows < params.c.columns;
      simple = simple && (!exists || is_simple(shared.vectors[v], blocks));
    }
    simple = __syncthreads_and(simple ? 1 : 0) != 0;
  }
  cluster_wait();
  if (threadIdx.x < ranks)
    store_remote(map_to_block(shared_address(&shared.odd[rank]), threadIdx.x), simple ? 0U : 1U);
  if (ranks > 1 && group < Config::consumers) {
    // Every thread block gets the pieces of its columns, in the place of the ring.
    const int first_piece = run.pieces_are_groups() ? rank : run.first;
    const int last_piece = run.pieces_are_groups() ? rank : run.end - 1;
#pragma unroll 1
    for (int other = 0; other < ranks; ++other) {
      const OwnedUnits units = OwnedUnits::of<Config>(other, ranks);
      const auto target = [&](int piece) {
        return map_to_block(ring + place + piece * (units.end - units.first) * 8192, other) -
               units.first * 8192;
      };
      const std::uint32_t last = target(last_piece);
      for_each_fragment<Config>(units, [&](int f) {
        store_remote(last + f * 4096, {acc[4 * f], acc[4 * f + 1], acc[4 * f + 2], acc[4 * f + 3]});
      });
      if (first_piece == last_piece) continue;
      const std::uint32_t first = target(first_piece);
#pragma unroll 1
      for (int f = 2 * units.first; f < 2 * units.end; ++f)
        store_remote(first + f * 4096, load4(totals + place + f * 4096));
    }
  }
  cluster_sync();
  if (run.pieces > 1 && group < Config::consumers) {
#pragma unroll
    for (float& sum : acc) sum = 0;
    const float4* const stored = pieces_of<Config>(params, run, item, tile) + group * 128 + thread;
#pragma unroll 1
    for (int piece = 0; !run.in_memory() && piece < run.pieces; ++piece) {
      const std::uint32_t source = ring + place + (piece * (owned.end - owned.first) - owned.first) * 8192;
      for_each_fragment<Config>(owned, [&](int f) { add_four(acc + 4 * f, load4(source + f * 4096)); });
    }
#pragma unroll 1
    for (int piece = 0; run.in_memory() && piece < run.pieces; ++piece) {
      float4 sums[fours];
#pragma unroll
      for (int f = 0; f < fours; ++f) sums[f] = __ldcg(stored + (piece * fours + f) * 256);
#pragma unroll
      for (int f = 0; f < fours; ++f) add_four(acc + 4 * f, sums[f]);
      // `totals` has the sums of the segments before the last one.
      const bool is_last = piece + 1 == run.pieces;
      if (piece < segment_groups - 1 + (is_last ? 1 : 0) ||
          (piece % segment_groups != segment_groups - 1 && !is_last))
        continue;
#pragma unroll
      for (int f = 0; f < fours; ++f) {
        const std::uint32_t total = totals + place + f * 4096;
        if (piece >= segment_groups) add_four(acc + 4 * f, load4(total));
        if (is_last) continue;
        store4(total, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
               __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[4 * f + e] = 0;
      }
    }
  }
  for (int other = 0; other < ranks; ++other) simple = simple && shared.odd[other] == 0;
  const BlockResult c(params, item);
  const Scalars<float> scalars(params.tile.scalars);
  const bool is_plain = scalars.alpha == 1.0F && scalars.beta == 0.0F;
  const int upper = row_of_sum<Config>(threadIdx.x, 0);
  const int lower = row_of_sum<Config>(threadIdx.x, 1);
  const int column = thread % 4 * 2;
  if (simple && is_plain) [[likely]] {
    if (group < Config::consumers) {
      store_plain<Config>(acc, owned, c, first_row, first_column, upper, lower, column);
      float largest = 0;
      for_each_fragment<Config>(owned, [&](int f) {
#pragma unroll
        for (int e = 0; e < 4; ++e) largest = largest_magnitude(largest, acc[4 * f + e]);
      });
      if (!(largest < __uint_as_float(infinite_field))) [[unlikely]] {
        for_each_fragment<Config>(owned, [&](int f) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int row = e < 2 ? upper : lower;
            const int at_column = 8 * f + column + e % 2;
            if (!(fabsf(acc[4 * f + e]) < __uint_as_float(infinite_field)) && first_row + row < c.rows &&
                first_column + at_column < c.columns)
              mark_open<Config>(shared, row, at_column);
          }
        });
      }
    }
  } else {
    if (ranks > 1) add_statistics_of_cluster(shared.vectors, Config::rows + Config::columns, ranks);
    for (int v = threadIdx.x; v < Config::rows + Config::columns; v += Config::threads)
      shared.quick[v] = QuickTest(counts_of(shared.vectors[v], params.blocks), params.blocks);
    if (group < Config::consumers) {
#pragma unroll
      for (int f = 0; f < fours; ++f)
        store4(totals + place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
               __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
    }
    __syncthreads();
    if (group < Config::consumers)
      store_tested<Config>(params, c, owned, first_row, first_column, totals + place, shared);
  }
  __syncthreads();
  if (shared.has_open == 0) return;
  std::uint32_t memory_again = shared_address(memory);
  asm volatile("" : "+r"(memory_again));  // so that no register keeps `ring` for this rare part
  compute_open<Config>(params, shared, owned, (memory_again + 1023) & ~1023U);
}

}  // namespace kintsugi::core::cuda
