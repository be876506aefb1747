// FP32 products with conversion inside, by mma.sync, for GPUs from compute capability 8.0 on. Warps read FP32
// elements of 32 rows and of 16 or 32 columns from shared memory and convert them in registers. On compute
// capability 9.0 an m16n8k16 takes 6.2 cycles, in which the scheduler issues nothing else.
#pragma once

#include "engines/cuda/gemm/direct_tile.cuh"
#include "engines/cuda/ptx/mma.cuh"

namespace kintsugi::core::cuda {

// A tile of Edge rows. Large tiles have 2 x 2 warps, which share the stages of a pipeline. In small tiles
// each warp computes the whole tile for its leaves of k, and has stages of its own.
template <int Edge, bool RowsAlongK, bool ColumnsAlongK>
struct MmaConfig {
  static constexpr int edge = Edge;
  static constexpr bool rows_along_k = RowsAlongK;
  static constexpr bool columns_along_k = ColumnsAlongK;
  static constexpr int threads = direct_mma_threads;
  static constexpr int warps = threads / 32;
  static constexpr int across = Edge / 32;  // warps along the rows and along the columns
  static constexpr int sharing_warps = across * across;
  static constexpr int warps_along_k = warps / sharing_warps;
  static constexpr int stages = direct_mma_stages;
  static constexpr int depth = 32;  // inner indices of a stage
  static constexpr int unrolled_steps = across;
  static constexpr int side_bytes = Edge * depth * 4;
  static constexpr int stage_bytes = 2 * side_bytes;
  static constexpr int ring_bytes = warps_along_k * stages * stage_bytes;
  static constexpr int group_bytes = warps_along_k == 1 ? Edge * Edge * 4 : 0;  // sums of a group
  static constexpr int leaf_stages = direct_leaf / depth;
  // Finished sums replace the stages; then open elements and memory for their sums.
  static constexpr int line = Edge + 1;
  static constexpr int tile_bytes = (Edge * line * 4 + 15) / 16 * 16;
  static constexpr int open_bytes = OpenElements::bytes_of(Edge * Edge);
  static_assert(warps_along_k == 1 || warps_along_k == group_leaves);
  static_assert(tile_bytes + open_bytes + warps * open_sum_bytes <= ring_bytes);
  static_assert(ring_bytes + group_bytes + 128 == direct_mma_shared_bytes(Edge));
};

template <class Config>
struct MmaShared {
  std::uint32_t largest[2 * Config::edge];  // largest magnitudes of the rows, then of the columns (accepts())
  std::uint32_t open;                       // number of open elements
  std::uint32_t last;
  std::uint32_t most[2];  // largest magnitude of the thread block's part of k, and of all of k
};

// Vector of a warp's tile that lanes of index g have as their i-th one.
template <bool AlongK, int Vectors>
__device__ __forceinline__ int vector_of(int i, int g) {
  return AlongK ? 8 * i + reversed(g) : Vectors * g + i;
}

// Slices of a step in the registers of a thread: [slice][row fragment] and [slice][column fragment].
template <int Fragments>
struct StepFragments {
  std::uint32_t rows[3][2][4];
  std::uint32_t columns[3][Fragments][2];
};

// Multiplies a step and adds its sums to `acc`. Fragment i has rows of half i / Fragments and columns of
// fragment i % Fragments. Terms keep the order of the caller's A and B.
template <int Fragments, bool Swapped>
__device__ __forceinline__ void multiply_step(const StepFragments<Fragments>& slices,
                                              float (&acc)[2 * Fragments][4]) {
  constexpr int terms[6][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
  constexpr float zeros[4] = {};
  float sums[2 * Fragments][4];
#pragma unroll
  for (int term = 0; term < 6; ++term) {
    const auto& a = slices.rows[terms[term][Swapped ? 1 : 0]];
    const auto& b = slices.columns[terms[term][Swapped ? 0 : 1]];
#pragma unroll
    for (int i = 0; i < 2 * Fragments; ++i) {
      if (term == 0)
        mma_from<FormatId::bf16>(sums[i], a[i / Fragments], b[i % Fragments], zeros);
      else
        mma_from<FormatId::bf16>(sums[i], a[i / Fragments], b[i % Fragments], sums[i]);
    }
  }
#pragma unroll
  for (int e = 0; e < 8 * Fragments; ++e) acc[e / 4][e % 4] += sums[e / 4][e % 4];
}

// Splits a thread's FP32 elements of a step: of each of its vectors inner indices 2 t, 2 t + 1 and these plus
// 8. Blocks of 8 inner indices keep their order, since units of compute capability 8 add one after the other.
// Calls store(slice, vector, half, pair).
template <bool AlongK, int Vectors, class Store>
__device__ __forceinline__ void convert_step(std::uint32_t elements, int step,
                                             std::uint32_t (&largest)[Vectors], const Store& store) {
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  float x[Vectors][4];
  if constexpr (AlongK) {
    const int r = reversed(g);
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 two =
            load2(elements + v * 1024 + r * 128 + ((8 * t ^ r << 4) ^ (64 * step + 32 * half)));
        x[v][2 * half] = two.x, x[v][2 * half + 1] = two.y;
      }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t line = elements + (direct_step * step + i / 2 * 8 + 2 * t + i % 2) * 128;
      const int swizzle = (2 * t + i % 2) << 4;
      if constexpr (Vectors == 4) {
        const float4 four = load4(line + (16 * g ^ swizzle));
        x[0][i] = four.x, x[1][i] = four.y, x[2][i] = four.z, x[3][i] = four.w;
      } else {
        const float2 two = load2(line + (8 * g ^ swizzle));
        x[0][i] = two.x, x[1][i] = two.y;
      }
    }
  }
#pragma unroll
  for (int v = 0; v < Vectors; ++v)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const SlicedPair pair = split_pair(x[v][2 * half], x[v][2 * half + 1]);
      store(0, v, half, pair.high), store(1, v, half, pair.middle), store(2, v, half, pair.low);
      largest[v] = largest_of_pairs(largest[v], pair.high);
    }
}

