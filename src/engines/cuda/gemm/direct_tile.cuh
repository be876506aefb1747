// Parts that the kernels of the scheme bf16x6-direct share: loads of FP32 tiles, the test of elements, and
// elements computed one by one.
#pragma once

#include "arith/epilogue.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/direct_params.hpp"
#include "engines/cuda/gemm/direct_split.cuh"
#include "engines/cuda/ptx/tma.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// One operand in the terms of the kernels: vectors of k elements.
struct DirectOperand {
  const float* data;
  std::int64_t vectors;
  std::int64_t length;
  std::int64_t vector_stride;
  std::int64_t element_stride;

  // Vectors first ... first + count - 1 of a batch item.
  __device__ DirectOperand(const DeviceSide& side, std::int64_t item, std::int64_t first,
                           std::int64_t count) {
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
__device__ inline DirectOperand operand_of(const DirectParams& params, int side) {
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
__device__ inline void copy_lines(const DirectOperand& operand, bool along_k, std::uint32_t target,
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
__device__ inline void copy_aligned_lines(const DirectOperand& operand, bool along_k, std::uint32_t target,
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

// accepts_direct_sum() for a row and a column with these patterns of their largest magnitudes. With NaN the
// sum is NaN, as it should be.
__device__ inline bool accepts(std::uint32_t row, std::uint32_t column, float sum) {
  constexpr std::uint32_t infinity = 0x7f800000U;
  if (max(row, column) > infinity) return true;
  return accepts_direct_sum(__uint_as_float(row), __uint_as_float(column), sum);
}

// Returns the largest value of the thread block. `memory` is in shared memory and 0 before. All threads call
// it together.
__device__ inline std::uint32_t largest_of_block(std::uint32_t value, std::uint32_t& memory) {
  value = __reduce_max_sync(~0U, value);
  if (threadIdx.x % 32 == 0) atomicMax(&memory, value);
  __syncthreads();
  return memory;
}

// True if the sum is accepted in a row and a column whose largest magnitudes are at most `most`.
__device__ inline bool accepts_up_to(std::uint32_t most, float sum) {
  return accepts_direct_sum(__uint_as_float(most), __uint_as_float(most), sum);
}

// Gives vectors of a tile whose high slices are all zero, but not all of their elements, the largest
// magnitude direct_tiny_largest. `first`: first vector in the side's region of C. The threads of the first
// `warps` warps call it.
__device__ inline void find_tiny(const DirectParams& params, int side, std::int64_t first,
                                 std::uint32_t* largest, int vectors, int warps = blockDim.x / 32) {
  const DirectOperand operand = operand_of(params, side);
#pragma unroll 1
  for (int v = threadIdx.x / 32; v < vectors; v += warps) {
    if (largest[v] != 0 || first + v >= operand.vectors) continue;
    bool has_element = false;
#pragma unroll 1
    for (std::int64_t p = threadIdx.x % 32; p < operand.length; p += 32)
      has_element = has_element || *operand.at(first + v, p) != 0.0F;
    if (__any_sync(~0U, has_element) && threadIdx.x % 32 == 0)
      largest[v] = __float_as_uint(direct_tiny_largest);
  }
}

// Sums of a tile in memory. Each of `Threads` threads has `Fours` times four sums of its own in a place.
template <int Fours, int Threads>
class TilePlaces {
 public:
  __device__ TilePlaces(const DirectParams& params, std::int64_t tile, int thread)
      : first_(reinterpret_cast<float4*>(params.partial_sums) + tile * params.places * (Fours * Threads) +
               thread) {}

  __device__ __forceinline__ void store(int place, const float* sums) const {
    float4* const target = first_ + std::int64_t{place} * (Fours * Threads);
#pragma unroll
    for (int i = 0; i < Fours; ++i)
      __stcg(target + i * Threads, {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]});
  }

  // Adds what the places of `count` sums have, in order. Some of them are loaded at once.
  template <int AtOnce>
  __device__ __forceinline__ void add(int place, int step, int count, float* sums) const {
#pragma unroll 1
    for (int first = 0; first < count; first += AtOnce) {
      float4 fours[AtOnce][Fours];
#pragma unroll
      for (int c = 0; c < AtOnce; ++c) {
        if (c > 0 && first + c >= count) break;
        const float4* const source = first_ + std::int64_t{place + (first + c) * step} * (Fours * Threads);
#pragma unroll
        for (int i = 0; i < Fours; ++i) fours[c][i] = __ldcg(source + i * Threads);
      }
#pragma unroll
      for (int c = 0; c < AtOnce; ++c) {
        if (c > 0 && first + c >= count) break;
#pragma unroll
        for (int i = 0; i < Fours; ++i) add_four(sums + 4 * i, fours[c][i]);
      }
    }
  }

  // DirectTree::end_sum().
  __device__ __forceinline__ void end_sum(const DirectParams& params, int split, int level, int index,
                                          bool ends_k, int first_running, float* sums) const {
    params.tree.end_sum(
        params.splits > 1 ? split : -1, level, index, ends_k, first_running,
        [&](int place) { add<1>(place, 0, 1, sums); }, [&](int place) { store(place, sums); });
  }

  // DirectTree::meet(). `last` is in shared memory. All threads of the thread block call it; those with
  // `has_sums` have sums.
  template <int AtOnce>
  __device__ __forceinline__ bool meet(const DirectParams& params, std::int64_t tile, int split,
                                       unsigned& last, bool has_sums, float* sums) const {
    std::uint32_t* const counters = params.counters + tile * params.tree.counters();
    return params.tree.meet(
        split,
        [&](int counter, int arrivals) {
          __threadfence();
          __syncthreads();
          if (threadIdx.x == 0)
            last = atomicAdd(counters + counter, 1U) == static_cast<unsigned>(arrivals - 1) ? 1 : 0;
          __syncthreads();
          const bool is_last = last != 0;
          if (is_last) __threadfence();
          return is_last;
        },
        [&](int place, int step, int count) {
          if (!has_sums) return;
#pragma unroll
          for (int e = 0; e < 4 * Fours; ++e) sums[e] = 0;
          add<AtOnce>(place, step, count, sums);
        },
        [&](int place) {
          if (has_sums) store(place, sums);
        });
  }

 private:
  float4* first_;
};

// The thread block adds the largest magnitudes of its part of k to those of the tile.
template <int Threads>
__device__ __forceinline__ void share_largest(const DirectParams& params, std::int64_t tile,
                                              const std::uint32_t* largest, int vectors) {
  for (int v = threadIdx.x; v < vectors; v += Threads)
    if (largest[v] != 0) atomicMax(params.largest + tile * vectors + v, largest[v]);
}
template <int Threads>
__device__ __forceinline__ void take_largest(const DirectParams& params, std::int64_t tile,
                                             std::uint32_t* largest, int vectors) {
  for (int v = threadIdx.x; v < vectors; v += Threads)
    largest[v] = __ldcg(params.largest + tile * vectors + v);
  __syncthreads();
}

// Bytes of a warp's memory for open_sum(): a group of both vectors, steps in lines of their own, which begin
// in different banks.
inline constexpr int open_line = direct_step + 1;
inline constexpr int open_sum_bytes = 2 * 32 * open_line * 4;

// Sum of element (i, j) in FP32, in the order of the hierarchy. The warp calls it together; every lane gets
// the sum.
__device__ inline float open_sum(const DirectOperand& a, const DirectOperand& b, std::int64_t i,
                                 std::int64_t j, std::uint32_t memory) {
  static_assert(leaf_steps * group_leaves == 32 && 32 % direct_step == 0);
  const int leaves = static_cast<int>(divide_up(a.length, direct_leaf));
  const int lane = threadIdx.x % 32;
  const std::uint32_t other = memory + open_sum_bytes / 2;
  DirectSum sums;
#pragma unroll 1
  for (int first = 0; first < leaves; first += group_leaves) {  // a step for each lane
    const std::int64_t begin = std::int64_t{first} * direct_leaf;
    const int left = static_cast<int>(min(a.length - begin, std::int64_t{direct_group}));
    const float* const x = a.at(i, begin + lane);
    const float* const y = b.at(j, begin + lane);
    __syncwarp();
#pragma unroll 4
    for (int e = 0; e < left; e += 32) {
      const bool exists = e + lane < left;
      const std::uint32_t place = ((e + lane) / direct_step * open_line + lane % direct_step) * 4;
      copy_4_bytes(memory + place, exists ? x + e * a.element_stride : a.data, exists);
      copy_4_bytes(other + place, exists ? y + e * b.element_stride : b.data, exists);
    }
    commit_copies();
    await_copies_but<0>();
    __syncwarp();
    float step = 0;
    if (direct_step * lane < left) {
      const std::uint32_t line = lane * open_line * 4;
#pragma unroll 8
      for (int p = 0; p < direct_step; ++p)
        step = __fmaf_rn(load_shared(memory + line + 4 * p), load_shared(other + line + 4 * p), step);
    }
    __syncwarp();
    float leaf = 0;
#pragma unroll
    for (int s = 0; s < leaf_steps; ++s) leaf += __shfl_sync(~0U, step, (lane & ~(leaf_steps - 1)) + s);
#pragma unroll 1
    for (int l = 0; l < min(group_leaves, leaves - first); ++l)
      sums.add_leaf(__shfl_sync(~0U, leaf, l * leaf_steps), begin + (l + 1) * direct_leaf,
                    first + l + 1 == leaves);
  }
  return sums.total;
}

// alpha * sum + beta * c.
__device__ inline float finished(float sum, const Scalars<float>& scalars, const float* c) {
  return epilogue(static_cast<double>(sum), 0, scalars.alpha, scalars.beta,
                  scalars.beta == 0.0F ? nullptr : c);
}

// DirectTarget of one batch item.
struct DirectResult {
  float* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;

  __device__ DirectResult(const DirectParams& params, std::int64_t item)
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
__device__ inline void scale_tile(const DirectResult& c, std::int64_t first_row, std::int64_t first_column,
                                  int rows, int columns, float beta) {
  if (beta == 1.0F) return;
  for (int e = threadIdx.x; e < rows * columns; e += Threads) {
    const std::int64_t i = first_row + e % rows;
    const std::int64_t j = first_column + e / rows;
    if (i < c.rows && j < c.columns) *c.at(i, j) = scaled(beta, *c.at(i, j));
  }
}

// One thread of thread block `block` of an item adds the launch's batch items to the report.
__device__ inline void report_items(const DirectParams& params, std::uint32_t block, float alpha) {
  const bool is_first = params.tile.first_row == 0 && params.tile.first_column == 0;  // block of C
  if (params.report == nullptr || !is_first || block != 0 || blockIdx.y != 0) return;
  count(alpha == 0.0F ? params.report->scaled : params.report->items[0], gridDim.y);
}

// Elements of a tile that are not accepted, in shared memory.
class OpenElements {
 public:
  static constexpr int bytes_of(int elements) { return 2 * elements; }

  __device__ OpenElements(std::uint32_t& count, std::uint32_t memory) : count_(count), memory_(memory) {}

  __device__ void add(int row, int column) {
    const std::uint32_t place = memory_ + bytes_of(static_cast<int>(atomicAdd(&count_, 1U)));
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(place), "h"(static_cast<std::uint16_t>(row * 256 + column))
                 : "memory");
  }

  // Computes the elements of the tile at (first_row, first_column) in FP32, each by a warp. `scratch` has
  // open_sum_bytes for each warp. All threads of the first `warps` warps call it after a barrier.
  __device__ void compute(const DirectParams& params, std::int64_t first_row, std::int64_t first_column,
                          std::uint32_t scratch, int warps = blockDim.x / 32) const {
    const DirectOperand a = operand_of(params, 0);
    const DirectOperand b = operand_of(params, 1);
    const DirectResult c(params, blockIdx.y);
    const Scalars<float> scalars(params.tile.scalars);
    const int warp = threadIdx.x / 32;
    if (params.report != nullptr && threadIdx.x == 0)
      core::cuda::count(params.report->recomputed, static_cast<int>(count_));
#pragma unroll 1
    for (std::uint32_t e = warp; e < count_; e += warps) {
      std::uint16_t place;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(place) : "r"(memory_ + bytes_of(static_cast<int>(e))));
      const std::int64_t i = first_row + place / 256;
      const std::int64_t j = first_column + place % 256;
      const float sum = open_sum(a, b, i, j, scratch + warp * open_sum_bytes);
      if (threadIdx.x % 32 == 0) *c.at(i, j) = finished(sum, scalars, c.at(i, j));
    }
  }

 private:
  std::uint32_t& count_;
  std::uint32_t memory_;
};

}  // namespace kintsugi::core::cuda
