// Matrices, scalars and the loop over a tile of C, which the recombination kernels share.
#pragma once

#include <algorithm>

#include "arith/complex.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device.hpp"
#include "recombine/special_element.hpp"

namespace kintsugi::core::cuda {

// True if the condition has no selection, or batch item `item` of the step selected its candidate. Bypasses
// L1, whose lines may be of an earlier call unless the thread waited for the kernels before this one.
__device__ inline bool holds(const DeviceCondition& condition, std::int64_t item = 0) {
  return condition.selection == nullptr ||
         __ldcg(&condition.selection[item].candidate) == condition.candidate;
}

template <class T>
__device__ MatrixView<T> view_of(const DeviceMatrix& matrix, std::int64_t item) {
  T* data = matrix.pointers ? static_cast<T* const*>(const_cast<void*>(matrix.data))[item]
                            : static_cast<T*>(const_cast<void*>(matrix.data)) + item * matrix.batch_stride;
  return {data, matrix.rows, matrix.columns, matrix.row_stride, matrix.column_stride, MemorySpace::device};
}

template <class T>
__device__ OperandView<T> operand_view(const DeviceSide& side) {
  const MatrixView<const T> vectors = view_of<const T>(side.matrix, side.item);
  if constexpr (is_complex<T>) {
    return {vectors, side.matrix.right, side.matrix.conjugated};
  } else {
    return vectors;
  }
}

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

template <class T>
__device__ T scaled(const T& beta, const T& c) {
  return beta == T(0) ? T(0) : scaled_element(beta, c);
}

// Rows per thread, adjacent in the sums. A thread has these rows in columns_each columns (TileBlock); a warp
// takes a column.
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

// Part of C that a thread block recombines.
template <class T>
class TileBlock {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  static constexpr int columns = block_columns(element_type<T>());
  static constexpr int columns_each = columns / block_warps;  // per thread

  __device__ explicit TileBlock(const DeviceTile& tile) {
    const auto blocks = static_cast<unsigned>(divide_up(tile.rows, block_rows));
    first_row_ = std::int64_t{blockIdx.x % blocks} * block_rows;
    first_column_ = std::int64_t{blockIdx.x / blocks} * columns;
    c_ = view_of<T>(tile.c, tile.item)
             .block(tile.first_row + first_row_, tile.first_column + first_column_,
                    std::min<std::int64_t>(block_rows, tile.rows - first_row_),
                    std::min<std::int64_t>(columns, tile.columns - first_column_));
    constexpr std::int64_t elements = std::max<std::int64_t>(1, 16 / sizeof(T));
    staged_ = c_.row_stride != 1 || c_.rows % rows_each != 0 ||
              reinterpret_cast<std::uintptr_t>(c_.data) % 16 != 0 || c_.column_stride % elements != 0;
  }

  // The thread's first row and its e-th column within the block.
  __device__ static int row() { return rows_each * lane(); }
  __device__ static int column(int e) { return warp() + block_warps * e; }
  __device__ bool has_column(int e) const { return column(e) < static_cast<int>(c_.columns); }
  __device__ bool has(int e) const { return row() < static_cast<int>(c_.rows) && has_column(e); }
  __device__ int rows() const { return static_cast<int>(c_.rows); }
  __device__ std::int64_t first_row() const { return first_row_; }
  // Element of C of the block's row i and the thread's e-th column.
  __device__ T* element(int i, int e) const { return &c_(i, column(e)); }
  // Row and column within the tile; those of the block's first element if the thread has none.
  __device__ std::int64_t tile_row() const {
    return first_row_ + (row() < static_cast<int>(c_.rows) ? row() : 0);
  }
  __device__ std::int64_t tile_column(int e) const {
    return first_column_ + (column(e) < static_cast<int>(c_.columns) ? column(e) : 0);
  }

  // True if all vectors are finite and every exponent(), which is then known, is at most
  // max_ordinary_exponent in magnitude. All threads call it together.
  __device__ bool is_ordinary(const DeviceTile& tile) const {
    static_assert(block_rows + parts * columns <= block_threads);
    const auto thread = static_cast<int>(threadIdx.x);
    bool ordinary = true;
    if (thread < block_rows + parts * columns) {
      constexpr int largest = max_ordinary_exponent / 2;
      const VectorRange& range = range_of(tile, thread);
      const int scale = range.scale;
      scales()[thread] = scale;
      ordinary = range.finite() && -largest <= scale && scale <= largest;
    }
    return __syncthreads_and(ordinary ? 1 : 0) != 0;
  }
  // Exponent that undoes the scales of the thread's row r and part p of column e.
  __device__ int exponent(int r, int e, int p) const {
    return -(scales()[row() + r] + scales()[block_rows + parts * column(e) + p]);
  }