// Converts and multiplies a stage in registers.
template <class Config, int Fragments, bool Swapped>
__device__ __forceinline__ void multiply_stage(std::uint32_t rows, std::uint32_t columns,
                                               float (&acc)[2 * Fragments][4],
                                               std::uint32_t (&row_largest)[4],
                                               std::uint32_t (&column_largest)[Fragments]) {
#pragma unroll Config::unrolled_steps
  for (int step = 0; step < Config::depth / direct_step; ++step) {
    StepFragments<Fragments> slices;
    convert_step<Config::rows_along_k>(rows, step, row_largest,
                                       [&](int slice, int v, int half, std::uint32_t pair) {
                                         slices.rows[slice][v / 2][v % 2 + 2 * half] = pair;
                                       });
    convert_step<Config::columns_along_k>(
        columns, step, column_largest,
        [&](int slice, int v, int half, std::uint32_t pair) { slices.columns[slice][v][half] = pair; });
    multiply_step<Fragments, Swapped>(slices, acc);
  }
}

// Copies of an operand's stages of `Vectors` vectors by `Warps` warps. Side 0 has the tile's rows.
template <int Side, bool AlongK, int Vectors, int Warps>
class StageCopies {
 public:
  __device__ StageCopies(const DirectParams& params, int vector) : vector_(vector) {
    const DirectOperand operand = operand_of(params, Side);
    const int line = first_line();
    const int at = threadIdx.x % 8 * 4;
    first_ = AlongK ? operand.at(vector + line, at) : operand.at(vector + at, line);
    line_step_ = lines_at_once * (AlongK ? operand.vector_stride : operand.element_stride);
    k_step_ = AlongK ? 1 : operand.element_stride;
    is_whole_ = vector + Vectors <= operand.vectors;
    is_aligned_ = params.sides[Side].is_aligned != 0;
    offset_ = swizzled(line, 4 * at);
  }

