// FP64 and complex FP64 products on tensor cores, for device matrices of any layout. Sums are FP64, rounded
// to nearest. Their order depends on k alone; so the bits depend neither on tiles nor on layouts.
//
// Four producer warps copy operands into the pipeline's stages; the other warps multiply. A thread block
// computes tiles blockIdx.x, blockIdx.x + gridDim.x and so on of one batch item. While it writes the sums of
// a tile, it copies the operands of the next one.
#pragma once

#include <algorithm>

#include "base/embedding.hpp"
#include "engines/cuda/gemm/dmma_tiles.hpp"
#include "engines/cuda/gemm/native_epilogue.cuh"
#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
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

namespace {

// Pipeline stages in shared memory, and their barriers. A stage has k_tiles k-tiles of A and of B.
template <DmmaConfig Config>
struct Stages {
  static constexpr std::uint32_t k_tile_bytes = (Config.rows + Config.columns) * dmma_line_bytes;
  static constexpr std::uint32_t stage_bytes = k_tile_bytes * Config.k_tiles;
  static constexpr std::uint32_t b_bytes = Config.rows * dmma_line_bytes;  // offset of B in a k-tile

  unsigned char bytes[Config.stages * stage_bytes];
  Mbarrier full[Config.stages];
  Mbarrier empty[Config.stages];
};

// Pipeline state: stage index and mbarrier phase.
template <DmmaConfig Config>
struct PipelineState {
  int stage = 0;
  unsigned parity = 0;

  __device__ void advance() {
    if (++stage == Config.stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Operands of the matrix unit for a region of C. `a` gives the unit's rows, `b` its columns. If the task is
// swapped, `a` is B, `b` is A, and `c` is the transpose of C.
template <class T>
struct DmmaProblem {
  MatrixView<const T> a;  // vectors x k
  MatrixView<const T> b;
  MatrixView<T> c;

  __device__ explicit DmmaProblem(const DmmaTask& task) {
    const DeviceTile& tile = task.tile;
    a = view_of<const T>(tile.a.matrix, tile.a.item + blockIdx.y)
            .block(tile.first_row, 0, tile.rows, k(task));
    b = view_of<const T>(tile.b.matrix, tile.b.item + blockIdx.y)
            .block(tile.first_column, 0, tile.columns, k(task));
    c = view_of<T>(tile.c, tile.item + blockIdx.y)
            .block(tile.first_row, tile.first_column, tile.rows, tile.columns);
    if (!task.swapped) return;
    const MatrixView<const T> a_as_called = a;
    a = b;
    b = a_as_called;
    c = {c.data, c.columns, c.rows, c.column_stride, c.row_stride, c.space};
  }
  __device__ static std::int64_t k(const DmmaTask& task) { return task.tile.a.matrix.columns; }
};

// First row and column of tile `index`. Tiles are counted column by column within groups of 1024 rows. So
// tiles that are computed at the same time share operands, which stay in L2.
template <DmmaConfig Config>
__device__ Position tile_position(const DmmaTask& task, int index) {
  constexpr int group = 1024 / Config.rows;  // number of rows of tiles in a group
  const int tiles_in_group = group * task.column_tiles;
  const int first_row = index / tiles_in_group * group;  // index of a row of tiles
  const int rows = min(task.row_tiles - first_row, group);
  const int index_in_group = index % tiles_in_group;
  return {(first_row + index_in_group % rows) * Config.rows, index_in_group / rows * Config.columns};
}

// Work of a thread block. Its producer warps call produce(), its consumer warps call consume().
template <class T, DmmaConfig Config, bool AlongK>
class DmmaBlock {
 public:
  using Tile = WarpTile<T, Config.warp_rows, Config.warp_columns, AlongK>;
  using Buffers = Stages<Config>;

  __device__ DmmaBlock(const DmmaTask& task, Buffers& buffers)
      : task_(task), buffers_(buffers), problem_(task), tiles_(task.row_tiles * task.column_tiles),
        steps_(static_cast<int>(divide_up(DmmaProblem<T>::k(task), dmma_depth<T> * Config.k_tiles))) {}

  // Initializes the barriers. All threads must call it together.
  __device__ static void initialise(Buffers& buffers) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Config.stages; ++s) {
        buffers.full[s].initialise(dmma_producers);
        buffers.empty[s].initialise(Config.consumer_warps());
      }
    }
    __syncthreads();
  }

  // Copies the operands of all tiles of the thread block.
  __device__ void produce() const {
    constexpr int depth = dmma_depth<T>;
    const int thread = static_cast<int>(threadIdx.x) - Config.consumer_warps() * warp_size;
    PipelineState<Config> state;
#pragma unroll 1
    for (int index = static_cast<int>(blockIdx.x); index < tiles_; index += static_cast<int>(gridDim.x)) {
      const Position first = tile_position<Config>(task_, index);
      OperandCopies<T, Config.rows, Tile::a_along_k> a(problem_.a, first.row, thread);
      OperandCopies<T, Config.columns, AlongK> b(problem_.b, first.column, thread);
      std::int64_t k_left = DmmaProblem<T>::k(task_);
#pragma unroll 1
      for (int step = 0; step < steps_; ++step) {
        buffers_.empty[state.stage].wait(state.parity ^ 1);
        std::uint32_t k_tile = shared_address(buffers_.bytes) + state.stage * Buffers::stage_bytes;
#pragma unroll 1
        for (int p = 0; p < Config.k_tiles; ++p, k_tile += Buffers::k_tile_bytes, k_left -= depth) {
          copy(a, k_tile, k_left);
          copy(b, k_tile + Buffers::b_bytes, k_left);
        }
        buffers_.full[state.stage].arrive_after_copies();
        state.advance();
      }
    }
    await_copies();
  }

