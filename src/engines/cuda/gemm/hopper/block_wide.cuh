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
  static constexpr int stages = 2;                        // of converted columns
  static constexpr int row_bytes = 64 * block_depth * 4;  // of a consumer
  static constexpr int column_bytes = Columns * block_depth * 4;
  static constexpr int slice_bytes = Columns * block_depth * 2;
  static constexpr int tile_bytes = rows * Columns * 4;
  // Slices of the columns, then FP32 elements of rows and columns; sums of the tile replace them.
  static constexpr int ring_bytes = stages * 2 * slice_bytes + consumers * row_bytes + column_bytes;
  static_assert(ring_bytes + tile_bytes + 1024 <= wide_shared_bytes(Columns));
  static_assert(threads == (consumers + 1) * 128);
  static constexpr int halves = Columns / 64;
  static constexpr int pieces = rows / 32 * (Columns / 32);  // of the tile's open elements
  static_assert(ring_bytes >= tile_bytes);
};

template <class Config>
struct WideShared {
  Mbarrier rows_full[Config::consumers];
  Mbarrier columns_full;
  Mbarrier slices_full[Config::stages];
  Mbarrier slices_free[Config::stages];
  VectorStatistics rows[Config::rows];
  VectorStatistics columns[Config::columns];
  float weights[Config::stages][Config::columns];
  OpenMask open[Config::pieces];
  std::uint32_t has_open;
  unsigned last;
};

// Reads elements of a FP32 tile and issues loads of it.
template <bool AlongK>
__device__ __forceinline__ void load_vectors(const TensorMap& map, bool by_tma, const BlockOperand& operand,
                                             Mbarrier& full, std::uint32_t target, int vectors, int vector,
                                             int begin, int k, int item, int thread) {
  if (by_tma) [[likely]] {
    if (thread != 0) return;
    full.arrive_expect_tx(vectors * block_depth * 4);
    if constexpr (AlongK) {
      tma_load(target, map, full, k, begin + vector, item);
      tma_load(target + vectors * 128, map, full, k + 32, begin + vector, item);
    } else {
      for (int v = 0; v < vectors; v += 32)
        tma_load(target + v * 256, map, full, begin + vector + v, k, item);
    }
    return;
  }
  const int warp = thread / 32;
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

  __device__ void finish(VectorStatistics* all) const {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      if (statistics[v].zeros > 0) atomicAdd(&all[column(v)].zeros, statistics[v].zeros);
      atomicMax(&all[column(v)].largest, statistics[v].largest);
    }
  }

  __device__ static float load_element(std::uint32_t address) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
  }
};

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

// Place of an element of a tile of sums. Neither lines along rows nor along columns have bank conflicts.
template <class Config>
__device__ __forceinline__ int tile_offset(int row, int column) {
  return column * Config::rows + (row ^ (column & 31));
}

// The leaves of a tile that a thread block computes.
struct LeafRun {
  int first;
  int end;
  int leaves;              // of all of k
  bool pieces_are_groups;  // what the thread blocks of a tile hand on; else single leaves
  int pieces;

  __device__ LeafRun(const BlockParams& params, int split) {
    leaves = static_cast<int>(divide_up(params.blocks, leaf_blocks));
    first = split * params.leaves;
    end = min(first + params.leaves, leaves);
    pieces_are_groups = params.splits == 1 || params.leaves % group_leaves == 0;
    pieces = params.splits == 1  ? 1
             : pieces_are_groups ? static_cast<int>(divide_up(leaves, group_leaves))
                                 : leaves;
  }
};

// Rank of the thread block that computes the open elements of a piece: neither all pieces of a row nor of a
// column are one's.
template <class Config>
__device__ __forceinline__ int owner_of_piece(int piece, int ranks) {
  return (piece + piece / (Config::rows / 32)) % ranks;
}

