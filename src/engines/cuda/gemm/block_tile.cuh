// Parts that the kernels of the scheme fp16x3-block share: loads of FP32 tiles, statistics of vectors, the
// test of elements, and elements computed one by one.
#pragma once

#include "arith/epilogue.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/block_split.cuh"
#include "engines/cuda/ptx/tma.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// One operand in the terms of the kernels: vectors of k elements.
struct BlockOperand {
  const float* data;
  std::int64_t vectors;
  std::int64_t length;
  std::int64_t vector_stride;
  std::int64_t element_stride;

  // Vectors first ... first + count - 1 of a batch item.
  __device__ BlockOperand(const DeviceSide& side, std::int64_t item, std::int64_t first, std::int64_t count) {
    const MatrixView<const float> view = view_of<const float>(side.matrix, side.item + item);
    data = view.data + first * view.row_stride;
    vectors = count;
    length = view.columns;
    vector_stride = view.row_stride;
    element_stride = view.column_stride;
  }
  __device__ const float* at(std::int64_t vector, std::int64_t p) const {
    return data + vector * vector_stride + p * element_stride;
  }
};

// Operand of the tile's rows (side 0) or columns, of the thread block's batch item.
__device__ inline BlockOperand operand_of(const BlockParams& params, int side) {
  const bool is_a = (side == 0) != (params.swapped != 0);
  const DeviceTile& tile = params.tile;
  return {is_a ? tile.a : tile.b, blockIdx.y, params.sides[side].begin, is_a ? tile.rows : tile.columns};
}

// FP32 tiles in shared memory have lines of 128 bytes whose chunks of 16 bytes are swizzled, as TMA writes
// them.
__device__ inline std::uint32_t swizzled(std::uint32_t line, std::uint32_t byte) {
  return line * 128 + (byte ^ (line & 7) << 4);
}

// Copies `lines` lines of 32 elements from (vector, p) on without TMA. Lines are vectors if `along_k`, else
// inner indices. The lanes copy the elements of a line.
__device__ inline void copy_lines(const BlockOperand& operand, bool along_k, std::uint32_t target,
                                  std::int64_t vector, std::int64_t p, int lines, int first_line,
                                  int line_step) {
  const int lane = threadIdx.x % 32;
  const std::int64_t vectors_left = operand.vectors - vector;
  const std::int64_t left = operand.length - p;
  const bool lane_exists = lane < (along_k ? left : vectors_left);
  const std::int64_t lines_exist = along_k ? vectors_left : left;
  const std::int64_t line_stride = along_k ? operand.vector_stride : operand.element_stride;
  const float* source = along_k ? operand.at(vector, p + lane) : operand.at(vector + lane, p);
#pragma unroll 2
  for (int line = first_line; line < lines; line += line_step) {
    const bool exists = lane_exists && line < lines_exist;
    copy_4_bytes(target + swizzled(line, 4 * lane), exists ? source + line * line_stride : operand.data,
                 exists);
  }
}

// Starts a copy of `bytes` bytes, up to 16; zeros follow up to 16.
__device__ inline void copy_up_to_16_bytes(std::uint32_t target, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes)
               : "memory");
}

// copy_lines() of operands that TMA could load: four lines at once, 16 bytes by each lane.
__device__ inline void copy_aligned_lines(const BlockOperand& operand, bool along_k, std::uint32_t target,
                                          std::int64_t vector, std::int64_t p, int lines, int first_warp,
                                          int warps) {
  const int at = threadIdx.x % 8 * 4;
  const std::int64_t vectors_left = operand.vectors - vector;
  const std::int64_t left = operand.length - p;
  const std::int64_t exist = (along_k ? left : vectors_left) - at;
  const int bytes = exist <= 0 ? 0 : exist < 4 ? 4 * static_cast<int>(exist) : 16;
  const std::int64_t lines_exist = along_k ? vectors_left : left;
  const std::int64_t line_stride = along_k ? operand.vector_stride : operand.element_stride;
  const float* source = along_k ? operand.at(vector, p + at) : operand.at(vector + at, p);
#pragma unroll 1
  for (int line = 4 * first_warp + threadIdx.x % 32 / 8; line < lines; line += 4 * warps) {
    const int copied = line < lines_exist ? bytes : 0;
    copy_up_to_16_bytes(target + swizzled(line, 4 * at),
                        copied > 0 ? source + line * line_stride : operand.data, copied);
  }
}

// Row or column of index g of a fragment, for operands along k: neighbors lie in lines that differ in bit 2,
// so that loads of 16 bytes have no bank conflicts, and even ones of four in bits 1 and 2, for loads of 8
// bytes.
__device__ inline int reversed(int g) { return (g & 1) << 2 | (g & 2) | g >> 2; }