  // Moves elements through shared memory if the threads' accesses do not suit C's layout. All threads call
  // begin() before the first element is read, and end() after the last one was written.
  __device__ void begin(bool reads_c) const {
    if (!staged_ || !reads_c) return;
    for_each_staged([](T& staged, T& element) { staged = element; });
    __syncthreads();
  }
  __device__ void end() const {
    if (!staged_) return;
    __syncthreads();
    for_each_staged([](T& staged, T& element) { element = staged; });
  }
  __device__ RowsOfThread<T> read(int e) const {
    if (!staged_) return *reinterpret_cast<const RowsOfThread<T>*>(&c_(row(), column(e)));
    RowsOfThread<T> elements;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) elements.rows[r] = staging(row() + r, column(e));
    return elements;
  }
  __device__ void write(int e, const RowsOfThread<T>& elements) const {
    if (!staged_) {
      *reinterpret_cast<RowsOfThread<T>*>(&c_(row(), column(e))) = elements;
      return;
    }
#pragma unroll
    for (int r = 0; r < rows_each; ++r) staging(row() + r, column(e)) = elements.rows[r];
  }

  // Calls visit(i, j, element) for all of the thread's elements, i and j in the tile, row by row: for blocks
  // that are rare enough not to need speed.
  template <class Visit>
  __device__ void for_each_element(const Visit& visit) const {
#pragma unroll 1
    for (int j = warp(); j < c_.columns; j += block_warps) {
#pragma unroll 1
      for (int i = lane(); i < c_.rows; i += warp_size) visit(first_row_ + i, first_column_ + j, &c_(i, j));
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x % warp_size); }
  __device__ static int warp() { return static_cast<int>(threadIdx.x / warp_size); }

  // Range of a vector of the block: its rows, then the vectors of its columns; the last one again beyond the
  // edge.
  __device__ const VectorRange& range_of(const DeviceTile& tile, int number) const {
    if (number < block_rows)
      return tile.a.ranges[tile.first_row + first_row_ + std::min<std::int64_t>(number, c_.rows - 1)];
    const std::int64_t vector = std::min<std::int64_t>(number - block_rows, parts * c_.columns - 1);
    return tile.b.ranges[parts * (tile.first_column + first_column_) + vector];
  }
  // Scales of those vectors.
  __device__ static int* scales() {
    __shared__ int all[block_rows + parts * columns];
    return all;
  }
  // Element in shared memory, which is an array of bytes, since elements have constructors and shared memory
  // has none. Elements that a warp accesses together are in different banks, be they the same row of all
  // lanes, consecutive rows or one row of all columns.
  __device__ static T& staging(int row, int column) {
    constexpr int group = warp_size + warp_size / rows_each;
    constexpr int size = rows_each * group + 1;
    alignas(16) __shared__ unsigned char bytes[columns * size * sizeof(T)];
    return reinterpret_cast<T*>(bytes)[column * size + row % rows_each * group + row / rows_each];
  }

  // Calls visit(staged element, element of C); lanes follow C's contiguous lines.
  template <class Visit>
  __device__ void for_each_staged(const Visit& visit) const {
    const bool by_rows = c_.column_stride < c_.row_stride;
#pragma unroll 4
    for (int e = static_cast<int>(threadIdx.x); e < block_rows * columns; e += block_threads) {
      const int i = by_rows ? e / columns : e % block_rows;
      const int j = by_rows ? e % columns : e / block_rows;
      if (i < c_.rows && j < c_.columns) visit(staging(i, j), c_(i, j));
    }
  }

  MatrixView<T> c_;
  std::int64_t first_row_;
  std::int64_t first_column_;
  bool staged_;
};

// Writes an element with NaN or infinities in its vectors. Not inlined, since such elements are rare.
template <class T>
__device__ __noinline__ void write_special_element(const DeviceTile& tile, std::int64_t i, std::int64_t j,
                                                   T alpha, T beta, T* element) {
  *element = special_element<T>(operand_view<T>(tile.a), operand_view<T>(tile.b), i, j, alpha, beta,
                                beta == T(0) ? nullptr : element);
}

// Writes one element of beta C. Not inlined: a complex product of four terms is rounded once, which needs
// registers that other elements do not.
template <class T>
__device__ __noinline__ void write_scaled_element(T beta, T* element) {
  *element = scaled(beta, *element);
}

// Writes an element without any condition on alpha, on the scales, or on special values in its vectors.
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

// Recombines a tile. Recombination::write_block writes a block whose vectors are all ordinary, for scalars
// that Recombination::takes accepts; write_finite writes any element whose vectors are finite.
template <class T, class Recombination>
__device__ void recombine_tile(const DeviceTile& tile, const Recombination& recombination) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  if (scalars.alpha == T(0) && scalars.beta == T(1)) return;
  const TileBlock<T> block(tile);
  if (block.is_ordinary(tile) && Recombination::takes(scalars)) {
    block.begin(scalars.beta != T(0));
    recombination.write_block(block, scalars);
    block.end();
  } else {
    block.for_each_element([&](std::int64_t i, std::int64_t j, T* element) {
      write_any_element(tile, recombination, scalars, i, j, element);
    });
  }
}

}  // namespace kintsugi::core::cuda