// Computes the open elements of the pieces that are this thread block's. `ring`: memory for the warps.
template <class Config>
__device__ __forceinline__ void compute_open(const BlockParams& params,
                                             const OpenMask (&masks)[Config::pieces], std::uint32_t ring) {
  using Piece = OpenPiece<Config::rows_along_k, Config::columns_along_k>;
  constexpr int max_singly = 32;  // open elements of half a piece
  constexpr int warps = Config::threads / 32;
  constexpr int open_bytes = Piece::bytes + 2 * 16 * 32 * 4;  // of a warp
  static_assert(warps * open_bytes + 1024 <= wide_shared_bytes(Config::columns));
  const int ranks = cluster_size();
  const int rank = ranks > 1 ? block_rank_in_cluster() : 0;
  const int item = blockIdx.y;
  const bool swapped = params.swapped != 0;
  const DeviceTile& tile = params.tile;
  const BlockOperand rows(swapped ? tile.b : tile.a, item, swapped ? tile.first_column : tile.first_row,
                          swapped ? tile.columns : tile.rows);
  const BlockOperand columns(swapped ? tile.a : tile.b, item, swapped ? tile.first_row : tile.first_column,
                             swapped ? tile.rows : tile.columns);
  const BlockResult c(params, item);
  const Scalars<float> scalars(tile.scalars);
  const bool words_are_columns = c.row_stride == 1;
  const int leaves = static_cast<int>(divide_up(params.blocks, leaf_blocks));
  const int index = static_cast<int>(blockIdx.x) / params.splits;
  const int first_row = index % params.row_tiles * Config::rows;
  const int first_column = index / params.row_tiles * Config::columns;
  int singles = 0;
  int tasks = 0;
#pragma unroll 1
  for (int unit = 0; unit < 2 * Config::pieces; ++unit) {
    const int piece = unit / 2;
    const int half = unit % 2;
    if (owner_of_piece<Config>(piece, ranks) != rank) continue;
    const OpenMask& mask = masks[piece];
    const std::uint32_t mine = mask.half_word(words_are_columns, half);
    const int elements = __reduce_add_sync(~0U, __popc(mine));
    if (elements == 0) continue;
    if (params.report != nullptr && threadIdx.x == 32) count(params.report->recomputed, elements);
    const int row = first_row + piece % (Config::rows / 32) * 32;
    const int column = first_column + piece / (Config::rows / 32) * 32 + 16 * half;
    if (elements <= max_singly) {
      compute_singly(mine, words_are_columns, half, row, column, singles, warps, rows, columns, c, scalars);
      singles += elements;
      continue;
    }
    if (tasks++ % warps != static_cast<int>(threadIdx.x / 32)) continue;
    const std::uint32_t memory = ring + threadIdx.x / 32 * open_bytes;
    const Piece work(rows, columns, row, column, memory);
    // Sums of the group are in registers, those of the segment and of all segments in the warp's memory.
    float group[4][4] = {};
    const std::uint32_t kept = memory + Piece::bytes + threadIdx.x % 32 * 4;
#pragma unroll 1
    for (int e = 0; e < 32; ++e) store1(kept + e * 128, 0);
#pragma unroll 1
    for (int leaf = 0; leaf < leaves; ++leaf) {
      float sums[4][4];
      work.sum_leaf(leaf, sums);
#pragma unroll
      for (int e = 0; e < 16; ++e) group[e / 4][e % 4] += sums[e / 4][e % 4];
      const bool last = leaf + 1 == leaves;
      if (leaf % group_leaves != group_leaves - 1 && !last) continue;
      const bool ends_segment = leaf / group_leaves % segment_groups == segment_groups - 1 || last;
#pragma unroll
      for (int e = 0; e < 16; ++e) {
        const float segment = load_shared(kept + e * 128) + group[e / 4][e % 4];
        store1(kept + e * 128, ends_segment ? 0 : segment);
        if (ends_segment) store1(kept + (16 + e) * 128, load_shared(kept + (16 + e) * 128) + segment);
        group[e / 4][e % 4] = 0;
      }
    }
#pragma unroll 4
    for (int e = 0; e < 16; ++e) {
      const int x = Piece::row(e / 4);
      const int y = Piece::column(e % 4);
      if (!mask.is_open(words_are_columns, x, y + 16 * half)) continue;
      float* const element = c.at(row + x, column + y);
      *element = finished(load_shared(kept + (16 + e) * 128), 0, scalars, element);
    }
  }
}

