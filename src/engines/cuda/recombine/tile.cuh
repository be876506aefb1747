// Matrices, scalars and the loop over a tile of C, for all recombination kernels.
#pragma once

#include <algorithm>
#include <type_traits>

#include "arith/complex.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/step_data.hpp"
#include "recombine/special_values.hpp"

namespace kintsugi::core::cuda {

template <class T>
__device__ MatrixView<T> view_of(const DeviceMatrix& matrix, std::int64_t item) {
  T* data = matrix.pointers ? static_cast<T* const*>(const_cast<void*>(matrix.data))[item]
                            : static_cast<T*>(const_cast<void*>(matrix.data)) + item * matrix.batch_stride;
  return {data, matrix.rows, matrix.columns, matrix.row_stride, matrix.column_stride, MemorySpace::device};
}

// View of the real vectors of an operand (base/embedding.hpp).
template <class T>
__device__ OperandView<T> operand_view(const DeviceSide& side) {
  const MatrixView<const T> vectors = view_of<const T>(side.matrix, side.item);
  if constexpr (is_complex<T>) {
    return {vectors, side.matrix.right, side.matrix.conjugated};
  } else {
    return vectors;
  }
}

// Scalar at the address `on_device`; `value` if the address is nullptr.
template <class T>
__device__ T scalar(const std::complex<double>& value, const void* on_device) {
  if (on_device != nullptr) return *static_cast<const T*>(on_device);
  if constexpr (is_complex<T>) {
    return {static_cast<RealOf<T>>(value.real()), static_cast<RealOf<T>>(value.imag())};
  } else {
    return static_cast<T>(value.real());
  }
}

template <class T>
struct Scalars {
  T alpha;
  T beta;

  __device__ explicit Scalars(const DeviceScalars& scalars)
      : alpha(scalar<T>(scalars.alpha, scalars.device_alpha)),
        beta(scalar<T>(scalars.beta, scalars.device_beta)) {}
};

// beta c. It is 0 for beta = 0, even if c is NaN or infinite.
template <class T>
__device__ T scaled(const T& beta, const T& c) {
  return beta == T(0) ? T(0) : scaled_element(beta, c, RoundingMode::nearest);
}

// Number of adjacent rows per thread. A warp has all rows of a column of the thread block; each thread has
// its rows of several columns (TileBlock::columns_each).
inline constexpr int rows_each = block_rows / warp_size;

// A thread's elements of one column, aligned for the widest accesses.
template <class Element>
struct alignas(std::min<std::size_t>(16, rows_each * sizeof(Element))) RowsOfThread {
  Element rows[rows_each];
};

template <class T>
constexpr ElementType element_type() {
  if constexpr (is_complex<T>) return sizeof(T) == 8 ? ElementType::c32 : ElementType::c64;
  return sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;
}

// Block of a tile of C that a thread block recombines. `e` is an index of the thread's columns. The block has
// up to `columns` columns, of which `staged_columns` at a time pass through shared memory if they must.
template <class T, int max_columns = block_columns(element_type<T>()), int staged_columns = max_columns>
class TileBlock {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  static constexpr int columns = max_columns;
  static constexpr int columns_each = columns / block_warps;  // per thread
  static constexpr int columns_staged =
      staged_columns / block_warps;  // per thread, of those staged at a time

  // `count`: number of columns of a thread block's share of the tile.
  __device__ explicit TileBlock(const DeviceTile& tile, int count = columns) {
    const auto blocks_along_rows = static_cast<unsigned>(divide_up(tile.rows, block_rows));
    first_row_ = std::int64_t{blockIdx.x % blocks_along_rows} * block_rows;
    first_column_ = std::int64_t{blockIdx.x / blocks_along_rows} * count;
    c_ = view_of<T>(tile.c, tile.item)
             .block(tile.first_row + first_row_, tile.first_column + first_column_,
                    std::min<std::int64_t>(block_rows, tile.rows - first_row_),
                    std::min<std::int64_t>(count, tile.columns - first_column_));
    constexpr std::int64_t elements_of_16_bytes = std::max<std::int64_t>(1, 16 / sizeof(T));
    staged_ = c_.row_stride != 1 || c_.rows % rows_each != 0 ||
              reinterpret_cast<std::uintptr_t>(c_.data) % 16 != 0 ||
              c_.column_stride % elements_of_16_bytes != 0;
  }

