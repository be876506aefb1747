// FP32 products with conversion inside, by wgmma. Two consumer warpgroups convert 64 rows each in registers;
// a third warpgroup converts the columns into shared memory.
#pragma once

#include "engines/cuda/gemm/direct_tile.cuh"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

// Swapped: rows of the tile are columns of C.
template <bool RowsAlongK, bool ColumnsAlongK, bool Swapped>
struct WideConfig {
  static constexpr int rows = wide_rows;
  static constexpr int columns = wide_columns;
  static constexpr bool rows_along_k = RowsAlongK;
  static constexpr bool columns_along_k = ColumnsAlongK;
  static constexpr bool swapped = Swapped;
  static constexpr int consumers = 2;
  static constexpr int threads = wide_threads;
  static constexpr int stages = 2;  // of converted columns
  static constexpr int slices = 3;
  static constexpr int buffers = 2;                        // of FP32 elements of k-blocks
  static constexpr int row_bytes = 64 * direct_block * 4;  // of a consumer
  static constexpr int column_bytes = columns * direct_block * 4;
  static constexpr int slice_bytes = columns * direct_block * 2;
  static constexpr int tile_bytes = rows * columns * 4;
  // Slices of the columns, then FP32 elements of rows and columns; sums of the tile replace them.
  static constexpr int ring_bytes =
      stages * slices * slice_bytes + buffers * (consumers * row_bytes + column_bytes);
  static_assert(ring_bytes + 2 * tile_bytes + 1024 == wide_shared_bytes);
  static_assert(threads == (consumers + 1) * 128);
  // So do open elements with memory for their sums.
  static constexpr int open_bytes = OpenElements::bytes_of(rows * columns);
  static_assert(ring_bytes >= tile_bytes && ring_bytes >= open_bytes + threads / 32 * open_sum_bytes);
};

template <class Config>
struct WideShared {
  Mbarrier rows_full[Config::consumers][Config::buffers];
  Mbarrier columns_full[Config::buffers];
  Mbarrier slices_full[Config::stages];
  Mbarrier slices_free[Config::stages];
  // Largest magnitudes (accepts()). The tile's rows come first, then its columns.
  std::uint32_t largest[Config::rows + Config::columns];
  std::uint32_t open;     // number of open elements
  std::uint32_t most[2];  // largest magnitude of the thread block's part of k, and of all of k
  std::uint32_t theirs[max_direct_cluster];  // that of each thread block of the cluster
  unsigned last;
};