template <class Config>
__device__ __forceinline__ void multiply_wide(const TensorMap& row_map, const TensorMap& column_map,
                                              const BlockParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ WideShared<Config> shared;
  const std::uint32_t ring = (shared_address(memory) + 1023) & ~1023U;
  const std::uint32_t row_memory = ring + Config::stages * 2 * Config::slice_bytes;
  const std::uint32_t column_memory = row_memory + Config::consumers * Config::row_bytes;
  const std::uint32_t totals = ring + Config::ring_bytes;
  const int item = blockIdx.y;
  const int ranks = cluster_size();
  const int tile = blockIdx.x / params.splits;
  const int split = blockIdx.x % params.splits;
  const int first_row = tile % params.row_tiles * Config::rows;
  const int first_column = tile / params.row_tiles * Config::columns;
  const DeviceSide& row_side = params.swapped ? params.tile.b : params.tile.a;
  const DeviceSide& column_side = params.swapped ? params.tile.a : params.tile.b;
  const LeafRun run(params, split);
  const int end_block = min(run.end * leaf_blocks, params.blocks);
  for (int i = threadIdx.x; i < Config::rows + Config::columns; i += Config::threads)
    (i < Config::rows ? shared.rows[i] : shared.columns[i - Config::rows]) = no_statistics();
  for (int i = threadIdx.x; i < Config::pieces * 32; i += Config::threads)
    shared.open[i / 32].words[i % 32] = 0;
  if (threadIdx.x == 0) {
    shared.has_open = 0;
    for (Mbarrier& barrier : shared.rows_full) barrier.initialise(params.by_tma[0] ? 1 : 128);
    shared.columns_full.initialise(params.by_tma[1] ? 1 : 128);
    for (Mbarrier& barrier : shared.slices_full) barrier.initialise(4);
    for (Mbarrier& barrier : shared.slices_free) barrier.initialise(4 * Config::consumers);
    Mbarrier::fence_initialisation();
  }
  launch_dependents();
  grid_dependency_wait();
  const std::int64_t rows_begin = params.swapped ? params.tile.first_column : params.tile.first_row;
  const std::int64_t columns_begin = params.swapped ? params.tile.first_row : params.tile.first_column;
  const BlockOperand row_operand(row_side, item, rows_begin,
                                 params.swapped ? params.tile.columns : params.tile.rows);
  const BlockOperand column_operand(column_side, item, columns_begin,
                                    params.swapped ? params.tile.rows : params.tile.columns);
  const Scalars<float> scalars(params.tile.scalars);
  report_items(params, scalars.alpha);
  if (scalars.alpha == 0.0F) {
    if (split == 0)
      scale_tile<Config::threads>(BlockResult(params, item), first_row, first_column, Config::rows,
                                  Config::columns, scalars.beta);
    return;
  }
  float* const pieces = params.partial_sums +
                        (static_cast<std::int64_t>(item) * params.row_tiles * params.column_tiles + tile) *
                            (params.splits == 1 ? 2 : run.pieces) * (Config::rows * Config::columns);
  __syncthreads();
  if (threadIdx.x >= Config::consumers * 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 120;");
    const int thread = threadIdx.x % 128;
    const auto load = [&](int block) {
      if (block < end_block)
        load_vectors<Config::columns_along_k>(
            column_map, params.by_tma[1] != 0, column_operand, shared.columns_full, column_memory,
            Config::columns, first_column, static_cast<int>(columns_begin), block * block_depth,
            column_side.matrix.batch_stride == 0 ? 0 : static_cast<int>(column_side.item) + item, thread);
    };
    ColumnConverter<Config> converter;
    load(run.first * leaf_blocks);
    unsigned parity = 0;
    int stage = 0;
    unsigned stage_parity = 0;
#pragma unroll 1
    for (int block = run.first * leaf_blocks; block < end_block; ++block, parity ^= 1) {
      shared.columns_full.wait(parity);
      __syncwarp();
      converter.convert(
          column_memory, ring + stage * 2 * Config::slice_bytes, shared.weights[stage], shared.columns,
          [&] {
            shared.slices_free[stage].wait(stage_parity ^ 1);
            __syncwarp();  // the wait may end at different times for the lanes, which exchange values next
          },
          [&] {
            named_barrier_sync(1 + Config::consumers, 128);
            load(block + 1);
            __syncwarp();
          });
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (thread % 32 == 0) shared.slices_full[stage].arrive();
      if (++stage == Config::stages) stage = 0, stage_parity ^= 1;
    }
    converter.finish(shared.columns);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 192;");
    const int group = threadIdx.x / 128;
    const int thread = threadIdx.x % 128;
    const std::uint32_t source = row_memory + group * Config::row_bytes;
    const auto load = [&](int block) {
      if (block < end_block)
        load_vectors<Config::rows_along_k>(
            row_map, params.by_tma[0] != 0, row_operand, shared.rows_full[group], source, 64,
            first_row + 64 * group, static_cast<int>(rows_begin), block * block_depth,
            row_side.matrix.batch_stride == 0 ? 0 : static_cast<int>(row_side.item) + item, thread);
    };
    load(run.first * leaf_blocks);
    const int warp = thread / 32;
    const int g = thread % 32 / 4;
    const int t = thread % 4;
    const int r = (g & 1) << 2 | (g & 2) | g >> 2;
    // Rows of the tile of the thread's accumulators.
    const int my_rows[2] = {64 * group + 16 * warp + (Config::rows_along_k ? r : 2 * g),
                            64 * group + 16 * warp + (Config::rows_along_k ? r + 8 : 2 * g + 1)};
    ThreadStatistics statistics[2];
    float acc[Config::columns / 2];
    int stage = 0;  // also the parity of the rows' barrier
    static_assert(Config::stages == 2);
    unsigned stage_parity = 0;
#pragma unroll 1
    for (int leaf = run.first; leaf < run.end; ++leaf) {
#pragma unroll
      for (float& sum : acc) sum = 0;
#pragma unroll 1
      for (int block = leaf * leaf_blocks; block < min((leaf + 1) * leaf_blocks, end_block); ++block) {
        shared.rows_full[group].wait(stage);
        __syncwarp();
        RowSlices rows;
        {
          float x[2][16];
          if constexpr (Config::rows_along_k) {
            const std::uint32_t line = source + (16 * warp + r) * 128;
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
              for (int h = 0; h < 2; ++h) {
                const float4 v = load4(line + h * 1024 + j / 2 * 8192 + (((t ^ r) << 4) ^ (j % 2 * 64)));
                x[h][4 * j] = v.x, x[h][4 * j + 1] = v.y, x[h][4 * j + 2] = v.z, x[h][4 * j + 3] = v.w;
              }
          } else {
            const std::uint32_t box = source + warp / 2 * 8192;
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
              x, statistics,
              [&] {
                named_barrier_sync(1 + group, 128);
                load(block + 1);
                __syncwarp();
              },
              [&](int h, const SplitVector& split) { rows.rows[h] = split; },
              [&](int h) -> VectorStatistics& { return shared.rows[my_rows[h]]; });
        }
        shared.slices_full[stage].wait(stage_parity);
        __syncwarp();
        const std::uint32_t slices = ring + stage * 2 * Config::slice_bytes;
#pragma unroll
        for (int half = 0; half < Config::halves; ++half)
          multiply_half<Config>(rows, slices, half, params.swapped != 0, shared.weights[stage], acc);
        __syncwarp();
        if (thread % 32 == 0) shared.slices_free[stage].arrive();
        if (++stage == Config::stages) stage = 0, stage_parity ^= 1;
      }
      // The end of a leaf. Sums of a group's earlier leaves are in `totals`.
      const std::uint32_t mine = totals + (group * 128 + thread) * 16;
      bool is_piece = true;
      if (run.pieces_are_groups) {
        is_piece = leaf % group_leaves == group_leaves - 1 || leaf + 1 == run.leaves;
        const bool first = leaf % group_leaves == 0;
        if (!first || !is_piece) {
#pragma unroll
          for (int i = 0; i < Config::columns / 8; ++i) {
            float4 four = first ? float4{0, 0, 0, 0} : load4(mine + i * 4096);
            acc[4 * i] += four.x, acc[4 * i + 1] += four.y, acc[4 * i + 2] += four.z,
                acc[4 * i + 3] += four.w;
            if (!is_piece)
              store4(mine + i * 4096, __float_as_uint(acc[4 * i]), __float_as_uint(acc[4 * i + 1]),
                     __float_as_uint(acc[4 * i + 2]), __float_as_uint(acc[4 * i + 3]));
          }
        }
      }
      if (!is_piece) continue;
      if (params.splits == 1 && run.leaves > group_leaves) {
        // The sums of the segment and of the earlier segments are in memory, in places of the thread's own.
        const int index = leaf / group_leaves;
        const bool ends_segment = index % segment_groups == segment_groups - 1 || leaf + 1 == run.leaves;
        float4* kept = reinterpret_cast<float4*>(pieces) + group * 128 + thread;
        constexpr int total = Config::rows * Config::columns / 4;
#pragma unroll
        for (int i = 0; i < Config::columns / 8; ++i, kept += Config::consumers * 128) {
          float sums[4] = {acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]};
          const auto add_kept = [&](const float4& four) {
            sums[0] = four.x + sums[0], sums[1] = four.y + sums[1], sums[2] = four.z + sums[2],
            sums[3] = four.w + sums[3];
          };
          add_kept(index % segment_groups == 0 ? float4{0, 0, 0, 0} : kept[0]);
          if (ends_segment) add_kept(index < segment_groups ? float4{0, 0, 0, 0} : kept[total]);
          if (leaf + 1 < run.leaves) kept[ends_segment ? total : 0] = {sums[0], sums[1], sums[2], sums[3]};
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[4 * i + e] = sums[e];
        }
        if (leaf + 1 < run.leaves) continue;
      }
      if (ranks > 1 || run.pieces == 1) {
        // Into shared memory: the run's last piece replaces the ring, which no thread reads any more; the one
        // before it lies in `totals`.
        const bool is_last = leaf + 1 == run.end;
        if (is_last) named_barrier_sync(4, Config::consumers * 128);
        const std::uint32_t target = is_last ? ring : totals;
#pragma unroll
        for (int i = 0; i < Config::columns / 2; ++i)
          store1(target + tile_offset<Config>(my_rows[i / 2 % 2], i / 4 * 8 + 2 * t + i % 2) * 4, acc[i]);
      } else {
        float* piece =
            pieces + (run.pieces_are_groups ? leaf / group_leaves : leaf) * (Config::rows * Config::columns);
#pragma unroll
        for (int i = 0; i < Config::columns / 2; ++i)
          __stcg(piece + tile_offset<Config>(my_rows[i / 2 % 2], i / 4 * 8 + 2 * t + i % 2), acc[i]);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (statistics[h].zeros > 0) atomicAdd(&shared.rows[my_rows[h]].zeros, statistics[h].zeros);
      if (t == 0) atomicMax(&shared.rows[my_rows[h]].largest, statistics[h].largest);
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 168;");
  }
  // All threads: sums of the pieces, test and store.
  if (ranks > 1) {
    cluster_sync();
  } else {
    __syncthreads();
    if (params.splits > 1) {
      // The thread block that ends last adds the pieces. Statistics pass through memory, too.
      constexpr int words = (Config::rows + Config::columns) * sizeof(VectorStatistics) / 4;
      std::uint32_t* stored =
          reinterpret_cast<std::uint32_t*>(params.statistics) +
          (static_cast<std::int64_t>(item) * params.row_tiles * params.column_tiles + tile) * params.splits *
              words;
      const auto* mine = reinterpret_cast<const std::uint32_t*>(shared.rows);
      for (int i = threadIdx.x; i < words; i += Config::threads) __stcg(stored + split * words + i, mine[i]);
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) {
        std::uint32_t* counter = params.counters + item * params.row_tiles * params.column_tiles + tile;
        shared.last = atomicAdd(counter, 1U) == static_cast<unsigned>(params.splits - 1) ? 1 : 0;
        if (shared.last != 0) *counter = 0;
      }
      __syncthreads();
      if (shared.last == 0) return;
      __threadfence();
      for (int v = threadIdx.x; v < Config::rows + Config::columns; v += Config::threads) {
        VectorStatistics all = no_statistics();
        for (int s = 0; s < params.splits; ++s) {
          const std::uint32_t* w = stored + s * words + v * 5;
          add(all, {__ldcg(w), __ldcg(w + 1), __ldcg(w + 2), __ldcg(w + 3), __ldcg(w + 4)});
        }
        shared.rows[v] = all;  // the columns' statistics lie behind those of the rows
      }
      __syncthreads();
    }
  }
  const int rank = ranks > 1 ? block_rank_in_cluster() : 0;
  if (ranks > 1) {
    // Every thread block adds the statistics of all others.
    VectorStatistics all;
    for (int base = 0; base < Config::rows + Config::columns; base += Config::threads) {
      const int v = base + threadIdx.x;
      all = no_statistics();
      if (v < Config::rows + Config::columns) {
        for (int other = 0; other < ranks; ++other) {
          const std::uint32_t address = map_to_block(shared_address(&shared.rows[v]), other);
          std::uint32_t w[5];
#pragma unroll
          for (int i = 0; i < 5; ++i)
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[i]) : "r"(address + 4 * i) : "memory");
          add(all, {w[0], w[1], w[2], w[3], w[4]});
        }
      }
      cluster_sync();
      if (v < Config::rows + Config::columns) shared.rows[v] = all;
    }
    __syncthreads();
  }
  // Read once more, so that no register keeps it while the kernel multiplies.
  const BlockParams* again = &params;
  asm volatile("" : "+l"(again));
  const BlockResult c(*again, item);
  const bool rows_adjacent = c.row_stride == 1;
  const bool is_plain = scalars.alpha == 1.0F && scalars.beta == 0.0F;
  bool simple = true;
  for (int v = threadIdx.x; v < Config::rows + Config::columns; v += Config::threads)
    simple = simple &&
             ((v < Config::rows ? first_row + v >= c.rows : first_column + v - Config::rows >= c.columns) ||
              is_simple(shared.rows[v], params.blocks));
  simple = __syncthreads_and(simple ? 1 : 0) != 0;
  // A warp takes 32 elements of a line of C, and those of `lines` lines at once.
  constexpr int lines = 8;
  constexpr int units = Config::rows * Config::columns / 32 / lines;
