// Copies of FP64 operands from any layout into shared memory, by the producer warps.
//
// A stage has one k-tile or several. A k-tile has dmma_depth inner indices, as many as fill a line of 128
// bytes. It has one of two forms:
//
//   along k: a line has a vector's inner indices;
//   panels:  a line has 16 vectors at one inner index; the 16 lines of a k-tile's inner indices are a panel.
//
// The 16-byte chunk c of line l is stored at chunk c ^ (l & 7). So loads of fragments have no bank conflicts.
#pragma once

#include <algorithm>

#include "base/embedding.hpp"
#include "engines/cuda/gemm/dmma/dmma_tiles.hpp"
#include "engines/cuda/ptx/async_copy.cuh"

namespace kintsugi::core::cuda {

inline constexpr int dmma_producers = dmma_producer_warps * 32;  // number of producer threads

// Inner indices of a k-tile. A complex element fills a chunk, and is stored along k whatever the layout of
// its source.
template <class T>
inline constexpr int dmma_depth = dmma_line_bytes / static_cast<int>(sizeof(T));

// Byte offset of a 16-byte chunk in its line.
__device__ inline std::uint32_t swizzled_chunk_offset(int line, int chunk) {
  return static_cast<std::uint32_t>((chunk ^ (line & 7)) << 4);
}

// Offset of an FP64 element in a k-tile.
template <bool AlongK>
__device__ std::uint32_t offset_of_element(int vector, int p) {
  if constexpr (AlongK) {
    return vector * dmma_line_bytes + swizzled_chunk_offset(vector, p >> 1) + (p & 1) * 8;
  } else {
    return (vector >> 4) * 16 * dmma_line_bytes + p * dmma_line_bytes +
           swizzled_chunk_offset(p, vector >> 1 & 7) + (vector & 1) * 8;
  }
}

// Copies of one producer thread: its share of `Vectors` vectors of an operand, one k-tile after the other. In
// copy(), `Whole` means that the operand has all of these vectors and all inner indices of the k-tile. Then
// no element is tested for existence.
template <class T, int Vectors, bool AlongK>
class OperandCopies;

template <int Vectors, bool AlongK>
class OperandCopies<double, Vectors, AlongK> {
 public:
  __device__ OperandCopies(const MatrixView<const double>& operand, std::int64_t first, int thread)
      : rows_(static_cast<int>(std::min<std::int64_t>(operand.rows - first, Vectors))),
        row_bytes_(operand.row_stride * 8), column_bytes_(operand.column_stride * 8) {
    const std::int64_t element_stride = AlongK ? operand.column_stride : operand.row_stride;
    const std::int64_t line_stride = AlongK ? operand.row_stride : operand.column_stride;
    if (element_stride == 1 && reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0 &&
        line_stride % 2 == 0) {
      pattern_ = DmmaCopyPattern::chunks_of_16_bytes;
      vector_ = AlongK ? thread / 8 : thread % (Vectors / 2) * 2;
      p_ = AlongK ? thread % 8 * 2 : thread / (Vectors / 2);
    } else if (operand.column_stride < operand.row_stride) {
      pattern_ = DmmaCopyPattern::elements_along_k;
      vector_ = thread / 16;
      p_ = thread % 16;
    } else {
      pattern_ = DmmaCopyPattern::elements_along_vectors;
      vector_ = thread % 16;
      p_ = thread / 16;
    }
    offset_ = offset_of_element<AlongK>(vector_, p_);
    source_ =
        reinterpret_cast<const char*>(operand.data) + (first + vector_) * row_bytes_ + p_ * column_bytes_;
  }

  __device__ bool is_whole() const { return rows_ == Vectors; }

  // Copies the next k-tile to the address `k_tile`. `k_left` of its inner indices are inside the operand.
  template <bool Whole>
  __device__ void copy(std::uint32_t k_tile, int k_left) {
    const std::uint32_t target = k_tile + offset_;
    if (pattern_ == DmmaCopyPattern::chunks_of_16_bytes) {
      copy_chunks<Whole>(target, k_left);
    } else if (pattern_ == DmmaCopyPattern::elements_along_k) {
      copy_elements<Whole, 8, 16>(target, k_left);
    } else {
      copy_elements<Whole, 16, 8>(target, k_left);
    }
    source_ += 16 * column_bytes_;
  }

 private:
  enum class DmmaCopyPattern { chunks_of_16_bytes, elements_along_k, elements_along_vectors };