  // The thread's first row and its e-th column, counted from the first row and column of the block.
  __device__ static int row_in_block() { return rows_each * lane(); }
  __device__ static int column_in_block(int e) { return warp() + block_warps * e; }
  // True if some warp of the thread block has an e-th column.
  __device__ bool has_any_column(int e) const { return block_warps * e < static_cast<int>(c_.columns); }
  __device__ bool has_column(int e) const { return column_in_block(e) < static_cast<int>(c_.columns); }
  // True if the thread has an element of C in its e-th column.
  __device__ bool has_element(int e) const {
    return row_in_block() < static_cast<int>(c_.rows) && has_column(e);
  }
  __device__ int rows() const { return static_cast<int>(c_.rows); }
  __device__ std::int64_t first_row_in_tile() const { return first_row_; }
  __device__ std::int64_t first_column_in_tile() const { return first_column_; }
  // Address of the element of C in row i of the block and the thread's e-th column.
  __device__ T* element(int i, int e) const { return &c_(i, column_in_block(e)); }
  // The thread's first row and its e-th column, counted from the first row and column of the tile. If they
  // lie beyond the edge of C, the block's first row or column is returned, so that addresses computed from
  // them are valid.
  __device__ std::int64_t row_in_tile() const {
    return first_row_ + (row_in_block() < static_cast<int>(c_.rows) ? row_in_block() : 0);
  }
  __device__ std::int64_t column_in_tile(int e) const {
    return first_column_ + (column_in_block(e) < static_cast<int>(c_.columns) ? column_in_block(e) : 0);
  }

  // Loads the scales that exponent() reads. Returns true if the block is ordinary: all its vectors are
  // finite, and |exponent()| of every element is at most max_ordinary_exponent. All threads must call it
  // together.
  __device__ bool load_scales(const DeviceTile& tile) const {
    static_assert(block_rows + parts * columns <= block_threads);
    const auto thread = static_cast<int>(threadIdx.x);
    bool is_ordinary = true;
    if (thread < block_rows + parts * columns) {
      constexpr int max_scale = max_ordinary_exponent / 2;
      const VectorRange& range = range_of(tile, thread);
      const int scale = range.scale;
      scales()[thread] = scale;
      is_ordinary = range.finite() && -max_scale <= scale && scale <= max_scale;
    }
    return __syncthreads_and(is_ordinary ? 1 : 0) != 0;
  }
  // Exponent that undoes the scales of the thread's row r and part p of column e.
  __device__ int exponent(int r, int e, int p) const {
    return -(scales()[row_in_block() + r] + scales()[block_rows + parts * column_in_block(e) + p]);
  }

  // The share of column e's first part in these exponents.
  __device__ int column_exponent(int e) const { return -scales()[block_rows + parts * column_in_block(e)]; }

  // read() and write() access C itself, or a copy in shared memory if the threads' accesses do not suit C's
  // layout. begin() copies columns `first` ... `first` + staged_columns - 1 there if C is read; end() copies
  // written elements back to C. All threads must call begin() before the first element is read, and end()
  // after the last one is written.
  __device__ void begin(bool reads_c, int first = 0) const {
    if (!staged_) return;
    if (first != 0) __syncthreads();  // the columns before were copied to C
    if (!reads_c) return;
    for_each_staged(first, [](T& staged, T& element) { staged = element; });
    __syncthreads();
  }
  __device__ void end(int first = 0) const {
    if (!staged_) return;
    __syncthreads();
    for_each_staged(first, [](T& staged, T& element) { element = staged; });
  }
  __device__ bool is_staged() const { return staged_; }
  __device__ RowsOfThread<T> read(int e) const {
    if (!staged_) return *reinterpret_cast<const RowsOfThread<T>*>(&c_(row_in_block(), column_in_block(e)));
    RowsOfThread<T> elements;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) elements.rows[r] = staging(row_in_block() + r, column_in_block(e));
    return elements;
  }
  __device__ void write(int e, const RowsOfThread<T>& elements) const {
    if (!staged_) {
      *reinterpret_cast<RowsOfThread<T>*>(&c_(row_in_block(), column_in_block(e))) = elements;
      return;
    }
#pragma unroll
    for (int r = 0; r < rows_each; ++r) staging(row_in_block() + r, column_in_block(e)) = elements.rows[r];
  }

  // A set of the thread's elements: bit rows_each e + r stands for row r of its e-th column.
  // It has 64 bits only where 32 do not suffice, since it occupies registers throughout a kernel's loop.
  static constexpr int elements_each = rows_each * columns_each;
  using Elements = std::conditional_t<elements_each <= 32, std::uint32_t, std::uint64_t>;
  static constexpr Elements all_elements =
      static_cast<Elements>(~Elements{0} >> (8 * sizeof(Elements) - elements_each));
  __device__ static constexpr Elements elements_of_column(unsigned rows, int e) {
    return Elements{rows} << rows_each * e;
  }

  // Calls visit(i, j, element) for some of the thread's elements. i and j are counted from the tile's first
  // row and column. It serves blocks that are not ordinary, and single elements, which are too rare to need
  // speed.
  template <class Visit>
  __device__ void for_each_element(Elements elements, const Visit& visit) const {
#pragma unroll 1
    for (; elements != 0; elements &= elements - 1) {
      const int index = __ffsll(static_cast<long long>(elements)) - 1;
      const int i = row_in_block() + index % rows_each;
      const int j = column_in_block(index / rows_each);
      if (i < c_.rows && j < c_.columns) visit(first_row_ + i, first_column_ + j, &c_(i, j));
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x % warp_size); }
  __device__ static int warp() { return static_cast<int>(threadIdx.x / warp_size); }

