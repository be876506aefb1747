// Parts of FP64 products on tensor cores (DMMA): copies of operands into shared memory, and a warp's tile.
#pragma once

#include <algorithm>

#include "base/embedding.hpp"
#include "engines/cuda/gemm/dmma_tiles.hpp"
#include "engines/cuda/gemm/native_epilogue.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

// Copies of FP64 operands from any layout into shared memory, by the producer warps.
//
// A stage has one k-tile or several. A k-tile has dmma_depth inner indices, as many as fill a line of 128
// bytes. It has one of two forms:
//
//   along k: a line has a vector's inner indices;
//   panels:  a line has 16 vectors at one inner index; the 16 lines of a k-tile's inner indices are a panel.
//
// The 16-byte chunk c of line l is stored at chunk c ^ (l & 7). So loads of fragments have no bank conflicts.

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

// A warp's tile within the thread block's tile of C. It loads fragments from shared memory, multiplies them
// by the FP64 matrix unit (PTX ISA: mma.m16n8k8, DMMA), and holds the sums.
//
// Lane 4 g + t has rows g and g + 8 and inner indices t and t + 4 of A's 16 x 8 fragment; column g and the
// same inner indices of B's 8 x 8 fragment; and columns 2 t and 2 t + 1 of the sums. The unit's rows, columns
// and inner indices may stand for those of the operands in any order, as long as A, B and C agree. The order
// makes a lane's operands contiguous in shared memory: the unit's inner indices t and t + 4 stand for inner
// indices 2 t and 2 t + 1 of half a k-tile.

// Adds the product of a fragment of A and a fragment of B to the sums. a_low has the lane's first inner index
// for both of its rows, a_high the second one.
__device__ inline void multiply_fragments(double (&sums)[4], const double2& a_low, const double2& a_high,
                                          const double2& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a_low.x), "d"(a_low.y), "d"(a_high.x), "d"(a_high.y), "d"(b.x), "d"(b.y));
}

// Vector that row or column g of the unit stands for, if vectors are stored along k. With this order the
// lanes that one phase of a load serves access different banks.
__device__ inline int vector_of(int g) { return g >> 1 | (g & 1) << 2; }

__device__ inline double2 load_two(const unsigned char* shared) {
  return *reinterpret_cast<const double2*>(shared);
}
__device__ inline double load_one(const unsigned char* shared) {
  return *reinterpret_cast<const double*>(shared);
}

// Base class of tiles of real and of complex numbers. A fragment has half of a k-tile's inner indices.
template <int Rows, int Columns>
struct WarpShape {
  static constexpr int row_fragments = Rows / 16;
  static constexpr int column_fragments = Columns / 8;

  __device__ static int g() { return static_cast<int>(threadIdx.x) % warp_size / 4; }
  __device__ static int t() { return static_cast<int>(threadIdx.x) % 4; }
};

// Warp's tile of Rows x Columns elements. `a` and `b` are the operands of the first stage in shared memory;
// the tile begins at (row, column) of the thread block's tile. B is stored along k if `AlongK`, else in
// panels. A is stored in panels if elements are real, along k if they are complex. Fragments are loaded into
// one of two register buffers.
template <class T, int Rows, int Columns, bool AlongK>
class WarpTile;

template <int Rows, int Columns, bool AlongK>
class WarpTile<double, Rows, Columns, AlongK> : public WarpShape<Rows, Columns> {
 public:
  using Shape = WarpShape<Rows, Columns>;
  using Shape::column_fragments, Shape::g, Shape::t;
  static constexpr bool a_along_k = false;

