// What the kernels of this folder share: matrices, scalars and the loop over a tile of C.
#pragma once

#include <algorithm>

#include "arith/complex.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device.hpp"
#include "recombine/special_element.hpp"

namespace kintsugi::core::cuda {

// Of a step of several items, for one of them. Not from the first cache, of whose lines only who waited for
// what came before knows that they are not of an earlier call.
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

// A thread takes a few rows of some columns, as they lie beside each other in the sums; a warp takes a
// column.
inline constexpr int rows_each = block_rows / warp_size;

// What a thread has of a column, in as wide accesses as there are.
template <class Element>
struct alignas(std::min<std::size_t>(16, rows_each * sizeof(Element))) Together {
  Element of[rows_each];
};

template <class T>
constexpr ElementType element_type() {
  if constexpr (is_complex<T>) return sizeof(T) == 8 ? ElementType::c32 : ElementType::c64;
  return sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;
}

// The part of C that a thread block recombines.
template <class T>
class Block {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  static constexpr int columns = block_columns(element_type<T>());
  static constexpr int columns_each = columns / block_warps;

  __device__ explicit Block(const DeviceTile& tile) {
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

  // The thread's first row and one of its columns, inside the block.
  __device__ static int row() { return rows_each * lane(); }
  __device__ static int column(int e) { return warp() + block_warps * e; }
  __device__ bool has(int e) const {
    return row() < static_cast<int>(c_.rows) && column(e) < static_cast<int>(c_.columns);
  }
  // The same in the tile; the first one where the thread has none.
  __device__ std::int64_t tile_row() const {
    return first_row_ + (row() < static_cast<int>(c_.rows) ? row() : 0);
  }
  __device__ std::int64_t tile_column(int e) const {
    return first_column_ + (column(e) < static_cast<int>(c_.columns) ? column(e) : 0);
  }

  // All threads together: whether all vectors are finite and have scales that are powers of two in double,
  // products of two included; exponent() is then known, and that of an ordinary number.
  __device__ bool is_ordinary(const DeviceTile& tile) const {
    static_assert(block_rows + parts * columns <= block_threads);
    const auto thread = static_cast<int>(threadIdx.x);
    bool ordinary = true;
    if (thread < block_rows + parts * columns) {
      constexpr int largest = most_ordinary_exponent / 2;
      const VectorRange& range = range_of(tile, thread);
      const int scale = range.scale;
      scales()[thread] = scale;
      ordinary = range.finite() && -largest <= scale && scale <= largest;
    }
    return __syncthreads_and(ordinary ? 1 : 0) != 0;
  }
  // That undoes the scales of the thread's row r and part p of column e.
  __device__ int exponent(int r, int e, int p) const {
    return -(scales()[row() + r] + scales()[block_rows + parts * column(e) + p]);
  }

  // Where C cannot be accessed in the thread's way, its elements go through shared memory. All threads
  // together, before the first element is read and after the last one was written.
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
  __device__ Together<T> read(int e) const {
    if (!staged_) return *reinterpret_cast<const Together<T>*>(&c_(row(), column(e)));
    Together<T> elements;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) elements.of[r] = staging(row() + r, column(e));
    return elements;
  }
  __device__ void write(int e, const Together<T>& elements) const {
    if (!staged_) {
      *reinterpret_cast<Together<T>*>(&c_(row(), column(e))) = elements;
      return;
    }
#pragma unroll
    for (int r = 0; r < rows_each; ++r) staging(row() + r, column(e)) = elements.of[r];
  }

  // visit(i, j, element) for all of the thread's elements, i and j in the tile: one row at a time, where time
  // counts less.
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

  // Rows, then vectors of columns; the last one again where there are no more.
  __device__ const VectorRange& range_of(const DeviceTile& tile, int number) const {
    if (number < block_rows)
      return tile.a.ranges[tile.first_row + first_row_ + std::min<std::int64_t>(number, c_.rows - 1)];
    const std::int64_t vector = std::min<std::int64_t>(number - block_rows, parts * c_.columns - 1);
    return tile.b.ranges[parts * (tile.first_column + first_column_) + vector];
  }
  // Of the same.
  __device__ static int* scales() {
    __shared__ int all[block_rows + parts * columns];
    return all;
  }
  // As bytes: elements have constructors, shared memory has none. What a warp accesses together lies in
  // different banks, be it the same row of all lanes, rows one below the other or one row of all columns.
  __device__ static T& staging(int row, int column) {
    constexpr int group = warp_size + warp_size / rows_each;
    constexpr int size = rows_each * group + 1;
    alignas(16) __shared__ unsigned char bytes[columns * size * sizeof(T)];
    return reinterpret_cast<T*>(bytes)[column * size + row % rows_each * group + row / rows_each];
  }

  // Lanes lie along C's lines.
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

// The rare elements, out of the way of the others.
template <class T>
__device__ __noinline__ void put_special_element(const DeviceTile& tile, std::int64_t i, std::int64_t j,
                                                 T alpha, T beta, T* element) {
  *element = special_element<T>(operand_view<T>(tile.a), operand_view<T>(tile.b), i, j, alpha, beta,
                                beta == T(0) ? nullptr : element);
}

// One element of beta C. A complex product of four terms is rounded once, which takes room that others do not
// need.
template <class T>
__device__ __noinline__ void put_scaled_element(T beta, T* element) {
  *element = scaled(beta, *element);
}

// Any element: alpha may be 0, its row or column may have NaN or infinities, their scales may be any.
template <class T, class Recombination>
__device__ void put_any_element(const DeviceTile& tile, const Recombination& recombination,
                                const Scalars<T>& scalars, std::int64_t i, std::int64_t j, T* element) {
  const VectorRange& row = tile.a.ranges[tile.first_row + i];
  const VectorRange* column = tile.b.ranges + parts_of<T> * (tile.first_column + j);
  if (scalars.alpha == T(0)) {
    put_scaled_element(scalars.beta, element);
  } else if (!row.finite() || !column->finite()) {
    put_special_element(tile, tile.first_row + i, tile.first_column + j, scalars.alpha, scalars.beta,
                        element);
  } else {
    recombination.put(i, j, row.scale, column, scalars, element);
  }
}

// Recombination::put_block makes the elements of a block of ordinary vectors and of scalars that it `takes`,
// `put` any one whose vectors are finite.
template <class T, class Recombination>
__device__ void recombine_tile(const DeviceTile& tile, const Recombination& recombination) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  if (scalars.alpha == T(0) && scalars.beta == T(1)) return;
  const Block<T> block(tile);
  if (block.is_ordinary(tile) && Recombination::takes(scalars)) {
    block.begin(scalars.beta != T(0));
    recombination.put_block(block, scalars);
    block.end();
  } else {
    block.for_each_element([&](std::int64_t i, std::int64_t j, T* element) {
      put_any_element(tile, recombination, scalars, i, j, element);
    });
  }
}

}  // namespace kintsugi::core::cuda