#pragma unroll 1
  for (int unit = threadIdx.x / 32 + rank * (Config::threads / 32); unit < units;
       unit += ranks * (Config::threads / 32)) {
    const int lane = threadIdx.x % 32;
    const int across = (rows_adjacent ? Config::rows : Config::columns) / 32;
    const int along = unit % across * 32 + lane;
    const int line = unit / across * lines;
    const int row = rows_adjacent ? along : line;
    const int column = rows_adjacent ? line : along;
    float sums[lines];
    const auto offset = [&](int l) {
      return rows_adjacent ? tile_offset<Config>(row, column + l) : tile_offset<Config>(row + l, column);
    };
    if (run.pieces == 1) {
#pragma unroll
      for (int l = 0; l < lines; ++l) sums[l] = load_shared(ring + offset(l) * 4);
    } else {
      LevelSums levels[lines];
#pragma unroll
      for (LevelSums& level : levels) level = {};
#pragma unroll 1
      for (int piece = 0; piece < run.pieces; ++piece) {
        float values[lines];
        if (ranks > 1) {
          const int per_rank = run.pieces_are_groups ? params.leaves / group_leaves : params.leaves;
          const int owner = piece / per_rank;
          const bool is_last = piece + 1 == min((owner + 1) * per_rank, run.pieces);
          const std::uint32_t base = map_to_block(is_last ? ring : totals, owner);
#pragma unroll
          for (int l = 0; l < lines; ++l)
            asm volatile("ld.shared::cluster.f32 %0, [%1];"
                         : "=f"(values[l])
                         : "r"(base + offset(l) * 4)
                         : "memory");
        } else {
          const float* base = pieces + piece * (Config::rows * Config::columns);
#pragma unroll
          for (int l = 0; l < lines; ++l) values[l] = __ldcg(base + offset(l));
        }
        const bool last = piece + 1 == run.pieces;
#pragma unroll
        for (int l = 0; l < lines; ++l) {
          if (run.pieces_are_groups) {
            levels[l].group = values[l];
            levels[l].add_group(piece, last);
          } else {
            levels[l].add(values[l], piece, last);
          }
        }
      }
#pragma unroll
      for (int l = 0; l < lines; ++l) sums[l] = levels[l].total;
    }
    const std::int64_t i = first_row + row;
    const std::int64_t j = first_column + column;
    const std::int64_t step = rows_adjacent ? c.column_stride : c.row_stride;
    const std::int64_t left = rows_adjacent ? c.columns - j : c.rows - i;  // lines inside C
    const bool inside = rows_adjacent ? i < c.rows : j < c.columns;
    float* element = c.at(i, j);
    bool finite = true;
#pragma unroll
    for (int l = 0; l < lines; ++l) finite = finite && fabsf(sums[l]) < __uint_as_float(0x7f800000U);
    if (simple && is_plain && finite) {
#pragma unroll
      for (int l = 0; l < lines; ++l) {
        if (inside && l < left) element[l * step] = sums[l] * 0x1p-8F;
      }
    }
    if (__all_sync(~0U, simple && is_plain && finite)) continue;
#pragma unroll 1
    for (int l = 0; l < lines; ++l, element += step) {
      float sum = sums[0];
#pragma unroll
      for (int e = 1; e < lines; ++e) sum = l == e ? sums[e] : sum;
      const int at_row = rows_adjacent ? row : row + l;
      const int at_column = rows_adjacent ? column + l : column;
      bool open = false;
      if (inside && l < left && !(simple && is_plain && finite)) {
        open = !is_accepted(shared.rows[at_row], shared.columns[at_column], params.blocks, sum);
        if (!open) *element = finished(sum, block_sum_exponent, scalars, element);
      }
      const std::uint32_t word = __ballot_sync(~0U, open);
      if (word == 0 || lane != 0) continue;
      const int piece = at_column / 32 * (Config::rows / 32) + at_row / 32;
      const int owner = ranks > 1 ? owner_of_piece<Config>(piece, ranks) : rank;
      const auto store = [&](std::uint32_t* target, std::uint32_t value) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(map_to_block(shared_address(target), owner)),
                     "r"(value)
                     : "memory");
      };
      store(&shared.open[piece].words[(rows_adjacent ? at_column : at_row) % 32], word);
      store(&shared.has_open, 1);
    }
  }
  // The ring and the sums are free now.
  if (ranks > 1)
    cluster_sync();
  else
    __syncthreads();
  if (shared.has_open != 0) compute_open<Config>(*again, shared.open, ring);
}

}  // namespace kintsugi::core::cuda