__device__ inline float4 load4(std::uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address));
  return v;
}
__device__ inline float2 load2(std::uint32_t address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address));
  return v;
}
__device__ inline void store1(std::uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
__device__ inline void store4(std::uint32_t address, std::uint32_t x, std::uint32_t y, std::uint32_t z,
                              std::uint32_t w) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

// Adds to four successive sums.
__device__ __forceinline__ void add_four(float* sums, const float4& four) {
  sums[0] += four.x, sums[1] += four.y, sums[2] += four.z, sums[3] += four.w;
}

// Stores into the memory of a thread block of the cluster, whose address map_to_block() gives.
__device__ inline void store_remote(std::uint32_t address, const float4& v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}
__device__ inline void store_remote(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ constexpr VectorStatistics no_statistics() { return {0, 0, 0, 0, 0}; }

__device__ inline void add(VectorStatistics& all, const VectorStatistics& other) {
  all.largest = max(all.largest, other.largest);
  all.zeros += other.zeros;
  all.zero_blocks += other.zero_blocks;
  all.deep += other.deep;
  all.deep_largest = max(all.deep_largest, other.deep_largest);
}

// Numbers of a vector of `blocks` k-blocks.
__device__ inline BlockCounts counts_of(const VectorStatistics& vector, std::int32_t blocks) {
  BlockCounts counts;
  counts.largest = block_exponent(vector.largest);
  counts.deep_largest = vector.deep == 0 ? BlockCounts::none : block_exponent(vector.deep_largest);
  counts.deep = static_cast<std::int32_t>(vector.deep);
  counts.nonzero = static_cast<std::int32_t>(static_cast<std::uint32_t>(blocks) * block_depth - vector.zeros);
  counts.blocks = blocks - static_cast<std::int32_t>(vector.zero_blocks);
  return counts;
}

// True if every element is accepted whose sum is finite and whose vectors are both simple. If vectors are
// simple in several parts of k of at least one block each, they are simple in all of them.
__device__ inline bool is_simple(const VectorStatistics& vector, std::int32_t blocks) {
  const BlockCounts counts = counts_of(vector, blocks);
  return counts.finite() && counts.deep == 0 && counts.nonzero > 0 &&
         block_slack(counts.nonzero, blocks, BlockUnit{}) >= 0;
}

// The test of elements in FP32, which decides most of them as accepts_block_sum() would.
struct QuickTest {
  enum class Outcome { unknown, accepted, open };

  float deep;  // as in BlockTest
  float largest;
  float slack;   // a lower bound of the element's, as far as this vector decides it
  bool is_full;  // no k-block of the vector is zero: then the slack is exact

  QuickTest() = default;
  __device__ QuickTest(const BlockCounts& counts, std::int32_t blocks) {
    const BlockTest test(counts);
    deep = static_cast<float>(test.deep);
    largest = static_cast<float>(test.largest);
    slack = test.nonzero < 0
                ? -1
                : static_cast<float>(min(block_slack(test.nonzero, blocks, BlockUnit{}), most_block_slack));
    is_full = counts.blocks == blocks;
  }

  __device__ Outcome test(const QuickTest& other, float sum) const {
    const float magnitude = fabsf(sum);
    const float both = fminf(slack, other.slack);
    if (!(magnitude < infinity()) || both < 0) return Outcome::unknown;
    if (deep == 0 && other.deep == 0) return Outcome::accepted;
    // The margin is more than what roundings and underflow change on either side.
    constexpr float factor = 1 + 0x1p-16F;
    constexpr float margin = 0x1p-100F;
    const float loss = __fmaf_rn(deep, other.largest, other.deep * largest);
    const float usable = magnitude * both;
    if (!(loss < 0x1p120F)) return Outcome::unknown;
    if (usable >= __fmaf_rn(loss, factor, margin)) return Outcome::accepted;
    return is_full && other.is_full && __fmaf_rn(usable, factor, margin) < loss ? Outcome::open
                                                                                : Outcome::unknown;
  }

 private:
  __device__ static float infinity() { return __uint_as_float(infinite_field); }
};

// Sums of the hierarchy of k, to which leaves are added in ascending order.
struct LevelSums {
  float group;
  float segment;
  float total;

  // Adds leaf `leaf`; `last`: no other one follows.
  __device__ void add(float sum, int leaf, bool last) {
    group += sum;
    if (leaf % group_leaves == group_leaves - 1 || last) add_group(leaf / group_leaves, last);
  }
  __device__ void add_group(int index, bool last) {
    segment += group;
    group = 0;
    if (index % segment_groups != segment_groups - 1 && !last) return;
    total += segment;
    segment = 0;
  }
};

// Bytes of a warp's memory for open_sum(): a group of both vectors, half blocks in lines of their own, which
// begin in different banks.
inline constexpr int open_line = half_block_depth + 1;
inline constexpr int open_sum_bytes = 2 * 32 * open_line * 4;

// Sum of element (i, j) in FP32, in the order of the hierarchy. The warp calls it together; every lane gets
// the sum.
__device__ inline float open_sum(const BlockOperand& a, const BlockOperand& b, std::int64_t i, std::int64_t j,
                                 std::uint32_t memory) {
  static_assert(leaf_halves * group_leaves == 32 && half_block_depth == 32);
  const int leaves = static_cast<int>(divide_up(a.length, block_leaf));
  const int lane = threadIdx.x % 32;
  const std::uint32_t other = memory + open_sum_bytes / 2;
  LevelSums sums{};
#pragma unroll 1
  for (int first = 0; first < leaves; first += group_leaves) {  // a half block for each lane
    const std::int64_t begin = std::int64_t{first} * block_leaf;
    const int left = static_cast<int>(min(a.length - begin, std::int64_t{block_group}));
    const float* const x = a.at(i, begin + lane);
    const float* const y = b.at(j, begin + lane);
    __syncwarp();
#pragma unroll 4
    for (int e = 0; e < left; e += 32) {
      const bool exists = e + lane < left;
      const std::uint32_t place = (e / 32 * open_line + lane) * 4;
      copy_4_bytes(memory + place, exists ? x + e * a.element_stride : a.data, exists);
      copy_4_bytes(other + place, exists ? y + e * b.element_stride : b.data, exists);
    }
    commit_copies();
    await_copies_but<0>();
    __syncwarp();
    float half = 0;
    if (32 * lane < left) {
      const std::uint32_t line = lane * open_line * 4;
#pragma unroll 8
      for (int p = 0; p < half_block_depth; ++p)
        half = __fmaf_rn(load_shared(memory + line + 4 * p), load_shared(other + line + 4 * p), half);
    }
    __syncwarp();
    float leaf = 0;
#pragma unroll
    for (int h = 0; h < leaf_halves; ++h) leaf += __shfl_sync(~0U, half, (lane & ~(leaf_halves - 1)) + h);
#pragma unroll 1
    for (int l = 0; l < min(group_leaves, leaves - first); ++l)
      sums.add(__shfl_sync(~0U, leaf, l * leaf_halves), first + l, first + l + 1 == leaves);
  }
  return sums.total;
}

// alpha * sum * 2^-exponent + beta * c.
__device__ inline float finished(float sum, int exponent, const Scalars<float>& scalars, const float* c) {
  return epilogue(static_cast<double>(sum), -exponent, scalars.alpha, scalars.beta,
                  scalars.beta == 0.0F ? nullptr : c);
}

// BlockTarget of one batch item.
struct BlockResult {
  float* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;

  __device__ BlockResult(const BlockParams& params, std::int64_t item)
      : data(static_cast<float*>(params.c.data) + item * params.c.item_stride), rows(params.c.rows),
        columns(params.c.columns), row_stride(params.c.row_stride), column_stride(params.c.column_stride) {
    if (params.c.by_pointer != 0) data = static_cast<float**>(params.c.data)[item] + params.c.offset;
  }
  __device__ float* at(std::int64_t i, std::int64_t j) const {
    return data + i * row_stride + j * column_stride;
  }
};

// Computes beta C for the tile of a thread block whose alpha is 0.
template <int Threads>
__device__ inline void scale_tile(const BlockResult& c, std::int64_t first_row, std::int64_t first_column,
                                  int rows, int columns, float beta) {
  if (beta == 1.0F) return;
  for (int e = threadIdx.x; e < rows * columns; e += Threads) {
    const std::int64_t i = first_row + e % rows;
    const std::int64_t j = first_column + e / rows;
    if (i < c.rows && j < c.columns) *c.at(i, j) = scaled(beta, *c.at(i, j));
  }
}

// One thread of a thread block adds the launch's batch items to the report.
__device__ inline void report_items(const BlockParams& params, float alpha) {
  const bool is_first = params.tile.first_row == 0 && params.tile.first_column == 0;  // block of C
  if (params.report == nullptr || !is_first || blockIdx.x != 0 || blockIdx.y != 0) return;
  count(alpha == 0.0F ? params.report->scaled : params.report->items[0], gridDim.y);
}

// FP32 sums of 8 X rows and 4 Y columns by a warp, for tiles with many open elements: X Y in a lane. Lines of
// operands in shared memory have 32 inner indices of a vector, or 32 vectors at an inner index.
template <bool RowsAlongK, bool ColumnsAlongK, int X, int Y>
struct OpenPiece {
  static constexpr int rows = 8 * X;
  static constexpr int columns = 4 * Y;
  static constexpr int y_elements = Y;

  // Row and column of element (x, y) of the lane.
  __device__ static int row(int x) {
    const int g = threadIdx.x % 8;
    return RowsAlongK ? g + 8 * x : x / 4 * 32 + 4 * g + x % 4;
  }
  __device__ static int column(int y) {
    const int g = threadIdx.x % 32 / 8;
    return ColumnsAlongK ? g + 4 * y : y / 4 * 16 + 4 * g + y % 4;
  }

  // Sums of a half block for the rows and columns from `first_row` and `first_column` on of the operands in
  // memory.
  __device__ static void sum_half(std::uint32_t row_memory, int first_row, std::uint32_t column_memory,
                                  int first_column, float (&half)[X][Y]) {
#pragma unroll
    for (int e = 0; e < X * Y; ++e) half[e / Y][e % Y] = 0;
#pragma unroll 1
    for (int k = 0; k < half_block_depth; k += 4) {
      float x[X][4];
#pragma unroll
      for (int v = 0; v < X; v += 4) read<RowsAlongK>(row_memory, k, first_row + row(v), 8, &x[v]);
#pragma unroll
      for (int v = 0; v < Y; v += 4) {
        float y[4][4];
        read<ColumnsAlongK>(column_memory, k, first_column + column(v), 4, y);
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
          for (int i = 0; i < 4 * X; ++i)
            half[i / 4][v + i % 4] = __fmaf_rn(x[i / 4][e], y[i % 4][e], half[i / 4][v + i % 4]);
      }
    }
  }

 private:
  // Elements k ... k + 3 of four vectors, which are `step` apart along k, else adjacent: x[vector][element].
  template <bool AlongK>
  __device__ static void read(std::uint32_t base, int k, int vector, int step, float (*x)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (AlongK) {
        const float4 four = load4(base + swizzled(vector + step * i, 4 * k));
        x[i][0] = four.x, x[i][1] = four.y, x[i][2] = four.z, x[i][3] = four.w;
      } else {
        const float4 four =
            load4(base + vector / 32 * (half_block_depth * 128) + swizzled(k + i, vector % 32 * 4));
        x[0][i] = four.x, x[1][i] = four.y, x[2][i] = four.z, x[3][i] = four.w;
      }
    }
  }
};

// The elements of `RowWords` times 32 rows and 16 columns that are not accepted.
template <int RowWords>
struct OpenUnit {
  static constexpr int columns = 16;
  static constexpr int max_singly = 64;  // elements that are computed one by one

  std::uint32_t words[columns * RowWords];  // bits of a column's rows
  std::uint32_t elements;
  std::uint16_t list[max_singly];  // column * 256 + row of the elements, if they are no more

  __device__ void mark(int row, int column) {
    atomicOr(&words[column * RowWords + row / 32], 1U << row % 32);
  }
  __device__ bool is_open(int row, int column) const {
    return (words[column * RowWords + row / 32] >> row % 32 & 1U) != 0;
  }

  // Counts and lists the elements that are marked; by one warp.
  __device__ void gather() {
    const int lane = threadIdx.x % 32;
    int mine = 0;
    for (int w = lane; w < columns * RowWords; w += 32) mine += __popc(words[w]);
    int end = mine;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0U, end, step);
      if (lane >= step) end += other;
    }
    const int all = __shfl_sync(~0U, end, 31);
    if (lane == 0) elements = static_cast<std::uint32_t>(all);
    if (all > max_singly || mine == 0) return;
    std::uint16_t* next = list + end - mine;
    for (int w = lane; w < columns * RowWords; w += 32)
      for (std::uint32_t bits = words[w]; bits != 0; bits &= bits - 1)
        *next++ = static_cast<std::uint16_t>(w / RowWords * 256 + w % RowWords * 32 + __ffs(bits) - 1);
  }

  // Computes the elements one by one, those that are this warp's in turn. `before`: number of elements before
  // these. `memory`: open_sum_bytes of the warp.
  __device__ void compute_singly(int before, int warps, int first_row, int first_column,
                                 const BlockOperand& rows, const BlockOperand& columns, const BlockResult& c,
                                 const Scalars<float>& scalars, std::uint32_t memory) const {
    const int turn = static_cast<int>(threadIdx.x / 32) + before % warps;
#pragma unroll 1
    for (int index = turn % warps; index < static_cast<int>(elements); index += warps) {
      const int row = first_row + list[index] % 256;
      const int column = first_column + list[index] / 256;
      const float sum = open_sum(rows, columns, row, column, memory);
      if (threadIdx.x % 32 == 0) *c.at(row, column) = finished(sum, 0, scalars, c.at(row, column));
    }
  }
};

}  // namespace kintsugi::core::cuda