  __device__ WarpTile(const unsigned char* a, const unsigned char* b, int row, int column)
      : a_(a + (row + 2 * t()) * dmma_line_bytes),
        b_(b + (column + (AlongK ? vector_of(g()) : 2 * t())) * dmma_line_bytes),
        a_offset_{swizzled_chunk_offset(2 * t(), g()),
                  swizzled_chunk_offset(2 * t() + 1, g()) + dmma_line_bytes} {
    if constexpr (AlongK) {
      b_offset_[0] = swizzled_chunk_offset(vector_of(g()), t());
      b_offset_[1] = swizzled_chunk_offset(vector_of(g()), 4 + t());
    } else {  // offsets of the two inner indices, in the first eight vectors of the panel
      b_offset_[0] = swizzled_chunk_offset(2 * t(), g() >> 1) + (g() & 1) * 8;
      b_offset_[1] = swizzled_chunk_offset(2 * t() + 1, g() >> 1) + (g() & 1) * 8 + dmma_line_bytes;
    }
  }

  // Loads the fragment of row i of fragments in one half of a k-tile.
  __device__ void load_a(int buffer, std::uint32_t k_tile_offset, int k_half, int i) {
    const unsigned char* from = a_ + k_tile_offset + (i * 16 + k_half * 8) * dmma_line_bytes;
    a_fragment_[buffer][0] = load_two(from + a_offset_[0]);
    a_fragment_[buffer][1] = load_two(from + a_offset_[1]);
  }
  // Loads all fragments of B in one half of a k-tile.
  __device__ void load_b(int buffer, std::uint32_t k_tile_offset, int k_half) {
    const unsigned char* from = b_ + k_tile_offset;
    if constexpr (AlongK) {
      from += b_offset_[k_half];
#pragma unroll
      for (int j = 0; j < column_fragments; ++j)
        b_fragment_[buffer][j] = load_two(from + j * 8 * dmma_line_bytes);
    } else {
      from += k_half * 8 * dmma_line_bytes;
#pragma unroll
      for (int j = 0; j < column_fragments; ++j) {
        const unsigned char* panel = from + j / 2 * 16 * dmma_line_bytes;
        const std::uint32_t other_half = j % 2 * 64;  // the other eight vectors of the panel are chunks c ^ 4
        b_fragment_[buffer][j] = {load_one(panel + (b_offset_[0] ^ other_half)),
                                  load_one(panel + (b_offset_[1] ^ other_half))};
      }
    }
  }
  // Adds the products of the loaded fragment of A and all loaded fragments of B to row i of the fragments of
  // sums.
  __device__ void multiply(int i, int a_buffer, int b_buffer) {
#pragma unroll
    for (int j = 0; j < column_fragments; ++j) {
      multiply_fragments(sums_[i][j], a_fragment_[a_buffer][0], a_fragment_[a_buffer][1],
                         b_fragment_[b_buffer][j]);
    }
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::row_fragments; ++i) {
#pragma unroll
      for (int j = 0; j < column_fragments; ++j) {
#pragma unroll
        for (double& sum : sums_[i][j]) sum = 0;
      }
    }
  }
  // Sum e of the four sums of fragment (i, j); row() and column() give its row and column in the warp's tile.
  __device__ double sum(int i, int j, int e) const { return sums_[i][j][e]; }
  __device__ static int row(int i, int e) { return i * 16 + 2 * g() + e / 2; }
  __device__ static int column(int j, int e) { return j * 8 + (AlongK ? t() + e % 2 * 4 : 2 * t() + e % 2); }

 private:
  const unsigned char* a_;
  const unsigned char* b_;
  std::uint32_t a_offset_[2];
  std::uint32_t b_offset_[2];
  double2 a_fragment_[2][2];
  double2 b_fragment_[2][column_fragments];
  double sums_[Shape::row_fragments][column_fragments][4];
};

// Tile of complex numbers. The parts (re a, im a) of A's elements are adjacent along k. An element b of B
// gives two columns: (re b, -im b) for the real part of C and (im b, re b) for its imaginary part.
// Conjugation, also that of A, only changes the signs of B's parts. Let s be -1 for a conjugated A and s' be
// -1 for a conjugated B, else 1; then the columns are (re b, -s s' im b) and (s' im b, s re b).
template <int Rows, int Columns>
class WarpTile<Complex<double>, Rows, Columns, true> : public WarpShape<Rows, Columns> {
 public:
  using Shape = WarpShape<Rows, Columns>;
  using Shape::column_fragments, Shape::g, Shape::t;
  static constexpr bool a_along_k = true;