  // Address of the element that is `vectors` vectors and `p` inner indices after the thread's first element,
  // whose address is `target`. The swizzle is applied by XOR with the chunk's index. This is right, because
  // the bits that the two steps change are 0 in the index of the first element's chunk, and the two steps
  // change different bits.
  __device__ static constexpr std::uint32_t moved(std::uint32_t target, int vectors, int p) {
    if constexpr (AlongK) return (target ^ p / 8 % 2 * 64) + vectors * dmma_line_bytes;
    const std::uint32_t chunk = vectors / 8 % 2 * 4 ^ p % 8;
    return (target ^ chunk << 4) + (vectors / 16 * 16 + p) * dmma_line_bytes;
  }

  // Copies the thread's elements one by one: every VectorStep-th vector and every PStep-th inner index.
  template <bool Whole, int VectorStep, int PStep>
  __device__ void copy_elements(std::uint32_t target, int k_left) const {
    const char* source = source_;
#pragma unroll(Whole ? 16 : 1)
    for (int p = 0; p < 16; p += PStep, source += PStep * column_bytes_) {
      const char* from = source;
#pragma unroll(Whole ? 16 : 1)
      for (int v = 0; v < Vectors; v += VectorStep, from += VectorStep * row_bytes_) {
        copy_8_bytes(moved(target, v, p), from, Whole || (vector_ + v < rows_ && p_ + p < k_left));
      }
    }
  }
  // Copies the thread's elements in chunks of 16 bytes, two elements each.
  template <bool Whole>
  __device__ void copy_chunks(std::uint32_t target, int k_left) const {
    const char* from = source_;
    if constexpr (AlongK) {
      constexpr int step = dmma_producers / 8;
#pragma unroll(Whole ? 16 : 1)
      for (int v = 0; v < Vectors; v += step, from += step * row_bytes_)
        copy_chunk<Whole>(moved(target, v, 0), from, vector_ + v < rows_ ? k_left - p_ : 0);
    } else {
      constexpr int step = dmma_producers / (Vectors / 2);
#pragma unroll(Whole ? 16 : 1)
      for (int p = 0; p < 16; p += step, from += step * column_bytes_)
        copy_chunk<Whole>(moved(target, 0, p), from, p_ + p < k_left ? rows_ - vector_ : 0);
    }
  }
  // Copies a chunk of two elements. Only the first `existing` of them exist.
  template <bool Whole>
  __device__ static void copy_chunk(std::uint32_t target, const char* from, int existing) {
    if (Whole || existing >= 2) {
      copy_16_bytes(target, from, /*exists=*/true);
    } else {
      copy_8_bytes(target, from, existing == 1);
      copy_8_bytes(target + 8, from, /*exists=*/false);
    }
  }

  const char* source_;  // the thread's first element of the next k-tile
  DmmaCopyPattern pattern_;
  int rows_;              // number of vectors of the tile that exist
  int vector_, p_;        // vector and inner index of the thread's first element
  std::uint32_t offset_;  // offset of that element in the k-tile in shared memory
  std::int64_t row_bytes_, column_bytes_;
};

template <int Vectors, bool AlongK>
class OperandCopies<Complex<double>, Vectors, AlongK> {
 public:
  static_assert(AlongK);
  using Element = Complex<double>;

  __device__ OperandCopies(const MatrixView<const Element>& operand, std::int64_t first, int thread)
      : rows_(static_cast<int>(std::min<std::int64_t>(operand.rows - first, Vectors))),
        is_aligned_(reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0),
        row_bytes_(operand.row_stride * 16), column_bytes_(operand.column_stride * 16) {
    const bool lanes_along_k = operand.column_stride < operand.row_stride;
    vector_ = lanes_along_k ? thread / 8 : thread % 16;
    p_ = lanes_along_k ? thread % 8 : thread / 16;
    static_assert(dmma_producers / 8 == 16);  // both layouts have the same step
    source_ =
        reinterpret_cast<const char*>(operand.data) + (first + vector_) * row_bytes_ + p_ * column_bytes_;
  }

  __device__ bool is_whole() const { return rows_ == Vectors; }

  template <bool Whole>
  __device__ void copy(std::uint32_t target, int k_left) {
    const char* from = source_;
    target += vector_ * dmma_line_bytes + swizzled_chunk_offset(vector_, p_);
#pragma unroll(Whole ? 4 : 1)
    for (int v = 0; v < Vectors; v += 16, from += 16 * row_bytes_, target += 16 * dmma_line_bytes) {
      const bool exists = Whole || (vector_ + v < rows_ && p_ < k_left);
      if (is_aligned_) {
        copy_16_bytes(target, from, exists);
      } else {
        copy_8_bytes(target, from, exists);
        copy_8_bytes(target + 8, from + 8, exists);
      }
    }
    source_ += 8 * column_bytes_;
  }

 private:
  const char* source_;
  int rows_;
  int vector_, p_;
  bool is_aligned_;
  std::int64_t row_bytes_, column_bytes_;
};

}  // namespace kintsugi::core::cuda