  // Range of vector `index` of the block. The block's rows come first, then the vectors of its columns.
  // Beyond the edge of C it is the range of the last row, or of the last column's last vector.
  __device__ const VectorRange& range_of(const DeviceTile& tile, int index) const {
    if (index < block_rows)
      return tile.a.ranges[tile.first_row + first_row_ + std::min<std::int64_t>(index, c_.rows - 1)];
    const std::int64_t vector = std::min<std::int64_t>(index - block_rows, parts * c_.columns - 1);
    return tile.b.ranges[parts * (tile.first_column + first_column_) + vector];
  }
  // Scales of the block's vectors, in the order of range_of().
  __device__ static int* scales() {
    __shared__ int all[block_rows + parts * columns];
    return all;
  }
  // Element of the copy of the block in shared memory. A warp accesses one row of each lane's rows,
  // consecutive rows of one column, or one row of all columns. In each of these cases the elements are in
  // different banks. The memory is declared as bytes, because a shared variable may have no constructor, and
  // elements have one.
  __device__ static T& staging(int row, int column) {
    constexpr int group = warp_size + warp_size / rows_each;
    constexpr int size = rows_each * group + 1;
    alignas(16) __shared__ unsigned char bytes[staged_columns * size * sizeof(T)];
    return reinterpret_cast<T*>(
        bytes)[column % staged_columns * size + row % rows_each * group + row / rows_each];
  }

  // Calls visit(staged element, element of C) for the thread's share of the elements of columns `first` ...
  // `first` + staged_columns - 1. Neighboring lanes have neighboring elements of C.
  template <class Visit>
  __device__ void for_each_staged(int first, const Visit& visit) const {
    const bool by_rows = c_.column_stride < c_.row_stride;
#pragma unroll 4
    for (int e = static_cast<int>(threadIdx.x); e < block_rows * staged_columns; e += block_threads) {
      const int i = by_rows ? e / staged_columns : e % block_rows;
      const int j = first + (by_rows ? e % staged_columns : e / block_rows);
      if (i < c_.rows && j < c_.columns) visit(staging(i, j), c_(i, j));
    }
  }

  MatrixView<T> c_;         // the block of C
  std::int64_t first_row_;  // first row and column of the block in the tile
  std::int64_t first_column_;
  bool staged_;  // true: elements are read and written through shared memory
};

// Writes an element with NaN or infinities in its vectors. It is not inlined, since such elements are rare.
template <class T>
__device__ __noinline__ void write_special_element(const DeviceTile& tile, std::int64_t i, std::int64_t j,
                                                   T alpha, T beta, T* element) {
  *element = special_element<T>(operand_view<T>(tile.a), operand_view<T>(tile.b), i, j, alpha, beta,
                                beta == T(0) ? nullptr : element);
}

// Writes one element of beta C. It is not inlined: the four terms of a complex product are rounded once,
// which needs more registers than other elements do.
template <class T>
__device__ __noinline__ void write_scaled_element(T beta, T* element) {
  *element = scaled(beta, *element);
}

// Writes element (i, j) of the tile for any alpha, any scales and any special values in its vectors.
template <class T, class Recombination>
__device__ void write_any_element(const DeviceTile& tile, const Recombination& recombination,
                                  const Scalars<T>& scalars, std::int64_t i, std::int64_t j, T* element) {
  const VectorRange& row = tile.a.ranges[tile.first_row + i];
  const VectorRange* column = tile.b.ranges + parts_of<T> * (tile.first_column + j);
  if (scalars.alpha == T(0)) {
    write_scaled_element(scalars.beta, element);
  } else if (!row.finite() || !column->finite()) {
    write_special_element(tile, tile.first_row + i, tile.first_column + j, scalars.alpha, scalars.beta,
                          element);
  } else {
    recombination.write_finite(i, j, row.scale, column, scalars, element);
  }
}

// Recombines a block of a tile. `Block` is its TileBlock, constructed of the tile and `arguments`. If
// Recombination::takes() is true for the scalars, Recombination::write_block() writes an ordinary block
// (TileBlock::load_scales), and returns which elements it has left as they were. These and all other elements
// are written one by one: Recombination::write_finite() writes an element whose vectors are finite.
template <class T, class Block, class Recombination, class... Arguments>
__device__ void recombine_block(const DeviceTile& tile, const Recombination& recombination,
                                Arguments... arguments) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  if (scalars.alpha == T(0) && scalars.beta == T(1)) return;
  const Block block(tile, arguments...);
  auto left = Block::all_elements;
  if (block.load_scales(tile) && Recombination::takes(scalars)) {
    left = recombination.write_block(block, scalars);
    if (block.is_staged()) __syncthreads();  // other threads have copied elements to C
  }
  block.for_each_element(left, [&](std::int64_t i, std::int64_t j, T* element) {
    write_any_element(tile, recombination, scalars, i, j, element);
  });
}

// Recombines a tile, block by block.
template <class T, class Recombination>
__device__ void recombine_tile(const DeviceTile& tile, const Recombination& recombination) {
  recombine_block<T, TileBlock<T>>(tile, recombination);
}

}  // namespace kintsugi::core::cuda
