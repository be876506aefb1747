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

// A part of the test of elements in FP32, for most of them: whoever passes it would pass accepts_block_sum(),
// too.
struct QuickTest {
  float deep;  // as in BlockTest
  float largest;
  float slack;  // a lower bound of the element's, as far as this vector decides it

  QuickTest() = default;
  __device__ QuickTest(const BlockCounts& counts, std::int32_t blocks) {
    const BlockTest test(counts);
    deep = static_cast<float>(test.deep);
    largest = static_cast<float>(test.largest);
    slack = test.nonzero < 0
                ? -1
                : static_cast<float>(min(block_slack(test.nonzero, blocks, BlockUnit{}), most_block_slack));
  }

  __device__ bool accepts(const QuickTest& other, float sum) const {
    const float magnitude = fabsf(sum);
    const float both = fminf(slack, other.slack);
    if (!(magnitude < infinity()) || both < 0) return false;
    if (deep == 0 && other.deep == 0) return true;
    // The added number bounds what underflows here, and the factor all roundings.
    const float loss =
        __fmaf_rn(__fmaf_rn(deep, other.largest, other.deep * largest), 1 + 0x1p-16F, 0x1p-100F);
    return loss < infinity() && magnitude * both >= loss;
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

// Sum of element (i, j) in FP32, in the order of the hierarchy. The warp calls it together; every lane gets
// the sum.
__device__ inline float open_sum(const BlockOperand& a, const BlockOperand& b, std::int64_t i,
                                 std::int64_t j) {
  constexpr int at_once = 16;
  static_assert(leaf_halves * group_leaves == 32);
  const int leaves = static_cast<int>(divide_up(a.length, block_leaf));
  const int lane = threadIdx.x % 32;
  LevelSums sums{};
#pragma unroll 1
  for (int first = 0; first < leaves; first += group_leaves) {  // a half block for each lane
    const std::int64_t begin = std::int64_t{first} * block_leaf + lane * half_block_depth;
    const std::int64_t end = min(begin + half_block_depth, a.length);
    float half = 0;
#pragma unroll 1
    for (std::int64_t p = begin; p < end; p += at_once) {
      float x[at_once], y[at_once];
#pragma unroll
      for (int e = 0; e < at_once; ++e) {
        x[e] = p + e < end ? __ldg(a.at(i, p + e)) : 0.0F;
        y[e] = p + e < end ? __ldg(b.at(j, p + e)) : 0.0F;
      }
#pragma unroll
      for (int e = 0; e < at_once; ++e) half = __fmaf_rn(x[e], y[e], half);
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

// The elements of a tile that are not accepted, for each piece of 32 x 32 elements. Word w is column w of the
// piece and its bits the rows. Warps compute half a piece at once: 32 rows and 16 columns.
struct OpenMask {
  std::uint32_t words[32];

  // The lane's word of a half.
  __device__ std::uint32_t half_word(int half) const {
    const int lane = threadIdx.x % 32;
    return lane / 16 == half ? words[lane] : 0;
  }
  __device__ bool is_open(int row, int column) const { return words[column] >> row & 1; }
};

// Half a piece with many open elements: FP32 sums of all of them, by one warp, which loads the operands into
// memory of its own.
template <bool RowsAlongK, bool ColumnsAlongK>
class OpenPiece {
 public:
  static constexpr int bytes = 2 * 32 * half_block_depth * 4;

  __device__ OpenPiece(const BlockOperand& rows, const BlockOperand& columns, int first_row, int first_column,
                       std::uint32_t memory)
      : rows_(rows), columns_(columns), first_row_(first_row), first_column_(first_column), memory_(memory) {}

  // Row and column of element (x, y) of the lane.
  __device__ static int row(int x) {
    const int g = threadIdx.x % 8;
    return RowsAlongK ? g + 8 * x : 4 * g + x;
  }
  __device__ static int column(int y) {
    const int g = threadIdx.x % 32 / 8;
    return ColumnsAlongK ? g + 4 * y : 4 * g + y;
  }

  // Sums of a leaf.
  __device__ void sum_leaf(int leaf, float (&sums)[4][4]) const {
#pragma unroll
    for (int e = 0; e < 16; ++e) sums[e / 4][e % 4] = 0;
    const std::int64_t begin = std::int64_t{leaf} * block_leaf;
    const std::int64_t end = min(begin + block_leaf, rows_.length);
#pragma unroll 1
    for (std::int64_t p = begin; p < end; p += half_block_depth) {
      __syncwarp();
      copy_lines(rows_, RowsAlongK, memory_, first_row_, p, 32, 0, 1);
      copy_lines(columns_, ColumnsAlongK, memory_ + bytes / 2, first_column_, p, ColumnsAlongK ? 16 : 32, 0,
                 1);
      commit_copies();
      await_copies_but<0>();
      __syncwarp();
      float half[4][4] = {};
#pragma unroll 1
      for (int k = 0; k < half_block_depth; k += 4) {
        float x[4][4], y[4][4];
        read<RowsAlongK>(
            memory_, k, [](int v) { return row(v); }, x);
        read<ColumnsAlongK>(
            memory_ + bytes / 2, k, [](int v) { return column(v); }, y);
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
          for (int i = 0; i < 16; ++i)
            half[i / 4][i % 4] = __fmaf_rn(x[e][i / 4], y[e][i % 4], half[i / 4][i % 4]);
      }
#pragma unroll
      for (int e = 0; e < 16; ++e) sums[e / 4][e % 4] += half[e / 4][e % 4];
    }
  }

 private:
  const BlockOperand& rows_;
  const BlockOperand& columns_;
  int first_row_, first_column_;
  std::uint32_t memory_;

  // Elements k ... k + 3 of four vectors: x[element][vector].
  template <bool AlongK, class Vector>
  __device__ static void read(std::uint32_t base, int k, const Vector& vector, float (&x)[4][4]) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if constexpr (AlongK) {
        const float4 four = load4(base + swizzled(vector(v), 4 * k));
        x[0][v] = four.x, x[1][v] = four.y, x[2][v] = four.z, x[3][v] = four.w;
      } else {
        const float4 four = load4(base + swizzled(k + v, 4 * vector(0)));
        x[v][0] = four.x, x[v][1] = four.y, x[v][2] = four.z, x[v][3] = four.w;
      }
    }
  }
};

// Computes open elements one after the other: of a half, those that are this warp's in turn. `before`: open
// elements before the half.
__device__ inline void compute_singly(std::uint32_t mine, int half, int first_row, int first_column,
                                      int before, int warps, const BlockOperand& rows,
                                      const BlockOperand& columns, const BlockResult& c,
                                      const Scalars<float>& scalars) {
  const int warp = threadIdx.x / 32;
  for (unsigned owners = __ballot_sync(~0U, mine != 0); owners != 0; owners &= owners - 1) {
    const int word = __ffs(owners) - 1;
    for (std::uint32_t bits = __shfl_sync(~0U, mine, word); bits != 0; bits &= bits - 1, ++before) {
      if (before % warps != warp) continue;
      const int row = first_row + __ffs(bits) - 1;
      const int column = first_column + word - 16 * half;
      const float sum = open_sum(rows, columns, row, column);
      if (threadIdx.x % 32 == 0) *c.at(row, column) = finished(sum, 0, scalars, c.at(row, column));
    }
  }
}

}  // namespace kintsugi::core::cuda