  // Starts the copies of inner indices k ... k + 31.
  __device__ __forceinline__ void copy(const DirectParams& params, std::uint32_t target, int k) const {
    const bool ends = k + 32 > params.tile.a.matrix.columns;
    if (is_aligned_ && !ends && is_whole_) [[likely]] {
      const float* const source = first_ + k * k_step_;
#pragma unroll
      for (int i = 0; i < passes; ++i) copy_16_bytes_of_line(target_of(target, i), source_of(source, i));
      return;
    }
    const DirectOperand operand = operand_of(params, Side);
    int vector = vector_;
    asm volatile("" : "+r"(vector));  // so that no register keeps addresses between stages
    const auto left = static_cast<int>(min(operand.vectors - vector, std::int64_t{Vectors}));
    if (is_aligned_ && !ends) {
      const float* const source = first_ + k * k_step_;
#pragma unroll 4
      for (int i = 0; i < passes; ++i) {
        const int v = AlongK ? first_line() + i * lines_at_once : i / chunk_passes * 32 + threadIdx.x % 8 * 4;
        const int bytes = v >= left ? 0 : AlongK ? 16 : min(left - v, 4) * 4;
        copy_up_to_16_bytes(target_of(target, i), bytes > 0 ? source_of(source, i) : operand.data, bytes);
      }
      return;
    }
    const int warp = threadIdx.x / 32 % Warps;
#pragma unroll 1
    for (int v = 0; v < Vectors; v += AlongK ? Vectors : 32) {
      if (is_aligned_)
        copy_aligned_lines(operand, AlongK, target + v * 128, vector + v, k, AlongK ? Vectors : 32, warp,
                           Warps);
      else
        copy_lines(operand, AlongK, target + v * 128, vector + v, k, AlongK ? Vectors : 32, warp, Warps);
    }
  }

 private:
  static constexpr int lines_at_once = 4 * Warps;

  const float* first_;  // the thread's first element at k = 0
  std::int64_t line_step_;
  std::int64_t k_step_;
  std::uint32_t offset_;
  int vector_;
  bool is_whole_;
  bool is_aligned_;

  static constexpr int passes = Vectors / lines_at_once;
  static constexpr int chunk_passes = AlongK ? passes : 32 / lines_at_once;  // passes of 32 vectors

  // Places of the thread's i-th copy. The swizzle of its lines differs if a pass has four lines.
  __device__ std::uint32_t target_of(std::uint32_t stage, int i) const {
    const std::uint32_t place = stage + offset_;
    return (lines_at_once == 4 && i % 2 == 1 ? place ^ 64 : place) + i * lines_at_once * 128;
  }
  __device__ const float* source_of(const float* source, int i) const {
    return source + i / chunk_passes * 32 + i % chunk_passes * line_step_;
  }
  __device__ static int first_line() { return threadIdx.x / 32 % Warps * 4 + threadIdx.x % 32 / 8; }
};