// Loads a k-block of `vectors` vectors, from `vector` of the operand's region on. Side 0 has the tile's rows.
template <bool AlongK>
__device__ __forceinline__ void load_by_tma(const TensorMap& map, const DirectSide& side, Mbarrier& full,
                                            std::uint32_t target, int vectors, int vector, int k) {
  full.arrive_expect_tx(vectors * direct_block * 4);
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
__device__ __forceinline__ void load_by_copies(const DirectParams& params, int side, Mbarrier& full,
                                               std::uint32_t target, int vectors, int vector, int k) {
  const DirectOperand operand = operand_of(params, side);
  const int warp = threadIdx.x / 32 % 4;
  asm volatile("" : "+r"(vector));  // so that no register keeps addresses between k-blocks
  if constexpr (AlongK) {
    copy_lines(operand, true, target, vector, k, vectors, warp, 4);
    copy_lines(operand, true, target + vectors * 128, vector, k + 32, vectors, warp, 4);
  } else {
    for (int v = 0; v < vectors; v += 32)
      copy_lines(operand, false, target + v * 256, vector + v, k, direct_block, warp, 4);
  }
  full.arrive_after_copies();
}

// Stores a slice of 16 consecutive elements of a column, a step of its k-block, in the order of the rows'
// fragments.
template <bool RowsAlongK>
__device__ __forceinline__ void store_step(std::uint32_t slice, int column, int step,
                                           const std::uint32_t (&words)[8]) {
  const std::uint32_t first = slice + swizzled(column, 32 * step);
  const std::uint32_t second = slice + swizzled(column, 32 * step + 16);
  if constexpr (RowsAlongK) {
    store4(first, words[0], words[2], words[4], words[6]);
    store4(second, words[1], words[3], words[5], words[7]);
  } else {
    store4(first, words[0], words[1], words[2], words[3]);
    store4(second, words[4], words[5], words[6], words[7]);
  }
}

// The converter's work on a k-block: reads the FP32 elements of the columns and writes slices.
template <class Config>
struct ColumnConverter {
  // Steps of a k-block that a thread converts: of several columns if they are contiguous along k.
  static constexpr int steps = Config::columns * block_steps / 128;
  static constexpr int vectors = Config::columns_along_k ? steps : 1;
  std::uint32_t largest[vectors] = {};

  __device__ static int thread() { return threadIdx.x % 128; }
  // Column and step of the thread's i-th part.
  __device__ static int column(int i) {
    return Config::columns_along_k
               ? 8 * (thread() / 32 + 4 * i) + thread() % 8
               : thread() / 32 * (Config::columns / 4) + thread() % 32 % (Config::columns / 4);
  }
  __device__ static int step(int i) {
    if (Config::columns_along_k) return thread() % 32 / 8;
    return (steps == block_steps ? 0 : thread() % 32 / (Config::columns / 4) * steps) + i;
  }

  // Calls begin_store() before it writes, and end_load() when it has read all elements.
  template <class BeginStore, class EndLoad>
  __device__ __forceinline__ void convert(std::uint32_t source, std::uint32_t slices,
                                          const BeginStore& begin_store, const EndLoad& end_load) {
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      float x[16];
      read(source, i, x);
      if (i == 0) begin_store();
      if (i + 1 == steps) end_load();
      std::uint32_t words[3][8];
      std::uint32_t& most = largest[Config::columns_along_k ? i : 0];
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        const SlicedPair pair = split_pair(x[2 * p], x[2 * p + 1]);
        words[0][p] = pair.high, words[1][p] = pair.middle, words[2][p] = pair.low;
        most = largest_of_pairs(most, pair.high);
      }
#pragma unroll
      for (int s = 0; s < Config::slices; ++s)
        store_step<Config::rows_along_k>(slices + s * Config::slice_bytes, column(i), step(i), words[s]);
    }
  }

  // Adds the thread's largest magnitudes to `all` and returns the largest one.
  __device__ std::uint32_t finish(std::uint32_t* all) const {
    std::uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
      const std::uint32_t of_vector = larger_half(largest[i]);
      atomicMax(&all[column(i)], of_vector);
      most = max(most, of_vector);
    }
    return most;
  }

 private:
  __device__ static void read(std::uint32_t source, int i, float (&x)[16]) {
    if constexpr (Config::columns_along_k) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float4 four = load4(source + step(i) / 2 * (Config::columns * 128) +
                                  swizzled(column(i), step(i) % 2 * 64 + 16 * q));
        x[4 * q] = four.x, x[4 * q + 1] = four.y, x[4 * q + 2] = four.z, x[4 * q + 3] = four.w;
      }
    } else {
      const std::uint32_t lines = source + column(0) / 32 * (direct_block * 128);
#pragma unroll
      for (int p = 0; p < 16; ++p)
        x[p] = load_volatile(lines + swizzled(direct_step * step(i) + p, column(0) % 32 * 4));
    }
  }
  __device__ static float load_volatile(std::uint32_t address) {
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

// Slices of a consumer's rows over a step, in registers: operand A of wgmma.
struct RowSlices {
  std::uint32_t words[3][4];
};

// Reads a consumer thread's FP32 elements of a step and splits them.
template <class Config>
__device__ __forceinline__ RowSlices convert_rows(std::uint32_t elements, int step,
                                                  std::uint32_t (&largest)[2]) {
  const int warp = threadIdx.x / 32 % 4;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  float x[2][4];
  if constexpr (Config::rows_along_k) {
    const int r = reversed(g);
    const std::uint32_t line = elements + (16 * warp + r) * 128;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float4 v = load4(line + h * 1024 + step / 2 * 8192 + (((t ^ r) << 4) ^ (step % 2 * 64)));
      x[h][0] = v.x, x[h][1] = v.y, x[h][2] = v.z, x[h][3] = v.w;
    }
  } else {
    const std::uint32_t box = elements + warp / 2 * 8192;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int line = 16 * step + 2 * t + i % 2 + i / 2 * 8;
      const float2 v = load2(box + swizzled(line, warp % 2 * 64 + g * 8));
      x[0][i] = v.x, x[1][i] = v.y;
    }
  }
  RowSlices rows;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const SlicedPair pair = split_pair(x[i % 2][i / 2 * 2], x[i % 2][i / 2 * 2 + 1]);
    rows.words[0][i] = pair.high, rows.words[1][i] = pair.middle, rows.words[2][i] = pair.low;
    largest[i % 2] = largest_of_pairs(largest[i % 2], pair.high);
  }
  return rows;
}