  // Computes the warp's part of all tiles of the thread block.
  __device__ void consume() const {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    constexpr int warps_along_rows = Config.rows / Config.warp_rows;
    const Position warp_tile{warp % warps_along_rows * Config.warp_rows,
                             warp / warps_along_rows * Config.warp_columns};
    Tile sums(buffers_.bytes, buffers_.bytes + Buffers::b_bytes, warp_tile.row, warp_tile.column);
    if constexpr (is_complex<T>)
      sums.set_conjugation(task_.tile.a.matrix.conjugated, task_.tile.b.matrix.conjugated);
    PipelineState<Config> state;
#pragma unroll 1
    for (int index = static_cast<int>(blockIdx.x); index < tiles_; index += static_cast<int>(gridDim.x)) {
      sums.clear();
      if (steps_ > 0) sum_up(sums, state);
      const Position first = tile_position<Config>(task_, index);
      write(sums, first.row + warp_tile.row, first.column + warp_tile.column);
    }
  }

 private:
  // Copies the next k-tile of an operand. `k_left` is the number of inner indices that are left.
  template <class Copies>
  __device__ static void copy(Copies& copies, std::uint32_t target, std::int64_t k_left) {
    if (copies.is_whole() && k_left >= dmma_depth<T>) {
      copies.template copy</*Whole=*/true>(target, dmma_depth<T>);
    } else {
      copies.template copy</*Whole=*/false>(target,
                                            static_cast<int>(std::min<std::int64_t>(k_left, dmma_depth<T>)));
    }
  }

  // Multiplies all k-tiles of a tile of C. Each fragment is loaded while the one before it is multiplied. A
  // fragment has half of a k-tile's inner indices, a k-half. A pipeline stage has `k_halves` fragments for
  // each of A's `rows` rows of fragments. They are multiplied k-half by k-half, and row by row within a
  // k-half; q counts them.
  __device__ void sum_up(Tile& sums, PipelineState<Config>& state) const {
    constexpr int rows = Tile::row_fragments;
    constexpr int k_halves = 2 * Config.k_tiles;
    buffers_.full[state.stage].wait(state.parity);
    load_b(sums, state.stage, /*k_half=*/0);
    load_a(sums, state.stage, /*q=*/0, /*k_half=*/0, /*row=*/0);
#pragma unroll 1
    for (int step = 1; step <= steps_; ++step) {
#pragma unroll
      for (int q = 0; q < rows * k_halves; ++q) {
        const int k_half = q / rows;
        const int row = q % rows;
        const int next = q + 1;
        if (next < rows * k_halves) {
          const int next_k_half = next / rows;
          if (row == 0 && k_half + 1 < k_halves) load_b(sums, state.stage, k_half + 1);
          load_a(sums, state.stage, next, next_k_half, next % rows);
        } else {
          __syncwarp();
          if (threadIdx.x % warp_size == 0) buffers_.empty[state.stage].arrive();
          state.advance();
          if (step < steps_) {
            buffers_.full[state.stage].wait(state.parity);
            load_b(sums, state.stage, /*k_half=*/0);
            load_a(sums, state.stage, /*q=*/0, /*k_half=*/0, /*row=*/0);
          }
        }
        sums.multiply(row, q % 2, k_half % 2);
      }
    }
  }
  // Loads all fragments of B in a k-half of a stage into one of two register buffers, which alternate by
  // k-half.
  __device__ static void load_b(Tile& sums, int stage, int k_half) {
    sums.load_b(k_half % 2, k_tile_offset(stage, k_half / 2), k_half % 2);
  }
  // Loads the fragment of A in a row and a k-half of a stage, the q-th of the stage, into one of two register
  // buffers, which alternate by q.
  __device__ static void load_a(Tile& sums, int stage, int q, int k_half, int row) {
    sums.load_a(q % 2, k_tile_offset(stage, k_half / 2), k_half % 2, row);
  }
  __device__ static std::uint32_t k_tile_offset(int stage, int k_tile) {
    return stage * Buffers::stage_bytes + k_tile * Buffers::k_tile_bytes;
  }