// Computes a tile whose warps have 8 * Fragments columns.
template <class Config, int Fragments>
__device__ __forceinline__ void multiply_by_mma(const DirectParams& params) {
  extern __shared__ unsigned char memory[];
  __shared__ MmaShared<Config> shared;
  constexpr int rows = Config::edge;
  constexpr int columns = 8 * Fragments * Config::across;
  constexpr int all = 2 * Fragments;                  // fragments of a warp's sums
  constexpr int owned = all / Config::warps_along_k;  // those that it finishes
  const std::uint32_t ring = (shared_address(memory) + 127) & ~127U;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int warp_row = warp % Config::sharing_warps % Config::across;
  const int warp_column = warp % Config::sharing_warps / Config::across;
  const int leaf_of_round = Config::warps_along_k == 1 ? 0 : warp;
  std::uint32_t split, row_tile;
  const std::uint32_t tile_of_item = params.by_splits.quotient(blockIdx.x, split);
  const std::uint32_t column_tile = params.by_row_tiles.quotient(tile_of_item, row_tile);
  const int first_row = static_cast<int>(row_tile) * rows;
  const int first_column = static_cast<int>(column_tile) * columns;
  if (threadIdx.x < 2 * Config::edge) shared.largest[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared.open = shared.most[0] = shared.most[1] = 0;
  launch_dependents();
  grid_dependency_wait();
  const DirectResult c(params, blockIdx.y);
  if (const DeviceScalars& given = params.tile.scalars;
      scalar<float>(given.alpha, given.device_alpha) == 0.0F) {
    if (threadIdx.x == 0) report_items(params, blockIdx.x, 0);
    if (split == 0)
      scale_tile<Config::threads>(c, first_row, first_column, rows, columns,
                                  Scalars<float>(params.tile.scalars).beta);
    return;
  }
  if (threadIdx.x == 0) report_items(params, blockIdx.x, 1);

  const auto k = static_cast<int>(params.tile.a.matrix.columns);
  const int leaves = static_cast<int>(divide_up(k, direct_leaf));
  const int first_leaf = static_cast<int>(split) * params.leaves;
  const int end_leaf = min(first_leaf + params.leaves, leaves);
  const int stages_of_k = static_cast<int>(divide_up(k, Config::depth));
  const StageCopies<0, Config::rows_along_k, rows, Config::sharing_warps> row_copies(params, first_row);
  const StageCopies<1, Config::columns_along_k, Config::columns_along_k ? columns : Config::edge,
                    Config::sharing_warps>
      column_copies(params, first_column);
  const std::uint32_t stages = ring + leaf_of_round * Config::stages * Config::stage_bytes;
  // Loads the n-th stage of the warp's leaves.
  const auto load = [&](int n, int place) {
    const int leaf = first_leaf + leaf_of_round + n / Config::leaf_stages * Config::warps_along_k;
    const int stage = leaf * Config::leaf_stages + n % Config::leaf_stages;
    if (leaf < end_leaf && stage < stages_of_k) {
      const std::uint32_t target = stages + place * Config::stage_bytes;
      row_copies.copy(params, target, stage * Config::depth);
      column_copies.copy(params, target + Config::side_bytes, stage * Config::depth);
    }
    commit_copies();
  };
  for (int n = 0; n < Config::stages - 1; ++n) load(n, n);

  const bool is_shared = params.splits > 1;
  const std::int64_t tile = std::int64_t{blockIdx.y} * params.row_tiles * params.column_tiles + tile_of_item;
  const TilePlaces<owned, Config::threads> places(params, tile, threadIdx.x);
  const auto end_group = [&](int group, bool ends_k, float(&sums)[owned][4]) {
    places.end_sum(params, static_cast<int>(split), 0, group, ends_k, first_level_in_memory(false), sums[0]);
  };

  std::uint32_t row_largest[4] = {};
  std::uint32_t column_largest[Fragments] = {};
  float acc[all][4];
  float finished_sums[owned][4];
  int n = 0;
  int place = 0;
#pragma unroll 1
  for (int round_leaf = first_leaf; round_leaf < end_leaf; round_leaf += Config::warps_along_k) {
    const int leaf = round_leaf + leaf_of_round;
#pragma unroll
    for (int e = 0; e < 4 * all; ++e) acc[e / 4][e % 4] = 0;
    int used = place;
#pragma unroll 1
    for (int i = 0; i < Config::leaf_stages; ++i, ++n) {
      const bool exists = leaf < end_leaf && leaf * Config::leaf_stages + i < stages_of_k;
      const std::uint32_t stage = stages + place * Config::stage_bytes;
      await_copies_but<Config::stages - 2>();
      if constexpr (Config::sharing_warps == 1)
        __syncwarp();
      else
        __syncthreads();
      load(n + Config::stages - 1, place == 0 ? Config::stages - 1 : place - 1);
      const std::uint32_t row_stage = stage + warp_row * 4096;
      const std::uint32_t column_stage = stage + Config::side_bytes + warp_column * 4096;
      if (exists && params.swapped == 0)
        multiply_stage<Config, Fragments, false>(row_stage, column_stage, acc, row_largest, column_largest);
      else if (exists)
        multiply_stage<Config, Fragments, true>(row_stage, column_stage, acc, row_largest, column_largest);
      used = place;
      if (++place == Config::stages) place = 0;
    }
    const int group = leaf / group_leaves;
    if constexpr (Config::warps_along_k == 1) {
      const std::uint32_t group_sums = ring + Config::ring_bytes + threadIdx.x * 16;
      if (leaf % group_leaves != 0) {
#pragma unroll
        for (int i = 0; i < all; ++i) add_four(acc[i], load4(group_sums + i * (Config::threads * 16)));
      }
      if (leaf % group_leaves == group_leaves - 1 || leaf + 1 == leaves) {
        end_group(group, leaf + 1 == leaves, acc);
      } else {
#pragma unroll
        for (int i = 0; i < all; ++i)
          store4(group_sums + i * (Config::threads * 16), __float_as_uint(acc[i][0]),
                 __float_as_uint(acc[i][1]), __float_as_uint(acc[i][2]), __float_as_uint(acc[i][3]));
      }
    } else {
      // The stage that was read last has the warp's sums for a while.
      const std::uint32_t sums = used * Config::stage_bytes + lane * 16;
      __syncwarp();
#pragma unroll
      for (int i = 0; i < all; ++i)
        store4(stages + sums + i * 512, __float_as_uint(acc[i][0]), __float_as_uint(acc[i][1]),
               __float_as_uint(acc[i][2]), __float_as_uint(acc[i][3]));
      __syncthreads();
#pragma unroll
      for (int e = 0; e < 4 * owned; ++e) finished_sums[e / 4][e % 4] = 0;
#pragma unroll 1
      for (int other = 0; other < min(Config::warps_along_k, end_leaf - round_leaf); ++other) {
        const std::uint32_t source = ring + other * Config::stages * Config::stage_bytes + sums;
#pragma unroll
        for (int i = 0; i < owned; ++i) add_four(finished_sums[i], load4(source + (warp * owned + i) * 512));
      }
      __syncthreads();
      end_group(group, round_leaf + Config::warps_along_k >= leaves, finished_sums);
    }
  }
  if constexpr (Config::warps_along_k == 1) {
#pragma unroll
    for (int e = 0; e < 4 * owned; ++e) finished_sums[e / 4][e % 4] = acc[e / 4][e % 4];
  }

  // The test of elements needs no largest magnitudes if all of them are small.
  const std::uint32_t safe_largest = __float_as_uint(direct_safe_largest);
  std::uint32_t most = 0;
#pragma unroll
  for (const std::uint32_t pair : row_largest) most = max(most, larger_half(pair));
#pragma unroll
  for (const std::uint32_t pair : column_largest) most = max(most, larger_half(pair));
  most = largest_of_block(most, shared.most[0]);
  const int g = lane / 4;
  if (most > safe_largest || is_shared) {
    const auto add = [&](int side, int vector, std::uint32_t pair) {
      atomicMax(&shared.largest[side * Config::edge + vector], larger_half(pair));
    };
#pragma unroll
    for (int v = 0; v < 4; ++v)
      add(0, warp_row * 32 + vector_of<Config::rows_along_k, 4>(v, g), row_largest[v]);
#pragma unroll
    for (int v = 0; v < Fragments; ++v)
      add(1, warp_column * 8 * Fragments + vector_of<Config::columns_along_k, Fragments>(v, g),
          column_largest[v]);
    __syncthreads();
  }
  if (is_shared) {
    share_largest<Config::threads>(params, tile, shared.largest, rows + columns);
    if (!places.template meet<32 / owned>(params, tile, static_cast<int>(split), shared.last, true,
                                          finished_sums[0]))
      return;
    take_largest<Config::threads>(params, tile, shared.largest, rows + columns);
    most = largest_of_block(threadIdx.x < 2 * Config::edge ? shared.largest[threadIdx.x] : 0, shared.most[1]);
  }

  // The tile's sums are stored to C in the order of C.
  bool safe = true;  // all elements are accepted, whatever vectors have the largest magnitudes
#pragma unroll
  for (int e = 0; e < 4 * owned; ++e) {
    const int i = (Config::warps_along_k == 1 ? 0 : warp * owned) + e / 4;
    const int row = warp_row * 32 + vector_of<Config::rows_along_k, 4>(i / Fragments * 2 + e % 4 / 2, g);
    const int column = warp_column * 8 * Fragments +
                       vector_of<Config::columns_along_k, Fragments>(i % Fragments, lane % 4 * 2 + e % 2);
    store1(ring + (column * Config::line + row) * 4, finished_sums[e / 4][e % 4]);
    if (most > safe_largest && first_row + row < c.rows && first_column + column < c.columns)
      safe = safe && accepts_up_to(most, finished_sums[e / 4][e % 4]);
  }
  safe = __syncthreads_and(safe ? 1 : 0) != 0;
  if (!safe) {
    find_tiny(params, 0, first_row, shared.largest, rows);
    find_tiny(params, 1, first_column, shared.largest + Config::edge, columns);
    __syncthreads();
  }
  const Scalars<float> scalars(params.tile.scalars);
  const bool is_plain = scalars.alpha == 1.0F && scalars.beta == 0.0F;
  const bool by_columns = c.column_stride == 1;
  OpenElements open(shared.open, ring + Config::tile_bytes);
#pragma unroll 4
  for (int e = threadIdx.x; e < rows * columns; e += Config::threads) {
    const int row = by_columns ? e / columns : e % rows;
    const int column = by_columns ? e % columns : e / rows;
    if (first_row + row >= c.rows || first_column + column >= c.columns) continue;
    const float sum = load_shared(ring + (column * Config::line + row) * 4);
    if (!safe && !accepts(shared.largest[row], shared.largest[Config::edge + column], sum)) {
      open.add(row, column);
      continue;
    }
    float* const element = c.at(first_row + row, first_column + column);
    *element = is_plain ? sum : finished(sum, scalars, element);
  }
  if (safe) return;
  __syncthreads();
  if (shared.open > 0)
    open.compute(params, first_row, first_column, ring + Config::tile_bytes + Config::open_bytes);
}

#define KINTSUGI_DIRECT_MMA(name, edge, blocks_of_sm, rows_along_k, columns_along_k) \
  extern "C" __global__ void __launch_bounds__(direct_mma_threads, blocks_of_sm)     \
      name(const __grid_constant__ DirectParams params) {                            \
    using Config = MmaConfig<edge, rows_along_k, columns_along_k>;                   \
    if (edge == small_mma_edge && params.tile_columns == 16)                         \
      multiply_by_mma<Config, edge == small_mma_edge ? 2 : 4>(params);               \
    else                                                                             \
      multiply_by_mma<Config, 4>(params);                                            \
  }
// Kernels of all layouts, whose names begin with `prefix`.
#define KINTSUGI_DIRECT_MMA_KERNELS(prefix, edge, blocks_of_sm)     \
  KINTSUGI_DIRECT_MMA(prefix##_kk, edge, blocks_of_sm, true, true)  \
  KINTSUGI_DIRECT_MMA(prefix##_kn, edge, blocks_of_sm, true, false) \
  KINTSUGI_DIRECT_MMA(prefix##_mk, edge, blocks_of_sm, false, true) \
  KINTSUGI_DIRECT_MMA(prefix##_mn, edge, blocks_of_sm, false, false)

}  // namespace kintsugi::core::cuda