// Issues the six products of a step. `columns`: address of the step's slices.
template <class Config>
__device__ __forceinline__ void issue_step(float (&sums)[Config::columns / 2], const RowSlices& rows,
                                           std::uint32_t columns) {
  const MatrixDescriptor slices[3] = {MatrixDescriptor(columns),
                                      MatrixDescriptor(columns + Config::slice_bytes),
                                      MatrixDescriptor(columns + 2 * Config::slice_bytes)};
  constexpr int terms[6][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
  constexpr int side = Config::swapped ? 1 : 0;
  wgmma_fence();
#pragma unroll
  for (int t = 0; t < 6; ++t)
    wgmma<FormatId::bf16, Config::columns>(sums, rows.words[terms[t][side]], slices[terms[t][1 - side]],
                                           t > 0);
  wgmma_commit_group();
}

// The leaves of a tile that a thread block computes.
class LeafRun {
 public:
  int first;
  int end;
  int leaves;  // of all of k
  int pieces;  // of which the tile's sums are added up in the end: groups, or single leaves

  __device__ LeafRun(const DirectParams& params, int split) {
    leaves = static_cast<int>(divide_up(params.blocks, leaf_blocks));
    first = split * params.leaves;
    end = min(first + params.leaves, leaves);
    const bool groups = params.splits == 1 || params.leaves % group_leaves == 0;
    pieces = params.splits == 1 ? 1 : groups ? static_cast<int>(divide_up(leaves, group_leaves)) : leaves;
    flags_ = (groups ? 1 : 0) + (cluster_size() > 1 ? 2 : params.splits > 1 ? 4 : 0);
    asm volatile("" : "+r"(flags_));  // predicates would be spilled
  }
  __device__ bool pieces_are_groups() const { return (flags_ & 1) != 0; }
  __device__ bool in_cluster() const { return (flags_ & 2) != 0; }
  // The thread blocks of the tile pass pieces through memory.
  __device__ bool in_memory() const { return (flags_ & 4) != 0; }

 private:
  int flags_;
};

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

// Every thread block of the cluster gets the largest magnitudes of all.
template <class Config>
__device__ __forceinline__ void combine_in_cluster(WideShared<Config>& shared, int ranks) {
  constexpr int vectors = Config::rows + Config::columns;
  static_assert(vectors <= Config::threads);
  std::uint32_t all = 0;
  const int v = threadIdx.x;
  for (int rank = 0; v < vectors && rank < ranks; ++rank) {
    std::uint32_t theirs;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(theirs)
                 : "r"(map_to_block(shared_address(&shared.largest[v]), rank))
                 : "memory");
    all = max(all, theirs);
  }
  cluster_sync();
  if (v < vectors) shared.largest[v] = all;
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

// Stores a consumer thread's sums to C: those of the tile's rows `upper` and `lower`, and of the columns
// `column` and the next one of each fragment.
template <class Config>
__device__ __forceinline__ void store_plain(const float (&acc)[Config::columns / 2], const OwnedUnits& owned,
                                            const DirectResult& c, int first_row, int first_column, int upper,
                                            int lower, int column) {
  float* const first = c.at(first_row + upper, first_column + column);
  const std::int64_t down = (lower - upper) * c.row_stride;
  const bool is_whole = first_row + Config::rows <= c.rows && first_column + Config::columns <= c.columns;
  const auto has_pairs = [&](std::int64_t step, std::int64_t other) {
    return is_whole && step == 1 &&
           (reinterpret_cast<std::uintptr_t>(c.data) | static_cast<std::uintptr_t>(other * 4)) % 8 == 0;
  };
  if (has_pairs(c.column_stride, c.row_stride)) {
    for_each_fragment<Config>(owned, [&](int f) {
      *reinterpret_cast<float2*>(first + 8 * f) = {acc[4 * f], acc[4 * f + 1]};
      *reinterpret_cast<float2*>(first + 8 * f + down) = {acc[4 * f + 2], acc[4 * f + 3]};
    });
  } else if (!Config::rows_along_k && has_pairs(c.row_stride, c.column_stride)) {
    for_each_fragment<Config>(owned, [&](int f) {
      float* const target = first + 8 * f * c.column_stride;
      *reinterpret_cast<float2*>(target) = {acc[4 * f], acc[4 * f + 2]};
      *reinterpret_cast<float2*>(target + c.column_stride) = {acc[4 * f + 1], acc[4 * f + 3]};
    });
  } else {
    const bool has_row[2] = {first_row + upper < c.rows, first_row + lower < c.rows};
    const int columns_left =
        static_cast<int>(min(c.columns - first_column - column, std::int64_t{Config::columns}));
    for_each_fragment<Config>(owned, [&](int f) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (has_row[e / 2] && 8 * f + e % 2 < columns_left)
          first[(8 * f + e % 2) * c.column_stride + e / 2 * down] = acc[4 * f + e];
      }
    });
  }
}