  __device__ WarpTile(const unsigned char* a, const unsigned char* b, int row, int column)
      : a_(a + (row + vector_of(g())) * dmma_line_bytes), b_(b + (column + vector_of(g())) * dmma_line_bytes),
        offset_{swizzled_chunk_offset(vector_of(g()), t()), swizzled_chunk_offset(vector_of(g()), 4 + t())} {}

  __device__ void set_conjugation(bool a_is_conjugated, bool b_is_conjugated) {
    constexpr unsigned sign = 1U << 31;
    real_part_signs_[1] = a_is_conjugated == b_is_conjugated ? sign : 0;
    imaginary_part_signs_[0] = b_is_conjugated ? sign : 0;
    imaginary_part_signs_[1] = a_is_conjugated ? sign : 0;
  }

  __device__ void load_a(int buffer, std::uint32_t k_tile_offset, int k_half, int i) {
    const unsigned char* low = a_ + k_tile_offset + i * 16 * dmma_line_bytes + offset_[k_half];
    const unsigned char* high = low + 8 * dmma_line_bytes;
    a_fragment_[buffer][0] = {load_one(low), load_one(high)};
    a_fragment_[buffer][1] = {load_one(low + 8), load_one(high + 8)};
  }
  __device__ void load_b(int buffer, std::uint32_t k_tile_offset, int k_half) {
    const unsigned char* from = b_ + k_tile_offset + offset_[k_half];
#pragma unroll
    for (int j = 0; j < column_fragments; ++j)
      b_fragment_[buffer][j] = load_two(from + j * 8 * dmma_line_bytes);
  }
  __device__ void multiply(int i, int a_buffer, int b_buffer) {
#pragma unroll
    for (int j = 0; j < column_fragments; ++j) {
      const double2& b = b_fragment_[b_buffer][j];
      multiply_fragments(real_[i][j], a_fragment_[a_buffer][0], a_fragment_[a_buffer][1],
                         {b.x, with_sign(b.y, real_part_signs_[1])});
      multiply_fragments(
          imaginary_[i][j], a_fragment_[a_buffer][0], a_fragment_[a_buffer][1],
          {with_sign(b.y, imaginary_part_signs_[0]), with_sign(b.x, imaginary_part_signs_[1])});
    }
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::row_fragments; ++i) {
#pragma unroll
      for (int j = 0; j < column_fragments; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) real_[i][j][e] = imaginary_[i][j][e] = 0;
      }
    }
  }
  __device__ Complex<double> sum(int i, int j, int e) const { return {real_[i][j][e], imaginary_[i][j][e]}; }
  __device__ static int row(int i, int e) { return i * 16 + vector_of(g()) + e / 2 * 8; }
  __device__ static int column(int j, int e) { return j * 8 + t() + e % 2 * 4; }

 private:
  __device__ static double with_sign(double x, unsigned flipped) {
    return __hiloint2double(__double2hiint(x) ^ static_cast<int>(flipped), __double2loint(x));
  }

  const unsigned char* a_;
  const unsigned char* b_;
  std::uint32_t offset_[2];                      // one per k-half
  unsigned real_part_signs_[2] = {0, 1U << 31};  // sign bits that change in (re b, im b)
  unsigned imaginary_part_signs_[2] = {0, 0};    // sign bits that change in (im b, re b)
  double2 a_fragment_[2][2];
  double2 b_fragment_[2][column_fragments];
  double real_[Shape::row_fragments][column_fragments][4];
  double imaginary_[Shape::row_fragments][column_fragments][4];
};

}  // namespace kintsugi::core::cuda