  // Writes the elements of the warp's tile, which begins at (row, column) of problem_.c.
  __device__ void write(const Tile& sums, std::int64_t row, std::int64_t column) const {
    const std::int64_t rows = std::min<std::int64_t>(Config.warp_rows, problem_.c.rows - row);
    const std::int64_t columns = std::min<std::int64_t>(Config.warp_columns, problem_.c.columns - column);
    if (rows <= 0 || columns <= 0) return;
    const Scalars<T> scalars(task_.tile.scalars);
    const MatrixView<T> c = problem_.c.block(row, column, rows, columns);
    const bool adds_c = scalars.beta != T(0);
    T* first_of_column = &c(Tile::row(0, 0), Tile::column(0, 0));
    const std::int64_t next_row = (Tile::row(0, 2) - Tile::row(0, 0)) * c.row_stride;
    const std::int64_t next_column = (Tile::column(0, 1) - Tile::column(0, 0)) * c.column_stride;
#pragma unroll
    for (int j = 0; j < Tile::column_fragments; ++j, first_of_column += 8 * c.column_stride) {
      T* element = first_of_column;
#pragma unroll
      for (int i = 0; i < Tile::row_fragments; ++i, element += 16 * c.row_stride) {
        asm volatile(""
                     : "+l"(element));  // keeps the compiler from computing addresses ahead, into registers
        T* const elements[4] = {element, element + next_column, element + next_row,
                                element + next_row + next_column};
        constexpr bool reads_ahead = !is_complex<T>;  // complex elements have too few registers for it
        T old[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (reads_ahead && adds_c && exists(c, i, j, e)) old[e] = *elements[e];
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (!exists(c, i, j, e)) continue;
          if (!reads_ahead && adds_c) old[e] = *elements[e];
          const T product = times(scalars.alpha, sums.sum(i, j, e));
          *elements[e] = adds_c ? product + times(scalars.beta, old[e]) : product;
        }
      }
    }
  }
  // True if element e of fragment (i, j) is inside C.
  __device__ static bool exists(const MatrixView<T>& c, int i, int j, int e) {
    return Tile::row(i, e) < c.rows && Tile::column(j, e) < c.columns;
  }

  const DmmaTask& task_;
  Buffers& buffers_;
  DmmaProblem<T> problem_;
  int tiles_;  // number of tiles of the batch item
  int steps_;  // number of pipeline stages that the k of a tile fills
};

// Writes every tile of the thread block without a product; needs_no_product() must be true.
template <class T, DmmaConfig Config>
__device__ void write_tiles_without_product(const DmmaTask& task) {
  const Scalars<T> scalars(task.tile.scalars);
  const MatrixView<T> c = DmmaProblem<T>(task).c;
  for (int index = static_cast<int>(blockIdx.x); index < task.row_tiles * task.column_tiles;
       index += static_cast<int>(gridDim.x)) {
    const Position first = tile_position<Config>(task, index);
    const std::int64_t rows = std::min<std::int64_t>(Config.rows, c.rows - first.row);
    const std::int64_t columns = std::min<std::int64_t>(Config.columns, c.columns - first.column);
    write_without_product(task.tile.condition, scalars, c.block(first.row, first.column, rows, columns),
                          Config.threads());
  }
}

// Computes the tiles of the thread block. `AlongK` is the form in which shared memory stores the operand of
// the matrix unit's columns.
template <class T, DmmaConfig Config, bool AlongK>
__device__ void multiply_tiles(const DmmaTask& task) {
  const DeviceCondition& condition = task.tile.condition;
  launch_dependents();
  if (condition.selected_earlier && !holds(condition, blockIdx.y)) return exit_in_stream_order();
  grid_dependency_wait();
  if (!holds(condition, blockIdx.y)) return;
  if (needs_no_product(condition, Scalars<T>(task.tile.scalars)))
    return write_tiles_without_product<T, Config>(task);
  extern __shared__ __align__(128) unsigned char memory[];
  using Block = DmmaBlock<T, Config, AlongK>;
  auto& buffers = *reinterpret_cast<Stages<Config>*>(memory);
  Block::initialise(buffers);
  const Block block(task, buffers);
  constexpr int registers = Config.consumer_registers;
  constexpr int producer_registers = Config.producer_registers();
  // Registers per thread at the launch, summed over the warps: of a thread block of 8 + 4 warps, or of 4 + 4.
  constexpr int launch_registers = Config.consumer_warps() == 8 ? 168 * 12 : 128 * 8;
  static_assert(registers == 0 ||
                registers * Config.consumer_warps() + producer_registers * dmma_producer_warps <=
                    launch_registers);
  if (threadIdx.x >= Config.consumer_warps() * warp_size) {
    if constexpr (registers > 0)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(producer_registers));
    block.produce();
  } else {
    if constexpr (registers > 0) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
    block.consume();
  }
}

constexpr bool along_k = true;
constexpr bool in_panels = false;

}  // namespace

// Defines a kernel for a tile (DmmaTile). The last argument is AlongK of multiply_tiles().
#define KINTSUGI_DMMA(name, T, tile, storage)                                                 \
  extern "C" __global__ void __launch_bounds__((tile).config.threads(), (tile).blocks_per_sm) \
      name(const __grid_constant__ DmmaTask task) {                                           \
    multiply_tiles<T, (tile).config, storage>(task);                                          \
  }

}  // namespace kintsugi::core::cuda