// Stores a consumer thread's sums that are accepted, and lists the others. `sums`: address of its first
// fragment; `all_largest`: largest magnitudes of the tile's rows, then of its columns.
template <class Config>
__device__ __forceinline__ void store_tested(const DirectParams& params, const DirectResult& c,
                                             const OwnedUnits& owned, int first_row, int first_column,
                                             std::uint32_t sums, const std::uint32_t* all_largest,
                                             OpenElements open) {
  const Scalars<float> scalars(params.tile.scalars);
  const int rows[2] = {row_of_sum<Config>(threadIdx.x, 0), row_of_sum<Config>(threadIdx.x, 1)};
  const std::uint32_t largest[2] = {all_largest[rows[0]], all_largest[rows[1]]};
#pragma unroll 1
  for (int f = 2 * owned.first; f < 2 * owned.end; ++f) {
    float four[4];
    load_shared(sums + f * 4096, four);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = rows[e / 2];
      const int column = 8 * f + threadIdx.x % 4 * 2 + e % 2;
      if (first_row + row >= c.rows || first_column + column >= c.columns) continue;
      if (accepts(largest[e / 2], all_largest[Config::rows + column], four[e])) {
        float* const element = c.at(first_row + row, first_column + column);
        *element = finished(four[e], scalars, element);
      } else {
        open.add(row, column);
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

// Computes what thread block `block_of_item` computes of batch item blockIdx.y.
template <class Config>
__device__ __forceinline__ void multiply_wide(const TensorMap& row_map, const TensorMap& column_map,
                                              const DirectParams& params, std::uint32_t block_of_item) {
  extern __shared__ unsigned char memory[];
  __shared__ WideShared<Config> shared;
  const std::uint32_t ring = (shared_address(memory) + 1023) & ~1023U;
  const std::uint32_t row_memory = ring + Config::stages * Config::slices * Config::slice_bytes;
  const std::uint32_t column_memory = row_memory + Config::buffers * Config::consumers * Config::row_bytes;
  const std::uint32_t totals = ring + Config::ring_bytes;
  const std::uint32_t segments = totals + Config::tile_bytes;
  const int item = blockIdx.y;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Config::buffers; ++i) {
      for (auto& barriers : shared.rows_full) barriers[i].initialise(params.sides[0].is_aligned ? 1 : 128);
      shared.columns_full[i].initialise(params.sides[1].is_aligned ? 1 : 128);
    }
    for (Mbarrier& barrier : shared.slices_full) barrier.initialise(4);
    for (Mbarrier& barrier : shared.slices_free) barrier.initialise(4 * Config::consumers);
    shared.open = shared.most[0] = shared.most[1] = 0;
    Mbarrier::fence_initialisation();
  }
  std::uint32_t split, row_tile;
  const std::uint32_t tile = params.by_splits.quotient(block_of_item, split);
  const std::uint32_t column_tile = params.by_row_tiles.quotient(tile, row_tile);
  const int first_row = static_cast<int>(row_tile) * Config::rows;
  const int first_column = static_cast<int>(column_tile) * Config::columns;
  const LeafRun run(params, static_cast<int>(split));
  const int first_block = run.first * leaf_blocks;
  const int end_block = min(run.end * leaf_blocks, params.blocks);
  for (int i = threadIdx.x; i < Config::rows + Config::columns; i += Config::threads) shared.largest[i] = 0;
  launch_dependents();
  grid_dependency_wait();
  if (const DeviceScalars& given = params.tile.scalars;
      scalar<float>(given.alpha, given.device_alpha) == 0.0F) {
    if (threadIdx.x == 0) report_items(params, block_of_item, 0);
    if (split == 0)
      scale_tile<Config::threads>(DirectResult(params, item), first_row, first_column, Config::rows,
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
  const std::int64_t tile_of_all =
      static_cast<std::int64_t>(item) * params.row_tiles * params.column_tiles + tile;
  const TilePlaces<fours, Config::consumers * 128> places(params, tile_of_all, group * 128 + thread);
  std::uint32_t most = 0;  // largest magnitude of the thread's elements
  if (group == Config::consumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    const auto load = [&](int block, int buffer) {
      if (block >= end_block) return;
      const std::uint32_t target = column_memory + buffer * Config::column_bytes;
      if (params.sides[1].is_aligned == 0) [[unlikely]]
        load_by_copies<Config::columns_along_k>(params, 1, shared.columns_full[buffer], target,
                                                Config::columns, first_column, block * direct_block);
      else if (is_first_of_group())
        load_by_tma<Config::columns_along_k>(column_map, params.sides[1], shared.columns_full[buffer], target,
                                             Config::columns, first_column, block * direct_block);
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
          column_memory + buffer * Config::column_bytes, ring + stage * Config::slices * Config::slice_bytes,
          [&] { shared.slices_free[stage].wait(stage_parity ^ 1); },
          [&] {
            named_barrier_sync(1 + Config::consumers, 128);
            load(block + Config::buffers, buffer);
          });
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (thread % 32 == 0) shared.slices_full[stage].arrive();
      if (++stage == Config::stages) stage = 0, stage_parity ^= 1;
    }
    most = converter.finish(shared.largest + Config::rows);
    if (thread == 0) report_items(params, block_of_item, 1);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
    const std::uint32_t source = row_memory + group * Config::buffers * Config::row_bytes;
    const auto load = [&](int block, int buffer) {
      if (block >= end_block) return;
      const std::uint32_t target = source + buffer * Config::row_bytes;
      if (params.sides[0].is_aligned == 0) [[unlikely]]
        load_by_copies<Config::rows_along_k>(params, 0, shared.rows_full[group][buffer], target, 64,
                                             first_row + 64 * group, block * direct_block);
      else if (is_first_of_group())
        load_by_tma<Config::rows_along_k>(row_map, params.sides[0], shared.rows_full[group][buffer], target,
                                          64, first_row + 64 * group, block * direct_block);
    };
#pragma unroll 1
    for (int i = 0; i < Config::buffers; ++i) load(first_block + i, i);
    cluster_arrive_relaxed();
    std::uint32_t largest[2] = {};
    const auto store_shared = [&](std::uint32_t sums) {
#pragma unroll
      for (int f = 0; f < fours; ++f)
        store4(sums + place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
               __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
    };
    const auto add_shared = [&](std::uint32_t sums) {
#pragma unroll
      for (int f = 0; f < fours; ++f) add_four(acc + 4 * f, load4(sums + place + f * 4096));
    };
    // Ends a leaf. `totals` has the sums of the group's earlier leaves, or those of the run's first leaf;
    // `segments` those of the segment's earlier groups.
    const auto end_leaf = [&](int leaf) {
      const bool ends_k = leaf + 1 == run.leaves;
      const bool ends_group = leaf % group_leaves == group_leaves - 1 || ends_k;
      if (run.pieces_are_groups() && leaf % group_leaves != 0) add_shared(totals);
      const bool is_last = leaf + 1 == run.end;
      if (ends_group && !run.in_cluster()) {
        const int index = leaf / group_leaves;
        const int child = index % (1 << level_bits);
        if (params.tree.level == 0) {
          if (run.in_memory()) places.store(index, acc);
        } else {
          if (child != 0) add_shared(segments);
          if (child + 1 == 1 << level_bits || ends_k)
            places.end_sum(params, static_cast<int>(split), 1, index >> level_bits, ends_k,
                           first_level_in_memory(true), acc);
          else
            store_shared(segments);
        }
      } else if (!is_last) {
        store_shared(totals);
      }
      if (is_last) return;
#pragma unroll
      for (float& sum : acc) sum = 0;
    };
    static_assert(block_steps % 2 == 0);
    float sums[Config::columns / 2];
    RowSlices rows[2];
    const auto convert_step = [&](int block, int step) {
      const int done = block - first_block;
      const int buffer = done % Config::buffers;
      if (step == 0) {
        shared.rows_full[group][buffer].wait(done / Config::buffers & 1);
        __syncwarp();
      }
      rows[step % 2] = convert_rows<Config>(source + buffer * Config::row_bytes, step, largest);
      if (step + 1 < block_steps) return;
      named_barrier_sync(1 + group, 128);
      load(block + Config::buffers, buffer);
      __syncwarp();
    };
    convert_step(first_block, 0);
#pragma unroll
    for (float& sum : acc) sum = 0;
      // The rows of a step are converted while the products of the one before it are under way.
#pragma unroll 1
    for (int block = first_block; block < end_block; ++block) {
      const int stage = (block - first_block) % Config::stages;
      const std::uint32_t slices = ring + stage * Config::slices * Config::slice_bytes;
      shared.slices_full[stage].wait((block - first_block) / Config::stages & 1);
#pragma unroll
      for (int step = 0; step < block_steps; ++step) {
        issue_step<Config>(sums, rows[step % 2], slices + step * step_bytes);
        if (step + 1 < block_steps)
          convert_step(block, step + 1);
        else
          convert_step(min(block + 1, end_block - 1), 0);  // the last block's is not used
        wgmma_wait_group<0>();
        warpgroup_fence_operand(sums);
#pragma unroll
        for (int e = 0; e < Config::columns / 2; ++e) acc[e] += sums[e];
      }
      if (thread % 32 == 0) shared.slices_free[stage].arrive();
      if (block % leaf_blocks == leaf_blocks - 1 || block + 1 == end_block) end_leaf(block / leaf_blocks);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::uint32_t of_row = larger_half(largest[h]);
      atomicMax(&shared.largest[row_of_sum<Config>(threadIdx.x, h)], of_row);
      most = max(most, of_row);
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 168;");
  }
  most = largest_of_block(most, shared.most[0]);
  cluster_wait();
  if (run.in_memory()) {
    constexpr int vectors = Config::rows + Config::columns;
    static_assert(vectors <= Config::threads);
    share_largest<Config::threads>(params, tile_of_all, shared.largest, vectors);
    if (!places.template meet<2>(params, tile_of_all, static_cast<int>(split), shared.last,
                                 group < Config::consumers, acc))
      return;
    take_largest<Config::threads>(params, tile_of_all, shared.largest, vectors);
    most = largest_of_block(threadIdx.x < vectors ? shared.largest[threadIdx.x] : 0, shared.most[1]);
  }
  cluster_arrive_relaxed();  // the thread block's ring is free
  const int rank = ranks > 1 ? block_rank_in_cluster() : 0;
  const OwnedUnits owned = OwnedUnits::of<Config>(rank, ranks);
  cluster_wait();
  if (threadIdx.x < ranks)
    store_remote(map_to_block(shared_address(&shared.theirs[rank]), threadIdx.x), most);
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
  if (ranks > 1 && group < Config::consumers) {
#pragma unroll
    for (float& sum : acc) sum = 0;
#pragma unroll 1
    for (int piece = 0; piece < run.pieces; ++piece) {
      const std::uint32_t source = ring + place + (piece * (owned.end - owned.first) - owned.first) * 8192;
      for_each_fragment<Config>(owned, [&](int f) { add_four(acc + 4 * f, load4(source + f * 4096)); });
    }
  }
  for (int other = 0; other < ranks; ++other) most = max(most, shared.theirs[other]);
  const DirectResult c(params, item);
  const Scalars<float> scalars(params.tile.scalars);
  bool safe = true;  // all elements are accepted, whatever vectors have the largest magnitudes
  if (most > __float_as_uint(direct_safe_largest)) {
    if (group < Config::consumers) {
      const bool has_row[2] = {first_row + row_of_sum<Config>(threadIdx.x, 0) < c.rows,
                               first_row + row_of_sum<Config>(threadIdx.x, 1) < c.rows};
      const int columns_left =
          static_cast<int>(min(c.columns - first_column - thread % 4 * 2, std::int64_t{Config::columns}));
      for_each_fragment<Config>(owned, [&](int f) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          safe = safe &&
                 (!has_row[e / 2] || 8 * f + e % 2 >= columns_left || accepts_up_to(most, acc[4 * f + e]));
      });
    }
    safe = __syncthreads_and(safe ? 1 : 0) != 0;
  }
  if (safe && scalars.alpha == 1.0F && scalars.beta == 0.0F) [[likely]] {
    if (group < Config::consumers)
      store_plain<Config>(acc, owned, c, first_row, first_column, row_of_sum<Config>(threadIdx.x, 0),
                          row_of_sum<Config>(threadIdx.x, 1), thread % 4 * 2);
    // Others read this thread block's largest magnitudes in combine_in_cluster().
    if (ranks > 1 && most > __float_as_uint(direct_safe_largest)) {
      __syncwarp();
      cluster_sync();
    }
    return;
  }
  if (ranks > 1) combine_in_cluster<Config>(shared, ranks);
  if (!safe) {
    find_tiny(params, 0, first_row, shared.largest, Config::rows);
    find_tiny(params, 1, first_column, shared.largest + Config::rows, Config::columns);
  }
  __syncthreads();  // all have read their pieces in the ring
  const OpenElements open(shared.open, ring);
  if (group < Config::consumers) {
#pragma unroll
    for (int f = 0; f < fours; ++f)
      store4(totals + place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
             __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
    store_tested<Config>(params, c, owned, first_row, first_column, totals + place, shared.largest, open);
  }
  __syncthreads();
  if (shared.open > 0) open.compute(params, first_row, first_column, ring + Config::open_bytes);
}

}  // namespace kintsugi::core::cuda
